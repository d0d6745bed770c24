"""TLS contexts: they trust the system's certificates, those of the CA file, and what a backend's settings name."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from pathlib import Path

from sealpipe.errors import SettingError


def make_tls_context(environ: Mapping[str, str], *ca_files: Path | None) -> ssl.SSLContext:
    """Make a context that checks certificates and host names, and trusts the system's CAs and those in `ca_files`.

    SSLKEYLOGFILE is ignored: it would write the session keys to a file. Raises SettingError.
    """
    context = _make_empty_context()
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


def make_backend_context(
    environ: Mapping[str, str],
    ca_file: Path | None,
    authorities: str | None,
    certificate: tuple[Path, Path] | None,
) -> ssl.SSLContext:
    """Make a context for one backend. Raises SettingError.

    `authorities` is PEM text that is trusted instead of the system's CAs; `certificate` names the files of the client
    certificate and its key.
    """
    if authorities is None:
        context = make_tls_context(environ, ca_file)
    else:
        context = _make_empty_context()
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


def _make_empty_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # create_default_context() would obey SSLKEYLOGFILE
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _load_system(context: ssl.SSLContext, environ: Mapping[str, str]) -> None:
    configured = environ.get("SSL_CERT_FILE"), environ.get("SSL_CERT_DIR")
    if any(configured):
        context.load_verify_locations(cafile=configured[0] or None, capath=configured[1] or None)
        return
    default_paths = ssl.get_default_verify_paths()
    if default_paths.capath and _is_hashed_folder(default_paths.capath):
        # OpenSSL looks up each CA here when needed; it reads a bundle whole, which takes 24 to 36 ms.
        context.load_verify_locations(capath=default_paths.capath)
    elif default_paths.cafile:
        context.load_verify_locations(cafile=default_paths.cafile)
    else:
        import certifi

        context.load_verify_locations(cafile=certifi.where())


def list_certificates(environ: Mapping[str, str]) -> list[Path]:
    """List the certificate files that SSL_CERT_FILE and SSL_CERT_DIR name, those of a directory one by one."""
    file, folders = environ.get("SSL_CERT_FILE"), (environ.get("SSL_CERT_DIR") or "").split(os.pathsep)
    hashed = [each for folder in folders if folder for each in sorted(Path(folder).glob("*.[0-9]"))]
    return [*([Path(file)] if file else []), *hashed]


def _is_hashed_folder(folder: str) -> bool:
    """Whether OpenSSL would find certificates there: they have names such as 5ed36f99.0."""
    try:
        with os.scandir(folder) as entries:
            return any(entry.name.endswith(".0") for entry in entries)
    except OSError:
        return False
