"""What must hold for every input: round trips, one text for one value, and no error but the named
ones.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sealpipe.errors import BoxError, EnvelopeError, FieldError, PointError, WireError
from sealpipe.secret import Secret
from sealpipe.wire import encoding, envelope, fields, jsontext, keys, link, sealed_box, tokens


def refused(call: Callable[[], object]) -> tuple[object, str]:
    """What the call gives, or the reason of its refusal; any other exception goes through."""
    try:
        return call(), ""
    except WireError as error:
        return None, error.reason


pytestmark = pytest.mark.filterwarnings("ignore:unknown field type")  # some have one on purpose
KEY = bytes(range(32))
PAIR = keys.from_seed(KEY)
STANDARD = re.compile(
    r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?"
)
URL_SAFE = re.compile(
    r"(?:[A-Za-z0-9_-]{4})*(?:[A-Za-z0-9_-][AQgw]|[A-Za-z0-9_-]{2}[AEIMQUYcgkosw048])?"
)
texts = st.text(st.characters(exclude_categories=["Cs"]))  # type: ignore[list-item, unused-ignore]
nearly_base64 = st.text("AQgwxE8+/-_= \n", max_size=16) | st.text(max_size=16)
# A float beyond 2**53 is written with its digits, as a browser does it, and read as an integer of
# those digits.
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(-(2.0**53), 2.0**53) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=8,
)
extras = st.dictionaries(
    texts.filter(lambda name: name not in {"key", "value", "type"}), json_values, max_size=3
)


@st.composite
def some_fields(draw: st.DrawFn) -> list[fields.Field]:
    def one() -> fields.Field:
        extra = draw(extras)
        language, filename = draw(st.none() | texts), draw(st.none() | texts)
        extra = {
            name: value
            for name, value in extra.items()
            if name not in (fields.LANGUAGE, fields.FILENAME)
        }
        return fields.Field(
            draw(texts),
            draw(texts),
            draw(st.none() | texts),
            extra=extra,
            language=language,
            filename=filename,
        )

    return [one() for _ in range(draw(st.integers(0, 3)))]


@pytest.mark.parametrize("version", [0, 2, 255])
def test_a_box_of_another_version_is_refused_by_its_version(version: int) -> None:
    with pytest.raises(BoxError, match=f"has version {version};"):
        sealed_box.open(PAIR, encoding.encode_base64(bytes([version, *range(1, 200)])))


@given(st.binary(max_size=200))
def test_base64_is_what_the_standard_library_writes_and_reads_back(data: bytes) -> None:
    assert encoding.encode_base64(data) == base64.standard_b64encode(data).decode()
    assert encoding.encode_base64url(data) == base64.urlsafe_b64encode(data).decode().rstrip("=")
    assert encoding.decode_base64(encoding.encode_base64(data)) == data
    assert encoding.decode_base64url(encoding.encode_base64url(data)) == data


@given(nearly_base64)
@example("=")
@example("A===")
@example("AA=A")
@example("\ud800AAA")
def test_a_base64_text_is_taken_exactly_where_the_grammar_takes_it(text: str) -> None:
    for decode, encode, grammar, reason in (
        (encoding.decode_base64, encoding.encode_base64, STANDARD, "not-base64"),
        (encoding.decode_base64url, encoding.encode_base64url, URL_SAFE, "not-base64url"),
    ):
        data, why = refused(lambda decode=decode: decode(text))  # type: ignore[misc]
        assert bool(grammar.fullmatch(text)) == (why == "")
        assert why in {"", reason, "bad-padding", "non-canonical"}
        if isinstance(data, bytes):
            assert encode(data) == text


@given(st.binary(max_size=300), st.none() | texts.filter(bool))
def test_an_envelope_opens_to_what_was_sealed(plaintext: bytes, passcode: str | None) -> None:
    assert envelope.open(KEY, envelope.seal(KEY, plaintext, passcode), passcode) == plaintext


@given(st.lists(st.integers(0, 50) | st.integers(60_000, 70_000), max_size=5))
@settings(max_examples=50)
def test_how_a_plaintext_is_cut_does_not_show(sizes: list[int]) -> None:
    pieces = [bytes([index]) * size for index, size in enumerate(sizes)]
    salt, iv = bytes(16), bytes(12)
    whole = envelope.seal(KEY, b"".join(pieces), salt=salt, iv=iv)
    out, collected = bytearray(b"before:"), list[bytes]()
    envelope.seal_chunks(KEY, pieces, salt=salt, iv=iv, out=out)
    envelope.seal_chunks(KEY, map(memoryview, pieces), salt=salt, iv=iv, out=collected.append)
    assert out == b"before:" + whole.encode()
    assert b"".join(collected).decode() == whole


@given(
    st.binary(max_size=120) | st.binary(min_size=44, max_size=60), st.none() | texts.filter(bool)
)
def test_junk_is_no_envelope(junk: bytes, passcode: str | None) -> None:
    with pytest.raises(EnvelopeError) as caught:
        envelope.open(KEY, encoding.encode_base64(junk), passcode)
    assert caught.value.reason == ("too-short" if len(junk) < 44 else "wrong-key")


@given(st.integers(0, 79), st.integers(0, 7))
def test_no_bit_of_an_envelope_can_be_changed(index: int, bit: int) -> None:
    raw = bytearray(base64.b64decode(envelope.seal(KEY, bytes(36), "passcode")))
    raw[index] ^= 1 << bit
    with pytest.raises(EnvelopeError, match="does not open"):
        envelope.open(KEY, encoding.encode_base64(raw), "passcode")


@given(st.binary(max_size=200))
def test_a_box_opens_to_what_was_sealed(payload: bytes) -> None:
    blob = sealed_box.seal(PAIR.public_key, payload)
    assert sealed_box.open(PAIR, blob) == payload
    assert len(base64.b64decode(blob)) == sealed_box.MINIMUM_SIZE + len(payload)


@given(st.integers(0, 141), st.integers(0, 7))
@settings(max_examples=200)
def test_no_bit_of_a_box_can_be_changed(index: int, bit: int) -> None:
    raw = bytearray(base64.b64decode(sealed_box.seal(PAIR.public_key, bytes(32))))
    raw[index] ^= 1 << bit
    with pytest.raises((BoxError, PointError)):
        sealed_box.open(PAIR, encoding.encode_base64(raw))


@given(
    st.binary(max_size=160)
    | st.binary(min_size=110, max_size=160).map(lambda junk: b"\x01\x04" + junk)
)
def test_junk_is_no_box(junk: bytes) -> None:
    with pytest.raises((BoxError, PointError)):
        sealed_box.open(PAIR, encoding.encode_base64(junk))


@given(st.binary(max_size=70))
def test_junk_is_no_point(junk: bytes) -> None:
    with pytest.raises(PointError):
        keys.public_key(junk)


@given(st.binary(min_size=32, max_size=32))
def test_a_fragment_gives_its_key_and_one_key_has_one_fragment(key: bytes) -> None:
    fragment = link.encode_fragment(key)
    assert len(fragment) == 44
    assert link.decode_fragment(fragment) == link.decode_fragment("#" + fragment) == key


@given(st.text() | st.text("1AB#=_-", min_size=40, max_size=46))
def test_a_fragment_is_refused_or_written_again_as_it_was(text: str) -> None:
    key, why = refused(lambda: link.decode_fragment(text))
    if isinstance(key, bytes):
        assert link.encode_fragment(key) == text.removeprefix("#")
    else:
        assert why == ("missing-key" if text in ("", "#") else "malformed-key")


@given(texts.filter(lambda code: code not in ("", ".", "..")))
def test_a_short_code_is_one_segment_of_a_link(short_code: str) -> None:
    from urllib.parse import unquote, urlsplit

    parts = urlsplit(link.share_link("https://share.example/x/", short_code, KEY))
    assert parts.path.count("/") == 2
    assert unquote(parts.path.rpartition("/")[2], errors="strict") == short_code
    assert (parts.netloc, parts.query) == ("share.example", "")
    assert link.decode_fragment(parts.fragment) == KEY


@given(some_fields())
def test_fields_are_read_as_they_were_written(array: list[fields.Field]) -> None:
    data = fields.dump(array)
    loaded = fields.load(data)
    assert loaded == array
    assert fields.dump(loaded) == data
    assert [field.members() for field in loaded] == json.loads(data)


@given(texts)
def test_a_value_is_escaped_as_a_browser_does_it(text: str) -> None:
    expected = json.dumps(text, ensure_ascii=False)[1:-1].encode()
    assert b"".join(encoding.escaped(text)) == expected
    assert b"".join(encoding.escaped(Secret(text))) == expected
    assert b"".join(encoding.escaped(Secret(text.encode()))) == expected


@given(st.binary(max_size=40), st.integers(0, 5))
@example(b"\xc3a", 0)
@example(b"\xc3aaaa", 0)
@example("é".encode(), 0)
def test_bytes_that_are_not_utf8_are_refused_wherever_they_are_cut(junk: bytes, size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoding, "SLICE", size + 1)
        try:
            text = junk.decode()
        except UnicodeDecodeError:
            with pytest.raises(FieldError, match="not UTF-8"):
                list(encoding.escaped(Secret(junk)))
        else:
            assert (
                b"".join(encoding.escaped(Secret(junk)))
                == json.dumps(text, ensure_ascii=False)[1:-1].encode()
            )


@given(texts, st.integers(1, 7))
def test_text_cut_anywhere_is_escaped_the_same(text: str, size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoding, "SLICE", size)
        expected = json.dumps(text, ensure_ascii=False)[1:-1].encode()
        assert (
            b"".join(encoding.escaped(text))
            == b"".join(encoding.escaped(Secret(text.encode())))
            == expected
        )


@given(json_values)
def test_json_is_written_as_the_standard_library_would_read_it(value: Any) -> None:
    text = jsontext.dumps(value)
    assert json.loads(text) == value
    assert jsontext.dumps(jsontext.loads(text.encode())) == text


@given(
    st.binary()
    | st.text('[]{}",:\\u0dDcb8eE+-.1truefalsnN ').map(str.encode)
    | json_values.map(repr).map(lambda text: text.encode("utf-8", "surrogatepass"))
)
def test_junk_is_loaded_or_refused_and_never_crashes(junk: bytes) -> None:
    for load in (jsontext.loads, fields.load):
        _, why = refused(lambda load=load: load(junk))  # type: ignore[misc]
        assert re.fullmatch(r"[a-z0-9-]+", why) or why == ""


@given(texts.filter(bool), texts.filter(bool))
def test_passcodes_that_differ_have_verifiers_that_differ(one: str, other: str) -> None:
    assert (tokens.passcode_verifier(one) == tokens.passcode_verifier(other)) == (one == other)
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", tokens.passcode_verifier(one))


def test_randomness_is_fresh_each_time() -> None:
    sealed = {envelope.seal(KEY, b"same") for _ in range(50)} | {
        sealed_box.seal(PAIR.public_key, b"same") for _ in range(50)
    }
    assert len(sealed) == 100
