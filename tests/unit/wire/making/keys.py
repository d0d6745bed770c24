"""Key pairs from seeds and custody secrets, and the tokens that the service may know."""

from __future__ import annotations

from collections.abc import Iterator

from unit.wire.making.primitives import Vector, b64url, hkdf, noise, point, scalar_of, vector

SEED, KEY = noise("seed", 32), noise("content key", 32)
CUSTODY = b64url(noise("custody secret", 32))


def pairs() -> Iterator[Vector]:
    def of(name: str, value: object, comment: str, expect: str, tag: object = "svc") -> Vector:
        given = {name: value.hex() if isinstance(value, bytes) else value, "tag": tag}
        result = {}
        if expect == "success":
            seed = value if isinstance(value, bytes) else hkdf(str(value).encode(), b"", b"custody")
            scalar = scalar_of(seed, str(tag))
            result = {"scalar": f"{scalar:064x}", "public key": point(scalar).hex()}
        return vector("keys", comment, expect, "", given, result)

    yield of("seed", SEED, "of a seed", "success")
    yield of("seed", SEED, "of a seed under another tag", "success", "acme2")
    yield of("seed", bytes(32), "of a seed of zeros", "success")
    yield of("custody secret", CUSTODY, "of a custody secret", "success")
    yield of("custody secret", CUSTODY, "of a custody secret under another tag", "success", "crs")
    yield of("custody secret", "pä ss", "a custody secret is taken as its UTF-8 bytes", "success")
    for comment, seed in (
        ("a seed of no bytes", b""),
        ("a seed of 31 bytes", SEED[:31]),
        ("a seed of 33 bytes", SEED + b"\0"),
        ("a seed of 64 bytes", SEED + SEED),
    ):
        yield of("seed", seed, comment, "seed bad-seed")
    for comment, secret in (
        ("an empty custody secret", ""),
        ("a custody secret that is half a surrogate pair", "a\udc00"),
        ("a custody secret that is a number", 4711),
        ("a custody secret of false", False),
    ):
        yield of("custody secret", secret, comment, "seed bad-custody-secret")
    for comment, tag in (
        ("an empty tag", ""),
        ("a tag in capitals", "SVC"),
        ("a tag with a hyphen", "s-v"),
        ("a tag with a space behind", "svc "),
        ("a tag with a newline", "svc\n"),
        ("a tag with a letter beyond ASCII", "é"),
        ("a tag with a full-width digit", "svc\uff11"),
        ("a tag that is a number", 7),
    ):
        yield of("seed", SEED, comment, "usage", tag)


def tokens() -> Iterator[Vector]:
    def of(comment: str, expect: str, key: bytes = KEY, passcode: object = None) -> Vector:
        given: dict[str, object] = {"content key": key.hex()}
        result = {"access token": b64url(hkdf(key, b"", b"access"))} if expect == "success" else {}
        if passcode is not None:
            given["passcode"] = passcode
            result |= (
                {"verifier": b64url(hkdf(str(passcode).encode(), b"", b"verify"))}
                if expect == "success"
                else {}
            )
        return vector("tokens", comment, expect, "", given, result)

    yield of("of a content key", "success")
    yield of("of a content key of zeros", "success", bytes(32))
    yield of("of a content key and a passcode", "success", passcode="hunter2")
    yield of("a passcode is used as typed", "success", passcode="  pä|ss 🔑\n")
    for size in (0, 16, 31, 33, 64):
        yield of(
            f"a content key of {size} bytes",
            "envelope bad-content-key",
            noise("long content key", size),
        )
    yield of("an empty passcode", "passcode empty-passcode", passcode="")
    yield of("a passcode that is a number", "passcode not-text", passcode=4711)
    yield of("a passcode that is an array", "passcode not-text", passcode=["hunter2"])
    yield of(
        "a passcode that is half a surrogate pair", "passcode lone-surrogate", passcode="\ud83d"
    )
    yield of(
        "a surrogate pair the wrong way round", "passcode lone-surrogate", passcode="\udd11\ud83d"
    )
