"""What the stores of the clouds share.

Logged-in calls, what their refusals mean, and sinks that add versions.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, NamedTuple
from urllib.parse import urlsplit

from sealpipe.plugin import (
    AccessDeniedError,
    BackendAuthError,
    Context,
    Health,
    Locator,
    Mode,
    SecretNotFoundError,
    Sink,
    SinkField,
    UnsupportedError,
    WriteResult,
)
from sealpipe_plugins.confirm import Snapshot, has_marker, store_and_confirm
from sealpipe_plugins.http_api import Endpoint, Headers
from sealpipe_plugins.http_errors import Refusal, require_answer, require_success
from sealpipe_plugins.http_reply import Reply
from sealpipe_plugins.secret_documents import Stored, as_bytes, document_values

CodedRefusals = Mapping[tuple[int, str], Refusal]
"""What a status means with the code in a response (any: an empty one).

`{done}`, `{permission}` and `{name}` stand in its texts for what the call does, what it needs, and
the name in the reference.
"""


class LoginSender:
    """Sends the requests of a login library over the shared network.

    `system` and `setting` name both in errors.

    `refusal` is the last response that was not a success.
    """

    system: ClassVar[str]
    setting: ClassVar[str]

    def __init__(self, context: Context, timeout: float) -> None:
        self._context = context
        self._timeout = timeout
        self.refusal: Reply | None = None

    def exchange(
        self, method: str, url: str, body: bytes | None, headers: Mapping[str, str] | None
    ) -> Reply:
        """Send one request.

        Raises PluginError if there is no response, or one that asks to try again.
        """
        parts = urlsplit(url)
        address = f"{parts.scheme}://{parts.netloc}"
        endpoint = Endpoint(
            self._context, self.system, address, setting=self.setting, timeout=self._timeout
        )
        target = parts._replace(scheme="", netloc="", fragment="").geturl()
        lower = {name.lower(): value for name, value in (headers or {}).items()}
        reply = require_answer(endpoint.request(method, target, body, headers=lower))
        if reply.status != 200:
            self.refusal = reply
        return reply


def make_endpoint(context: Context, system: str, url: str, timeout: float) -> Endpoint:
    """Return the endpoint of a store's API, at the address of its setting `url`."""
    remedy = "run it again: it checks what is stored first"
    return Endpoint(
        context, system, url, setting="url", timeout=timeout, unknown_outcome_remedy=remedy
    )


def send_logged_in(
    endpoint: Endpoint,
    login_headers: Headers,
    forget: Callable[[], object],
    method: str,
    path: str,
    body: Mapping[str, Any] | None = None,
    *,
    writes: bool = False,
) -> Reply:
    """Make one call, and `forget` a token that is refused. Raises like `Endpoint.post`.

    Any response is returned but a redirect, and one that asks to try again.
    """
    content = None if body is None else json.dumps(body).encode()
    reply = endpoint.request(method, path, content, writes=writes, headers=login_headers)
    if reply.status == 401:
        forget()
    return require_answer(reply)


def describe_login(reply: Reply, detail: str) -> Health:
    """Return the health of a login by its response to a list of secrets."""
    if reply.status == 200:
        return Health(ok=True, detail=detail)
    lacks = f"it may not list secrets ({reply.status}), single ones may still be allowed"
    return Health(ok=reply.status == 403, detail=f"{detail}; {lacks}")


def usual_refusals(
    who: str, place: str, log_in: str, permission: str, grant: str
) -> dict[tuple[int, str], Refusal]:
    """Return what the usual refusals of a cloud mean.

    `who` refuses, and a `place` has its secrets.
    """
    return {
        (401, ""): (
            BackendAuthError,
            f" cannot be {{done}}: {who} refused the token (401)",
            log_in,
        ),
        (403, ""): (
            AccessDeniedError,
            f" may not be {{done}}: {who} does not allow {permission} for this login (403)",
            f"grant {grant}; `sealpipe doctor {{name}}` shows the login",
        ),
        (404, ""): (
            SecretNotFoundError,
            " does not exist, or has no such version",
            f"check the {place}, the name and the version",
        ),
        (413, ""): (
            UnsupportedError,
            f": {who} refused the value as too long (413)",
            "store it elsewhere",
        ),
    }


def require_allowed(
    reply: Reply, code: str, refusals: CodedRefusals, locator: Locator, permission: str, done: str
) -> Reply:
    """Return a 2xx reply; raise the error of any other. No response is quoted."""
    found = refusals.get((reply.status, code)) or refusals.get((reply.status, ""))
    if found is None or 200 <= reply.status < 300:
        return require_success(reply)
    kind, text, remedy = found
    words = {"done": done, "permission": permission, "name": locator.name}
    raise kind(f"{locator}{text.format(**words)}", remedy=remedy.format(**words))


def check_size(content: Stored, limit: int, who: str, locator: Locator) -> None:
    """Raise UnsupportedError for a value that a cloud does not store. `limit` is in bytes."""
    if not content:
        raise UnsupportedError(
            f"{locator}: {who} does not store empty secrets",
            remedy="store it under a key: #KEY=PROMPT",
        )
    if len(as_bytes(content)) > limit:
        raise UnsupportedError(
            f"{locator}: {who} stores at most {limit} bytes in a secret",
            remedy="store it elsewhere",
        )


class Job(NamedTuple):
    """What to store in one secret: the values by key, the mode and the marker."""

    locator: Locator
    wanted: Mapping[str, bytes]
    mode: Mode
    marker: str


class SecretWrite(ABC):
    """A write to one secret, which makes calls.

    `is_marked` if it set the marker together with the values.
    """

    def __init__(self, job: Job) -> None:
        self._locator, self._wanted, self._mode, self._marker = job
        self.is_marked = False

    @abstractmethod
    def read(self) -> Snapshot:
        """Read the newest version, and the markers."""

    @abstractmethod
    def write(self, snapshot: Snapshot, after: Mapping[str, bytes], tries: int) -> str | None:
        """Add a version, and read it back. Return None if another writer was faster."""

    @abstractmethod
    def add_marker(self, snapshot: Snapshot) -> None:
        """Add the marker to a secret that holds the values."""


class VersionedSink(Sink):
    """Secrets with versions.

    Without a key the value is the whole secret; keys are members of its JSON object.
    """

    add_version: ClassVar[str] = "add a version to"
    """How the description of a write to an existing secret begins."""

    def describe(self, locator: Locator, mode: Mode) -> str:
        """Describe the write."""
        return _DESCRIPTIONS[mode].format(*self.name_secret(locator), add_version=self.add_version)

    def put(
        self, locator: Locator, fields: Sequence[SinkField], *, mode: Mode, marker: str
    ) -> WriteResult:
        """Store, read the version back, and keep the marker beside it."""
        self.name_secret(locator)
        wanted = document_values(fields, locator)
        secret = self.open_secret(Job(locator, wanted, mode, marker))
        outcome = store_and_confirm(secret.read, secret.write, wanted, locator, mode, marker)
        if not secret.is_marked and not has_marker(outcome.snapshot.markers, marker):
            secret.add_marker(outcome.snapshot)
        return WriteResult(locator, outcome.version, already=not outcome.is_written)

    @abstractmethod
    def name_secret(self, locator: Locator) -> tuple[str, str]:
        """Return the secret's name, and where it is.

        Raises ReferenceValueError, NotConfiguredError.
        """

    @abstractmethod
    def open_secret(self, job: Job) -> SecretWrite:
        """Return a write to the secret.

        Raises PluginError for values that cannot be stored. Makes no call.
        """


_DESCRIPTIONS: Final[Mapping[Mode, str]] = {
    "create": "create the secret {} in {}",
    "replace": "{add_version} the secret {} in {}, without its other keys",
    "merge": "{add_version} the secret {} in {}, keeping its other keys",
}
