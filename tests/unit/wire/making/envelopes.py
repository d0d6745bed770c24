"""Envelopes, opened and sealed: one good one without and one with a passcode, and what is not quite
one.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterator

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.hashes import SHA512
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from support.damage import flipped
from unit.wire.making.primitives import PLAINTEXT, Vector, b64, b64url, gcm, hkdf, noise, vector

KEY, SALT, IV = noise("content key", 32), noise("salt", 16), noise("iv", 12)
UMLAUTS = "  pä|ss 🔑 "
Raw = bytes | str


def sealed(
    info: bytes = b"content", text: str = PLAINTEXT, *, used: bytes = SALT, aad: bytes | None = None
) -> bytes:
    return used + IV + gcm(hkdf(KEY, used, info), IV, text.encode(), aad)


def under(key: bytes, *, iv: bytes = IV) -> bytes:
    """The plaintext sealed directly under an AES key that some misreading gives."""
    return SALT + iv + gcm(key, iv, PLAINTEXT.encode())


GOOD, GUARDED = sealed(), sealed(b"content|hunter2")
LONG = sealed(text=PLAINTEXT.replace("correct horse", "x" * 100))


def envelope(
    comment: str,
    raw: Raw,
    expect: str,
    passcode: object = None,
    *,
    key: bytes = KEY,
    text: str = PLAINTEXT,
) -> Vector:
    given = {"content key": key.hex()} | ({} if passcode is None else {"passcode": passcode})
    data = raw if isinstance(raw, str) else b64(raw)
    return vector("envelope", comment, expect, data, given, {"plaintext": text})


def opened() -> Iterator[Vector]:
    text = "[" + ",".join([PLAINTEXT[1:-1]] * 40) + "]"
    yield envelope("no passcode", GOOD, "success")
    yield envelope("a passcode", GUARDED, "success", "hunter2")
    yield envelope(
        "a passcode is used as typed", sealed(f"content|{UMLAUTS}".encode()), "success", UMLAUTS
    )
    yield envelope("a passcode that is a pipe", sealed(b"content||"), "success", "|")
    yield envelope("a passcode with a line break", sealed(b"content|a\r\nb"), "success", "a\r\nb")
    yield envelope(
        "a passcode that is a byte-order mark", sealed(b"content|\xef\xbb\xbf"), "success", "\ufeff"
    )
    yield envelope("an empty plaintext has 44 bytes", sealed(text=""), "success", text="")
    yield envelope("many blocks", sealed(text=text), "success", text=text)
    yield from short()
    yield from passcodes()
    yield from altered()
    yield from misread()
    yield from badly_encoded()
    yield envelope("a content key of no bytes", GOOD, "envelope bad-content-key", key=b"")
    yield envelope("a content key of 16 bytes", GOOD, "envelope bad-content-key", key=KEY[:16])
    yield envelope("a content key of 31 bytes", GOOD, "envelope bad-content-key", key=KEY[:31])
    yield envelope("a content key of 33 bytes", GOOD, "envelope bad-content-key", key=KEY + b"\0")
    yield envelope(
        "a content key with its last bit flipped", GOOD, "envelope wrong-key", key=flipped(KEY, 31)
    )
    yield envelope(
        "a content key with its first bit flipped",
        GOOD,
        "envelope wrong-key",
        key=flipped(KEY, 0, 0x80),
    )
    yield envelope("a content key back to front", GOOD, "envelope wrong-key", key=KEY[::-1])


def short() -> Iterator[Vector]:
    for comment, size in (
        ("43 bytes", 43),
        ("nothing", 0),
        ("the salt alone", 16),
        ("salt and iv alone", 28),
    ):
        yield envelope(comment, GOOD[:size], "envelope too-short")
    yield envelope("cut to 44 bytes", GOOD[:44], "envelope wrong-key")
    yield envelope("44 bytes of zero", bytes(44), "envelope wrong-key")


def passcodes() -> Iterator[Vector]:
    composed = sealed("content|e\u0301".encode())
    for comment, raw, passcode in (
        ("the passcode left out", GUARDED, None),
        ("a passcode where none was set", GOOD, "hunter2"),
        ("another passcode", GUARDED, "hunter3"),
        ("a space behind the passcode", GUARDED, "hunter2 "),
        ("a space in front of the passcode", GUARDED, " hunter2"),
        ("a newline behind the passcode", GUARDED, "hunter2\n"),
        ("a NUL behind the passcode", GUARDED, "hunter2\0"),
        ("the passcode in capitals", GUARDED, "Hunter2"),
        ("the passcode cut short", GUARDED, "hunter"),
        ("the passcode trimmed", sealed(b"content| hunter2 "), "hunter2"),
        ("the passcode composed where it was typed decomposed", composed, "\u00e9"),
        (
            "the passcode in full-width letters",
            GUARDED,
            "\uff48\uff55\uff4e\uff54\uff45\uff52\uff12",
        ),
        ("the passcode as Latin-1", sealed("content|é".encode("latin-1")), "é"),
        ("the passcode as UTF-16", sealed(b"content|" + "hunter2".encode("utf-16-le")), "hunter2"),
        ("the passcode percent-encoded", sealed(b"content|%7C"), "|"),
        ("no pipe before the passcode", sealed(b"contenthunter2"), "hunter2"),
        ("a colon for the pipe", sealed(b"content:hunter2"), "hunter2"),
        ("the passcode in front", sealed(b"hunter2|content"), "hunter2"),
        (
            "the passcode in the salt",
            SALT + IV + gcm(hkdf(KEY, SALT + b"hunter2", b"content"), IV, b"[]"),
            "hunter2",
        ),
        ("the passcode in the key", under(hkdf(KEY + b"hunter2", SALT, b"content")), "hunter2"),
        (
            "the verifier for the passcode",
            sealed(b"content|" + b64url(hkdf(b"hunter2", b"", b"verify")).encode()),
            "hunter2",
        ),
    ):
        yield envelope(comment, raw, "envelope wrong-key", passcode)
    yield envelope("an empty passcode", sealed(b"content|"), "passcode empty-passcode", "")
    yield envelope(
        "a passcode that is half a surrogate pair", GUARDED, "passcode lone-surrogate", "a\ud800"
    )
    yield envelope(
        "a passcode that is a number", sealed(b"content|4711"), "passcode not-text", 4711
    )
    yield envelope("a passcode of false", GOOD, "passcode not-text", passcode=False)


def altered() -> Iterator[Vector]:
    size = len(LONG)
    for comment, index, bit in (
        ("the first bit of the salt flipped", 0, 0x80),
        ("the last bit of the salt flipped", 15, 1),
        ("the first bit of the iv flipped", 16, 0x80),
        ("the last bit of the iv flipped", 27, 1),
        ("the first bit of the ciphertext flipped", 28, 0x80),
        ("a bit in the second block flipped", 44, 1),
        ("the last bit of the ciphertext flipped", size - 17, 1),
        ("the first bit of the tag flipped", size - 16, 0x80),
        ("the last bit of the tag flipped", size - 1, 1),
    ):
        yield envelope(comment, flipped(LONG, index, bit), "envelope wrong-key")
    for comment, raw in (
        ("the last byte lost", GOOD[:-1]),
        ("the first byte lost", GOOD[1:]),
        ("a tag of 96 bits", GOOD[:-4]),
        ("no tag", LONG[:-16]),
        ("the tag twice", GOOD + GOOD[-16:]),
        ("a tag of zeros", GOOD[:-16] + bytes(16)),
        ("a byte too many at the end", GOOD + b"\0"),
        ("a byte too many in the ciphertext", GOOD[:28] + b"\0" + GOOD[28:]),
        ("two blocks exchanged", LONG[:28] + LONG[44:60] + LONG[28:44] + LONG[60:]),
        ("iv before salt", GOOD[16:28] + GOOD[:16] + GOOD[28:]),
        ("tag before ciphertext", GOOD[:28] + GOOD[-16:] + GOOD[28:-16]),
        ("tag in front", GOOD[-16:] + GOOD[:-16]),
        ("a version byte in front", b"\x01" + GOOD),
        ("no salt", GOOD[16:]),
        ("the salt of another envelope", noise("other salt", 16) + GOOD[16:]),
        (
            "the ciphertext of another envelope",
            GOOD[:28] + sealed(text=PLAINTEXT[::-1])[28:-16] + GOOD[-16:],
        ),
        ("two envelopes in a row", GOOD + GOOD),
        ("base64 within base64", b64(GOOD).encode()),
    ):
        yield envelope(comment, raw, "envelope wrong-key")


def misread() -> Iterator[Vector]:
    counter = Cipher(
        algorithms.AES256(hkdf(KEY, SALT, b"content")), modes.CTR(IV + bytes(4))
    ).encryptor()
    for comment, raw in (
        ("the content key used directly", under(KEY)),
        ("the extracted key used without expanding it", under(hmac.digest(SALT, KEY, "sha256"))),
        ("an HMAC in place of HKDF", under(hmac.digest(KEY, SALT + b"content", "sha256"))),
        ("a plain hash in place of HKDF", under(hashlib.sha256(KEY + SALT + b"content").digest())),
        ("HKDF with SHA-512", under(HKDF(SHA512(), 32, SALT, b"content").derive(KEY))),
        ("HKDF with key and salt exchanged", under(hkdf(SALT, KEY, b"content"))),
        ("HKDF without the salt", under(hkdf(KEY, b"", b"content"))),
        ("HKDF with the iv for the salt", under(hkdf(KEY, IV, b"content"))),
        ("HKDF with salt and iv for the salt", under(hkdf(KEY, SALT + IV, b"content"))),
        ("the second 32 bytes of HKDF", under(hkdf(KEY, SALT, b"content", 64)[32:])),
        ("a 128-bit key", under(hkdf(KEY, SALT, b"content", 16))),
        (
            "the content key's hexadecimal digits as the key",
            under(hkdf(KEY.hex().encode(), SALT, b"content")),
        ),
        (
            "the content key's base64url digits as the key",
            under(hkdf(b64url(KEY).encode(), SALT, b"content")),
        ),
        ("no info", sealed(b"")),
        ("the info of the access token", sealed(b"access")),
        ("the info with a capital", sealed(b"Content")),
        ("the info with a newline", sealed(b"content\n")),
        ("the info with a pipe and no passcode", sealed(b"content|")),
        ("the info with a service's tag", sealed(b"svc-content")),
        ("the salt as associated data", sealed(aad=SALT)),
        ("a service's tag as associated data", sealed(aad=b"svc")),
        ("an iv of 16 bytes", under(hkdf(KEY, SALT, b"content"), iv=noise("long iv", 16))),
        (
            "counter mode and a tag of zeros",
            SALT + IV + counter.update(PLAINTEXT.encode()) + bytes(16),
        ),
    ):
        yield envelope(comment, raw, "envelope wrong-key")


def badly_encoded() -> Iterator[Vector]:
    two_over, one_over = sealed(text="~" * 98), sealed(text="~" * 99)
    urlish = base64.urlsafe_b64encode(one_over).decode()
    text = b64(GOOD)
    yield envelope("the base64 padding left out", b64(two_over).rstrip("="), "encoding bad-padding")
    yield envelope(
        "the base64 text's last digit lost", text.rstrip("=")[:-1], "encoding bad-padding"
    )
    yield envelope("a bit set after the last byte", unused_bit(two_over), "encoding non-canonical")
    for comment, data in (
        ("base64url", urlish),
        ("a line break in the base64 text", text[:76] + "\n" + text[76:]),
        ("a newline behind the base64 text", text + "\n"),
        ("a space in front of the base64 text", " " + text),
        ("the base64 text in quotes", f'"{text}"'),
        ("a data URL", "data:;base64," + text),
        ("plus signs read as spaces", text.replace("+", " ")),
    ):
        yield envelope(comment, data, "encoding not-base64")


def unused_bit(raw: bytes) -> str:
    """Base64 of bytes that leave some bits of the last digit unused, with one of those set."""
    digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    text = b64(raw)
    body = text.rstrip("=")
    return body[:-1] + digits[digits.index(body[-1]) ^ 1] + text[len(body) :]


def made() -> Iterator[Vector]:
    def seal(
        comment: str, expect: str, passcode: object = None, text: str = PLAINTEXT, **changed: bytes
    ) -> Vector:
        key, salt, iv = (
            changed.get(name, usual) for name, usual in (("key", KEY), ("salt", SALT), ("iv", IV))
        )
        given: dict[str, object] = {"content key": key.hex(), "salt": salt.hex(), "iv": iv.hex()}
        info = "content" if passcode is None else f"content|{passcode}"
        result = {"data": b64(sealed(info.encode(), text))} if expect == "success" else {}
        given |= {} if passcode is None else {"passcode": passcode}
        return vector("seal envelope", comment, expect, text, given, result)

    yield seal("no passcode", "success")
    yield seal("a passcode", "success", "hunter2")
    yield seal("a passcode is used as typed", "success", UMLAUTS)
    yield seal("no fields", "success", text="[]")
    yield seal("a salt of no bytes", "envelope bad-salt", salt=b"")
    yield seal("a salt of 15 bytes", "envelope bad-salt", salt=SALT[:15])
    yield seal("a salt of 17 bytes", "envelope bad-salt", salt=SALT + b"\0")
    yield seal("an iv of no bytes", "envelope bad-iv", iv=b"")
    yield seal("an iv of 11 bytes", "envelope bad-iv", iv=IV[:11])
    yield seal("an iv of 16 bytes", "envelope bad-iv", iv=IV + bytes(4))
    yield seal("a content key of 31 bytes", "envelope bad-content-key", key=KEY[:31])
    yield seal("a content key of 64 bytes", "envelope bad-content-key", key=KEY + KEY)
    yield seal("an empty passcode", "passcode empty-passcode", "")
    yield seal("a passcode that is half a surrogate pair", "passcode lone-surrogate", "\udc00")
    yield seal("a passcode that is a number", "passcode not-text", 4711)
