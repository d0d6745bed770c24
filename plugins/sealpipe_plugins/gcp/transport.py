"""How Google's login library sends: over the shared network.

To the metadata server of a Google machine.

Neither logs anything. A failure that the library would wait for and repeat is raised at once: the
core repeats.
"""

from __future__ import annotations

from collections.abc import Mapping
from http.client import HTTPException
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from google.auth import transport

from sealpipe.plugin import NotConfiguredError
from sealpipe_plugins.cloud import LoginSender
from sealpipe_plugins.http_reply import Reply
from sealpipe_plugins.machine_service import ask_machine

METADATA_HOST: Final = "169.254.169.254"
"""The metadata server's address.

Its name would first be asked for in the DNS, which may take long elsewhere.
"""
_METADATA_NAME: Final = "metadata.google.internal"
_METADATA_TIMEOUT: Final = 2.0
"""Seconds for each step: it is on the same machine, or there is none."""


class LoginResponse(NamedTuple):
    """A response with the interface that the library expects."""

    status: int
    headers: Mapping[str, str]
    data: bytes

    def __repr__(self) -> str:
        return f"LoginResponse({self.status})"


class LoginTransport(LoginSender, transport.Request):
    """Sends the login's requests."""

    system = "Google's login"
    setting = "credentials_file (an address in it)"

    def __call__(
        self,
        url: str,
        method: str = "GET",
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,  # noqa: ARG002 - the library's; ours is the setting
        **_: Any,
    ) -> LoginResponse:
        """Send one request. Raises PluginError like `exchange`."""
        reply = self.exchange(method, url, body, headers)
        return LoginResponse(reply.status, reply.headers, reply.body)


class MetadataTransport(transport.Request):
    """Asks the metadata server, and nothing else.

    Without TLS and without a proxy, as Google's tools do.
    """

    refusal: Reply | None = None

    def __init__(self, host: str | None) -> None:
        self._host = host or METADATA_HOST

    def require_server(self) -> None:
        """Raise NotConfiguredError unless there is such a server."""
        self(f"http://{self._host}/", headers={"metadata-flavor": "Google"})

    def __call__(
        self,
        url: str,
        method: str = "GET",
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,  # noqa: ARG002 - as above
        **_: Any,
    ) -> LoginResponse:
        """Send one request. Raises NotConfiguredError if there is no such server."""
        parts = urlsplit(url)
        reason = "this machine has no metadata server"
        if parts.netloc in (_METADATA_NAME, METADATA_HOST, self._host):
            try:
                target = f"{parts.path}?{parts.query}"
                reply = ask_machine(
                    self._host, method, target, body, headers or {}, timeout=_METADATA_TIMEOUT
                )
                if reply.headers.get("metadata-flavor") == "Google":
                    return LoginResponse(*reply)
                reason = "this machine's metadata server is not Google's"
            except (OSError, HTTPException, ValueError):
                pass
        raise NotConfiguredError(
            f"no Google credentials were found: there is no credentials file, and {reason}",
            remedy="set GOOGLE_APPLICATION_CREDENTIALS, run `gcloud auth application-default "
            "login`, or set workload_identity_provider for the CI's own token",
        )
