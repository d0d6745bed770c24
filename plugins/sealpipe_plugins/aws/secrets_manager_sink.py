"""`aws-sm:NAME` or `aws-sm:ARN`: AWS Secrets Manager.

Without a key the value is the whole secret; keys are members of its JSON object. A new version is
created beside the current one, read back, and promoted only if the version it was made from is
still current. (AWS refuses to move a stage from a version that does not have it.) So two concurrent
writers lose nothing.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from sealpipe.plugin import (
    Locator,
    PluginError,
    ReferenceValueError,
    UnavailableError,
    UnknownOutcomeError,
    WriteConflictError,
)
from sealpipe_plugins.aws.client import AwsPlugin
from sealpipe_plugins.aws.content import Content, get_stored, markers_in, next_content, tags_with
from sealpipe_plugins.aws.error_table import MARK, READ, WRITE, Verb
from sealpipe_plugins.cloud import Job, SecretWrite, VersionedSink
from sealpipe_plugins.confirm import Snapshot, require_same
from sealpipe_plugins.secret_documents import read_values

STAGE: Final = "sealpipe"
"""The stage of a version before it becomes the current one."""

_NAME: Final = re.compile(
    r"[A-Za-z0-9/_+=.@-]{1,512}|arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:[0-9]+:secret:[^\s]+"
)
_UUID_NAMESPACE: Final = uuid.UUID("6c1f4f4e-9d4b-5d0c-8f0e-0b6a2c1d7e35")
"""The namespace of our tokens (UUID version 5)."""
_MISSING, _EXISTS = ("ResourceNotFoundException",), ("ResourceExistsException",)
_MOVED = ("InvalidParameterException", "InvalidRequestException")


class AwsSmSink(AwsPlugin, VersionedSink):
    """Secrets, by name or ARN. The marker is in a tag."""

    add_version = "store a new version of"

    def name_secret(self, locator: Locator) -> tuple[str, str]:
        """Return the name."""
        if not _NAME.fullmatch(locator.body):
            raise ReferenceValueError(
                f"{locator} is not a valid secret name",
                remedy=(
                    f"write {locator.name}:NAME, of letters, digits and /_+=.@- (512 at most), "
                    "or an ARN"
                ),
            )
        return locator.body, "AWS Secrets Manager"

    def open_secret(self, job: Job) -> _SecretUpdate:
        """Return a write to the secret."""
        return _SecretUpdate(self, job)

    def call(
        self, operation: str, locator: Locator, verb: Verb = READ, subject: str = "", **more: Any
    ) -> dict[str, Any]:
        """Make a call about this secret."""
        if operation != "create_secret":
            more["SecretId"] = locator.body
        region = self._aws.region(locator.body)
        return self._aws.call(
            "secretsmanager", operation, subject or locator, verb, region=region, **more
        )


class _SecretUpdate(SecretWrite):
    """A write to one secret."""

    def __init__(self, sink: AwsSmSink, job: Job) -> None:
        super().__init__(job)
        self._sink = sink
        # An invalid value is rejected before the first call.
        next_content(None, job.wanted, job.mode, job.locator)

    def add_marker(self, snapshot: Snapshot) -> None:  # noqa: ARG002 - the tag is read again
        """Add the marker to the tag."""
        markers = markers_in(self._call("describe_secret").get("Tags"))
        subject = f"{self._locator} holds the value; its tag"
        self._call("tag_resource", MARK, subject=subject, Tags=tags_with(markers, self._marker))

    def read(self) -> Snapshot:
        """Read the current version and the tag."""
        described = self._call("describe_secret", expected=_MISSING)
        if not described:
            return Snapshot(None)
        if described.get("DeletedDate") is not None:
            raise WriteConflictError(
                f"{self._locator} is marked for deletion",
                remedy="restore it (`aws secretsmanager restore-secret`), or name another one",
            )
        # A secret that was created without a value has no version.
        content = self._call("get_secret_value", expected=_MISSING, VersionStage="AWSCURRENT")
        stored = get_stored(content)
        existing = None if stored is None else read_values(stored, whole="" in self._wanted)
        return Snapshot(
            existing,
            str(content.get("VersionId", "")),
            markers_in(described.get("Tags")),
            {"stored": stored},
        )

    def write(
        self,
        snapshot: Snapshot,
        after: Mapping[str, bytes],  # noqa: ARG002
        tries: int,
    ) -> str | None:
        """Write a new version and promote it, if the version it is made from is still current."""
        if snapshot.raw is None:
            return self._create()
        base, new_content = (
            snapshot.version,
            next_content(snapshot.raw["stored"], self._wanted, self._mode, self._locator),
        )
        token = self._token(base, tries)
        stages = {"VersionStages": [STAGE], "ClientRequestToken": token}
        if not self._call("put_secret_value", WRITE, expected=_EXISTS, **stages, **new_content):
            return None
        self._read_back(token, new_content)
        if not self._promote(token, base):
            return None
        with suppress(PluginError):  # cleanup only: nothing depends on it
            self._call("update_secret_version_stage", VersionStage=STAGE, RemoveFromVersionId=token)
        return token

    def _promote(self, token: str, base: str) -> bool:
        """Make it the current version; False if the current one has changed since."""
        request = {"VersionStage": "AWSCURRENT", "MoveToVersionId": token}
        if base:
            request["RemoveFromVersionId"] = base
        else:
            current_version = _versions_by_stage(self._call("describe_secret")).get("AWSCURRENT")
            if current_version is not None:
                return current_version == token  # the very first version becomes current at once
        if not self._call("update_secret_version_stage", WRITE, expected=_MOVED, **request):
            return False
        if _versions_by_stage(self._call("describe_secret")).get("AWSCURRENT", "") == base:
            raise UnknownOutcomeError(
                f"AWS accepted a new version of {self._locator}, but the one before is current",
                remedy="run it again: nothing is stored twice",
            )
        return True

    def _create(self) -> str | None:
        if self._locator.body.startswith("arn:"):
            raise ReferenceValueError(
                f"{self._locator} does not exist",
                remedy="name a new secret by its name, not by an ARN",
            )
        new_content = next_content(None, self._wanted, self._mode, self._locator)
        # A new token for each attempt: AWS accepts a repeated token, so two writers would both
        # believe that the version is theirs.
        token, tags = str(uuid.uuid4()), tags_with("", self._marker)
        request = {
            "Name": self._locator.body,
            "ClientRequestToken": token,
            "Tags": tags,
            **new_content,
        }
        if not self._call(
            "create_secret", WRITE, expected=_EXISTS, tagging="tag_resource", **request
        ):
            return None
        self.is_marked = True
        self._read_back(token, new_content)
        return token

    def _read_back(self, version: str, new_content: Content) -> None:
        response = self._call("get_secret_value", VersionId=version, expected=_MISSING)
        if not response:
            raise UnavailableError(
                f"{self._locator} was written but cannot be read back yet", remedy="run it again"
            )
        require_same(
            {name: response.get(name) for name in new_content}, dict(new_content), self._locator
        )

    def _token(self, base: str, tries: int) -> str:
        # The token becomes the version's id, which is public, so it must not depend on the value.
        # It depends on the base version, so that one token never identifies two different contents.
        parts = [self._marker, self._mode, base, str(tries), *sorted(self._wanted)]
        return str(uuid.uuid5(_UUID_NAMESPACE, json.dumps(parts)))

    def _call(self, operation: str, verb: Verb = READ, **more: Any) -> dict[str, Any]:
        return self._sink.call(operation, self._locator, verb, **more)


def _versions_by_stage(described: Mapping[str, Any]) -> dict[str, str]:
    """Return the version of each stage."""
    return {
        stage: version
        for version, stages in (described.get("VersionIdsToStages") or {}).items()
        for stage in stages
    }
