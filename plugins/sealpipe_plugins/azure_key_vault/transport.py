"""How Microsoft's login library sends: over the shared network.

To the token service of an Azure machine.

A failure that asks to try again is raised at once, not as the library's own exception: the core
repeats.
"""

from __future__ import annotations

from collections.abc import Mapping
from http.client import HTTPException
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from sealpipe.plugin import NotConfiguredError, UnavailableError
from sealpipe_plugins.cloud import LoginSender
from sealpipe_plugins.http_reply import Reply
from sealpipe_plugins.machine_service import ask_machine

_MACHINE_TIMEOUT: Final = 5.0
"""Seconds for each step: the token service is on the same machine, or there is none."""


class LoginResponse:
    """A response with the interface that the library expects."""

    def __init__(self, status: int, headers: Mapping[str, str], content: bytes) -> None:
        self.status_code = status
        self.headers = dict(headers)
        self.text = content.decode("utf-8", "replace")

    def raise_for_status(self) -> None:
        """Raise an error for a refusal."""
        if self.status_code >= 400:
            raise ValueError("refused")


class LoginTransport(LoginSender):
    """Sends the login's requests."""

    system = "Microsoft's login"
    setting = "authority (AZURE_AUTHORITY_HOST)"

    def get(
        self,
        url: str,
        *,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        **_: Any,
    ) -> LoginResponse:
        """Send a GET request. Raises PluginError like `exchange`."""
        return self._send("GET", _with_query(url, params), headers, None)

    def post(
        self,
        url: str,
        *,
        params: Mapping[str, str] | None = None,
        data: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        **_: Any,
    ) -> LoginResponse:
        """Send a form. Raises like `get`."""
        form = {**(headers or {}), "Content-Type": "application/x-www-form-urlencoded"}
        return self._send("POST", _with_query(url, params), form, urlencode(data or {}).encode())

    def close(self) -> None:
        """Do nothing: the connections are shared."""

    def _send(
        self, method: str, url: str, headers: Mapping[str, str] | None, body: bytes | None
    ) -> LoginResponse:
        reply = self.exchange(method, url, body, headers)
        return LoginResponse(reply.status, reply.headers, reply.body)


class MachineTransport(LoginTransport):
    """Asks the token service of this machine.

    Without TLS and without a proxy, as Microsoft's own tools do.
    """

    def _send(
        self, method: str, url: str, headers: Mapping[str, str] | None, body: bytes | None
    ) -> LoginResponse:
        parts = urlsplit(url)
        if parts.scheme == "http" and parts.hostname:
            try:
                target = f"{parts.path}?{parts.query}"
                timeout = min(_MACHINE_TIMEOUT, self._timeout)
                found = ask_machine(
                    parts.netloc, method, target, body, headers or {}, timeout=timeout
                )
            except (OSError, HTTPException, ValueError):
                pass
            else:
                if found.status == 429 or found.status >= 500:
                    raise UnavailableError(
                        (
                            "the token service of this machine asks to try again later "
                            f"({found.status})"
                        ),
                        remedy="run it again later",
                    )
                reply = Reply("the token service", *found, writes=False)
                self.refusal = None if found.status == 200 else reply
                return LoginResponse(*found)
        raise NotConfiguredError(
            (
                "no Azure login was found: no application is configured, and this machine has "
                "no managed identity"
            ),
            remedy=(
                "set AZURE_TENANT_ID and AZURE_CLIENT_ID, with AZURE_CLIENT_SECRET or for the "
                "CI's own token"
            ),
        )


def _with_query(url: str, params: Mapping[str, str] | None) -> str:
    return f"{url.partition('?')[0]}?{urlencode(params)}" if params else url
