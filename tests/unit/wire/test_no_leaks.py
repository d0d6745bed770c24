"""No refusal holds what it refuses: not in its text, its attributes, its cause or its context."""

from __future__ import annotations

import base64
import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from sealpipe.errors import SealpipeError
from sealpipe.secret import Secret
from sealpipe.wire import encoding, envelope, fields, jsontext, keys, link, sealed_box, tokens
from sealpipe.wire.fields import Field

CANARY = "cAnArY-7f3a"
KEY = CANARY.encode().ljust(32, b"k")
PAIR = keys.from_seed(KEY)
SEALED = envelope.seal(KEY, CANARY.encode())
OFF_CURVE = b"\x04" + CANARY.encode().ljust(64, b"p")
BOX = sealed_box.seal(PAIR.public_key, CANARY.encode())

CASES: dict[str, Callable[[], object]] = {
    "base64": lambda: encoding.decode_base64(CANARY),
    "base64 beyond ASCII": lambda: encoding.decode_base64(CANARY + "é\ud800"),
    "base64url": lambda: encoding.decode_base64url(CANARY + "!"),
    "tail bits": lambda: encoding.decode_base64(base64.b64encode(KEY).decode()[:-2] + "9="),
    "no JSON": lambda: jsontext.loads(f'["{CANARY}'.encode()),
    "no UTF-8": lambda: jsontext.loads(CANARY.encode() + b"\xff"),
    "too deep": lambda: jsontext.loads(f'["{CANARY}",'.encode() + b"[" * 100_000),
    "duplicate": lambda: jsontext.loads(f'{{"{CANARY}":1,"{CANARY}":2}}'.encode()),
    "NaN": lambda: jsontext.loads(f'["{CANARY}",NaN]'.encode()),
    "surrogate": lambda: jsontext.loads(f'["{CANARY}\\ud800"]'.encode()),
    "no JSON in fields": lambda: fields.load(f'[{{"key":"{CANARY}"'.encode()),
    "no UTF-8 in fields": lambda: fields.load(CANARY.encode() + b"\xff"),
    "no value": lambda: fields.load(f'[{{"key":"{CANARY}"}}]'.encode()),
    "a value of another type": lambda: fields.load(
        f'[{{"key":"k","value":["{CANARY}"],"type":"t"}}]'.encode()
    ),
    "a label": lambda: fields.load(
        f'[{{"label":"{CANARY}","value":"{CANARY}","type":"t"}}]'.encode()
    ),
    "a bad value": lambda: Field("k", CANARY.encode()),  # type: ignore[arg-type]
    "a bad key": lambda: Field(CANARY + "\ud800", "v"),
    "a value with half a pair": lambda: fields.dump([Field("k", CANARY + "\ud800")]),
    "a secret with half a pair": lambda: fields.dump(
        [Field("k", Secret(CANARY + "\ud800"), type="text")]
    ),
    "a secret with half a pair, no type": lambda: Field("k", Secret(CANARY + "\ud800")),
    "a secret that is no UTF-8": lambda: fields.dump(
        [Field("k", Secret(CANARY.encode() + b"\xff"))]
    ),
    "an extra that is no JSON": lambda: fields.dump([Field("k", "v", extra={"x": {CANARY}})]),
    "too large": lambda: fields.dump([Field("k", CANARY * 2_000_000, type="text")]),
    "the wrong key": lambda: envelope.open(KEY[::-1], SEALED),
    "the wrong passcode": lambda: envelope.open(KEY, SEALED, CANARY),
    "too short": lambda: envelope.open(KEY, encoding.encode_base64(CANARY.encode())),
    "a long key": lambda: envelope.seal(KEY + b"x", b""),
    "a passcode with half a pair": lambda: tokens.passcode_verifier(CANARY + "\ud800"),
    "a fragment": lambda: link.decode_fragment("1" + CANARY),
    "a short code with half a pair": lambda: link.share_link(
        "https://s.example", CANARY + "\ud800", KEY
    ),
    "a long seed": lambda: link.access_link("https://s.example", "c", KEY + b"x"),
    "a custody seed": lambda: link.encode_fragment(keys.from_custody_secret(CANARY).seed),
    "a custody secret with half a pair": lambda: keys.from_custody_secret(CANARY + "\ud800"),
    "a tag": lambda: keys.from_seed(KEY, tag=CANARY),
    "a point": lambda: keys.public_key(OFF_CURVE),
    "a compressed point": lambda: keys.public_key(b"\x02" + CANARY.encode().ljust(32, b"p")),
    "a scalar": lambda: keys.private_key(b"\xff" * 20 + CANARY.encode().ljust(12, b"s")),
    "a box for another": lambda: sealed_box.open(keys.from_seed(KEY[::-1]), BOX),
    "a box with another version": lambda: sealed_box.open(
        PAIR, encoding.encode_base64(b"\x07" + KEY)
    ),
}


def held(error: BaseException) -> Iterator[object]:
    """The error's parts, and those of what it was raised from or while handling."""
    seen: set[int] = set()
    waiting: list[Any] = [error]
    while waiting:
        item = waiting.pop()
        if id(item) in seen or isinstance(item, type):
            continue
        seen.add(id(item))
        yield item
        if isinstance(item, BaseException):
            # The traceback's frames are the caller's own; everything else the error carries is
            # looked at.
            waiting += [
                item.args,
                item.__cause__,
                item.__context__,
                vars(item),
                getattr(item, "__notes__", None),
            ]
        elif isinstance(item, dict | list | tuple):
            waiting += gc.get_referents(item)


@pytest.mark.parametrize("name", CASES)
def test_a_refusal_holds_nothing_of_what_it_refuses(name: str) -> None:
    with pytest.raises(SealpipeError) as caught:
        CASES[name]()
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    forms = [
        CANARY.encode(),
        KEY.hex().encode(),
        base64.b64encode(KEY)[:12],
        bytes(PAIR.scalar).hex().encode(),
    ]
    for item in held(caught.value):
        shown = (
            item
            if isinstance(item, bytes)
            else f"{item!r} {item!s}".encode("utf-8", "backslashreplace")
        )
        for form in forms:
            assert form not in shown


@pytest.mark.parametrize("name", CASES)
def test_a_refusal_says_something_and_ends_with_its_exit_code(name: str) -> None:
    with pytest.raises(SealpipeError) as caught:
        CASES[name]()
    assert len(caught.value.message) > 10
    assert caught.value.exit_code in (2, 13)
