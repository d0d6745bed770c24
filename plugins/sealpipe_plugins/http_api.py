"""Calls to a system's HTTP interface, after which it is known: done, certainly not done, or unclear."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import httpx

from sealpipe.plugin import (
    Context,
    NotConfiguredError,
    PluginError,
    Secret,
    UnavailableError,
    UnknownOutcomeError,
    in_clear,
)
from sealpipe_plugins.connect_errors import not_sent
from sealpipe_plugins.http_answers import LOOK, Reply

LIMIT: Final = 1024 * 1024
"""Bytes of an answer that are read."""

LONGEST: Final = 60.0
"""Seconds after which an answer that still drips is given up."""


class Endpoint:
    """A system's interface: `name` for people, its address, and what every request says in its headers.

    The address is https, or plain to loopback: NotConfiguredError names `setting` where it is not. With `hidden` it is
    a secret itself, as a webhook's is: only its host is ever told, or logged by a library.
    """

    def __init__(
        self,
        context: Context,
        name: str,
        url: str | Secret,
        *,
        setting: str,
        headers: Mapping[str, str | Secret] | None = None,
        hidden: bool = False,
    ) -> None:
        self.name = name
        self._context = context
        self._url = url if isinstance(url, Secret) else Secret(url.rstrip("/"))
        self._headers = dict(headers or {})
        self._hidden = hidden
        self._host = _host(self._url, f"the setting {setting} of {context.store}")
        for header in self._headers.values():
            if isinstance(header, Secret) and not re.fullmatch(r"[!-~]+( [!-~]+)?", header.reveal()):
                raise NotConfiguredError(f"the token of {context.store} has characters that no token has")

    def get(self, path: str) -> Reply:
        """Read. Raises UnavailableError where no answer came."""
        return self._ask("GET", path, None)

    def post(self, path: str, members: Mapping[str, Any], *, writes: bool = True) -> Reply:
        """Send JSON, once. Raises UnavailableError where nothing was sent, UnknownOutcomeError where no answer came to
        what writes."""
        return self._ask("POST", path, json.dumps(members).encode(), writes=writes)

    def put(self, path: str, members: Mapping[str, Any], *, writes: bool = True) -> Reply:
        """As `post`, by PUT. `writes` is False where sending it twice does what sending it once does."""
        return self._ask("PUT", path, json.dumps(members).encode(), writes=writes)

    def post_bytes(self, path: str, body: bytes) -> Reply:
        """Send JSON that is bytes already, for it is signed; once. Raises as `post`."""
        return self._ask("POST", path, body, writes=True)

    def _ask(self, method: str, path: str, body: bytes | None, *, writes: bool = False) -> Reply:
        sent = False

        def watch(event: str, info: Mapping[str, Any]) -> None:
            nonlocal sent
            tunnel = getattr(info.get("request"), "method", b"") == b"CONNECT"
            sent = sent or (event.endswith("send_request_headers.started") and not tunnel)

        http = self._context.network.http()
        try:
            request = http.build_request(
                method, self._url.reveal() + path, headers=self._opened(), content=body, extensions={"trace": watch}
            )
            if self._hidden:
                request.url = _HiddenURL(request.url)
            return self._answer(http, request, writes=writes)
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            late = " in time" if isinstance(error, httpx.TimeoutException) else ""
            failure = self._lost(late, writes=writes) if sent else not_sent(error, self.name, self._host)
        raise failure

    def _opened(self) -> httpx.Headers:
        # httpx.Headers hides a token in its repr, a dict would not.
        own = {name: value.reveal() if isinstance(value, Secret) else value for name, value in self._headers.items()}
        usual = {"accept": "application/json", "accept-encoding": "identity", "content-type": _JSON}
        return httpx.Headers({**usual, **own})

    def _answer(self, http: httpx.Client, request: httpx.Request, *, writes: bool) -> Reply:
        response = http.send(request, stream=True, follow_redirects=False)
        try:
            end, body = time.monotonic() + LONGEST, bytearray()
            for piece in response.iter_raw():
                body += piece
                if len(body) > LIMIT or time.monotonic() > end:
                    raise httpx.ReadError("longer than any answer is")
            return Reply(self.name, response.status_code, response.headers, bytes(body), writes)
        finally:
            response.close()

    def _lost(self, late: str, *, writes: bool) -> PluginError:
        if writes:
            return UnknownOutcomeError(
                f"{self.name} at {self._host} was sent the message and did not answer{late}", remedy=LOOK
            )
        return UnavailableError(f"{self.name} at {self._host} did not answer{late}")


class _HiddenURL(httpx.URL):
    """An address that shows its host only: httpx logs the address of every request."""

    def __str__(self) -> str:
        return f"{self.scheme}://{self.netloc.decode('ascii')}/"

    def __repr__(self) -> str:
        return f"URL({str(self)!r})"


_JSON: Final = "application/json; charset=utf-8"


def _host(url: Secret, setting: str) -> str:
    """Host and port of an address that may be used."""
    try:
        parts = urlsplit(url.reveal())
        host, port = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or not re.fullmatch(r"[!-~]+", url.reveal()) or "@" in parts.netloc or parts.fragment:
        raise NotConfiguredError(f"{setting} is no address", remedy="it looks like https://host/path")
    if in_clear(parts.scheme, host):
        raise NotConfiguredError(f"{setting} has to be an https address", remedy="http is for this machine itself only")
    return host if port is None else f"{host}:{port}"
