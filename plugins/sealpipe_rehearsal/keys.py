"""Minting credentials, as the signed-in app of the service does it (specification: Credential)."""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass

from sealpipe.secret import Secret
from sealpipe.wire import keys


@dataclass(frozen=True)
class Minted:
    """A new credential, and the three values of it that a service may know."""

    credential: Secret
    key_id: str
    auth_sha256: str
    custody_public_key: str


def mint(tag: str = "svc", *, token_bytes: Callable[[int], bytes] = secrets.token_bytes) -> Minted:
    """Draw 12, 32 and 32 random bytes and write them as `<tag>_sk_live_<keyId>.<auth>.<custody>`.

    The service is to get the key id, the SHA-256 (hex) of the auth secret, and the custody public key
    (base64url of 65 bytes). The credential is shown to its owner once and goes nowhere else.
    """
    key_id, auth_secret, custody_secret = (_base64url(token_bytes(length)) for length in (12, 32, 32))
    return Minted(
        credential=Secret(f"{tag}_sk_live_{key_id}.{auth_secret}.{custody_secret}"),
        key_id=key_id,
        auth_sha256=hashlib.sha256(auth_secret.encode("ascii")).hexdigest(),
        custody_public_key=_base64url(keys.from_custody_secret(custody_secret, tag=tag).public_key),
    )


def _base64url(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).decode("ascii").rstrip("=")
