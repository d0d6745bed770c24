"""Make tests/wire/vectors/: cases with one fault each, and the reason that must be given for it.

    python tests/wire/make_vectors.py          writes the files; the same bytes on every run

It follows the specification with the primitives alone and imports nothing of sealpipe: a second reading.
Randomness is SHA-256 of the case's name. `expect` is "ok" or the error's class and reason.
"""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

FOLDER = Path(__file__).parent / "vectors"
P = 2**256 - 2**224 + 2**192 + 2**96 - 1
N = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
PLAINTEXT = '[{"key":"Password","value":"correct horse","type":"password"}]'
Case = dict[str, Any]


def noise(name: str, size: int) -> bytes:
    return hashlib.shake_256(b"sealpipe vectors: " + name.encode()).digest(size)


def b64(data: bytes) -> str:
    return base64.standard_b64encode(data).decode()


def b64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def hkdf(key: bytes, salt: bytes, info: bytes, size: int = 32) -> bytes:
    return HKDF(SHA256(), size, salt, info).derive(key)


def flipped(data: bytes, index: int, bit: int = 1) -> bytes:
    changed = bytearray(data)
    changed[index] ^= bit
    return bytes(changed)


def encodings() -> list[Case]:
    standard = [
        ("nothing", "", "ok"),
        ("one byte", "/w==", "ok"),
        ("two bytes", "+/8=", "ok"),
        ("three bytes", "AAAA", "ok"),
        ("trailing bits after one byte", "/x==", "non-canonical"),
        ("trailing bits after two bytes", "+/9=", "non-canonical"),
        ("no padding", "/w", "bad-padding"),
        ("half the padding", "/w=", "bad-padding"),
        ("too much padding", "/w===", "bad-padding"),
        ("padding on whole groups", "AAAA====", "bad-padding"),
        ("padding alone", "====", "bad-padding"),
        ("padding before the end", "/w==/w==", "bad-padding"),
        ("one character left over", "AAAAA", "bad-padding"),
        ("a space", "AA AA", "not-base64"),
        ("a final newline", "AAAA\n", "not-base64"),
        ("the URL-safe alphabet", "-_8=", "not-base64"),
        ("a letter beyond ASCII", "AAÄA", "not-base64"),
        ("a full-width letter", "AAA\uff21", "not-base64"),
        ("a NUL", "AAA\0", "not-base64"),
        ("a comma", "AA,A", "not-base64"),
    ]
    url = [
        ("url: nothing", "", "ok"),
        ("url: one byte", "_w", "ok"),
        ("url: two bytes", "-_8", "ok"),
        ("url: three bytes", "AAAA", "ok"),
        ("url: trailing bits after one byte", "_x", "non-canonical"),
        ("url: trailing bits after two bytes", "-_9", "non-canonical"),
        ("url: padding", "_w==", "bad-padding"),
        ("url: one character left over", "AAAAA", "bad-padding"),
        ("url: the standard alphabet", "+/8", "not-base64url"),
        ("url: a final newline", "AAAA\n", "not-base64url"),
        ("url: a space before", " AAAA", "not-base64url"),
        ("url: a letter beyond ASCII", "AAÄA", "not-base64url"),
    ]
    return [
        {"name": name, "kind": kind, "text": text, "expect": expected("EncodingError", reason)}
        for kind, cases in (("base64", standard), ("base64url", url))
        for name, text, reason in cases
    ]


def envelopes() -> list[Case]:
    key, salt, iv = noise("content key", 32), noise("salt", 16), noise("iv", 12)

    def sealed(info: bytes = b"content", text: str = PLAINTEXT, used: bytes = salt, aad: bytes | None = None) -> bytes:
        return used + iv + AESGCM(hkdf(key, used, info)).encrypt(iv, text.encode(), aad)

    def case(
        name: str, raw: bytes | str, reason: str, passcode: str | None = None, error: str = "EnvelopeError"
    ) -> Case:
        data = raw if isinstance(raw, str) else b64(raw)
        made = {"name": name, "content_key": key.hex(), "passcode": passcode, "data": data}
        return made | {"expect": expected(error, reason)} | ({"plaintext": PLAINTEXT} if reason == "ok" else {})

    good, guarded = sealed(), sealed(b"content|hunter2")
    emoji = "  pä|ss 🔑 "
    return [
        case("no passcode", good, "ok"),
        case("a passcode", guarded, "ok", "hunter2"),
        case("a passcode is used as typed", sealed(f"content|{emoji}".encode()), "ok", emoji),
        case("a passcode that is a pipe", sealed(b"content||"), "ok", "|"),
        case("empty plaintext has 44 bytes", sealed(text=""), "ok") | {"plaintext": ""},
        case("43 bytes", good[:43], "too-short"),
        case("nothing", b"", "too-short"),
        case("salt and iv alone", good[:28], "too-short"),
        case("the passcode left out", guarded, "wrong-key"),
        case("a passcode too many", good, "wrong-key", "hunter2"),
        case("another passcode", guarded, "wrong-key", "hunter3"),
        case("the passcode with a space", guarded, "wrong-key", "hunter2 "),
        case("the passcode in capitals", guarded, "wrong-key", "Hunter2"),
        case("composed for decomposed", sealed("content|e\u0301".encode()), "wrong-key", "\u00e9"),
        case("an empty passcode is no passcode", sealed(b"content|"), "empty-passcode", "", "PasscodeError"),
        case(
            "the passcode in the salt",
            salt + iv + AESGCM(hkdf(key, salt + b"hunter2", b"content")).encrypt(iv, PLAINTEXT.encode(), None),
            "wrong-key",
            "hunter2",
        ),
        case("a salt bit flipped", flipped(good, 0), "wrong-key"),
        case("an iv bit flipped", flipped(good, 16), "wrong-key"),
        case("a ciphertext bit flipped", flipped(good, 28), "wrong-key"),
        case("a tag bit flipped", flipped(good, -1, 0x80), "wrong-key"),
        case("the last byte lost", good[:-1], "wrong-key"),
        case("a byte too many", good + b"\0", "wrong-key"),
        case("iv before salt", good[16:28] + good[:16] + good[28:], "wrong-key"),
        case("tag before ciphertext", good[:28] + good[-16:] + good[28:-16], "wrong-key"),
        case("a version byte in front", b"\x01" + good, "wrong-key"),
        case(
            "the content key used directly", salt + iv + AESGCM(key).encrypt(iv, PLAINTEXT.encode(), None), "wrong-key"
        ),
        case("the info of another derivation", sealed(b"access"), "wrong-key"),
        case("info with a newline", sealed(b"content\n"), "wrong-key"),
        case("associated data", sealed(aad=b"svc"), "wrong-key"),
        case(
            "a 128-bit key",
            salt + iv + AESGCM(hkdf(key, salt, b"content", 16)).encrypt(iv, PLAINTEXT.encode(), None),
            "wrong-key",
        ),
        case("no base64 padding", b64(sealed(text="~" * 98)).rstrip("="), "bad-padding", error="EncodingError"),
        case(
            "base64url", base64.urlsafe_b64encode(sealed(text="~" * 99)).decode(), "not-base64", error="EncodingError"
        ),
        case("a line break in the base64", b64(good)[:76] + "\n" + b64(good)[76:], "not-base64", error="EncodingError"),
        case("a key of 31 bytes", good, "bad-content-key") | {"content_key": key[:31].hex()},
        case("a key of 33 bytes", good, "bad-content-key") | {"content_key": key.hex() + "00"},
        case("another key", good, "wrong-key") | {"content_key": flipped(key, 31).hex()},
    ]


def point(scalar: int) -> bytes:
    public = ec.derive_private_key(scalar, ec.SECP256R1()).public_key()
    return public.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def boxes() -> list[Case]:
    seed, tag = noise("seed", 32), "svc"
    wide = hkdf(seed, b"", f"{tag}-ecdh-p256-scalar".encode(), 48)
    scalar = int.from_bytes(wide, "big") % (N - 1) + 1
    recipient = ec.derive_private_key(scalar, ec.SECP256R1())
    ephemeral = ec.derive_private_key(int.from_bytes(noise("ephemeral", 31), "big") + 1, ec.SECP256R1())
    shared = ephemeral.exchange(ec.ECDH(), recipient.public_key())
    salt, iv = noise("box salt", 16), noise("box iv", 12)
    sender = ephemeral.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    payload = noise("payload", 32)

    def sealed(text: bytes = payload, info: bytes = b"svc-request-submission", who: bytes = sender) -> bytes:
        return b"\x01" + who + salt + iv + AESGCM(hkdf(shared, salt, info)).encrypt(iv, text, None)

    def case(name: str, raw: bytes | str, reason: str, error: str = "BoxError") -> Case:
        blob = raw if isinstance(raw, str) else b64(raw)
        made = {"name": name, "seed": seed.hex(), "tag": tag, "blob": blob, "expect": expected(error, reason)}
        return made | ({"payload": payload.hex()} if reason == "ok" else {})

    good = sealed()
    x, y = sender[1:33], sender[33:]
    compressed = bytes([2 + (y[-1] & 1)]) + x
    hybrid = bytes([6 + (y[-1] & 1)]) + x + y
    negated = b"\x04" + x + (P - int.from_bytes(y, "big")).to_bytes(32, "big")
    oversized = b"\x04" + (P + 5).to_bytes(32, "big") + point(1)[33:]
    off_curve = b"\x04" + x + flipped(y, -1)
    return [
        case("a wrapped content key is 142 bytes", good, "ok"),
        case("an empty payload has 110 bytes", sealed(b""), "ok") | {"payload": ""},
        case("the negated ephemeral point has the same X", sealed(who=negated), "ok"),
        case("109 bytes", sealed(b"")[:109], "too-short"),
        case("nothing", b"", "too-short"),
        case("the version alone", b"\x01", "too-short"),
        case("version 0", b"\x00" + good[1:], "bad-version"),
        case("version 2", b"\x02" + good[1:], "bad-version"),
        case("no version byte", good[1:], "bad-version"),
        case(
            "a compressed point, filled up",
            b"\x01" + compressed + bytes(32) + good[66:],
            "not-uncompressed",
            "PointError",
        ),
        case("a compressed point and no payload", b"\x01" + compressed + sealed(b"")[66:], "too-short"),
        case("a hybrid point", sealed(who=hybrid), "not-uncompressed", "PointError"),
        case("the point at infinity, filled up", sealed(who=bytes(65)), "not-uncompressed", "PointError"),
        case("the point 0, 0", sealed(who=b"\x04" + bytes(64)), "not-on-curve", "PointError"),
        case("a point off the curve", sealed(who=off_curve), "not-on-curve", "PointError"),
        case("a coordinate beyond the field", sealed(who=oversized), "not-on-curve", "PointError"),
        case("coordinates exchanged", sealed(who=b"\x04" + y + x), "not-on-curve", "PointError"),
        case("another sender's point", sealed(who=point(2)), "wrong-key"),
        case("a salt bit flipped", flipped(good, 66), "wrong-key"),
        case("an iv bit flipped", flipped(good, 82), "wrong-key"),
        case("a payload bit flipped", flipped(good, 94), "wrong-key"),
        case("a tag bit flipped", flipped(good, -1), "wrong-key"),
        case("the last byte lost", good[:-1], "wrong-key"),
        case("a byte too many", good + b"\0", "wrong-key"),
        case("iv before salt", good[:66] + good[82:94] + good[66:82] + good[94:], "wrong-key"),
        case("another service's tag", sealed(info=b"crs-request-submission"), "wrong-key"),
        case("the info without a tag", sealed(info=b"request-submission"), "wrong-key"),
        case("no base64 padding", b64(sealed(b"")).rstrip("="), "bad-padding", "EncodingError"),
        case(
            "base64url", b64(flipped(good, 1, 0xFF)).replace("/", "_").replace("+", "-"), "not-base64", "EncodingError"
        ),
        case("another seed", good, "wrong-key") | {"seed": flipped(seed, 0).hex()},
        case("opened under another tag", good, "wrong-key") | {"tag": "crs"},
    ]


def plaintexts() -> list[Case]:
    deep = "[" * 98 + "]" * 98
    cases = [
        ("no fields", "[]", "ok"),
        ("one field", PLAINTEXT, "ok"),
        ("an unknown type", '[{"key":"k","value":"v","type":"hologram"}]', "ok"),
        ("empty texts", '[{"key":"","value":"","type":""}]', "ok"),
        ("members in another order", '[{"type":"text","x":1,"value":"v","key":"k"}]', "ok"),
        (
            "numbers keep their spelling",
            '[{"key":"k",<rest>,"x":[1.0,1e3,-0,1E400,12345678901234567890,0.10]}]',
            "ok",
        ),
        ("a filename of null is kept", '[{"filename":null,"key":"k",<rest>}]', "ok"),
        ("label beside key is kept", '[{"label":"l","key":"k",<rest>}]', "ok"),
        (
            "controls as a browser writes them",
            r'[{"key":"k","value":"\u0000\b\t\n\u000b\f\r\u001f\"\\","type":"t"}]',
            "ok",
        ),
        ("U+2028, DEL and slashes stand as they are", '[{"key":"k","value":"\u2028\u2029\x7f/","type":"t"}]', "ok"),
        ("a hundred levels", f'[{{"key":"k",<rest>,"x":{deep}}}]', "ok"),
        ("a hundred and one levels", f'[{{"key":"k",<rest>,"x":[{deep}]}}]', "too-deep"),
        ("a hundred thousand levels", "[" * 100_000, "too-deep"),
        ("label for key", '[{"label":"k",<rest>}]', "label-not-key"),
        ("name for key", '[{"name":"k",<rest>}]', "label-not-key"),
        ("title for key", '[{"title":"k",<rest>}]', "label-not-key"),
        ("no key", "[{<rest>}]", "missing-key"),
        ("no value", '[{"key":"k","type":"text"}]', "missing-value"),
        ("no type", '[{"key":"k","value":"v"}]', "missing-type"),
        ("a key of null", '[{"key":null,<rest>}]', "bad-key"),
        ("a value that is a number", '[{"key":"k","value":1,"type":"text"}]', "bad-value"),
        ("a value that is an array", '[{"key":"k","value":["v"],"type":"text"}]', "bad-value"),
        ("a type of false", '[{"key":"k","value":"v","type":false}]', "bad-type"),
        ("an object", '{"key":"k",<rest>}', "not-an-array"),
        ("null", "null", "not-an-array"),
        ("an array of text", '["key"]', "not-an-object"),
        ("an array of arrays", "[[]]", "not-an-object"),
        ("nothing", "", "not-json"),
        ("a comma too many", "[{},]", "not-json"),
        ("text after the end", "[]]", "not-json"),
        ("single quotes", "[{'key':'k'}]", "not-json"),
        ("a raw line break in a value", '[{"key":"k","value":"a\nb","type":"text"}]', "not-json"),
        ("a byte-order mark", "\ufeff[]", "not-json"),
        ("a leading zero", '[{"key":"k",<rest>,"x":01}]', "not-json"),
        ("NaN", '[{"key":"k",<rest>,"x":NaN}]', "not-finite"),
        ("Infinity", '[{"key":"k",<rest>,"x":-Infinity}]', "not-finite"),
        ("a member twice", '[{"key":"k",<rest>,"key":"k"}]', "duplicate-member"),
        ("a member twice, one escaped", '[{"key":"k",<rest>,"\\u006bey":"k"}]', "duplicate-member"),
        ("a member twice, further in", '[{"key":"k",<rest>,"x":{"a":1,"a":1}}]', "duplicate-member"),
        ("a lone high surrogate", '[{"key":"k","value":"\\ud83d","type":"text"}]', "lone-surrogate"),
        ("a lone low surrogate in a name", '[{"key":"k",<rest>,"\\udc00":1}]', "lone-surrogate"),
        ("a lone surrogate further in", '[{"key":"k",<rest>,"x":["\\uDBFFx"]}]', "lone-surrogate"),
    ]
    raw = [
        ("Latin-1", '[{"key":"ä"}]'.encode("latin-1"), "not-utf8"),
        ("UTF-16", "[]".encode("utf-16-le") + b"\xff", "not-utf8"),
        ("a surrogate as UTF-8", b'[{"key":"\xed\xa0\x80"}]', "not-utf8"),
        ("an overlong quote", b'[{"key":"\xc0\xa2"}]', "not-utf8"),
    ]
    rest = '"value":"v","type":"text"'
    encoded = [(name, text.replace("<rest>", rest).encode(), reason) for name, text, reason in cases] + raw
    return [
        {
            "name": name,
            "plaintext": b64(data) if len(data) < 9999 else {"repeat": "[", "times": len(data)},
            "expect": expected("FieldError", reason),
        }
        for name, data, reason in encoded
    ]


def fragments() -> list[Case]:
    key = noise("fragment key", 32)
    body = b64url(key)
    last = body[-1]
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    sibling = alphabet[alphabet.index(last) ^ 1]
    cases: list[tuple[str, str | None, str]] = [
        ("bare", "1" + body, "ok"),
        ("with its sign", "#1" + body, "ok"),
        ("none", None, "missing-key"),
        ("nothing", "", "missing-key"),
        ("the sign alone", "#", "missing-key"),
        ("two signs", "##1" + body, "malformed-key"),
        ("the version alone", "1", "malformed-key"),
        ("another version", "2" + body, "malformed-key"),
        ("no version", body if body[0] != "1" else "x" + body, "malformed-key"),
        ("named", "k=1" + body, "malformed-key"),
        ("padding", "1" + body + "=", "malformed-key"),
        ("the last character lost", "1" + body[:-1], "malformed-key"),
        ("a character too many", "1" + body + "B", "malformed-key"),
        ("31 bytes", "1" + b64url(key[:31]), "malformed-key"),
        ("33 bytes", "1" + b64url(key + b"\0"), "malformed-key"),
        ("a bit after the last byte", "1" + body[:-1] + sibling, "malformed-key"),
        ("the standard alphabet", "1" + b64(b"\xff" * 32).rstrip("="), "malformed-key"),
        ("a space behind", "1" + body + " ", "malformed-key"),
        ("a newline behind", "1" + body + "\n", "malformed-key"),
        ("a full-width version", "\uff11" + body, "malformed-key"),
        ("percent-encoded", "%31" + body, "malformed-key"),
    ]
    return [
        {"name": name, "fragment": text, "expect": expected("FragmentError", reason)}
        | ({"content_key": key.hex()} if reason == "ok" else {})
        for name, text, reason in cases
    ]


def expected(error: str, reason: str) -> str:
    return "ok" if reason == "ok" else f"{error} {reason}"


FILES = {
    "encodings.json": encodings,
    "envelopes.json": envelopes,
    "boxes.json": boxes,
    "plaintexts.json": plaintexts,
    "fragments.json": fragments,
}


def contents(name: str) -> str:
    return json.dumps(FILES[name](), indent=1, ensure_ascii=True) + "\n"


if __name__ == "__main__":
    for file in FILES:
        (FOLDER / file).write_text(contents(file), encoding="ascii")
