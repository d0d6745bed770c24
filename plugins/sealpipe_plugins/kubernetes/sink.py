"""`k8s:NAMESPACE/NAME#key`: a Kubernetes Secret, a map of keys to bytes.

Each patch names the resource version it is based on. If another writer was faster, the patch is
made again.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from sealpipe.plugin import (
    AccessDeniedError,
    Context,
    Health,
    Locator,
    Mode,
    PluginError,
    ReferenceValueError,
    Sink,
    SinkField,
    UnavailableError,
    UnknownOutcomeError,
    UnsupportedError,
    WriteConflictError,
    WriteResult,
)
from sealpipe_plugins.confirm import (
    TRIES,
    Snapshot,
    add_marker,
    has_marker,
    require_same,
    store_and_confirm,
)
from sealpipe_plugins.http_reply import Reply
from sealpipe_plugins.kubernetes.access import K8sSettings
from sealpipe_plugins.kubernetes.client import Cluster
from sealpipe_plugins.kubernetes.secret_objects import (
    check_permissions,
    decode_values,
    missing_namespace_error,
    parse_target,
    permission_remedy,
    secret_path,
)
from sealpipe_plugins.sink_values import values_by_key

ANNOTATION: Final = "sealpipe.dev/submissions"
"""The annotation that holds the markers, newest last."""
ANNOTATION_LIMIT: Final = 32 * 1024
"""Maximum characters of the annotation: all annotations together may have 256 KiB."""
MAX_SIZE: Final = 1024 * 1024
"""Maximum bytes of all values together."""

_KEY: Final = re.compile(r"[-._a-zA-Z0-9]{1,253}")


class K8sSink(Sink):
    """Secrets of one cluster."""

    def __init__(self, settings: K8sSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._cluster = Cluster(settings, context)

    def describe(self, locator: Locator, mode: Mode) -> str:
        """Describe the write."""
        namespace, name = parse_target(locator)
        where = (
            f"the Secret {name} in "
            f"{f'the namespace {namespace}' if namespace else 'the namespace of the store'}"
        )
        action = {
            "create": "create {} of Kubernetes",
            "replace": "create {} of Kubernetes, or remove its other keys",
            "merge": "create {} of Kubernetes, or set keys and keep its others",
        }
        return action[mode].format(where)

    def put(
        self, locator: Locator, fields: Sequence[SinkField], *, mode: Mode, marker: str
    ) -> WriteResult:
        """Store the values with the marker in an annotation, and read them back.

        Returns no version.
        """
        namespace, name = parse_target(locator)
        wanted = _wanted_values(locator, fields)
        secret = _K8sSecretUpdate(
            self._cluster, locator, namespace or self._cluster.namespace, name, marker
        )
        outcome = store_and_confirm(secret.read, secret.write, wanted, locator, mode, marker)
        if not outcome.is_written:
            secret.ensure_marker(outcome.snapshot)
        return WriteResult(locator, already=not outcome.is_written)

    def check(self) -> Health:
        """Check whether the current user may store Secrets in the namespace. Changes nothing."""
        return check_permissions(self._cluster, ("get", "create", "patch"), "store")

    def close(self) -> None:
        """Close the connections."""
        self._cluster.close()


class _K8sSecretUpdate:
    """A write to one Secret."""

    def __init__(
        self, cluster: Cluster, locator: Locator, namespace: str, name: str, marker: str
    ) -> None:
        self._cluster, self._locator, self._namespace, self._name, self._marker = (
            cluster,
            locator,
            namespace,
            name,
            marker,
        )

    def read(self) -> Snapshot:
        """Read the values, the annotation and the object itself."""
        reply = self._cluster.call("GET", secret_path(self._namespace, self._name))
        if reply.status == 404:
            return Snapshot(None)
        if reply.status != 200:
            raise self._refusal_error(reply, "get")
        secret, meta = reply.json, _read_metadata(reply)
        if meta.get("deletionTimestamp") is not None:
            raise WriteConflictError(
                f"{self._locator} is being deleted",
                remedy="wait until it is gone, then run it again",
            )
        markers = (meta.get("annotations") or {}).get(ANNOTATION, "")
        return Snapshot(
            decode_values(reply, self._locator),
            str(meta.get("resourceVersion", "")),
            str(markers),
            secret,
        )

    def write(
        self,
        snapshot: Snapshot,
        after: Mapping[str, bytes],
        tries: int,  # noqa: ARG002
    ) -> str | None:
        """Write values and marker in one patch, if the Secret is still as in the snapshot."""
        if sum(len(data) for data in after.values()) > MAX_SIZE:
            raise UnsupportedError(
                f"{self._locator}: Kubernetes stores at most {MAX_SIZE} bytes in a Secret",
                remedy="name another Secret, or store it elsewhere",
            )
        if snapshot.values is None:
            return self._confirm(self._create(after), after, snapshot)
        if snapshot.raw.get("immutable") is True:
            raise WriteConflictError(
                f"{self._locator} is immutable and cannot be changed",
                remedy="name another Secret, or delete this one and run it again",
            )
        changed = {
            key: _encode(value) for key, value in after.items() if snapshot.values.get(key) != value
        }
        removed = dict.fromkeys(snapshot.values.keys() - after.keys())
        return self._confirm(
            self._patch(snapshot, {"data": {**removed, **changed}}), after, snapshot
        )

    def ensure_marker(self, snapshot: Snapshot) -> None:
        """Add the marker to the annotation if it is missing."""
        for _ in range(TRIES):
            if has_marker(snapshot.markers, self._marker) or snapshot.values is None:
                return
            if self._patch(snapshot, {}) is not None:
                return
            snapshot = self.read()
        raise UnavailableError(
            (
                f"{self._locator} is stored, but its marker cannot be written now: other "
                "writers keep changing it"
            ),
            remedy="run it again later",
        )

    def _create(self, after: Mapping[str, bytes]) -> Reply | None:
        meta = {
            "name": self._name,
            "namespace": self._namespace,
            "annotations": self._annotations_with(""),
        }
        data = {key: _encode(value) for key, value in after.items()}
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "Opaque",
            "metadata": meta,
            "data": data,
        }
        reply = self._cluster.call("POST", secret_path(self._namespace), secret, writes=True)
        if reply.status == 409:
            return None
        if reply.status == 404:
            raise missing_namespace_error(self._cluster, self._locator, self._namespace)
        return self._require_ok(reply, "create", "Opaque")

    def _patch(self, snapshot: Snapshot, change: Mapping[str, Any]) -> Reply | None:
        # Because of resourceVersion, the patch is refused (409) if the Secret has changed since.
        meta = {
            "resourceVersion": snapshot.version,
            "annotations": self._annotations_with(snapshot.markers),
        }
        reply = self._cluster.call(
            "PATCH",
            secret_path(self._namespace, self._name),
            {**change, "metadata": meta},
            writes=True,
        )
        if reply.status in (404, 409):
            return None
        return self._require_ok(reply, "patch", str(snapshot.raw.get("type", "Opaque")))

    def _require_ok(self, reply: Reply, verb: str, kind: str) -> Reply:
        if reply.status not in (200, 201):
            raise self._refusal_error(reply, verb, kind)
        return reply

    def _confirm(
        self, reply: Reply | None, after: Mapping[str, bytes], before: Snapshot
    ) -> str | None:
        """Read the Secret back.

        If it has changed since, check the response to the write instead.
        """
        if reply is None:
            return None
        version = _read_metadata(reply).get("resourceVersion")
        snapshot = self.read()
        if snapshot.version == before.version:
            raise UnknownOutcomeError(
                f"Kubernetes accepted {self._locator} but still has what was there before",
                remedy="run it again: nothing is stored twice",
            )
        require_same(
            snapshot.values if snapshot.version == version else decode_values(reply, self._locator),
            dict(after),
            self._locator,
        )
        return str(version)

    def _annotations_with(self, markers: str) -> dict[str, str]:
        return {ANNOTATION: add_marker(markers, self._marker, ANNOTATION_LIMIT)}

    def _refusal_error(self, reply: Reply, verb: str, kind: str = "") -> PluginError:
        where, status = self._locator, reply.status
        if status == 403:
            resource = f"secrets/{self._name}" if verb != "create" else "secrets"
            return AccessDeniedError(
                f"{where} may not be {'read' if verb == 'get' else 'written'}: Kubernetes "
                f"denies `{verb}` to this"
                " login, or a rule or quota of the cluster forbids it (403)",
                remedy=permission_remedy(verb, resource, self._namespace),
            )
        if status == 422:
            needs = "" if kind in ("", "Opaque") else f": its type {kind} requires certain keys"
            return WriteConflictError(
                f"{where}: Kubernetes rejected the Secret (422){needs}",
                remedy="keep its keys with --mode merge, or name another Secret",
            )
        if status == 413:
            return UnsupportedError(
                f"{where}: it is too large for Kubernetes (413)", remedy="store it elsewhere"
            )
        return PluginError(
            f"{where} cannot be stored: Kubernetes responded with {status}",
            remedy="see the cluster's log",
        )


def _wanted_values(locator: Locator, fields: Sequence[SinkField]) -> dict[str, bytes]:
    wanted = values_by_key(fields, locator)
    if "" in wanted:
        raise ReferenceValueError(
            f"{locator} is a map", remedy="name the key to store it under: #password=PROMPT"
        )
    if not all(_KEY.fullmatch(key) and key != "." and not key.startswith("..") for key in wanted):
        raise ReferenceValueError(
            f"{locator}: a key is not valid in a Secret",
            remedy="use at most 253 letters, digits or -._",
        )
    return wanted


def _read_metadata(reply: Reply) -> Mapping[str, Any]:
    meta = reply.member("metadata")
    return meta if isinstance(meta, dict) else {}


def _encode(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")
