"""The client for JSON over HTTPS.

After a write, the outcome is known: done, not done, or unknown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import httpx

from sealpipe.plugin import (
    Context,
    NotConfiguredError,
    PluginError,
    Secret,
    UnavailableError,
    UnknownOutcomeError,
    is_cleartext,
)
from sealpipe_plugins.http_errors import CHECK_FIRST, NAME_CA, connect_error
from sealpipe_plugins.http_reply import Reply

BODY_LIMIT: Final = 1024 * 1024
"""Maximum bytes of a response."""

Headers = Mapping[str, "str | Secret"]

_HEADERS: Final[Headers] = {
    "accept": "application/json",
    "accept-encoding": "identity",
    "content-type": "application/json; charset=utf-8",
}


class ResponseTooLongError(PluginError):
    """The body of a response is longer than its limit."""


class Endpoint:
    """A system's API: its `name` for messages, its address, and headers for every request.

    The address must be https, or http to loopback; otherwise NotConfiguredError names `setting`.
    With `hidden` the address itself is a secret, like a webhook's: only its host is shown or
    logged. `client` returns an HTTP client to use instead of the shared one. `timeout` is in
    seconds, for each step; `limit` is the maximum size of a response in bytes.
    `unknown_outcome_remedy` is the remedy if the outcome of a write is unknown, and
    `untrusted_remedy` the one for a certificate that is not trusted.
    """

    def __init__(
        self,
        context: Context,
        name: str,
        url: str | Secret,
        *,
        setting: str,
        headers: Headers | None = None,
        hidden: bool = False,
        client: Callable[[], httpx.Client] | None = None,
        timeout: float | None = None,
        limit: int = BODY_LIMIT,
        unknown_outcome_remedy: str = CHECK_FIRST,
        untrusted_remedy: str = NAME_CA,
    ) -> None:
        self.name = name
        self._context = context
        self._url = url if isinstance(url, Secret) else Secret(url.rstrip("/"))
        self._headers = dict(headers or {})
        self._hidden = hidden
        self._client = client
        self._timeout = timeout
        self._limit = limit
        self._unknown_outcome_remedy = unknown_outcome_remedy
        self._untrusted_remedy = untrusted_remedy
        self.host = _check_address(self._url, f"the setting {setting} of {context.store}")
        self._check_tokens(self._headers)

    def get(self, path: str, params: Mapping[str, str] | None = None) -> Reply:
        """Send a GET request. Raises UnavailableError if there is no response."""
        return self.request("GET", f"{path}?{urlencode(params)}" if params else path)

    def post(self, path: str, members: Mapping[str, Any], *, writes: bool = True) -> Reply:
        """Send JSON in one POST request, without retries.

        Raises UnavailableError if nothing was sent, UnknownOutcomeError if a write got no response.
        """
        return self.request("POST", path, json.dumps(members).encode(), writes=writes)

    def put(self, path: str, members: Mapping[str, Any], *, writes: bool = True) -> Reply:
        """Like `post`, but PUT. `writes` is False if the request is idempotent."""
        return self.request("PUT", path, json.dumps(members).encode(), writes=writes)

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        writes: bool = False,
        headers: Headers | None = None,
        timeout: float | None = None,
    ) -> Reply:
        """Send bytes with additional headers, without retries.

        `timeout` is in seconds, instead of the endpoint's.

        Raises like `post`; ResponseTooLongError for reads.
        """
        timeout = self._timeout if timeout is None else timeout
        is_sent = False

        def watch(event: str, info: Mapping[str, Any]) -> None:
            nonlocal is_sent
            tunnel = getattr(info.get("request"), "method", b"") == b"CONNECT"
            is_sent = is_sent or (event.endswith("send_request_headers.started") and not tunnel)

        self._check_tokens(headers or {})
        http = self._client() if self._client is not None else self._context.network.http()
        try:
            # build_request of the client merges defaults: a tenth of a call's CPU time
            request = httpx.Request(
                method,
                self._url.reveal() + path,
                headers=self._all_headers(http, headers or {}),
                content=body,
                extensions={
                    "trace": watch,
                    "timeout": (
                        http.timeout if timeout is None else httpx.Timeout(timeout)
                    ).as_dict(),
                },
            )
            if self._hidden:
                request.url = _HiddenURL(request.url)
            response = http.send(request, stream=True, follow_redirects=False)
            try:
                content = read_body(response, self._limit)
            finally:
                response.close()
            return Reply(self.name, response.status_code, response.headers, content, writes)
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            failure = (
                self._no_response_error(error, writes=writes)
                if is_sent
                else connect_error(error, self.name, self.host, self._untrusted_remedy)
            )
        raise failure

    def _all_headers(self, http: httpx.Client, extra_headers: Headers) -> httpx.Headers:
        # httpx.Headers hides a token in its repr; a dict would not.
        headers = {
            **_HEADERS,
            "user-agent": http.headers["user-agent"],
            **self._headers,
            **extra_headers,
        }
        return httpx.Headers(
            {
                name: value.reveal() if isinstance(value, Secret) else value
                for name, value in headers.items()
            }
        )

    def _check_tokens(self, headers: Headers) -> None:
        for value in headers.values():
            if isinstance(value, Secret) and not re.fullmatch(r"[!-~]+( [!-~]+)?", value.reveal()):
                raise NotConfiguredError(
                    f"the token of {self._context.store} contains invalid characters",
                    remedy="set it again",
                )

    def _no_response_error(self, error: Exception, *, writes: bool) -> PluginError:
        if isinstance(error, _BodyTooLongError) and not writes:
            return ResponseTooLongError(
                f"{self.name} at {self.host} responded with more than {self._limit} bytes",
                remedy="check the address; a longer value cannot be read",
            )
        in_time = " in time" if isinstance(error, httpx.TimeoutException) else ""
        closed = "" if in_time else ": it closed the connection"
        if writes:
            return UnknownOutcomeError(
                f"{self.name} at {self.host} was sent the message and did not respond{in_time}",
                remedy=self._unknown_outcome_remedy,
            )
        return UnavailableError(
            f"{self.name} at {self.host} did not respond{in_time}{closed}",
            remedy=(
                "run it again later; if it never responds, check the address, and proxies on "
                "the way"
            ),
        )


def read_body(response: httpx.Response, limit: int) -> bytes:
    """Read a whole body within the client's deadline.

    Raises httpx.ReadError after `limit` bytes.
    """
    body = bytearray()
    for chunk in response.iter_raw():
        body += chunk
        if len(body) > limit:
            raise _BodyTooLongError("the response is too long")
    return bytes(body)


class _BodyTooLongError(httpx.ReadError):
    pass


class _HiddenURL(httpx.URL):
    """An address whose text has only its host: httpx logs the address of every request."""

    def __str__(self) -> str:
        return f"{self.scheme}://{self.netloc.decode('ascii')}/"

    def __repr__(self) -> str:
        return f"URL({str(self)!r})"


def _check_address(url: Secret, setting: str) -> str:
    """Return host and port of a valid address."""
    try:
        parts = urlsplit(url.reveal())
        host, port = parts.hostname, parts.port
    except ValueError:
        host = None
    if (
        not host
        or not re.fullmatch(r"[!-~]+", url.reveal())
        or "@" in parts.netloc
        or parts.fragment
    ):
        raise NotConfiguredError(
            f"{setting} is not an address", remedy="write it as https://host/path"
        )
    if is_cleartext(parts.scheme, host):
        raise NotConfiguredError(
            f"{setting} must be an https address: token and secrets would be sent unencrypted",
            remedy="use https://; http:// is only for loopback",
        )
    return host if port is None else f"{host}:{port}"
