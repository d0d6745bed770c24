"""Public test vectors through our own doors: Wycheproof, RFC 5869, NIST CAVP."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import GCM

from sealpipe.errors import EnvelopeError, PointError
from sealpipe.wire import encoding, envelope, keys, tokens
from support.parts import library, shared


def wycheproof(name: str, **wanted: int) -> list[dict[str, Any]]:
    loaded = json.loads(shared(f"vectors/public/wycheproof/{name}").read_text(encoding="utf-8"))
    groups = [
        group for group in loaded["testGroups"] if all(group[k] == v for k, v in wanted.items())
    ]
    return [case for group in groups for case in group["tests"]]


def rsp(name: str) -> list[dict[str, str]]:
    """The blank-line separated records of the file's P-256 section."""
    text = shared(f"vectors/public/{name}").read_text(encoding="utf-8").replace("\r", "")
    section = text.partition("[P-256")[2].partition("\n")[2]
    section = re.split(r"\n\[(?!B\.4)", section)[0]
    records = [dict(re.findall(r"^(\w+) = (\S+)", block, re.M)) for block in section.split("\n\n")]
    return [record for record in records if "Qx" in record]


def test_aes_gcm_as_our_envelope_uses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    # The content encryption key is put in place of the derived one; everything else is the
    # envelope's.
    cases = wycheproof("aes_gcm_test.json", keySize=256, ivSize=96, tagSize=128)
    assert len(cases) == 66
    opened = 0
    for case in cases:
        key, iv, aad, msg, ct, tag = (
            bytes.fromhex(case[k]) for k in ("key", "iv", "aad", "msg", "ct", "tag")
        )
        if aad:  # the format has none: the primitive alone
            _check_primitive(case, key, iv, aad, msg, ct + tag)
            continue
        monkeypatch.setattr(tokens, "content_encryption_key", lambda *_, key=key: key)
        data = encoding.encode_base64(bytes(16) + iv + ct + tag)
        if case["result"] == "invalid":
            with pytest.raises(EnvelopeError) as caught:
                envelope.open(bytes(32), data)
            assert caught.value.reason == "wrong-key"
        else:
            assert envelope.open(bytes(32), data) == msg
            assert envelope.seal(bytes(32), msg, salt=bytes(16), iv=iv) == data
            opened += 1
    assert opened >= 15


def _check_primitive(
    case: dict[str, Any], key: bytes, iv: bytes, aad: bytes, msg: bytes, sealed: bytes
) -> None:
    from cryptography.exceptions import InvalidTag

    if case["result"] == "invalid":
        with pytest.raises(InvalidTag):
            AESGCM(key).decrypt(iv, sealed, aad)
        return
    assert AESGCM(key).decrypt(iv, sealed, aad) == msg
    encryptor = Cipher(AES256(key), GCM(iv)).encryptor()
    encryptor.authenticate_additional_data(aad)
    assert encryptor.update(msg) + encryptor.finalize() + encryptor.tag == sealed


def test_hkdf_sha256_of_wycheproof() -> None:
    cases = wycheproof("hkdf_sha256_test.json")
    assert len(cases) == 86
    for case in cases:
        key, salt, info = (bytes.fromhex(case[k]) for k in ("ikm", "salt", "info"))
        if case["result"] == "invalid":
            with pytest.raises(ValueError, match="larger than"):
                tokens.hkdf(key, salt, info, case["size"])
        else:
            assert tokens.hkdf(key, salt, info, case["size"]).hex() == case["okm"]


def test_hkdf_sha256_of_rfc_5869() -> None:
    text = shared("vectors/public/rfc5869/rfc-5869-HKDF-SHA256.txt").read_text(encoding="utf-8")
    records = [
        dict(re.findall(r"^(\w+) *= *(\S*)$", block, re.M))
        for block in re.split(r"\n(?=COUNT)", text)
    ]
    records = [record for record in records if "OKM" in record]
    assert len(records) == 3
    for record in records:
        key, salt, info = (bytes.fromhex(record[k]) for k in ("IKM", "salt", "info"))
        assert tokens.hkdf(key, salt, info, int(record["L"])).hex() == record["OKM"]


def test_ecdh_points_through_our_reader() -> None:
    opened = refused = 0
    for case in wycheproof("ecdh_secp256r1_ecpoint_test.json"):
        point = bytes.fromhex(case["public"])
        scalar = int(case["private"], 16).to_bytes(33, "big")[1:]
        if len(point) != keys.POINT_SIZE or case["result"] != "valid":
            with pytest.raises(PointError) as caught:
                keys.public_key(point)
            expected = "bad-point-length" if len(point) != keys.POINT_SIZE else "not-on-curve"
            assert caught.value.reason == expected, case["comment"]
            refused += 1
        else:
            shared_secret = keys.private_key(scalar).exchange(ec.ECDH(), keys.public_key(point))
            assert shared_secret.hex() == case["shared"]
            opened += 1
    assert (opened, refused) == (330, 25)


def test_a_compressed_point_is_refused_at_any_length() -> None:
    pair = keys.from_seed(bytes(32))
    for first, length in itertools.product((0, 2, 3, 5, 6, 7), (33, 65)):
        with pytest.raises(PointError):
            keys.public_key(bytes([first]) + pair.public_key[1:length])


def test_nist_key_pairs() -> None:
    records = rsp("nist/KeyPair.rsp")
    assert len(records) == 10
    for record in records:
        public = keys.public_bytes(
            keys.private_key(bytes.fromhex(record["d"].zfill(64))).public_key()
        )
        assert public.hex() == "04" + record["Qx"].zfill(64) + record["Qy"].zfill(64)


def test_nist_public_key_validation() -> None:
    records = rsp("nist/PKV.rsp")
    assert len(records) == 12
    for record in records:
        x, y = (
            bytes.fromhex(record[k].zfill(64 if len(record[k]) <= 64 else 66)) for k in ("Qx", "Qy")
        )
        point = b"\x04" + x + y
        if record["Result"] == "P":
            assert keys.public_bytes(keys.public_key(point)) == point
        else:
            with pytest.raises(PointError):
                keys.public_key(point)


def test_nist_gcm_decryption_as_our_envelope_uses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    package = library("cryptography_vectors", "cryptography-vectors")
    path = "ciphers/AES/GCM/gcmDecrypt256.rsp"
    with package.open_vector_file(path, "r") as file:
        sections = file.read().split("[Keylen = 256]")[1:]
    opened = refused = 0
    for section in sections:
        lengths = dict(re.findall(r"^\[(\w+) = (\d+)\]", section, re.M))
        if (lengths["IVlen"], lengths["AADlen"], lengths["Taglen"]) != ("96", "0", "128"):
            continue
        for block in section.split("\nCount = ")[1:]:
            record = dict(re.findall(r"^(\w+) = ?(\S*)$", block, re.M))
            key, iv, ciphertext, tag = (
                bytes.fromhex(record[k]) for k in ("Key", "IV", "CT", "Tag")
            )
            monkeypatch.setattr(tokens, "content_encryption_key", lambda *_, key=key: key)
            data = encoding.encode_base64(bytes(16) + iv + ciphertext + tag)
            if "PT" in record:
                assert envelope.open(bytes(32), data).hex() == record["PT"]
                opened += 1
            else:
                with pytest.raises(EnvelopeError, match="does not open"):
                    envelope.open(bytes(32), data)
                refused += 1
    assert opened + refused == 75
    assert opened > 20
    assert refused > 20
