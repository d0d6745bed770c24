"""`k8s:NAMESPACE/NAME#key`: a Secret of Kubernetes. It is a map, its values exact to the byte."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any, ClassVar, Final

from sealpipe.plugin import (
    BadReference,
    Context,
    Denied,
    Document,
    Health,
    Locator,
    NotFound,
    PluginError,
    Source,
)
from sealpipe_plugins.backends.answers import Reply
from sealpipe_plugins.backends.k8s import Cluster
from sealpipe_plugins.backends.k8s_settings import K8sSettings

_NAMESPACE: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LONGEST: Final = 253


class K8sSource(Source):
    """Secrets of one cluster."""

    concurrency: ClassVar[int] = 8

    def __init__(self, settings: K8sSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._cluster = Cluster(settings, context)

    def fetch(self, locator: Locator) -> Document:
        """All keys of a Secret."""
        space, name = self._parts(locator)
        reply = self._cluster.ask("GET", f"/api/v1/namespaces/{space}/secrets/{name}")
        if reply.status == 200:
            return Document(_values(reply, locator))
        if reply.status == 404:
            raise self._missing(locator, space, name)
        if reply.status == 403:
            raise Denied(
                f"{locator} may not be read: Kubernetes allows this login no `get` of it (403)",
                remedy=f"ask `kubectl auth can-i get secrets/{name} -n {space}`; a Role that allows it, and a binding",
            )
        raise PluginError(f"{locator} cannot be read: Kubernetes answered {reply.status}")

    def check(self) -> Health:
        """Whether the cluster knows us, and lets us read Secrets in the namespace. Reads none."""
        space = self._cluster.namespace
        asked = {"namespace": space, "verb": "get", "resource": "secrets"}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": asked},
        }
        reply = self._cluster.ask("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
        status = reply.member("status")
        where = f"Secrets in the namespace {space} at {self._cluster.host}"
        if reply.status not in (200, 201) or not isinstance(status, dict):
            return Health(ok=False, detail=f"Kubernetes does not say whether we may read {where} ({reply.status})")
        if status.get("allowed") is True:
            return Health(ok=True, detail=f"may read {where}")
        return Health(ok=False, detail=f"may not read all {where}; single ones may be allowed by name")

    def close(self) -> None:
        """Hang up."""
        self._cluster.close()

    def _parts(self, locator: Locator) -> tuple[str, str]:
        space, slash, name = locator.body.rpartition("/")
        space = space if slash else self._cluster.namespace
        if not (_NAMESPACE.fullmatch(space) and _NAME.fullmatch(name) and len(name) <= _LONGEST):
            raise BadReference(
                f"{locator} names no Secret that there could be",
                remedy=f"write {locator.name}:NAMESPACE/NAME#KEY: small letters, digits, - and, in the name, dots",
            )
        return space, name

    def _missing(self, locator: Locator, space: str, name: str) -> NotFound:
        # Kubernetes says the same of a Secret in a namespace that is not there.
        status = self._cluster.ask("GET", f"/api/v1/namespaces/{space}").status
        if status == 404:
            return NotFound(
                f"{locator} is not there: the cluster at {self._cluster.host} has no namespace {space}",
                remedy="check the namespace, and that it is the right cluster",
            )
        doubt = "" if status == 200 else ", or no such namespace"
        return NotFound(
            f"{locator} is not there: the namespace {space} has no Secret {name}{doubt}",
            remedy=f"see `kubectl get secrets -n {space}`",
        )


def _values(reply: Reply, locator: Locator) -> dict[str, Any]:
    data = reply.member("data")
    if reply.member("kind") not in ("Secret", None) or not isinstance(data, dict | None):
        raise PluginError(f"{locator}: what answered is no Secret of Kubernetes", remedy="check the server's address")
    if data is None and reply.member("metadata") is None:
        raise PluginError(f"{locator}: what answered is no Secret of Kubernetes", remedy="check the server's address")
    try:
        return {key: base64.b64decode(value, validate=True) for key, value in (data or {}).items()}
    except (binascii.Error, ValueError, TypeError):
        pass
    raise PluginError(f"{locator} has a value that is not base64", remedy="mend the Secret")
