"""The connection to a Kubernetes cluster: plain HTTP, by the certificate authority of its own."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import httpx

from sealpipe.plugin import (
    BackendAuthError,
    Context,
    NotConfiguredError,
    PluginError,
    Secret,
    UnavailableError,
    UnknownOutcomeError,
)
from sealpipe_plugins.connect_errors import not_sent
from sealpipe_plugins.http_answers import Reply
from sealpipe_plugins.kubernetes.access import Access, access, text_of
from sealpipe_plugins.kubernetes.settings import K8sSettings

LIMIT: Final = 8 * 1024 * 1024
"""Bytes of an answer: a Secret is a MiB at most, and some come with their own copy in an annotation."""

_BROKEN_OFF: Final = (
    *(httpx.ReadTimeout, httpx.WriteTimeout),
    *(httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError),
)
"""After which nobody knows whether the server has had the request."""


class _Way(NamedTuple):
    """Where, as whom, and by which client."""

    access: Access
    http: httpx.Client

    @property
    def own(self) -> bool:
        """Whether nobody else uses the client."""
        return self.access.authorities is not None or self.access.certificate is not None


class Cluster:
    """One cluster, as the settings say. Nothing is read or asked before the first call. For several threads."""

    def __init__(self, settings: K8sSettings, context: Context) -> None:
        self._settings = settings
        self._context = context
        self._lock = threading.Lock()
        self._way: _Way | None = None

    @property
    def namespace(self) -> str:
        """Where a name without one is looked for."""
        return self._open().access.namespace or "default"

    @property
    def host(self) -> str:
        """The server's host and port, for people."""
        return urlsplit(self._open().access.server).netloc

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None, *, wrote: bool = False) -> Reply:
        """One call. Raises UnavailableError, NotConfiguredError where the way is wrong, and BackendAuthError for 401.

        `wrote` tells that it changes something: UnknownOutcomeError where it is not known whether it did.
        """
        way = self._open()
        try:
            reply = self._asked(way, method, path, body, wrote=wrote)
        except (
            httpx.ReadTimeout,
            httpx.WriteTimeout,
            httpx.RemoteProtocolError,
            httpx.ReadError,
            httpx.WriteError,
        ) as e:
            late = " in time" if isinstance(e, httpx.TimeoutException) else ""
            failure: PluginError = (UnknownOutcomeError if wrote else UnavailableError)(
                f"Kubernetes at {self.host} did not answer{late}", remedy="check the cluster and the network"
            )
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            failure = not_sent(error, "Kubernetes", self.host)
        else:
            return self._checked(reply)
        raise failure

    def close(self) -> None:
        """Hang up, where the connection is our own."""
        with self._lock:
            way, self._way = self._way, None
        if way is not None and way.own:
            way.http.close()

    def _asked(self, way: _Way, method: str, path: str, body: Mapping[str, Any] | None, *, wrote: bool) -> Reply:
        headers = httpx.Headers({"accept": "application/json", "accept-encoding": "identity"})
        token = way.access.token or _from_file(way.access.token_file)
        if token is not None:
            headers["authorization"] = f"Bearer {token.reveal()}"
        if method == "PATCH":
            headers["content-type"] = "application/merge-patch+json"
        request = way.http.build_request(
            method, way.access.server + path, headers=headers, json=body, timeout=self._settings.timeout
        )
        response = way.http.send(request, stream=True, follow_redirects=False)
        try:
            end, content = time.monotonic() + 2 * self._settings.timeout, bytearray()
            for piece in response.iter_raw():
                content += piece
                if len(content) > LIMIT or time.monotonic() > end:
                    raise httpx.ReadError("longer than any answer is")
            return Reply("Kubernetes", response.status_code, response.headers, bytes(content), wrote=wrote)
        finally:
            response.close()

    def _checked(self, reply: Reply) -> Reply:
        status = reply.status
        if status >= 500 and reply.wrote:
            raise UnknownOutcomeError(
                f"Kubernetes at {self.host} failed while it was written ({status})",
                remedy="run it again: it looks first",
            )
        if status == 429 or status >= 500:
            raise UnavailableError(
                f"Kubernetes at {self.host} asks to come back later ({status})",
                remedy="run it again later",
                retry_after=reply.retry_after,
            )
        if status == 401:
            raise BackendAuthError(
                f"Kubernetes at {self.host} does not accept the login (401)",
                remedy="the token may have expired, or be another cluster's: make a new one (`kubectl create token`)",
            )
        if 300 <= status < 400:
            raise NotConfiguredError(
                f"Kubernetes at {self.host} answered with a redirect ({status}), which is never followed",
                remedy="set the server's own address",
            )
        return reply

    def _open(self) -> _Way:
        with self._lock:
            if self._way is None:
                found = access(self._settings, self._context)
                self._way = _Way(found, self._client(found))
            return self._way

    def _client(self, found: Access) -> httpx.Client:
        network = self._context.network
        if found.certificate is not None:
            with tempfile.TemporaryDirectory(prefix="sealpipe-k8s-") as folder:  # 0700; TLS takes files only
                files = Path(folder, "certificate"), Path(folder, "key")
                for file, content in zip(files, found.certificate, strict=True):
                    file.write_bytes(content.reveal_bytes())
                return network.http(authorities=found.authorities, certificate=files)
        return network.http() if found.authorities is None else network.http(authorities=found.authorities)


def _from_file(path: Path | None) -> Secret | None:
    if path is None:
        return None
    return Secret(text_of(path, "the token file").reveal().strip())
