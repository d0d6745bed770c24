"""P-256 key pairs: those of requests (from a seed) and of credentials (from a custody secret).

Specification: Client-side encryption, "Custody public key".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NoReturn, Self

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from sealpipe.errors import PointError, SeedError
from sealpipe.wire import tokens
from sealpipe.wire.encoding import exactly
from sealpipe.wire.tokens import CustodySeed

POINT_SIZE: Final = 65
"""Bytes of an uncompressed point: 0x04, X, Y."""
GROUP_ORDER: Final = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
"""n, the order of P-256's group (SEC 2, section 2.4.2)."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class KeyPair:
    """A P-256 key pair and the 32-byte seed it comes from.

    `seed` and `scalar` (32 bytes, big-endian) are secret; `public_key` is the uncompressed point of
    65 bytes. With `custody`, the seed is a `CustodySeed`, which is never put into a link. The repr
    shows no secret, and a key pair cannot be pickled.
    """

    seed: bytes
    scalar: bytes
    public_key: bytes
    _library: ec.EllipticCurvePrivateKey | None = field(default=None, repr=False)

    @property
    def private_key(self) -> ec.EllipticCurvePrivateKey:
        """The library's private key, made once.

        Making it from the scalar costs a fifth of opening a box.
        """
        return self._library or private_key(self.scalar)

    @property
    def custody(self) -> bool:
        """Whether the pair comes from a custody secret."""
        return isinstance(self.seed, CustodySeed)

    def __repr__(self) -> str:
        return f"KeyPair(public_key={self.public_key.hex()!r}, custody={self.custody})"

    def __eq__(self, other: object) -> bool:
        return self.public_key == other.public_key if isinstance(other, KeyPair) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.public_key)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a KeyPair cannot be pickled: pass its seed if you mean to")


def from_seed(seed: bytes, *, tag: str = "svc") -> KeyPair:
    """The key pair of a 32-byte seed under the service's tag.

    Raises SeedError with reason `bad-seed`, and UsageError for a tag that cannot be one.
    """
    wide = tokens.scalar_material(seed, tag)
    scalar = (int.from_bytes(wide, "big") % (GROUP_ORDER - 1) + 1).to_bytes(32, "big")
    private = private_key(scalar)
    public_key = public_bytes(private.public_key())
    return KeyPair(
        seed if isinstance(seed, CustodySeed) else bytes(seed), scalar, public_key, private
    )


def from_custody_secret(secret: str, *, tag: str = "svc") -> KeyPair:
    """The key pair of a credential's custody secret (its third part, UTF-8) under the tag."""
    return from_seed(tokens.custody_seed(secret), tag=tag)


def private_key(scalar: bytes) -> ec.EllipticCurvePrivateKey:
    """The library's private key for a 32-byte big-endian scalar from 1 to n - 1.

    Raises SeedError with reason `bad-scalar`.
    """
    value = int.from_bytes(exactly(32, scalar, SeedError, "bad-scalar", "a private scalar"), "big")
    if not 0 < value < GROUP_ORDER:
        raise SeedError("bad-scalar", "a private scalar is from 1 to n - 1")
    return ec.derive_private_key(value, ec.SECP256R1())


def public_key(point: bytes | memoryview) -> ec.EllipticCurvePublicKey:
    """The library's public key for an uncompressed point: 0x04, X, Y, 65 bytes.

    Raises PointError with reason `bad-point-length`, `not-uncompressed` or `not-on-curve`.
    """
    data = exactly(POINT_SIZE, point, PointError, "bad-point-length", "a public key")
    # The library accepts compressed points too, and only this function of its checks the range.
    if data[0] != 4:
        raise PointError("not-uncompressed", "a public key begins with the byte 0x04")
    try:
        return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), data)
    except ValueError:
        pass
    raise PointError("not-on-curve", "that point is not on P-256")


def public_bytes(key: ec.EllipticCurvePublicKey) -> bytes:
    """The uncompressed point of 65 bytes."""
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
