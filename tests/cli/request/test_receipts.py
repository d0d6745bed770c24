"""A receipt gives back what was put into it, and one of somebody else's making is refused without a
word of it.
"""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealpipe.errors import UsageError
from sealpipe.prompts import Prompt
from sealpipe.state.receipt import MAX_SIZE, Receipt, parse_receipt, read_receipt
from sealpipe.wire.encoding import encode_base64url
from sealpipe.wire.fields import TYPES

CANARY = "c4nary-in-a-receipt"
TEXT = st.text(st.characters(codec="utf-8"), min_size=1)
# What is printable but for other spaces: hardly a text is drawn in vain.
SHOWN = st.characters(codec="utf-8", exclude_categories=["C", "Z"], include_characters=" ")
PRINTABLE = st.text(SHOWN, min_size=1, max_size=100).map(str.strip).filter(bool)
PROMPTS = st.lists(
    st.builds(
        Prompt,
        st.from_regex(r"[A-Za-z][A-Za-z0-9_-]{0,63}", fullmatch=True),
        PRINTABLE,
        st.sampled_from(sorted(TYPES)),
    ),
    min_size=1,
    max_size=5,
    unique_by=(lambda each: each.id, lambda each: each.text),
)
RECEIPTS = st.builds(
    Receipt,
    PRINTABLE.filter(lambda text: text not in (".", "..")),
    st.binary(min_size=65, max_size=65).map(encode_base64url),
    PROMPTS.map(tuple),
    st.sampled_from(["credential", "new", "given"]),
    st.none()
    | st.datetimes(datetime(1970, 1, 1), timezones=st.just(UTC)).map(
        lambda time: time.replace(microsecond=0)
    ),
    st.none() | TEXT,
    st.none() | PRINTABLE,
    st.none() | st.from_regex(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}", fullmatch=True),
    st.none(),
    st.none() | PRINTABLE,
)


@given(RECEIPTS)
def test_what_is_dumped_is_loaded_again(receipt: Receipt) -> None:
    text = receipt.dump()
    assert parse_receipt(text) == receipt
    members = json.loads(text)
    assert (members["schema"], members["kind"]) == (1, "request")
    assert text.endswith("\n")
    assert text.count("\n") == 1
    assert text.isascii()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4)
    ),
)
VALUES: dict[str, Any] = {
    "short_code": "abc",
    "public_key": encode_base64url(bytes(65)),
    "prompts": (Prompt("pw", "Password"),),
}
GOOD = Receipt(**VALUES).to_members()


def test_a_receipt_of_the_first_version_is_read() -> None:
    """It has no name, link and run; and a later version may have members that this one does not
    know.
    """
    text = (Path(__file__).parent / "receipt-1.json").read_text(encoding="utf-8")
    receipt = parse_receipt(text)
    assert (receipt.short_code, receipt.name, receipt.link, receipt.run) == (
        "gkRayqLPGib0",
        None,
        None,
        None,
    )
    assert receipt.dump() == text
    assert parse_receipt(json.dumps({**json.loads(text), "unknown": [1]})) == receipt


def test_a_collect_link_is_kept_in_the_receipt() -> None:
    link = "https://links.example/r/a%2Fb"
    receipt = Receipt(**{**VALUES, "short_code": "a/b", "link": link})
    assert parse_receipt(receipt.dump()).link == link


@given(st.text() | JSON.map(json.dumps))
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not a request receipt"):
        parse_receipt(text)


@given(st.sampled_from(sorted(GOOD.keys() - {"title", "expires_at"})), JSON)
def test_a_member_of_another_kind_is_refused_or_harmless(name: str, value: Any) -> None:
    receipt = None
    with suppress(UsageError):
        receipt = parse_receipt(json.dumps({**GOOD, name: value}))
    assert receipt is None or parse_receipt(receipt.dump()) == receipt


@pytest.mark.parametrize(
    "changes",
    [
        {"schema": 0},
        {"kind": "other"},
        {"short_code": ""},
        {"short_code": None},
        {"short_code": ".."},
        {"short_code": f"\x1b]0;{CANARY}\x07"},
        {"public_key": CANARY},
        {"public_key": encode_base64url(bytes(64))},
        {"prompts": []},
        {"prompts": [CANARY]},
        {"prompts": [{"id": "../x", "text": CANARY, "type": "text"}]},
        {"prompts": [{"id": "x", "text": f"{CANARY}\n::add-mask::", "type": "text"}]},
        {"prompts": [{"id": "x", "text": CANARY, "type": CANARY}]},
        {
            "prompts": [
                {"id": "x", "text": "a", "type": "text"},
                {"id": "x", "text": "b", "type": "text"},
            ]
        },
        {
            "prompts": [
                {"id": "x", "text": "a", "type": "text"},
                {"id": "y", "text": "a", "type": "text"},
            ]
        },
        {"key": "custody"},
        {"key": ["credential"]},
        {"expires_at": "tomorrow"},
        {"expires_at": 1},
        {"seed": 1},
        {"seed": f"file:x\n{CANARY}"},
        {"name": f"../{CANARY}"},
        {"name": ".."},
        {"name": "x" * 101},
        {"run": f"1\n{CANARY}"},
        {"link": 1},
        {"link": "https://links.example/r/other"},
        {"link": "https://links.example/abc"},
        {"link": f"https://links.example/r/abc#{CANARY}"},
        {"link": f"http://{CANARY}.example/r/abc"},
        {"link": f"https://links.example?{CANARY}/r/abc"},
    ],
    ids=str,
)
def test_a_hostile_receipt_is_refused_and_nothing_of_it_is_shown(
    changes: dict[str, Any], tmp_path: Path
) -> None:
    file = tmp_path / "r.json"
    file.write_text(json.dumps({**GOOD, **changes}))
    with pytest.raises(UsageError) as refused:
        read_receipt(file)
    assert refused.value.message == f"{file}: this is not a request receipt"
    assert CANARY not in repr(refused.value) + str(vars(refused.value))


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff\xfe", b"[" * 100_000, b'{"schema":' + b"1" * 5000 + b"}", b" " * (MAX_SIZE + 1)],
    ids=len,
)
def test_a_file_that_is_no_receipt_at_all_is_refused(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    file.write_bytes(content)
    with pytest.raises(UsageError, match="not a request receipt"):
        read_receipt(file)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nowhere\.json cannot be read"):
        read_receipt(tmp_path / "nowhere.json")
