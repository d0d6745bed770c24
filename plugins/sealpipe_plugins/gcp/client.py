"""The client of Google Secret Manager, by its public REST API (version 1)."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from google_crc32c import value as crc32c

from sealpipe.plugin import Context, Health, Locator, PluginError, UnavailableError
from sealpipe_plugins.cloud import describe_login, make_endpoint, send_logged_in
from sealpipe_plugins.gcp.errors import refuse
from sealpipe_plugins.gcp.login import Login
from sealpipe_plugins.gcp.settings import GcpSettings
from sealpipe_plugins.http_reply import Reply

SYSTEM: Final = "Google Secret Manager"
ACCESS: Final = "secretmanager.versions.access"
"""The permission to read a version."""

_VERSION_NAME: Final = re.compile(r"projects/[^/]+/secrets/[^/]+/versions/([0-9]{1,18})")


class Version(NamedTuple):
    """A version's number and value."""

    number: int
    data: bytes

    def __repr__(self) -> str:
        return f"Version({self.number}, ...)"


class SecretManager:
    """Google Secret Manager with one login. Thread-safe."""

    def __init__(self, settings: GcpSettings, context: Context) -> None:
        self._settings = settings
        self._login = Login(settings, context)
        self._endpoint = make_endpoint(context, SYSTEM, settings.url, settings.timeout)

    def call(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, *, writes: bool = False
    ) -> Reply:
        """Make one call, as `send_logged_in` does."""
        headers, forget = self._login.headers(), self._login.forget
        return send_logged_in(
            self._endpoint, headers, forget, method, f"/v1/{path}", body, writes=writes
        )

    def access(self, path: str, locator: Locator) -> Version:
        """Read a version, and check its checksum. Raises PluginError."""
        return parse_version_value(
            refuse(self.call("GET", f"{path}:access"), locator, ACCESS), locator
        )

    def check(self) -> Health:
        """Log in, and list one secret of the project. Reads none."""
        self._login.headers()
        whose = self._login.describe()
        if self._settings.project is None:
            return Health(ok=True, detail=f"logged in as {whose}; no project is set")
        reply = self.call("GET", f"projects/{self._settings.project}/secrets?pageSize=1")
        return describe_login(reply, f"logged in as {whose}, project {self._settings.project}")


def parse_version_value(reply: Reply, locator: Locator) -> Version:
    """Return number and value of a version in a response.

    Raises UnavailableError if the value was damaged.
    """
    payload = reply.member("payload")
    number = parse_number(reply)
    if number and isinstance(payload, dict):
        try:
            data = base64.b64decode(payload.get("data", ""), validate=True)
            checksum = payload.get("dataCrc32c")
            if checksum is None or int(checksum) == crc32c(data):
                return Version(number, data)
        except (binascii.Error, ValueError, TypeError, OverflowError):
            pass
        else:
            raise UnavailableError(
                f"{locator} was damaged on its way: its checksum does not match",
                remedy="run it again",
            )
    raise PluginError(
        f"{locator}: the response is not Google Secret Manager's", remedy="check the setting url"
    )


def parse_number(reply: Reply) -> int:
    """Return the number of the version that a response names; 0 if it names none."""
    match = _VERSION_NAME.fullmatch(str(reply.member("name")))
    return int(match[1]) if match else 0
