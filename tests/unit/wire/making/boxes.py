"""Sealed boxes, opened and made: one good one, and what is not quite one."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator

from cryptography.hazmat.primitives.asymmetric import ec

from support.damage import flipped
from unit.wire.making.envelopes import unused_bit
from unit.wire.making.primitives import (
    PLAINTEXT,
    N,
    P,
    Vector,
    b64,
    gcm,
    hkdf,
    noise,
    point,
    private,
    scalar_of,
    vector,
)

SEED, SALT, IV = noise("seed", 32), noise("box salt", 16), noise("box iv", 12)
EPHEMERAL = int.from_bytes(noise("ephemeral", 31), "big") + 1
SENDER, RECIPIENT = point(EPHEMERAL), point(scalar_of(SEED))
PAYLOAD = noise("payload", 32)
INFO = b"svc-request-submission"
X, Y = SENDER[1:33], SENDER[33:]
COMPRESSED = bytes([2 + (Y[-1] & 1)]) + X
NEGATED = b"\x04" + X + (P - int.from_bytes(Y, "big")).to_bytes(32, "big")
OVERSIZED = b"\x04" + (P + 5).to_bytes(32, "big") + point(1)[33:]
FAULTY_POINTS = [
    ("a hybrid point", bytes([6 + (Y[-1] & 1)]) + X + Y, "not-uncompressed"),
    ("the point at infinity, filled up with zeros", bytes(65), "not-uncompressed"),
    ("a point that begins with 5", b"\x05" + X + Y, "not-uncompressed"),
    ("the point 0, 0", b"\x04" + bytes(64), "not-on-curve"),
    ("a point with the last bit of Y flipped", b"\x04" + X + flipped(Y, -1), "not-on-curve"),
    ("a point with the first bit of X flipped", b"\x04" + flipped(X, 0, 0x80) + Y, "not-on-curve"),
    ("a coordinate beyond the field", OVERSIZED, "not-on-curve"),
    ("coordinates of all ones", b"\x04" + b"\xff" * 64, "not-on-curve"),
    ("coordinates exchanged", b"\x04" + Y + X, "not-on-curve"),
    ("coordinates in little-endian order", b"\x04" + X[::-1] + Y[::-1], "not-on-curve"),
]


def secret(mine: int = EPHEMERAL, theirs: int | None = None) -> bytes:
    other = private(scalar_of(SEED) if theirs is None else theirs).public_key()
    return private(mine).exchange(ec.ECDH(), other)


def sealed(
    text: bytes = PAYLOAD,
    *,
    info: bytes = INFO,
    who: bytes = SENDER,
    shared: bytes | None = None,
    salt: bytes = SALT,
    key: bytes | None = None,
    aad: bytes | None = None,
) -> bytes:
    used = hkdf(secret() if shared is None else shared, salt, info) if key is None else key
    return b"\x01" + who + SALT + IV + gcm(used, IV, text, aad)


GOOD = sealed()


def box(
    comment: str,
    raw: bytes | str,
    expect: str,
    *,
    seed: bytes = SEED,
    tag: object = "svc",
    payload: bytes = PAYLOAD,
) -> Vector:
    given = {"seed": seed.hex(), "tag": tag}
    return vector(
        "box",
        comment,
        expect,
        raw if isinstance(raw, str) else b64(raw),
        given,
        {"payload": payload.hex()},
    )


def opened() -> Iterator[Vector]:
    yield box("a wrapped content key has 142 bytes", GOOD, "success")
    yield box("an empty payload has 110 bytes", sealed(b""), "success", payload=b"")
    yield box("a submission", sealed(PLAINTEXT.encode()), "success", payload=PLAINTEXT.encode())
    yield box("the negated ephemeral point has the same X", sealed(who=NEGATED), "success")
    theirs = secret(theirs=scalar_of(SEED, "crs"))
    yield box(
        "another service's tag",
        sealed(info=b"crs-request-submission", shared=theirs),
        "success",
        tag="crs",
    )
    yield from short_or_of_another_version()
    for comment, who, reason in FAULTY_POINTS:
        yield box(comment, sealed(who=who), f"point {reason}")
    filled = COMPRESSED + bytes(32)
    yield box(
        "a compressed point, filled up with zeros", sealed(who=filled), "point not-uncompressed"
    )
    yield from altered()
    yield from misread()
    yield from badly_encoded()
    yield box("another seed", GOOD, "box wrong-key", seed=flipped(SEED, 0))
    yield box("opened under another tag", GOOD, "box wrong-key", tag="crs")
    yield box("a seed of 31 bytes", GOOD, "seed bad-seed", seed=SEED[:31])
    yield box("a seed of 33 bytes", GOOD, "seed bad-seed", seed=SEED + b"\0")
    yield box("a tag in capitals", GOOD, "usage", tag="SVC")
    yield box("an empty tag", GOOD, "usage", tag="")


def short_or_of_another_version() -> Iterator[Vector]:
    yield box("109 bytes", sealed(b"")[:109], "box too-short")
    yield box("nothing", b"", "box too-short")
    yield box("the version alone", b"\x01", "box too-short")
    yield box("the version and the point alone", GOOD[:66], "box too-short")
    yield box(
        "a compressed point and no payload",
        b"\x01" + COMPRESSED + sealed(b"")[66:],
        "box too-short",
    )
    yield box("cut to 110 bytes", GOOD[:110], "box wrong-key")
    for version in (0, 2, 4, 0x31, 0x81, 0xFF):
        yield box(f"version {version}", bytes([version]) + GOOD[1:], "box bad-version")
    yield box("no version byte", GOOD[1:], "box bad-version")


def altered() -> Iterator[Vector]:
    for comment, index, bit in (
        ("the first bit of the salt flipped", 66, 0x80),
        ("the last bit of the salt flipped", 81, 1),
        ("the first bit of the iv flipped", 82, 0x80),
        ("the last bit of the iv flipped", 93, 1),
        ("the first bit of the payload flipped", 94, 0x80),
        ("the last bit of the payload flipped", len(GOOD) - 17, 1),
        ("the first bit of the tag flipped", len(GOOD) - 16, 0x80),
        ("the last bit of the tag flipped", len(GOOD) - 1, 1),
    ):
        yield box(comment, flipped(GOOD, index, bit), "box wrong-key")
    for comment, raw in (
        ("another sender's point", sealed(who=point(2))),
        ("the recipient's own point for the sender's", sealed(who=RECIPIENT)),
        ("the last byte lost", GOOD[:-1]),
        ("a byte too many", GOOD + b"\0"),
        ("no tag", sealed(PLAINTEXT.encode())[:-16]),
        ("a tag of zeros", GOOD[:-16] + bytes(16)),
        ("iv before salt", GOOD[:66] + GOOD[82:94] + GOOD[66:82] + GOOD[94:]),
        ("tag before payload", GOOD[:94] + GOOD[-16:] + GOOD[94:-16]),
        ("two boxes in a row", GOOD + GOOD),
    ):
        yield box(comment, raw, "box wrong-key")


def misread() -> Iterator[Vector]:
    wide = hkdf(SEED, b"", b"svc-ecdh-p256-scalar", 48)
    number = int.from_bytes(wide, "big")
    untagged = int.from_bytes(hkdf(SEED, b"", b"ecdh-p256-scalar", 48), "big") % (N - 1) + 1
    narrow = int.from_bytes(hkdf(SEED, b"", b"svc-ecdh-p256-scalar", 32), "big") % (N - 1) + 1
    shared = secret()
    for comment, raw in (
        ("the info with another service's tag", sealed(info=b"crs-request-submission")),
        ("the info without a tag", sealed(info=b"request-submission")),
        ("the info with an underscore", sealed(info=b"svc_request_submission")),
        ("the info of the envelope", sealed(info=b"content")),
        ("no info", sealed(info=b"")),
        ("HKDF without the salt", sealed(salt=b"")),
        ("the shared secret used directly", sealed(key=shared)),
        ("the shared secret hashed first", sealed(shared=hashlib.sha256(shared).digest())),
        ("the shared secret in little-endian order", sealed(shared=shared[::-1])),
        (
            "sender's and recipient's points joined to the secret",
            sealed(shared=shared + SENDER + RECIPIENT),
        ),
        ("a 128-bit key", sealed(key=hkdf(shared, SALT, INFO, 16))),
        ("the version as associated data", sealed(aad=b"\x01")),
        ("the sender's point as associated data", sealed(aad=SENDER)),
        (
            "sealed to the seed taken for the scalar",
            sealed(shared=secret(theirs=int.from_bytes(SEED, "big"))),
        ),
        ("sealed to a scalar reduced by n", sealed(shared=secret(theirs=number % N))),
        (
            "sealed to a scalar without the one added",
            sealed(shared=secret(theirs=number % (N - 1))),
        ),
        ("sealed to a scalar of 32 bytes of HKDF", sealed(shared=secret(theirs=narrow))),
        (
            "sealed to a scalar read in little-endian order",
            sealed(shared=secret(theirs=int.from_bytes(wide, "little") % (N - 1) + 1)),
        ),
        ("sealed to a scalar derived without a tag", sealed(shared=secret(theirs=untagged))),
        (
            "sealed to the seed taken for a custody secret",
            sealed(shared=secret(theirs=scalar_of(hkdf(SEED, b"", b"custody")))),
        ),
    ):
        yield box(comment, raw, "box wrong-key")


def badly_encoded() -> Iterator[Vector]:
    urlish = base64.urlsafe_b64encode(flipped(GOOD, 1, 0xFF)).decode()
    yield box("the base64 padding left out", b64(sealed(b"")).rstrip("="), "encoding bad-padding")
    yield box("a bit set after the last byte", unused_bit(sealed(b"")), "encoding non-canonical")
    yield box("base64url", urlish, "encoding not-base64")
    yield box("a newline behind the base64 text", b64(GOOD) + "\n", "encoding not-base64")
    yield box("hexadecimal, parted by colons", GOOD.hex(":"), "encoding not-base64")


def made() -> Iterator[Vector]:
    def seal(
        comment: str, expect: str, *, tag: object = "svc", who: bytes = RECIPIENT, **changed: bytes
    ) -> Vector:
        used = changed.get("ephemeral", EPHEMERAL.to_bytes(32, "big"))
        given = {"public key": who.hex(), "tag": tag, "ephemeral": used.hex()}
        given |= {"salt": changed.get("salt", SALT).hex(), "iv": changed.get("iv", IV).hex()}
        result = {}
        if expect == "success":
            mine = int.from_bytes(used, "big")
            data = sealed(
                PLAINTEXT.encode(),
                info=f"{tag}-request-submission".encode(),
                who=point(mine),
                shared=secret(mine),
            )
            result = {"data": b64(data)}
        return vector("seal box", comment, expect, PLAINTEXT, given, result)

    yield seal("a submission", "success")
    yield seal("under another tag", "success", tag="acme2")
    yield seal("the first scalar of the group", "success", ephemeral=(1).to_bytes(32, "big"))
    yield seal("the last scalar of the group", "success", ephemeral=(N - 1).to_bytes(32, "big"))
    for comment, who, reason in FAULTY_POINTS:
        yield seal(f"to {comment}", f"point {reason}", who=who)
    for comment, who in (
        ("a compressed point", COMPRESSED),
        ("the point at infinity", b"\0"),
        ("a point without its first byte", X + Y),
        ("a point and a byte too many", SENDER + b"\0"),
        ("no point", b""),
    ):
        yield seal(f"to {comment}", "point bad-point-length", who=who)
    for comment, scalar in (
        ("a scalar of zero", bytes(32)),
        ("a scalar that is the group's order", N.to_bytes(32, "big")),
        ("a scalar beyond the group's order", (N + 1).to_bytes(32, "big")),
        ("the greatest scalar of 32 bytes", b"\xff" * 32),
        ("a scalar of 31 bytes", noise("ephemeral", 31)),
        ("a scalar of 33 bytes", b"\0" + EPHEMERAL.to_bytes(32, "big")),
    ):
        yield seal(comment, "seed bad-scalar", ephemeral=scalar)
    yield seal("a salt of 15 bytes", "box bad-salt", salt=SALT[:15])
    yield seal("a salt of 17 bytes", "box bad-salt", salt=SALT + b"\0")
    yield seal("an iv of 11 bytes", "box bad-iv", iv=IV[:11])
    yield seal("an iv of 16 bytes", "box bad-iv", iv=IV + bytes(4))
    for comment, tag in (
        ("an empty tag", ""),
        ("a tag with a hyphen", "s-v"),
        ("a tag with a newline", "svc\n"),
    ):
        yield seal(comment, "usage", tag=tag)
