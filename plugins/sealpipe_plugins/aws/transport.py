"""Sends the requests of AWS's SDK over the shared network.

The SDK's own HTTP client ignores our deadline and limits.

Before the SDK sends a request, it asks its `before-send` handlers for a response. Its logins (STS,
SSO) do so, too; instance and container metadata is read in another way.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import httpx
from botocore import exceptions as boto
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.session import Session

from sealpipe.plugin import Context
from sealpipe_plugins.http_api import read_body

LIMIT: Final = 8 * 1024 * 1024
"""Maximum bytes of a response: a secret has at most 64 KiB, and a page of parameters fewer than one
secret.
"""


def send_through(session: Session, context: Context, timeout: float) -> None:
    """Make this session's clients send over the shared network.

    `timeout` is in seconds, for each step.
    """
    step_timeout = httpx.Timeout(timeout, connect=min(10.0, timeout))

    def send(request: AWSPreparedRequest, **_: object) -> AWSResponse:
        return _send(context.network.http(), request, step_timeout)

    session.register("before-send", send, unique_id="sealpipe")


def _send(http: httpx.Client, request: AWSPreparedRequest, timeout: httpx.Timeout) -> AWSResponse:
    """Return the response. Raises the SDK's own errors if there is none."""
    url = request.url
    try:
        with http.stream(
            request.method,
            url,
            headers=_make_headers(request),
            content=_read_body(request),
            timeout=timeout,
        ) as response:
            return AWSResponse(
                url, response.status_code, dict(response.headers), _Body(read_body(response, LIMIT))
            )
    except (httpx.ConnectTimeout, httpx.PoolTimeout) as error:
        raise boto.ConnectTimeoutError(endpoint_url=url, error=error) from error
    except (httpx.ConnectError, httpx.ProxyError) as error:
        raise boto.EndpointConnectionError(endpoint_url=url, error=error) from error
    except httpx.TimeoutException as error:
        raise boto.ReadTimeoutError(endpoint_url=url, error=error) from error
    except (httpx.TransportError, httpx.InvalidURL) as error:
        raise boto.ConnectionClosedError(endpoint_url=url, error=error, request=request) from error


def _make_headers(request: AWSPreparedRequest) -> httpx.Headers:
    # httpx.Headers hides the signature in its repr; a dict would not.
    headers = [(_as_text(name), _as_text(value)) for name, value in request.headers.items()]
    return httpx.Headers([*headers, ("accept-encoding", "identity")])


def _as_text(value: bytes | str) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _read_body(request: AWSPreparedRequest) -> bytes | None:
    body = request.body
    if body is None or isinstance(body, bytes):
        return body
    return body.encode() if isinstance(body, str) else bytes(body.read())


class _Body:
    """A response body with the interface that the SDK expects."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def stream(self, *_: Any, **__: Any) -> Iterator[bytes]:
        """Yield the whole body at once."""
        yield self._content


_LOGGERS = (
    *(
        "botocore",
        "botocore.parsers",
        "botocore.endpoint",
        "botocore.auth",
        "botocore.hooks",
        "botocore.client",
    ),
    *(
        "botocore.credentials",
        "botocore.httpsession",
        "botocore.awsrequest",
        "botocore.regions",
        "botocore.utils",
    ),
    *(
        "botocore.session",
        "botocore.retryhandler",
        "botocore.retries.standard",
        "botocore.httpchecksum",
    ),
    *("botocore.tokens", "botocore.signers", "botocore.handlers", "botocore.history"),
)
_thread_state = threading.local()


class _QuietFilter(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno > logging.WARNING or not getattr(_thread_state, "depth", 0)


_FILTER = _QuietFilter()


@contextmanager
def silence_sdk() -> Iterator[None]:
    """Suppress the SDK's log records below an error, in this thread only."""
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_FILTER)  # adding it twice has no effect
    _thread_state.depth = getattr(_thread_state, "depth", 0) + 1
    try:
        yield
    finally:
        _thread_state.depth -= 1
