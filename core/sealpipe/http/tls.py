"""Whom TLS trusts, and which way out: the system's certificates and one file more, and the proxy of the environment."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import getproxies_environment, proxy_bypass_environment  # type: ignore[attr-defined]  # not in typeshed

from sealpipe.errors import NotConfiguredError, SettingError
from sealpipe.loopback import in_clear, is_loopback

if TYPE_CHECKING:
    import httpcore


def tls_context(environ: Mapping[str, str], *ca_files: Path | None) -> ssl.SSLContext:
    """A context that checks certificates and names: the system's and those of some files.

    SSLKEYLOGFILE is not obeyed: it would write the session keys.
    """
    context = _empty()
    try:
        _load_system(context, environ)
        for ca_file in ca_files:
            if ca_file is not None:
                context.load_verify_locations(cafile=ca_file)
    except (OSError, ssl.SSLError):
        raise SettingError(
            "the certificates to trust cannot be read",
            remedy="check SEALPIPE_CA_FILE, SSL_CERT_FILE, SSL_CERT_DIR and what the store names: PEM files that this "
            "user can read",
        ) from None
    return context


def own_context(
    environ: Mapping[str, str],
    ca_file: Path | None,
    authorities: str | None,
    certificate: tuple[Path, Path] | None,
) -> ssl.SSLContext:
    """A context for one backend: `authorities` in place of the system's (None: those), and a client certificate."""
    if authorities is None:
        context = tls_context(environ, ca_file)
    else:
        context = _empty()
        try:
            context.load_verify_locations(cadata=authorities)
            if ca_file is not None:
                context.load_verify_locations(cafile=ca_file)
        except (OSError, ssl.SSLError):
            raise SettingError("the certificates to trust are not PEM", remedy="check its CA setting") from None
    if certificate is not None:
        try:
            context.load_cert_chain(*certificate)
        except (OSError, ssl.SSLError):
            raise SettingError(
                "the client certificate and its key cannot be read, or do not belong together",
                remedy="check both: PEM, and the key without a passphrase",
            ) from None
    return context


def _empty() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # create_default_context() would obey SSLKEYLOGFILE
    context.minimum_version = ssl.TLSVersion.TLSv1_2
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


def named_certificates(environ: Mapping[str, str]) -> list[Path]:
    """The files of certificates that the environment names, a folder's one by one; empty where it names none."""
    file, folders = environ.get("SSL_CERT_FILE"), (environ.get("SSL_CERT_DIR") or "").split(os.pathsep)
    hashed = [each for folder in folders if folder for each in sorted(Path(folder).glob("*.[0-9]"))]
    return [*([Path(file)] if file else []), *hashed]


def _is_hashed(folder: str) -> bool:
    """Whether OpenSSL would find certificates there: by names such as 5ed36f99.0."""
    try:
        with os.scandir(folder) as entries:
            return any(entry.name.endswith(".0") for entry in entries)
    except OSError:
        return False


def refuse_clear(scheme: str, host: str) -> None:
    """The last gate before a plugin's connection: NotConfiguredError where what it sends could be read on the way.

    Backends say it with the setting's name where they are made; whatever they do not see ends here, before a byte.
    """
    if in_clear(scheme, host):
        raise NotConfiguredError(
            f"the address {scheme}://{host} would take secrets to another machine in clear: nothing was sent",
            remedy="let it begin with https://; http:// is for this machine itself only",
        )


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


def pool_proxy(proxy: str | None) -> httpcore.Proxy | None:
    """A proxy as the pools take it: its login apart from its address."""
    import httpcore
    import httpx

    if proxy is None:
        return None
    url = httpx.URL(proxy)
    user = (url.username.encode(), url.password.encode()) if url.username else None
    return httpcore.Proxy(str(url.copy_with(username=None, password=None)), auth=user)


def _is_proxy(address: str) -> bool:
    try:
        parts = urlsplit(address)
        whole = bool(parts.hostname) and parts.port != 0  # a port that is none is told only when it is asked for
    except ValueError:
        return False
    return whole and parts.scheme in ("http", "https") and address.isprintable() and " " not in address
