"""What the vectors are made with: the format's primitives alone, nothing of sealpipe.

A second reading.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

P = 2**256 - 2**224 + 2**192 + 2**96 - 1
N = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
PLAINTEXT = '[{"key":"Password","value":"correct horse","type":"password"}]'


@dataclass(frozen=True)
class Vector:
    """One scenario: the inputs, the expected outcome, and in `comment` its one fault."""

    kind: str
    comment: str
    expect: str
    given: dict[str, object]
    result: dict[str, object]


INPUTS = {
    "base64": "text",
    "base64url": "text",
    "fragment": "fragment",
    "envelope": "data",
    "seal envelope": "plaintext",
    "box": "data",
    "seal box": "payload",
    "fields": "plaintext",
    "write fields": "members",
}
"""What the text is called that a kind decodes, opens, seals, reads or writes.

A payload is in hexadecimal.
"""


def vector(
    kind: str,
    comment: str,
    expect: str,
    text: str | bytes,
    given: Mapping[str, object],
    result: Mapping[str, object],
) -> Vector:
    """A Vector with `text` (bytes if it is not UTF-8) among its inputs, and without a result if it
    must be refused.
    """
    inputs = dict(given)
    if isinstance(text, bytes):
        inputs["bytes"] = text.hex()
    elif kind in INPUTS:
        inputs[INPUTS[kind]] = text.encode().hex() if kind == "seal box" else text
    return Vector(kind, comment, expect, inputs, dict(result) if expect == "success" else {})


def noise(name: str, size: int) -> bytes:
    return hashlib.shake_256(b"sealpipe vectors: " + name.encode()).digest(size)


def b64(data: bytes) -> str:
    return base64.standard_b64encode(data).decode()


def b64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def hkdf(key: bytes, salt: bytes, info: bytes, size: int = 32) -> bytes:
    return HKDF(SHA256(), size, salt, info).derive(key)


def gcm(key: bytes, iv: bytes, text: bytes, aad: bytes | None = None) -> bytes:
    return AESGCM(key).encrypt(iv, text, aad)


def private(scalar: int) -> ec.EllipticCurvePrivateKey:
    return ec.derive_private_key(scalar, ec.SECP256R1())


def point(scalar: int) -> bytes:
    return private(scalar).public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def scalar_of(seed: bytes, tag: str = "svc") -> int:
    wide = hkdf(seed, b"", f"{tag}-ecdh-p256-scalar".encode(), 48)
    return int.from_bytes(wide, "big") % (N - 1) + 1
