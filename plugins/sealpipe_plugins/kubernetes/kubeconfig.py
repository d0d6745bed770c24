"""Reads a kubeconfig, except for auth plugins that run a program.

Unsupported settings are errors, never ignored.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from sealpipe.plugin import NotConfiguredError, Secret, UnsupportedError
from sealpipe_plugins.kubernetes.cluster import Access, read_text

_UNSUPPORTED_CLUSTER: Final = {
    "insecure-skip-tls-verify": (
        "certificates are always checked: name the cluster's authority instead"
    ),
    "proxy-url": "set HTTPS_PROXY, which all of sealpipe uses",
    "tls-server-name": "set server to an address that the certificate names",
}
_USE_TOKEN: Final = "set a token: `kubectl create token SERVICE_ACCOUNT` creates one"  # noqa: S105
_UNSUPPORTED_USER: Final = dict.fromkeys(
    ("exec", "auth-provider", "username", "password", "as", "as-groups", "as-uid"), _USE_TOKEN
)


def from_kubeconfig(files: Sequence[Path], context: str | None, *, with_user: bool) -> Access:
    """Return the cluster of a context (None: the current one), and its user if `with_user`.

    If several files define a name, the first one wins, as in kubectl. Raises NotConfiguredError,
    UnsupportedError.
    """
    configs = [(file, _load(file)) for file in files]
    file_name = files[0] if len(files) == 1 else "the kubeconfig files"
    context_name = context or next(
        (str(each["current-context"]) for _, each in configs if each.get("current-context")), None
    )
    if context_name is None:
        raise NotConfiguredError(
            f"{file_name} has no current context", remedy="set the store's context"
        )
    _, names = _find_entry(configs, "context", context_name)
    home, cluster = _find_entry(configs, "cluster", str(names.get("cluster", "")))
    _refuse_unsupported(cluster, _UNSUPPORTED_CLUSTER, f"the cluster of the context {context_name}")
    resolved = Access(
        str(cluster.get("server", "")),
        _read_pem(cluster, "certificate-authority", home),
        namespace=names.get("namespace") or None,
    )
    if not with_user:
        return resolved
    home, user = _find_entry(configs, "user", str(names.get("user", "")))
    _refuse_unsupported(user, _UNSUPPORTED_USER, f"the user of the context {context_name}")
    return _add_user(resolved, user, home, context_name)


def _add_user(resolved: Access, user: Mapping[str, Any], home: Path, context_name: str) -> Access:
    certificate, key = (
        _read_pem(user, "client-certificate", home),
        _read_pem(user, "client-key", home),
    )
    if certificate is not None and key is not None:
        resolved = resolved._replace(certificate=(Secret(certificate), Secret(key)))
    if user.get("tokenFile"):  # takes precedence over the token, as in kubectl
        return resolved._replace(token_file=home / str(user["tokenFile"]))
    if user.get("token"):
        return resolved._replace(token=Secret(str(user["token"])))
    if resolved.certificate is None:
        raise NotConfiguredError(
            f"the user of the context {context_name} has neither a token nor a certificate",
            remedy=_USE_TOKEN,
        )
    return resolved


def _load(file: Path) -> Mapping[str, Any]:
    try:
        yaml = import_module("yaml")
    except ImportError:
        yaml = None
    if yaml is None:
        from sealpipe.installation import format_command  # for an error only

        raise NotConfiguredError(
            "reading a kubeconfig needs PyYAML", remedy=format_command(["sealpipe[yaml]"])
        )
    text = read_text(file, "the kubeconfig")
    try:
        config = yaml.safe_load(text.reveal())
    except (yaml.YAMLError, RecursionError, ValueError):
        config = None
    if not isinstance(config, Mapping):
        raise NotConfiguredError(
            f"the kubeconfig {file} is not a valid kubeconfig", remedy="mend it"
        )
    return config


def _find_entry(
    configs: Sequence[tuple[Path, Mapping[str, Any]]], kind: str, name: str
) -> tuple[Path, Mapping[str, Any]]:
    """Return an entry, and the folder that its paths are relative to."""
    for file, config in configs:
        entries = config.get(f"{kind}s") or ()
        for entry in entries if isinstance(entries, list) else ():
            if (
                isinstance(entry, Mapping)
                and entry.get("name") == name
                and isinstance(entry.get(kind), Mapping)
            ):
                return file.parent, entry[kind]
    raise NotConfiguredError(
        f"the kubeconfig has no {kind} {name[:100]!r}", remedy="see `kubectl config view`"
    )


def _refuse_unsupported(entry: Mapping[str, Any], unsupported: Mapping[str, str], of: str) -> None:
    for name, remedy in unsupported.items():
        if entry.get(name):
            raise UnsupportedError(
                f"{of} has {name}, which sealpipe does not support", remedy=remedy
            )


def _read_pem(entry: Mapping[str, Any], name: str, home: Path) -> str | None:
    data = entry.get(f"{name}-data")
    if data:
        try:
            return base64.b64decode(str(data), validate=True).decode("ascii")
        except (binascii.Error, ValueError):
            pass
        raise NotConfiguredError(
            f"{name}-data of the kubeconfig is not base64 of PEM", remedy="mend it"
        )
    return read_text(home / str(entry[name]), name).reveal() if entry.get(name) else None
