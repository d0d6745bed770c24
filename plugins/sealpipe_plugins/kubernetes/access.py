"""The cluster and the credentials for it.

From the settings, a kubeconfig, or the pod's service account.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar
from urllib.parse import urlsplit

from pydantic import PositiveFloat

from sealpipe.plugin import Context, NotConfiguredError, Secret, is_cleartext
from sealpipe.plugin.settings import PluginSettings
from sealpipe_plugins.kubernetes.cluster import Access, read_text
from sealpipe_plugins.kubernetes.kubeconfig import from_kubeconfig


class K8sSettings(PluginSettings):
    """A cluster: its `server`, or a `context` of a kubeconfig (several files are separated as in
    KUBECONFIG).

    Without either, the default store uses what kubectl would use: ~/.kube/config, or in a pod its
    service account. `timeout` is in seconds.
    """

    server: str | None = None
    token: Secret | None = None
    token_file: Path | None = None
    ca_file: Path | None = None
    namespace: str | None = None
    kubeconfig: str | None = None
    context: str | None = None
    service_account: Path = Path("/var/run/secrets/kubernetes.io/serviceaccount")
    timeout: PositiveFloat = 30.0

    own_variables: ClassVar[Mapping[str, str]] = {"kubeconfig": "KUBECONFIG"}


def resolve_access(settings: K8sSettings, context: Context) -> Access:
    """Return cluster and credentials from the settings. Raises NotConfiguredError."""
    resolved = _find_access(settings, context)
    if settings.ca_file is not None:
        resolved = resolved._replace(
            authorities=read_text(settings.ca_file, "the certificate authority's file").reveal()
        )
    if settings.namespace is not None:
        resolved = resolved._replace(namespace=settings.namespace)
    resolved = resolved._replace(server=resolved.server.rstrip("/"))
    parts = urlsplit(resolved.server)
    if (
        is_cleartext(parts.scheme, parts.hostname or "")
        or not parts.hostname
        or parts.username is not None
    ):
        raise NotConfiguredError(
            f"the server of {context.store} is not an https address",
            remedy="write https://HOST:PORT; http is only for loopback (kubectl proxy)",
        )
    return resolved


def _find_access(settings: K8sSettings, context: Context) -> Access:
    token, file = settings.token, settings.token_file
    if token is not None and file is not None:
        raise NotConfiguredError(
            f"{context.store} has both a token and a token_file", remedy="remove one of them"
        )
    has_token = token is not None or file is not None
    if settings.server is not None:
        if not has_token:
            raise NotConfiguredError(
                f"{context.store} has a server but no token", remedy="set its token, or token_file"
            )
        return Access(settings.server, token=token, token_file=file)
    files = _kubeconfig_files(settings, context)
    if files:
        found = from_kubeconfig(files, settings.context, with_user=not has_token)
        return found._replace(token=token, token_file=file) if has_token else found
    if not context.named:
        in_cluster = _in_cluster_access(settings.service_account, context)
        if in_cluster is not None:
            return in_cluster._replace(token=token, token_file=file) if has_token else in_cluster
    raise NotConfiguredError(
        f"no cluster is configured for {context.store}",
        remedy="set its server and token, or its kubeconfig or context"
        + (
            ""
            if context.named
            else "; without them, ~/.kube/config or a pod's service account is used"
        ),
    )


def _kubeconfig_files(settings: K8sSettings, context: Context) -> list[Path]:
    if settings.kubeconfig is not None:
        return [Path(name).expanduser() for name in settings.kubeconfig.split(os.pathsep) if name]
    default_file = Path(context.environ.get("HOME") or "/", ".kube", "config")
    # A context names one of the user's own clusters; without one, a named store uses no cluster
    # implicitly.
    has_context = settings.context is not None
    return [default_file] if has_context or (not context.named and default_file.is_file()) else []


def _in_cluster_access(folder: Path, context: Context) -> Access | None:
    host, port = (context.environ.get(f"KUBERNETES_SERVICE_{part}") for part in ("HOST", "PORT"))
    token = folder / "token"
    if not host or not port or not token.is_file():
        return None
    host = f"[{host}]" if ":" in host else host
    authorities = read_text(folder / "ca.crt", "the service account's").reveal()
    namespace_file = folder / "namespace"
    namespace = (
        read_text(namespace_file, "the service account's").reveal().strip()
        if namespace_file.is_file()
        else None
    )
    return Access(f"https://{host}:{port}", authorities, token_file=token, namespace=namespace)
