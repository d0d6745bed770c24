"""`k8s:NAMESPACE/NAME#key`: a Secret of Kubernetes. It is a map, its values exact to the byte."""

from __future__ import annotations

from typing import ClassVar

from sealpipe.plugin import (
    AccessDeniedError,
    Context,
    Document,
    Health,
    Locator,
    PluginError,
    SecretNotFoundError,
    Source,
)
from sealpipe_plugins.kubernetes.access import K8sSettings
from sealpipe_plugins.kubernetes.client import Cluster
from sealpipe_plugins.kubernetes.secret_objects import no_namespace, parts, path, rights, values


class K8sSource(Source):
    """Secrets of one cluster."""

    concurrency: ClassVar[int] = 8

    def __init__(self, settings: K8sSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._cluster = Cluster(settings, context)

    def fetch(self, locator: Locator) -> Document:
        """All keys of a Secret."""
        space, name = parts(locator)
        space = space or self._cluster.namespace
        reply = self._cluster.ask("GET", path(space, name))
        if reply.status == 200:
            return Document(values(reply, locator))
        if reply.status == 404:
            raise _missing(self._cluster, locator, space, name)
        if reply.status == 403:
            raise AccessDeniedError(
                f"{locator} may not be read: Kubernetes allows this login no `get` of it (403)",
                remedy=f"ask `kubectl auth can-i get secrets/{name} -n {space}`; a Role that allows it, and a binding",
            )
        raise PluginError(f"{locator} cannot be read: Kubernetes answered {reply.status}")

    def check(self) -> Health:
        """Whether the cluster knows us, and lets us read Secrets in the namespace. Reads none."""
        return rights(self._cluster, ("get",), "read")

    def close(self) -> None:
        """Hang up."""
        self._cluster.close()


def _missing(cluster: Cluster, locator: Locator, space: str, name: str) -> SecretNotFoundError:
    """Whether the Secret is not there, or its namespace. Kubernetes says the same of both."""
    status = cluster.ask("GET", f"/api/v1/namespaces/{space}").status
    if status == 404:
        return no_namespace(cluster, locator, space)
    doubt = "" if status == 200 else ", or no such namespace"
    return SecretNotFoundError(
        f"{locator} is not there: the namespace {space} has no Secret {name}{doubt}",
        remedy=f"see `kubectl get secrets -n {space}`",
    )
