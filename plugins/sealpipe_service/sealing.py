"""Seals the secrets of webhooks under a key that is not in the database.

Who copies the database can then sign nothing. A rehearsal seals nothing, and never imports this.
"""

from __future__ import annotations

import base64
import binascii
import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from .webhooks import SealError

_PURPOSE = b"sealpipe server: secrets of webhooks"
_NONCE = 12
_FORM = "sealed1:"


class NoKey:
    """Of a server that was given no key: it neither seals nor opens."""

    def seal(self, _: str, endpoint: str) -> str:
        """Raise SealError."""
        raise SealError(endpoint)

    def open(self, _: str, endpoint: str) -> str:
        """Raise SealError."""
        raise SealError(endpoint)


class WebhookSeals:
    """Seals under a key made from a text of at least 128 random bits."""

    def __init__(self, key: str) -> None:
        derived = HKDF(SHA256(), 32, salt=None, info=_PURPOSE).derive(key.encode())
        self._cipher = AESGCM(derived)

    def seal(self, secret: str, endpoint: str) -> str:
        """Seal the secret of an endpoint, so that it opens for no other one."""
        nonce = os.urandom(_NONCE)
        sealed = nonce + self._cipher.encrypt(nonce, secret.encode(), endpoint.encode())
        return _FORM + base64.urlsafe_b64encode(sealed).decode()

    def open(self, sealed: str, endpoint: str) -> str:
        """Return the secret. Raises SealError."""
        try:
            data = base64.urlsafe_b64decode(sealed.removeprefix(_FORM))
            plain = self._cipher.decrypt(data[:_NONCE], data[_NONCE:], endpoint.encode())
        except (InvalidTag, ValueError, binascii.Error):
            raise SealError(endpoint) from None
        return plain.decode()
