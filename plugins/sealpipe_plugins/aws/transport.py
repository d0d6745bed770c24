"""AWS's SDK on the way out that all plugins share: its own knows neither our deadline nor our gate.

The SDK asks its `before-send` handlers for the answer to a finished request before it sends it itself. Its logins
(STS, SSO) ask them, too; the metadata of an instance or a container is read by a way of its own.
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
"""Bytes of an answer: a secret is 64 KiB at most, and a page of parameters less than one of these."""


def send_by(session: Session, context: Context, timeout: float) -> None:
    """Let whatever clients this session makes send by the shared way. `timeout` is in seconds, for each step."""
    steps = httpx.Timeout(timeout, connect=min(10.0, timeout))

    def send(request: AWSPreparedRequest, **_: object) -> AWSResponse:
        return _sent(context.network.http(), request, steps)

    session.register("before-send", send, unique_id="sealpipe")


def _sent(http: httpx.Client, request: AWSPreparedRequest, timeout: httpx.Timeout) -> AWSResponse:
    """The answer. Raises the SDK's own errors where none came."""
    url = request.url
    try:
        with http.stream(
            request.method, url, headers=_headers(request), content=_body(request), timeout=timeout
        ) as response:
            return AWSResponse(url, response.status_code, dict(response.headers), _Read(read_body(response, LIMIT)))
    except (httpx.ConnectTimeout, httpx.PoolTimeout) as error:
        raise boto.ConnectTimeoutError(endpoint_url=url, error=error) from error
    except (httpx.ConnectError, httpx.ProxyError) as error:
        raise boto.EndpointConnectionError(endpoint_url=url, error=error) from error
    except httpx.TimeoutException as error:
        raise boto.ReadTimeoutError(endpoint_url=url, error=error) from error
    except (httpx.TransportError, httpx.InvalidURL) as error:
        raise boto.ConnectionClosedError(endpoint_url=url, error=error, request=request) from error


def _headers(request: AWSPreparedRequest) -> httpx.Headers:
    # httpx.Headers hides a signature's key in its repr, a dict would not.
    own = [(_text(name), _text(value)) for name, value in request.headers.items()]
    return httpx.Headers([*own, ("accept-encoding", "identity")])


def _text(value: bytes | str) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _body(request: AWSPreparedRequest) -> bytes | None:
    body = request.body
    if body is None or isinstance(body, bytes):
        return body
    return body.encode() if isinstance(body, str) else bytes(body.read())


class _Read:
    """A body as the SDK reads one."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def stream(self, *_: Any, **__: Any) -> Iterator[bytes]:
        """All of it."""
        yield self._content


_LOGGERS = (
    *("botocore", "botocore.parsers", "botocore.endpoint", "botocore.auth", "botocore.hooks", "botocore.client"),
    *("botocore.credentials", "botocore.httpsession", "botocore.awsrequest", "botocore.regions", "botocore.utils"),
    *("botocore.session", "botocore.retryhandler", "botocore.retries.standard", "botocore.httpchecksum"),
    *("botocore.tokens", "botocore.signers", "botocore.handlers", "botocore.history"),
)
_calls = threading.local()


class _NotOurs(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno > logging.WARNING or not getattr(_calls, "depth", 0)


_FILTER = _NotOurs()


@contextmanager
def quiet() -> Iterator[None]:
    """Nothing below an error is logged by the SDK in this thread; what the program does with it elsewhere, is."""
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_FILTER)  # once: adding it again does nothing
    _calls.depth = getattr(_calls, "depth", 0) + 1
    try:
        yield
    finally:
        _calls.depth -= 1
