"""An independent client of the same format opens what we seal, and we open what it seals (tag
`crs`).
"""

from __future__ import annotations

import json
import os
from importlib import resources
from typing import Any

import pytest

from sealpipe.errors import FragmentError
from sealpipe.wire import encoding, envelope, fields, keys, link, sealed_box, tokens
from support.parts import library

theirs = library("credenshare.crypto", "credenshare")

FIELDS = [
    fields.Field("Password", 's3cr3t "quoted" \\ \x00\n', type="password"),
    fields.Field(
        "Код 🐎", "<b>&\u2028</b>", type="source_code", language="html", filename="a.html"
    ),
]
PLAIN = [
    {"key": "Password", "value": 's3cr3t "quoted" \\ \x00\n', "type": "password"},
    {
        "key": "Код 🐎",
        "value": "<b>&\u2028</b>",
        "type": "source_code",
        "selectedProgrammingLanguage": "html",
        "filename": "a.html",
    },
]
PASSCODES = [None, "4711", "  pä|ss 🔑 ", "x" * 5000]


@pytest.fixture(scope="module")
def conformance() -> dict[str, Any]:
    text = (
        resources.files("credenshare.conformance")
        .joinpath("vectors.v1.json")
        .read_text(encoding="utf-8")
    )
    loaded: dict[str, Any] = json.loads(text)
    return loaded


@pytest.mark.parametrize("passcode", PASSCODES)
def test_it_opens_our_envelope(passcode: str | None) -> None:
    key = os.urandom(32)
    sealed = envelope.seal(key, fields.dump(FIELDS), passcode)
    assert theirs.decrypt_content(key, sealed, passcode) == PLAIN


@pytest.mark.parametrize("passcode", PASSCODES)
def test_we_open_its_envelope(passcode: str | None) -> None:
    key = os.urandom(32)
    loaded = fields.load(envelope.open(key, theirs.encrypt_content(key, PLAIN, passcode), passcode))
    assert loaded == FIELDS


@pytest.mark.parametrize("passcode", [passcode for passcode in PASSCODES if passcode])
def test_tokens_verifiers_and_fragments_agree(passcode: str) -> None:
    key = os.urandom(32)
    assert tokens.access_token(key) == theirs.access_token(key)
    assert tokens.passcode_verifier(passcode) == theirs.passcode_verifier(passcode)
    assert link.encode_fragment(key) == theirs.encode_fragment(key)
    assert link.decode_fragment("#" + theirs.encode_fragment(key)) == key


def test_custody_wraps_open_both_ways() -> None:
    secret = encoding.encode_base64url(os.urandom(32))
    ours, other = keys.from_custody_secret(secret, tag="crs"), theirs.custody_keypair(secret)
    assert ours.public_key == other.public_key_raw
    key = os.urandom(32)
    assert (
        theirs.unwrap_with_seed(sealed_box.seal(other.public_key_raw, key, tag="crs"), ours.seed)
        == key
    )
    assert sealed_box.open(ours, theirs.wrap_to_public_key(key, ours.public_key), tag="crs") == key


def test_submissions_open_both_ways() -> None:
    seed = os.urandom(32)
    pair = keys.from_seed(seed, tag="crs")
    sealed = sealed_box.seal(pair.public_key, fields.dump(FIELDS), tag="crs")
    assert theirs.decrypt_submission(sealed, seed) == PLAIN
    submitted = theirs.wrap_to_public_key(json.dumps(PLAIN).encode(), pair.public_key)
    assert fields.load(sealed_box.open(pair, submitted, tag="crs")) == FIELDS


def test_its_vectors_of_content(conformance: dict[str, Any]) -> None:
    for case in conformance["content"]:
        key, salt, iv = (bytes.fromhex(case[name]) for name in ("key", "salt", "iv"))
        passcode, plaintext = case.get("passcode"), case["plaintext"].encode()
        assert envelope.seal(key, plaintext, passcode, salt=salt, iv=iv) == case["blob"], case[
            "name"
        ]
        assert envelope.open(key, case["blob"], passcode) == plaintext
        assert fields.dump(fields.load(plaintext)) == plaintext


def test_its_vectors_of_derivation(conformance: dict[str, Any]) -> None:
    for case in conformance["hkdf"]:
        key, salt = bytes.fromhex(case["ikm"]), bytes.fromhex(case["salt"])
        assert tokens.hkdf(key, salt, case["info"].encode(), case["length"]).hex() == case["out"]
    token = conformance["access_token"]
    assert tokens.access_token(bytes.fromhex(token["key"])) == token["token"]
    for case in conformance["passcode_verifier"]:
        assert tokens.passcode_verifier(case["passcode"]) == case["verifier"]


def test_its_vectors_of_fragments(conformance: dict[str, Any]) -> None:
    case = conformance["fragment"]
    key = bytes.fromhex(case["key"])
    assert link.encode_fragment(key) == case["encoded"]
    assert link.decode_fragment(case["encoded"]) == key
    for refused in case["rejects"]:
        with pytest.raises(FragmentError) as caught:
            link.decode_fragment(refused["input"])
        assert caught.value.reason == refused["reason"]


def test_its_vectors_of_key_pairs_and_wraps(conformance: dict[str, Any]) -> None:
    for case in conformance["seed_keypair"]:
        pair = keys.from_seed(bytes.fromhex(case["seed"]), tag="crs")
        assert (pair.scalar.hex(), pair.public_key.hex()) == (case["scalar"], case["public_key"])
        assert encoding.encode_base64url(pair.public_key) == case["public_key_b64url"]
    custody = conformance["custody_keypair"]
    pair = keys.from_custody_secret(custody["custody_secret"], tag="crs")
    assert (bytes(pair.seed).hex(), pair.public_key.hex()) == (
        custody["seed"],
        custody["public_key"],
    )
    wrap = conformance["ecdh_wrap"]
    recipient = keys.from_seed(bytes.fromhex(wrap["recipient_seed"]), tag="crs")
    ephemeral = keys.from_seed(bytes.fromhex(wrap["ephemeral_seed"]), tag="crs").scalar
    salt, iv, payload = (bytes.fromhex(wrap[name]) for name in ("salt", "iv", "payload"))
    sealed = sealed_box.seal(
        recipient.public_key, payload, tag="crs", ephemeral=ephemeral, salt=salt, iv=iv
    )
    assert sealed == wrap["wrapped"]
    assert sealed_box.open(recipient, wrap["wrapped"], tag="crs") == payload
