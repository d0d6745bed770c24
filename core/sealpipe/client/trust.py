"""Whom TLS trusts, and which way out: the system's certificates and one file more, and the proxy of the environment."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies_environment, proxy_bypass_environment  # type: ignore[attr-defined]  # not in typeshed

from sealpipe.errors import SettingError
from sealpipe.settings import is_loopback


def tls_context(environ: Mapping[str, str], ca_file: Path | None) -> ssl.SSLContext:
    """A context that checks certificates and names. SSLKEYLOGFILE is not obeyed: it would write the session keys."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # create_default_context() would obey it
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        _load_system(context, environ)
        if ca_file is not None:
            context.load_verify_locations(cafile=ca_file)
    except (OSError, ssl.SSLError):
        raise SettingError(
            "the certificates to trust cannot be read",
            remedy="check SEALPIPE_CA_FILE, SSL_CERT_FILE and SSL_CERT_DIR: PEM files that this user can read",
        ) from None
    return context


def _load_system(context: ssl.SSLContext, environ: Mapping[str, str]) -> None:
    named = environ.get("SSL_CERT_FILE"), environ.get("SSL_CERT_DIR")
    if any(named):
        context.load_verify_locations(cafile=named[0] or None, capath=named[1] or None)
        return
    usual = ssl.get_default_verify_paths()
    if usual.capath and _is_hashed(usual.capath):
        # Looked up one by one when needed: a bundle is read whole, 24 to 36 ms in every process.
        context.load_verify_locations(capath=usual.capath)
    elif usual.cafile:
        context.load_verify_locations(cafile=usual.cafile)
    else:
        import certifi

        context.load_verify_locations(cafile=certifi.where())


def _is_hashed(folder: str) -> bool:
    """Whether OpenSSL would find certificates there: by names such as 5ed36f99.0."""
    try:
        with os.scandir(folder) as entries:
            return any(entry.name.endswith(".0") for entry in entries)
    except OSError:
        return False


def proxy_for(url: str) -> str | None:
    """The proxy that the environment names for an address; never one for loopback."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if is_loopback(host) or proxy_bypass_environment(host):
        return None
    proxies = getproxies_environment()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if proxy is None:
        return None
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    if not _is_proxy(proxy):
        raise SettingError("the proxy of the environment is not an http(s) address", remedy="check HTTPS_PROXY")
    return proxy


def _is_proxy(address: str) -> bool:
    try:
        parts = urlsplit(address)
        whole = bool(parts.hostname) and parts.port != 0  # a port that is none is told only when it is asked for
    except ValueError:
        return False
    return whole and parts.scheme in ("http", "https") and address.isprintable() and " " not in address
