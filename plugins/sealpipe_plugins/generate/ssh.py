"""An ed25519 key pair for SSH, both halves in one document."""

from __future__ import annotations

import base64
import hashlib

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

OPEN = ("public", "fingerprint")
"""The parts that are no secret."""


def key_pair(comment: str = "") -> dict[str, str]:
    """`private` (OpenSSH's format, no passphrase), `public` (a line for authorized_keys), `fingerprint` (SHA256:...).

    The comment is the public line's.
    """
    key = Ed25519PrivateKey.generate()
    line = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode("ascii")
    digest = hashlib.sha256(base64.b64decode(line.split()[1])).digest()
    return {
        "private": key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()).decode("ascii"),
        "public": f"{line} {comment}".rstrip(),
        "fingerprint": "SHA256:" + base64.b64encode(digest).decode("ascii").rstrip("="),
    }
