"""Which cluster, and by which right: from the settings, a kubeconfig, or the service account of the pod around us."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, NamedTuple
from urllib.parse import urlsplit

from pydantic import PositiveFloat

from sealpipe.plugin import Context, NotConfiguredError, Secret, in_clear
from sealpipe.plugin.settings import PluginSettings


class K8sSettings(PluginSettings):
    """A cluster: its `server`, or a `context` of a kubeconfig (several files as KUBECONFIG has them).

    Without either, the default store takes what kubectl would take: ~/.kube/config, or in a pod its service account.
    `timeout` is in seconds.
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


class Access(NamedTuple):
    """A cluster and how to enter it.

    `authorities` is PEM text (None: the system's are meant), `certificate` that of the client and its key as PEM.
    A token file is read anew for each call: a pod's token is replaced every hour.
    """

    server: str
    authorities: str | None = None
    token: Secret | None = None
    token_file: Path | None = None
    certificate: tuple[Secret, Secret] | None = None
    namespace: str | None = None


def access(settings: K8sSettings, context: Context) -> Access:
    """What the settings mean here. Raises NotConfiguredError."""
    found = _access(settings, context)
    if settings.ca_file is not None:
        found = found._replace(authorities=text_of(settings.ca_file, "the certificate authority's file").reveal())
    if settings.namespace is not None:
        found = found._replace(namespace=settings.namespace)
    found = found._replace(server=found.server.rstrip("/"))
    parts = urlsplit(found.server)
    if in_clear(parts.scheme, parts.hostname or "") or not parts.hostname or parts.username is not None:
        raise NotConfiguredError(
            f"the server of {context.store} is not an https address",
            remedy="write https://HOST:PORT; http is for this machine's own addresses only (kubectl proxy)",
        )
    return found


def text_of(path: Path, what: str) -> Secret:
    """A file's text."""
    try:
        return Secret(path.expanduser().read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
    raise NotConfiguredError(f"{what} {path} cannot be read: {reason}", remedy="check the path, and who may read it")


def _access(settings: K8sSettings, context: Context) -> Access:
    token, file = settings.token, settings.token_file
    if token is not None and file is not None:
        raise NotConfiguredError(f"{context.store} has both a token and a token_file", remedy="keep one of them")
    own = token is not None or file is not None
    if settings.server is not None:
        if not own:
            raise NotConfiguredError(
                f"{context.store} has a server and no token", remedy="set its token, or token_file"
            )
        return Access(settings.server, token=token, token_file=file)
    files = _kubeconfigs(settings, context)
    if files:
        from sealpipe_plugins.kubernetes.kubeconfig import from_kubeconfig  # it needs YAML, the rest does not

        found = from_kubeconfig(files, settings.context, with_user=not own)
        return found._replace(token=token, token_file=file) if own else found
    if not context.named:
        inside = _in_cluster(settings.service_account, context)
        if inside is not None:
            return inside._replace(token=token, token_file=file) if own else inside
    raise NotConfiguredError(
        f"nothing says which cluster {context.store} is",
        remedy="set its server and token, or its kubeconfig or context"
        + ("" if context.named else "; in a pod its service account is taken, outside ~/.kube/config"),
    )


def _kubeconfigs(settings: K8sSettings, context: Context) -> list[Path]:
    if settings.kubeconfig is not None:
        return [Path(name).expanduser() for name in settings.kubeconfig.split(os.pathsep) if name]
    usual = Path(context.environ.get("HOME") or "/", ".kube", "config")
    # A context names one of the user's own clusters; without it a named store takes nothing by itself.
    asked_for = settings.context is not None
    return [usual] if asked_for or (not context.named and usual.is_file()) else []


def _in_cluster(folder: Path, context: Context) -> Access | None:
    host, port = (context.environ.get(f"KUBERNETES_SERVICE_{part}") for part in ("HOST", "PORT"))
    token = folder / "token"
    if not host or not port or not token.is_file():
        return None
    host = f"[{host}]" if ":" in host else host
    authorities = text_of(folder / "ca.crt", "the service account's").reveal()
    space = folder / "namespace"
    namespace = text_of(space, "the service account's").reveal().strip() if space.is_file() else None
    return Access(f"https://{host}:{port}", authorities, token_file=token, namespace=namespace)
