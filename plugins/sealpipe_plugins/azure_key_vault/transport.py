"""How Microsoft's login library sends: over the shared network; and to the token service of an Azure machine.

A failure that asks to try again is raised at once, not as the library's own exception: the core repeats.
"""

from __future__ import annotations

from collections.abc import Mapping
from http.client import HTTPException
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from sealpipe.plugin import Context, NotConfiguredError, UnavailableError
from sealpipe_plugins.http_api import Endpoint
from sealpipe_plugins.http_errors import require_success
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


class LoginTransport:
    """Sends the login's requests over the shared network. `refusal` is the last response that was not a success."""

    def __init__(self, context: Context, timeout: float) -> None:
        self._context = context
        self._timeout = timeout
        self.refusal: Reply | None = None

    def get(
        self, url: str, *, params: Mapping[str, str] | None = None, headers: Mapping[str, str] | None = None, **_: Any
    ) -> LoginResponse:
        """Send a GET request. Raises PluginError if there is no response, or one that asks to try again."""
        return self._send("GET", url, params, headers, None)

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
        return self._send("POST", url, params, headers, urlencode(data or {}).encode())

    def close(self) -> None:
        """Do nothing: the connections are shared."""

    def _send(
        self,
        method: str,
        url: str,
        params: Mapping[str, str] | None,
        headers: Mapping[str, str] | None,
        body: bytes | None,
    ) -> LoginResponse:
        parts = urlsplit(url)
        endpoint = Endpoint(
            self._context,
            "Microsoft's login",
            f"{parts.scheme}://{parts.netloc}",
            setting="authority (AZURE_AUTHORITY_HOST)",
            timeout=self._timeout,
        )
        query = urlencode(params or {}) or parts.query
        lower = {name.lower(): value for name, value in (headers or {}).items()}
        form = {} if body is None else {"content-type": "application/x-www-form-urlencoded"}
        reply = endpoint.request(method, f"{parts.path}?{query}" if query else parts.path, body, headers=lower | form)
        if 300 <= reply.status < 400 or reply.status in (408, 429) or reply.status >= 500:
            require_success(reply)
        if reply.status != 200:
            self.refusal = reply
        return LoginResponse(reply.status, reply.headers, reply.body)


class MachineTransport(LoginTransport):
    """Asks the token service of this machine: without TLS and without a proxy, as Microsoft's own tools do."""

    def _send(
        self,
        method: str,
        url: str,
        params: Mapping[str, str] | None,
        headers: Mapping[str, str] | None,
        body: bytes | None,
    ) -> LoginResponse:
        parts = urlsplit(url)
        if parts.scheme == "http" and parts.hostname:
            try:
                target = f"{parts.path}?{urlencode(params or {})}"
                timeout = min(_MACHINE_TIMEOUT, self._timeout)
                found = ask_machine(parts.netloc, method, target, body, headers or {}, timeout=timeout)
            except (OSError, HTTPException, ValueError):
                pass
            else:
                if found.status == 429 or found.status >= 500:
                    raise UnavailableError(
                        f"the token service of this machine asks to try again later ({found.status})",
                        remedy="run it again later",
                    )
                reply = Reply("the token service", *found, writes=False)
                self.refusal = None if found.status == 200 else reply
                return LoginResponse(*found)
        raise NotConfiguredError(
            "no Azure login was found: no application is configured, and this machine has no managed identity",
            remedy="set AZURE_TENANT_ID and AZURE_CLIENT_ID, with AZURE_CLIENT_SECRET or for the CI's own token",
        )
