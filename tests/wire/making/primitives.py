"""What the vectors are made with: the format's primitives alone, nothing of sealpipe. A second reading."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass, field

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
    """One scenario: what is read, what must come of it, and in `comment` the one fault that it has."""

    kind: str
    comment: str
    expect: str
    body: bytes = b""
    given: dict[str, str] = field(default_factory=dict)
    result: dict[str, str] = field(default_factory=dict)


def vector(
    kind: str, comment: str, expect: str, body: str | bytes, given: dict[str, str], result: dict[str, str]
) -> Vector:
    """A Vector whose results are left out where it must be refused."""
    data = body.encode() if isinstance(body, str) else body
    return Vector(kind, comment, expect, data, given, result if expect == "success" else {})


def noise(name: str, size: int) -> bytes:
    return hashlib.shake_256(b"sealpipe vectors: " + name.encode()).digest(size)


def quoted(value: object) -> str:
    return json.dumps(value, ensure_ascii=True)


def b64(data: bytes) -> str:
    return base64.standard_b64encode(data).decode()


def b64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def hkdf(key: bytes, salt: bytes, info: bytes, size: int = 32) -> bytes:
    return HKDF(SHA256(), size, salt, info).derive(key)


def gcm(key: bytes, iv: bytes, text: bytes, aad: bytes | None = None) -> bytes:
    return AESGCM(key).encrypt(iv, text, aad)


def flipped(data: bytes, index: int, bit: int = 1) -> bytes:
    changed = bytearray(data)
    changed[index] ^= bit
    return bytes(changed)


def private(scalar: int) -> ec.EllipticCurvePrivateKey:
    return ec.derive_private_key(scalar, ec.SECP256R1())


def point(scalar: int) -> bytes:
    return private(scalar).public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def scalar_of(seed: bytes, tag: str = "svc") -> int:
    wide = hkdf(seed, b"", f"{tag}-ecdh-p256-scalar".encode(), 48)
    return int.from_bytes(wide, "big") % (N - 1) + 1
