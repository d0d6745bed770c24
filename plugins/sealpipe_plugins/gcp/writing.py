"""A write to one secret of Google's.

Google adds a version without a condition, but numbers it. If the number does not follow that of the
version that ours was made from, another writer was between: then theirs is merged with ours, or put
back where ours must not replace it.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from google_crc32c import value as crc32c

from sealpipe.plugin import (
    PluginError,
    UnavailableError,
    UnknownOutcomeError,
    WriteConflictError,
)
from sealpipe_plugins.cloud import Job, SecretWrite, check_size
from sealpipe_plugins.confirm import TRIES, Snapshot, add_marker, has_marker, require_same
from sealpipe_plugins.gcp.client import (
    ACCESS,
    SecretManager,
    Version,
    parse_number,
    parse_version_value,
)
from sealpipe_plugins.gcp.errors import error_member, refuse
from sealpipe_plugins.secret_documents import (
    Stored,
    adopt_members,
    as_bytes,
    as_stored,
    make_document,
    next_document,
    read_values,
)

MAX_SIZE: Final = 65536
"""Maximum bytes of a secret."""
ANNOTATION: Final = "sealpipe.dev-submissions"
"""The annotation that holds the markers, newest last."""
ANNOTATION_LIMIT: Final = 4096
"""Maximum characters of the annotation: all annotations of a secret together may have 16 KiB."""

MOST_BETWEEN: Final = 100
"""Versions of other writers that one write looks at: each is a request."""

_READS: Final = 4
"""Attempts to read a version of another writer, with a pause in seconds:"""
_PAUSE: Final = 0.25

_NO_VERSION: Final = Version(0, b"")


class SecretUpdate(SecretWrite):
    """A write to one secret."""

    def __init__(self, manager: SecretManager, secret: tuple[str, str], job: Job) -> None:
        super().__init__(job)
        check_size(make_document(None, job.wanted, job.locator), MAX_SIZE, "Google", job.locator)
        self._manager = manager
        self._folder, self._name = f"projects/{secret[0]}/secrets", secret[1]
        self._path = f"{self._folder}/{self._name}"

    def read(self) -> Snapshot:
        """Read the annotation and the newest version."""
        secret = self._describe()
        if secret is None:
            return Snapshot(None)
        newest, markers = self._newest(), _markers_in(secret)
        if newest.number == 0:  # a secret without a version, such as one that was just created
            return Snapshot(None, markers=markers, raw=newest)
        existing = read_values(as_stored(newest.data), whole="" in self._wanted)
        return Snapshot(existing, str(newest.number), markers, newest)

    def write(
        self,
        snapshot: Snapshot,
        after: Mapping[str, bytes],  # noqa: ARG002
        tries: int,  # noqa: ARG002
    ) -> str | None:
        """Add a version, and another one if other writers were between."""
        if snapshot.raw is None and not self._create():
            return None
        base: Version = snapshot.raw or _NO_VERSION
        stored = as_stored(base.data) if base.number else None
        content, seen, own = (
            next_document(stored, self._wanted, self._mode, self._locator),
            base.number,
            set[int](),
        )
        for _ in range(TRIES):
            number = self._add(content)
            if self._mode == "replace":
                return str(number)
            if number - seen > MOST_BETWEEN:
                break
            others = [each for each in range(seen + 1, number) if each not in own]
            merged = self._content_with(content, others, stored)
            if merged == content:
                return str(number)
            content, seen = merged, number
            own.add(number)
        raise UnavailableError(
            f"{self._locator} cannot be written now: other writers keep changing it",
            remedy="run it again later",
        )

    def add_marker(self, snapshot: Snapshot) -> None:  # noqa: ARG002 - it is read again
        """Add the marker to the annotation, on condition that the secret has not changed."""
        for _ in range(TRIES):
            secret = self._describe() or {}
            markers = _markers_in(secret)
            if has_marker(markers, self._marker):
                return
            annotations = {**(secret.get("annotations") or {}), **self._annotation(markers)}
            body = {"etag": secret.get("etag", ""), "annotations": annotations}
            reply = self._manager.call("PATCH", f"{self._path}?updateMask=annotations", body)
            if error_member(reply, "status") not in ("ABORTED", "FAILED_PRECONDITION"):
                refuse(
                    reply,
                    self._locator,
                    "secretmanager.secrets.update",
                    "marked, though it holds the value",
                )
                return
        raise UnavailableError(
            (
                f"{self._locator} is stored, but its marker cannot be written now: other "
                "writers keep changing it"
            ),
            remedy="run it again later",
        )

    def _content_with(self, content: Stored, others: Sequence[int], base: Stored | None) -> Stored:
        """Return the content that must be stored after that of other writers.

        What a version has as `base` has it is no change: it may be made of an older one than ours.
        """
        theirs = [as_stored(self._read_hidden(number).data) for number in others]
        if self._mode == "create" and theirs:  # the first of them is the one that created it
            created, *later = theirs
            before = created
            for each in later:  # its own values stay: another that was to create them has lost
                created = adopt_members(created, each, None, read_values(before, whole=False))
            if before == content:  # the same submission on another machine
                return created
            self._add(created)
            raise WriteConflictError(
                f"{self._locator}: another writer stored a value at the same moment",
                remedy=(
                    "use another target, or allow a change: ?mode=merge or ?mode=replace in "
                    "the target"
                ),
            )
        if "" not in self._wanted:
            for each in theirs:
                content = adopt_members(content, each, base, self._wanted)
        return content

    def _create(self) -> bool:
        secret = {"replication": {"automatic": {}}, "annotations": self._annotation("")}
        reply = self._manager.call(
            "POST", f"{self._folder}?secretId={self._name}", secret, writes=True
        )
        if reply.status == 409:
            return False
        refuse(reply, self._locator, "secretmanager.secrets.create", "created")
        self.is_marked = True
        return True

    def _add(self, content: Stored) -> int:
        """Add a version and read it back. Return its number."""
        check_size(content, MAX_SIZE, "Google", self._locator)
        data = as_bytes(content)
        payload = {"data": base64.b64encode(data).decode("ascii"), "dataCrc32c": str(crc32c(data))}
        number = 0
        try:
            reply = self._manager.call(
                "POST", f"{self._path}:addVersion", {"payload": payload}, writes=True
            )
        except UnknownOutcomeError:
            with suppress(PluginError):  # its number tells whether other writers were between
                newest = self._newest()
                number = newest.number if newest.data == data else 0
            if not number:
                raise
        else:
            done = refuse(reply, self._locator, "secretmanager.versions.add", "written")
            number = parse_number(done)
        require_same(self._access(number).data, data, self._locator)
        return number

    def _read_hidden(self, number: int) -> Version:
        """Read a version of another writer, which ours hides: a later call would not see it."""
        for tries in range(_READS):
            time.sleep(_PAUSE * tries)
            with suppress(UnavailableError):
                return self._access(number)
        raise PluginError(
            f"{self._locator} holds the value, but version {number} of another writer, which was "
            "stored at the same moment, cannot be read",
            remedy="add to the newest version what only that one has",
        )

    def _access(self, number: int) -> Version:
        return self._manager.access(f"{self._path}/versions/{number}", self._locator)

    def _describe(self) -> Mapping[str, Any] | None:
        reply = self._manager.call("GET", self._path)
        if reply.status == 404:
            return None
        described = refuse(reply, self._locator, "secretmanager.secrets.get").json
        return described if isinstance(described, dict) else {}

    def _newest(self) -> Version:
        """Return the newest version; number 0 if there is none."""
        reply = self._manager.call("GET", f"{self._path}/versions/latest:access")
        if reply.status == 404:
            return _NO_VERSION
        if error_member(reply, "status") != "FAILED_PRECONDITION":
            return parse_version_value(refuse(reply, self._locator, ACCESS), self._locator)
        if self._mode != "replace":
            raise WriteConflictError(
                f"{self._locator}: its newest version is disabled or destroyed",
                remedy="enable it (`gcloud secrets versions enable`), or store with --mode replace",
            )
        described = self._manager.call("GET", f"{self._path}/versions/latest")
        return Version(
            parse_number(refuse(described, self._locator, "secretmanager.versions.get")), b""
        )

    def _annotation(self, markers: str) -> dict[str, str]:
        return {ANNOTATION: add_marker(markers, self._marker, ANNOTATION_LIMIT)}


def _markers_in(secret: Mapping[str, Any]) -> str:
    annotations = secret.get("annotations")
    return str(annotations.get(ANNOTATION, "")) if isinstance(annotations, dict) else ""
