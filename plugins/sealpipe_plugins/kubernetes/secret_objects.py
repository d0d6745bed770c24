"""A Kubernetes Secret: its address, its values, and the error if it is missing."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final

from sealpipe.plugin import Health, Locator, PluginError, ReferenceValueError, SecretNotFoundError
from sealpipe_plugins.http_reply import Reply
from sealpipe_plugins.kubernetes.client import Cluster

_NAMESPACE: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_MAX_NAME: Final = 253


def parse_target(locator: Locator) -> tuple[str, str]:
    """Return namespace (empty: the store's own) and name. Raises ReferenceValueError."""
    namespace, slash, name = locator.body.rpartition("/")
    if (
        not (_NAMESPACE.fullmatch(namespace) or not slash)
        or not _NAME.fullmatch(name)
        or len(name) > _MAX_NAME
    ):
        raise ReferenceValueError(
            f"{locator} is not a valid name of a Secret",
            remedy=(
                f"write {locator.name}:NAMESPACE/NAME#KEY: lower-case letters, digits and -; "
                "the name may have dots"
            ),
        )
    return namespace, name


def secret_path(namespace: str, name: str = "") -> str:
    """Return the API path of a Secret, or of all Secrets in a namespace."""
    return f"/api/v1/namespaces/{namespace}/secrets" + (f"/{name}" if name else "")


def decode_values(reply: Reply, locator: Locator) -> dict[str, bytes]:
    """Return the decoded values. Raises PluginError."""
    data = reply.member("data")
    if reply.member("kind") not in ("Secret", None) or not isinstance(data, dict | None):
        raise PluginError(
            f"{locator}: the response is not a Secret of Kubernetes",
            remedy="check the server's address",
        )
    if data is None and reply.member("metadata") is None:
        raise PluginError(
            f"{locator}: the response is not a Secret of Kubernetes",
            remedy="check the server's address",
        )
    try:
        return {key: base64.b64decode(value, validate=True) for key, value in (data or {}).items()}
    except (binascii.Error, ValueError, TypeError):
        pass
    raise PluginError(f"{locator} has a value that is not base64", remedy="fix the Secret")


def missing_namespace_error(
    cluster: Cluster, locator: Locator, namespace: str
) -> SecretNotFoundError:
    """Return the error for a missing namespace."""
    return SecretNotFoundError(
        f"{locator} does not exist: the cluster at {cluster.host} has no namespace {namespace}",
        remedy="check the namespace and the cluster",
    )


def permission_remedy(verb: str, resource: str, namespace: str) -> str:
    """Return the remedy if Kubernetes does not allow `verb`."""
    return (
        f"bind a Role that allows it; check with `kubectl auth can-i {verb} {resource} -n "
        f"{namespace}`"
    )


def check_permissions(cluster: Cluster, verbs: tuple[str, ...], action: str) -> Health:
    """Check whether the current user has these verbs for Secrets in the namespace.

    Reads no Secret.
    """
    namespace = cluster.namespace
    where = f"Secrets in the namespace {namespace} at {cluster.host}"
    denied = []
    for verb in verbs:
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {
                "resourceAttributes": {"namespace": namespace, "verb": verb, "resource": "secrets"}
            },
        }
        reply = cluster.call(
            "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review
        )
        status = reply.member("status")
        if reply.status not in (200, 201) or not isinstance(status, dict):
            return Health(
                ok=False,
                detail=(
                    f"Kubernetes did not say whether this login may {action} {where} "
                    f"({reply.status})"
                ),
            )
        if status.get("allowed") is not True:
            denied.append(verb)
    if not denied:
        return Health(ok=True, detail=f"may {action} {where}")
    verb_list = f" ({', '.join(denied)})" if len(verbs) > 1 else ""
    return Health(
        ok=False,
        detail=(
            f"may not {action} all {where}{verb_list}; access to single Secrets may still be "
            "allowed by name"
        ),
    )
