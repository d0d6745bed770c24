"""Printing and reading are each other's inverse, and junk is refused in one way only."""

from __future__ import annotations

import os
from collections.abc import Callable
from string import ascii_lowercase

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sealpipe.errors import ReferenceSyntaxError
from sealpipe.plugin import Document
from sealpipe.reference import (
    ENCODINGS,
    Everything,
    FieldSpec,
    Key,
    Pointer,
    Reference,
    parse,
    parse_field,
    parse_target,
)
from sealpipe.sources.select import select_values

# Text of few characters, so that those which mean something meet often; `%` before digits too.
_ALPHABET = '%?#&=,*/"\\~:. -ab0125CFé𝄞\u2028'
_text = st.text(_ALPHABET, max_size=8)
_some = st.text(_ALPHABET, min_size=1, max_size=6)
_OTHERS = str.maketrans(ascii_lowercase, ascii_lowercase[13:] + ascii_lowercase[:13])
_names = st.sampled_from(["env", "vault", "k8s", "prod-vault.eu_1", "Ab"])
_keys = st.sampled_from(["x", "version", "X-1.a_b"])


CASES = int(os.environ.get("SEALPIPE_TESTS_CASES", "2000"))
"""Of all properties here together; the endurance run has ten times as many."""


def cases(share: float) -> settings:
    """So much of the examples, however long each of them takes."""
    return settings(
        max_examples=int(CASES * share), deadline=None, suppress_health_check=list(HealthCheck)
    )


_core = st.fixed_dictionaries(
    {},
    optional={
        "decode": st.sampled_from(ENCODINGS),
        "encode": st.sampled_from(ENCODINGS),
        "trim": st.sampled_from(["0", "1"]),
        "optional": st.just("1"),
        "format": st.sampled_from(["json", "yaml", "dotenv"]),
        "type": st.sampled_from(["text", "source_code"]),
    },
)
_params = st.builds(
    lambda core, own: tuple({**core, **own}.items()),
    _core,
    st.dictionaries(_keys, _text, max_size=3),
)
_labels = st.none() | _some
_items = (
    st.just(Everything())
    | st.builds(Key, _text, _labels)
    | st.builds(Pointer, st.lists(_text, min_size=1, max_size=3).map(tuple), _labels)
)
_selectors = st.none() | st.lists(_items, min_size=1, max_size=3).map(tuple)
references = st.builds(Reference, _names, _text, _params, _selectors)


@st.composite
def specs(draw: st.DrawFn) -> FieldSpec:
    """Field specs of every kind."""
    ref = draw(references)
    try:
        return FieldSpec(draw(_labels), ref)
    except ReferenceSyntaxError:
        return FieldSpec(None, ref)


@cases(0.3)
@given(specs())
def test_every_value_reads_back_as_itself(spec: FieldSpec) -> None:
    assert parse(str(spec.ref)) == spec.ref
    assert parse_field(str(spec)) == spec


_pieces = st.sampled_from(
    [
        "env",
        "vault",
        ":",
        "//",
        "?",
        "#",
        "&",
        "=",
        ",",
        "*",
        "/",
        '"',
        "\\",
        "%",
        "%25",
        "%3F",
        "%2C",
        "~",
        "~0",
        "trim=1",
        "x=1",
        "type=text",
        "decode=hex",
        "encode=hex",
        "key",
        "Label",
        " ",
        "\n",
        "\x00",
        "\udc80",
        "é",
    ]
)


@cases(0.5)
@given(
    st.sampled_from(["", "env:", "L=env:a?", "vault:b#"]),
    st.lists(_pieces, max_size=12).map("".join),
)
def test_what_reads_prints_one_canonical_text(start: str, text: str) -> None:
    try:
        spec = parse_field(start + text)
    except ReferenceSyntaxError:
        return
    canonical = str(spec)
    assert parse_field(canonical) == spec
    assert str(parse_field(canonical)) == canonical


@cases(0.5)
@given(st.binary(min_size=1, max_size=300), st.sampled_from(ENCODINGS))
def test_what_is_encoded_is_decoded_to_the_same_bytes(data: bytes, how: str) -> None:
    (value,) = select_values(Document(data), parse(f"file:x?encode={how}"))
    text = value.data
    assert isinstance(text, bytes)
    assert text.isascii()
    assert set(text).isdisjoint(b" \r\n=" if how == "base64url" else b" \r\n")
    (back,) = select_values(Document(text), parse(f"file:x?decode={how}"))
    assert back.data == data


@cases(0.2)
@given(
    st.text(st.characters(codec=None), max_size=30)
    | st.builds("env:{}".format, st.text(max_size=30))
)
def test_junk_is_refused_and_nothing_else_happens(text: str) -> None:
    name, colon, secret = text.partition(":")
    for read in (parse_field, parse, parse_target):
        told = refusal(read, text)
        # hypothesis draws words of our sentences, too: those stand there whatever the text is.
        assert (
            len(secret) < 9
            or secret not in told
            or secret in refusal(read, f"{name}{colon}{secret.translate(_OTHERS)}")
        )


def refusal(read: Callable[[str], object], text: str) -> str:
    try:
        read(text)
    except ReferenceSyntaxError as error:
        return f"{error.message} {error.remedy}"
    return ""
