"""Every case of tests/wire/vectors/: what must open opens, what must not gives exactly its reason."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest

from sealpipe import errors
from sealpipe.wire import encoding, envelope, fields, keys, link, sealed_box
from wire import make_vectors

Case = dict[str, Any]


def cases(file: str) -> list[Any]:
    loaded = json.loads((make_vectors.FOLDER / file).read_text(encoding="ascii"))
    return [pytest.param(case, id=case["name"]) for case in loaded]


def outcome(call: Callable[[], object]) -> tuple[str, object]:
    try:
        return "ok", call()
    except errors.WireError as error:
        return f"{type(error).__name__} {error.reason}", None


@pytest.mark.parametrize("file", make_vectors.FILES)
def test_the_files_are_what_their_script_makes(file: str) -> None:
    assert (make_vectors.FOLDER / file).read_text(encoding="ascii") == make_vectors.contents(file)


@pytest.mark.parametrize("file", make_vectors.FILES)
def test_no_two_cases_share_a_name_or_their_content(file: str) -> None:
    loaded = json.loads(make_vectors.contents(file))
    assert len({case["name"] for case in loaded}) == len(loaded)
    contents = {json.dumps({k: v for k, v in case.items() if k not in ("name", "expect")}) for case in loaded}
    assert len(contents) == len(loaded)


@pytest.mark.parametrize("case", cases("encodings.json"))
def test_an_encoded_text(case: Case) -> None:
    standard = case["kind"] == "base64"
    decode = encoding.decode_base64 if standard else encoding.decode_base64url
    encode = encoding.encode_base64 if standard else encoding.encode_base64url
    got, data = outcome(lambda: decode(case["text"]))
    assert got == case["expect"]
    if isinstance(data, bytes):
        assert encode(data) == case["text"]


@pytest.mark.parametrize("case", cases("envelopes.json"))
def test_an_envelope(case: Case) -> None:
    key = bytes.fromhex(case["content_key"])
    got, plaintext = outcome(lambda: envelope.open(key, case["data"], case["passcode"]))
    assert got == case["expect"]
    if isinstance(plaintext, bytes):
        assert plaintext.decode() == case["plaintext"]
        raw = base64.b64decode(case["data"])
        again = envelope.seal(key, plaintext, case["passcode"], salt=raw[:16], iv=raw[16:28])
        assert again == case["data"]


@pytest.mark.parametrize("case", cases("boxes.json"))
def test_a_sealed_box(case: Case) -> None:
    pair = keys.from_seed(bytes.fromhex(case["seed"]), tag="svc")
    got, payload = outcome(lambda: sealed_box.open(pair, case["blob"], tag=case["tag"]))
    assert got == case["expect"]
    if isinstance(payload, bytes):
        assert payload.hex() == case["payload"]


@pytest.mark.parametrize("case", cases("plaintexts.json"))
def test_a_plaintext(case: Case) -> None:
    packed = case["plaintext"]
    data = base64.b64decode(packed) if isinstance(packed, str) else packed["repeat"].encode() * packed["times"]
    got, loaded = outcome(lambda: fields.load(data))
    assert got == case["expect"]
    if isinstance(loaded, list):
        assert fields.dump(loaded) == data


@pytest.mark.parametrize("case", cases("fragments.json"))
def test_a_fragment(case: Case) -> None:
    got, key = outcome(lambda: link.decode_fragment(case["fragment"]))
    assert got == case["expect"]
    if isinstance(key, bytes):
        assert key.hex() == case["content_key"]
        assert link.encode_fragment(key) == case["fragment"].removeprefix("#")
