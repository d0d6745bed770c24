"""A third reading, with a browser's WebCrypto (tests/wire/webcrypto.mjs): two hundred of each, both ways."""

from __future__ import annotations

import json
import os
import random
import struct
import subprocess
from pathlib import Path
from typing import Any

from sealpipe.wire import envelope, fields, jsonnumber, keys, link, sealed_box, tokens
from support.parts import program

COUNT = 200
ALPHABET = [*map(chr, range(0x80)), *"äß\u0301\u2028\u2029\ufeff\ufffe\uffff", "中", "🐎", "\U0010ffff", "|", '"', "\\"]
CHANCE = random.Random(20240607)  # noqa: S311  # test data, and the same on every run


def webcrypto(jobs: list[dict[str, Any]]) -> list[Any]:
    script = Path(__file__).with_name("webcrypto.mjs")
    command = [program("node"), str(script)]
    done = subprocess.run(command, input=json.dumps(jobs), capture_output=True, text=True, check=True, timeout=120)
    answers: list[Any] = json.loads(done.stdout)
    return answers


def some_text(longest: int, *, shortest: int = 0) -> str:
    return "".join(CHANCE.choices(ALPHABET, k=CHANCE.randint(shortest, longest)))


def some_fields() -> list[fields.Field]:
    kinds = [*fields.TYPES, "hologram"]
    return [
        fields.Field(
            some_text(20),
            some_text(200),
            CHANCE.choice(kinds),
            filename=CHANCE.choice([None, some_text(5)]),
            extra={f"x{some_text(3)}": CHANCE.choice([None, True, 1.5, [some_text(5)], {"a": 1}])},
        )
        for _ in range(CHANCE.randint(0, 4))
    ]


def some_passcode() -> str | None:
    return CHANCE.choice([None, some_text(30, shortest=1)])


def test_it_opens_what_we_seal() -> None:
    cases = [(os.urandom(32), fields.dump(some_fields()), some_passcode()) for _ in range(COUNT)]
    jobs = [
        {"verb": "open", "content_key": key.hex(), "data": envelope.seal(key, plain, passcode), "passcode": passcode}
        for key, plain, passcode in cases
    ]
    assert [answer.encode() for answer in webcrypto(jobs)] == [plain for _, plain, _ in cases]


def test_we_open_what_it_seals_and_write_it_as_it_does() -> None:
    cases = [(os.urandom(32), some_fields(), some_passcode()) for _ in range(COUNT)]
    jobs = [
        {"verb": "seal", "content_key": key.hex(), "fields": json.loads(fields.dump(array)), "passcode": passcode}
        for key, array, passcode in cases
    ]
    for data, (key, array, passcode) in zip(webcrypto(jobs), cases, strict=True):
        plaintext = envelope.open(key, data, passcode)
        assert plaintext == fields.dump(array)
        assert fields.load(plaintext) == array
        assert fields.dump(fields.load(plaintext)) == plaintext


def test_it_derives_the_same_tokens() -> None:
    cases = [(os.urandom(32), some_passcode()) for _ in range(COUNT)]
    jobs = [{"verb": "tokens", "content_key": key.hex(), "passcode": passcode} for key, passcode in cases]
    for answer, (key, passcode) in zip(webcrypto(jobs), cases, strict=True):
        verifier = None if passcode is None else tokens.passcode_verifier(passcode)
        assert answer == [tokens.access_token(key), verifier, link.encode_fragment(key)]


def test_boxes_open_both_ways() -> None:
    cases = []
    for index in range(COUNT):
        tag = CHANCE.choice(["svc", "crs", "acme2"])
        cases.append((tag, keys.from_seed(os.urandom(32), tag=tag), os.urandom(index % 70)))
    ours = [
        {"verb": "unbox", "seed": pair.seed.hex(), "public_key": pair.public_key.hex(), "tag": tag}
        | {"blob": sealed_box.seal(pair.public_key, payload, tag=tag)}
        for tag, pair, payload in cases
    ]
    theirs = [
        {"verb": "box", "public_key": pair.public_key.hex(), "payload": payload.hex(), "tag": tag}
        for tag, pair, payload in cases
    ]
    answers = webcrypto(ours + theirs)
    for answer, (_, _, payload) in zip(answers[:COUNT], cases, strict=True):
        assert answer == payload.hex()
    for blob, (tag, pair, payload) in zip(answers[COUNT:], cases, strict=True):
        assert sealed_box.open(pair, blob, tag=tag) == payload


def test_numbers_are_spelled_as_a_browser_spells_them() -> None:
    numbers = [struct.unpack("<d", CHANCE.randbytes(8))[0] for _ in range(2000)]
    numbers += [float(f"{digits}e{power}") for power in range(-30, 30) for digits in ("1", "-1.5", "123456")]
    numbers = [number for number in numbers if number == number and abs(number) != float("inf")] + [0.0, -0.0, 5e-324]
    (answer,) = webcrypto([{"verb": "stringify", "text": json.dumps(numbers)}])
    assert answer == "[" + ",".join(map(jsonnumber.ecmascript, numbers)) + "]"
