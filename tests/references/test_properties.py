"""Printing and reading are each other's inverse, and junk is refused in one way only."""

from __future__ import annotations

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from sealpipe.errors import InvalidReference
from sealpipe.reference import (
    Everything,
    FieldSpec,
    Key,
    Pointer,
    Reference,
    parse,
    parse_field,
    parse_target,
)

CASES = 10_000  # four properties: 40,000 in all

_fast = settings(max_examples=CASES, deadline=None, suppress_health_check=list(HealthCheck))

_special = st.sampled_from(list('%?#&=,*/"\\~:. ') + ["%25", "%2C", "%3", "//", "~1", "a:", "ab:", "env:", "é", "𝄞"])
_plain = st.characters(exclude_categories=("Cc", "Cs"))
_text = st.lists(_special | _plain, max_size=8).map("".join)
_some = st.lists(_special | _plain, min_size=1, max_size=6).map("".join)
_names = st.from_regex(r"[A-Za-z][A-Za-z0-9._-]{1,8}", fullmatch=True)
_keys = st.from_regex(r"x[A-Za-z0-9._-]{0,5}", fullmatch=True)

_core = st.fixed_dictionaries(
    {},
    optional={
        "decode": st.sampled_from(["base64", "base64url", "hex"]),
        "trim": st.sampled_from(["0", "1"]),
        "optional": st.just("1"),
        "format": st.sampled_from(["json", "yaml", "dotenv"]),
        "type": st.sampled_from(["text", "source_code"]),
    },
)
_params = st.builds(lambda core, own: tuple({**core, **own}.items()), _core, st.dictionaries(_keys, _text, max_size=3))
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
    except InvalidReference:
        return FieldSpec(None, ref)


@_fast
@given(references)
def test_every_reference_reads_back_as_itself(ref: Reference) -> None:
    assert parse(str(ref)) == ref


@_fast
@given(specs())
def test_every_field_reads_back_as_itself(spec: FieldSpec) -> None:
    assert parse_field(str(spec)) == spec


_pieces = st.sampled_from(
    ["env", "vault", ":", "//", "?", "#", "&", "=", ",", "*", "/", '"', "\\", "%", "%25", "%3F", "%2C", "~", "~0"]
    + ["trim=1", "x=1", "type=text", "decode=hex", "key", "Label", " ", "\n", "\x00", "\udc80", "é"]
)


@_fast
@given(st.lists(_pieces, max_size=14).map("".join))
def test_what_reads_prints_one_canonical_text(text: str) -> None:
    try:
        spec = parse_field(text)
    except InvalidReference:
        return
    canonical = str(spec)
    assert parse_field(canonical) == spec
    assert str(parse_field(canonical)) == canonical


@_fast
@given(st.text(st.characters(codec=None), max_size=30) | st.builds("env:{}".format, st.text(max_size=30)))
def test_junk_is_refused_and_nothing_else_happens(text: str) -> None:
    for read in (parse_field, parse, parse_target):
        try:
            read(text)
        except InvalidReference as error:
            told = f"{error.message} {error.remedy}"
        else:
            continue
        secret = text.partition(":")[2]
        assume(len(secret) > 8)
        assert secret not in told
