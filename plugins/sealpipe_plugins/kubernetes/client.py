"""The connection to a Kubernetes cluster over HTTPS, with the cluster's own authority."""

from __future__ import annotations

import json
import tempfile
import threading
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sealpipe.plugin import BackendAuthError, Context, Secret, UnknownOutcomeError
from sealpipe_plugins.http_api import Endpoint
from sealpipe_plugins.http_errors import Refusals, require_success
from sealpipe_plugins.http_reply import Reply
from sealpipe_plugins.kubernetes.access import K8sSettings, resolve_access
from sealpipe_plugins.kubernetes.cluster import Access, read_text

if TYPE_CHECKING:
    import httpx

BODY_LIMIT: Final = 8 * 1024 * 1024
"""Maximum bytes of a response: a Secret has at most 1 MiB, and an annotation may hold a second
copy.
"""

_RUN_AGAIN: Final = "run it again: it checks what is stored first"
_REFUSALS: Final[Refusals] = {
    401: (
        BackendAuthError,
        "does not accept the login",
        (
            "the token may have expired or belong to another cluster: create a new one "
            "(`kubectl create token`)"
        ),
    )
}
_FAILED_WRITE: Final = (UnknownOutcomeError, "failed during the write", _RUN_AGAIN)


class Cluster:
    """One cluster, as configured. Connects at the first call. Thread-safe."""

    def __init__(self, settings: K8sSettings, context: Context) -> None:
        self._settings = settings
        self._context = context
        self._lock = threading.Lock()
        self._connection: _Connection | None = None

    @property
    def namespace(self) -> str:
        """The namespace for a name without one."""
        return self._connect().access.namespace or "default"

    @property
    def host(self) -> str:
        """The server's host and port, for messages."""
        return self._connect().endpoint.host

    def call(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, *, writes: bool = False
    ) -> Reply:
        """Make one call.

        Raises UnavailableError, NotConfiguredError for a wrong address, and BackendAuthError for
        401.

        With `writes`, the call changes something: raises UnknownOutcomeError if the outcome is
        unknown.
        """
        connection = self._connect()
        headers: dict[str, str | Secret] = {}
        token = connection.access.token or _read_token(connection.access.token_file)
        if token is not None:
            headers["authorization"] = Secret(f"Bearer {token.reveal()}")
        if method == "PATCH":
            headers["content-type"] = "application/merge-patch+json"
        content = None if body is None else json.dumps(body).encode()
        reply = connection.endpoint.request(method, path, content, writes=writes, headers=headers)
        status = reply.status
        if status in (401, 429) or 300 <= status < 400 or status >= 500:
            failures = dict.fromkeys(range(500, 600), _FAILED_WRITE) if writes else {}
            require_success(
                reply._replace(system=f"Kubernetes at {self.host}"), {**_REFUSALS, **failures}
            )
        return reply

    def close(self) -> None:
        """Close the connections, unless they are shared."""
        with self._lock:
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _connect(self) -> _Connection:
        with self._lock:
            if self._connection is None:
                self._connection = _Connection(self._settings, self._context)
            return self._connection


class _Connection:
    """The cluster with its settings resolved: access, HTTP client and endpoint."""

    def __init__(self, settings: K8sSettings, context: Context) -> None:
        self.access: Access = resolve_access(settings, context)
        self._network = context.network
        needs_own_client = (
            self.access.authorities is not None or self.access.certificate is not None
        )
        self.endpoint = Endpoint(
            context,
            "Kubernetes",
            self.access.server,
            setting="server",
            client=(lambda: self._own_client) if needs_own_client else None,
            timeout=settings.timeout,
            limit=BODY_LIMIT,
            unknown_outcome_remedy=_RUN_AGAIN,
        )

    def close(self) -> None:
        client = vars(self).pop("_own_client", None)
        if client is not None:
            client.close()

    @cached_property
    def _own_client(self) -> httpx.Client:
        if self.access.certificate is None:
            return self._network.http(authorities=self.access.authorities)
        with tempfile.TemporaryDirectory(
            prefix="sealpipe-k8s-"
        ) as folder:  # 0700; TLS takes only files
            files = Path(folder, "certificate"), Path(folder, "key")
            for file, content in zip(files, self.access.certificate, strict=True):
                file.write_bytes(content.reveal_bytes())
            return self._network.http(authorities=self.access.authorities, certificate=files)


def _read_token(path: Path | None) -> Secret | None:
    if path is None:
        return None
    return Secret(read_text(path, "the token file").reveal().strip())
