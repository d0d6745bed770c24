"""../shared/vectors/wire.json: fixed inputs and what they must give, computed elsewhere with
WebCrypto.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from sealpipe.errors import FragmentError
from sealpipe.wire import envelope, fields, keys, link, sealed_box, tokens
from support.parts import shared


@pytest.fixture(scope="module")
def vectors() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(shared("vectors/wire.json").read_text(encoding="utf-8"))
    return loaded


def raw(case: dict[str, Any], name: str) -> bytes:
    return bytes.fromhex(case[f"{name}_hex"])


def test_every_share_seals_to_its_data(vectors: dict[str, Any]) -> None:
    for case in vectors["shares"]:
        sealed = envelope.seal(
            raw(case, "content_key"),
            case["plaintext"].encode(),
            case["passcode"],
            salt=raw(case, "salt"),
            iv=raw(case, "iv"),
        )
        assert sealed == case["data"], case["name"]


def test_every_share_opens_and_its_fields_are_kept_byte_for_byte(vectors: dict[str, Any]) -> None:
    for case in vectors["shares"]:
        plaintext = envelope.open(raw(case, "content_key"), case["data"], case["passcode"])
        assert plaintext.decode() == case["plaintext"], case["name"]
        loaded = fields.load(plaintext)
        assert fields.dump(loaded) == plaintext, case["name"]
        for field, expected in zip(loaded, json.loads(plaintext), strict=True):
            assert (field.key, field.value, field.type) == (
                expected["key"],
                expected["value"],
                expected["type"],
            )


def test_every_token_verifier_and_fragment_is_derived(vectors: dict[str, Any]) -> None:
    for case in vectors["shares"]:
        key = raw(case, "content_key")
        assert tokens.access_token(key) == case["access_token"]
        digest = hashlib.sha256(tokens.access_token(key).encode()).hexdigest()
        assert digest == case["access_token_sha256_hex"]
        assert link.encode_fragment(key) == case["fragment"]
        assert link.decode_fragment(case["fragment"]) == key
        if case["passcode"] is not None:
            assert tokens.passcode_verifier(case["passcode"]) == case["passcode_verifier"]


def test_every_custody_secret_gives_its_key_pair_under_its_tag(vectors: dict[str, Any]) -> None:
    for case in vectors["custody"]:
        pair = keys.from_custody_secret(case["custody_secret"], tag=case["service_tag"])
        assert pair.seed == raw(case, "intermediate")
        assert pair.scalar == raw(case, "scalar")
        assert pair.public_key == raw(case, "public_key")
        assert keys.from_seed(raw(case, "intermediate"), tag=case["service_tag"]) == pair


def test_every_wrap_is_made_and_opened(vectors: dict[str, Any]) -> None:
    for case in vectors["custody"]:
        wrap, tag = case["wrap"], case["service_tag"]
        pair = keys.from_custody_secret(case["custody_secret"], tag=tag)
        sealed = sealed_box.seal(
            pair.public_key,
            raw(wrap, "content_key"),
            tag=tag,
            ephemeral=raw(wrap, "ephemeral_scalar"),
            salt=raw(wrap, "salt"),
            iv=raw(wrap, "iv"),
        )
        assert sealed == wrap["item_key_wrap"]
        assert sealed_box.open(pair, wrap["item_key_wrap"], tag=tag) == raw(wrap, "content_key")


def test_every_fragment_is_read_or_refused_with_its_reason(vectors: dict[str, Any]) -> None:
    for case in vectors["fragments"]:
        if "reason" not in case:
            assert link.decode_fragment(case["in"]) == raw(case, "content_key")
            continue
        with pytest.raises(FragmentError) as caught:
            link.decode_fragment(case["in"])
        assert caught.value.reason == case["reason"], case["in"]
