"""Makes a credential, and what a service may know of it (specification: Credential)."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass

from sealpipe.secret import Secret
from sealpipe.wire import encoding, keys


@dataclass(frozen=True)
class MintedKey:
    """A new credential, and the values derived from it that a service may know.

    The last one only a rehearsal.
    """

    credential: Secret
    key_id: str
    auth_sha256: str
    custody_public_key: str
    custody_sha256: str


def mint(
    tag: str = "svc", *, token_bytes: Callable[[int], bytes] = secrets.token_bytes
) -> MintedKey:
    """Create `<tag>_sk_live_<keyId>.<auth>.<custody>` from 12, 32 and 32 random bytes.

    Specification: Credential.

    The service gets only the key id, the SHA-256 (hex) of both secrets (of the custody secret only
    a rehearsal, which keeps it out of its log), and the custody public key (base64url of 65 bytes).
    The credential itself exists only in the return value.
    """
    key_id, auth_secret, custody_secret = (
        encoding.encode_base64url(token_bytes(length)) for length in (12, 32, 32)
    )
    return MintedKey(
        credential=Secret(f"{tag}_sk_live_{key_id}.{auth_secret}.{custody_secret}"),
        key_id=key_id,
        auth_sha256=hashlib.sha256(auth_secret.encode("ascii")).hexdigest(),
        custody_public_key=encoding.encode_base64url(
            keys.from_custody_secret(custody_secret, tag=tag).public_key
        ),
        custody_sha256=hashlib.sha256(custody_secret.encode("ascii")).hexdigest(),
    )
