"""TLS of a server: 1.2 or later, with a certificate that is renewed while it serves."""

from __future__ import annotations

import logging
import os
import ssl
from collections.abc import Sequence
from pathlib import Path

_logger = logging.getLogger(__name__)


class CertificateError(Exception):
    """A certificate cannot be used with its key; `remedy` is what its operator does."""

    def __init__(self, text: str, remedy: str) -> None:
        super().__init__(text)
        self.remedy = remedy


class Certificate:
    """The files of a certificate with its chain, and of its key.

    `context` has them; connections that are open keep the certificate that they began with. Raises
    CertificateError.
    """

    def __init__(self, chain: str, key: str) -> None:
        self._files = (chain, key)
        self._seen = self._look_at_files()
        self.context = _make_context()
        load(self.context, chain, key)

    def renew(self) -> None:
        """Load them again if they have changed; what cannot be used changes nothing."""
        found = self._look_at_files()
        if found == self._seen:
            return
        self._seen = found
        try:
            load(_make_context(), *self._files)  # a context in use stays as it is if that fails
            load(self.context, *self._files)
        except CertificateError as error:
            _logger.warning("the certificate was not renewed: %s", error)
        else:
            _logger.info("the certificate was renewed")

    def _look_at_files(self) -> Sequence[object]:
        return [_look_at(each) for each in self._files]


def _look_at(path: str) -> object:
    try:
        found = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _make_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def load(context: ssl.SSLContext, chain: str, key: str) -> None:
    """Load a certificate and its key. Raises CertificateError."""
    for path, what in ((chain, "CERTIFICATE"), (key, "PRIVATE KEY")):
        try:
            text = Path(path).read_bytes()
        except OSError as error:
            raise CertificateError(
                f"{path} cannot be read: {error.strerror}",
                "name PEM files that the user of the service can read",
            ) from None
        if f"{what}-----".encode() not in text:
            raise CertificateError(
                f"{path} holds no PEM of a {what.lower()}",
                "first the certificate's file, then that of its key",
            )
        if b"ENCRYPTED" in text:
            raise CertificateError(
                f"{path} has a passphrase",
                "write it without one: `openssl pkey -in FILE -out PLAIN`, with mode 0600",
            )
    try:
        context.load_cert_chain(chain, key, lambda: b"")
    except (OSError, ValueError) as error:
        raise _explain(error, chain, key) from None


def _explain(error: Exception, chain: str, key: str) -> CertificateError:
    if isinstance(error, ssl.SSLError) and error.reason == "KEY_VALUES_MISMATCH":
        return CertificateError(
            f"{key} is not the key of the first certificate in {chain}",
            "the server's own certificate comes first, and then those that signed it",
        )
    return CertificateError(
        f"{chain} or {key} is damaged, or not accepted by OpenSSL", "have them issued anew"
    )
