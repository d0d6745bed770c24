"""`k8s:NAMESPACE/NAME#key`: a Kubernetes Secret, a map of keys to bytes."""

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
from sealpipe_plugins.kubernetes.secret_objects import (
    check_permissions,
    decode_values,
    missing_namespace_error,
    parse_target,
    permission_remedy,
    secret_path,
)


class K8sSource(Source):
    """Secrets of one cluster."""

    concurrency: ClassVar[int] = 8

    def __init__(self, settings: K8sSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._cluster = Cluster(settings, context)

    def fetch(self, locator: Locator) -> Document:
        """Fetch all keys of a Secret."""
        namespace, name = parse_target(locator)
        namespace = namespace or self._cluster.namespace
        reply = self._cluster.call("GET", secret_path(namespace, name))
        if reply.status == 200:
            return Document(decode_values(reply, locator))
        if reply.status == 404:
            raise _missing_secret_error(self._cluster, locator, namespace, name)
        if reply.status == 403:
            raise AccessDeniedError(
                f"{locator} may not be read: Kubernetes denies `get` to this login (403)",
                remedy=permission_remedy("get", f"secrets/{name}", namespace),
            )
        raise PluginError(f"{locator} cannot be read: Kubernetes responded with {reply.status}")

    def check(self) -> Health:
        """Check whether the current user may read Secrets in the namespace. Reads none."""
        return check_permissions(self._cluster, ("get",), "read")

    def close(self) -> None:
        """Close the connections."""
        self._cluster.close()


def _missing_secret_error(
    cluster: Cluster, locator: Locator, namespace: str, name: str
) -> SecretNotFoundError:
    """Return the error for a missing Secret or namespace, which Kubernetes does not distinguish."""
    status = cluster.call("GET", f"/api/v1/namespaces/{namespace}").status
    if status == 404:
        return missing_namespace_error(cluster, locator, namespace)
    uncertainty = "" if status == 200 else ", or no such namespace"
    return SecretNotFoundError(
        f"{locator} does not exist: the namespace {namespace} has no Secret {name}{uncertainty}",
        remedy=f"see `kubectl get secrets -n {namespace}`",
    )
