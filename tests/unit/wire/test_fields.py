"""Fields: what is given is what is got, what is written is what a browser writes."""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Iterator
from typing import Any

import pytest

from sealpipe.errors import FieldError, PayloadTooLargeError
from sealpipe.secret import Secret
from sealpipe.wire import fields, jsontext
from sealpipe.wire.fields import Field


def test_a_field_keeps_what_it_was_given() -> None:
    secret = Secret(b"s3cret")
    field = Field("Password", secret, type="password")
    assert (field.key, field.value, field.type) == ("Password", secret, "password")
    assert field.value is secret
    assert Field("Password", "s3cret", type="password").value == "s3cret"


@pytest.mark.parametrize("value", ["s3cret", Secret("s3cret"), Secret(b"s3cret"), ""])
def test_a_field_of_one_line_is_a_password(value: str | Secret) -> None:
    assert Field("k", value).type == "password"


@pytest.mark.parametrize("value", ["a\nb", Secret("a\nb"), Secret(b"a\nb"), "\n"])
def test_a_field_of_several_lines_is_multiline(value: str | Secret) -> None:
    assert Field("k", value).type == "multiline"
    assert Field("k", value, type="text").type == "text"


def test_the_types_of_the_specification_are_known() -> None:
    assert set(fields.TYPES) == {
        "text",
        "password",
        "date",
        "multiline",
        "markdown",
        "source_code",
        "url",
        "qr",
    }


@pytest.mark.parametrize(
    ("kind", "meant"),
    [("pasword", "password"), ("Password", "password"), ("source", "source_code"), ("s3cret", "")],
)
def test_an_unknown_type_is_a_warning_at_the_line_that_gives_it(kind: str, meant: str) -> None:
    with pytest.warns(UserWarning, match="unknown field type") as caught:
        field = Field("Password", "s3cret", type=kind)
    (warning,) = caught
    assert field.type == kind, "a newer page may know it"
    assert warning.filename == __file__
    assert ("did you mean " + meant if meant else "known types: text, password") in str(
        warning.message
    )
    assert "s3cret" not in str(warning.message), "the arguments may be mixed up"


def test_a_type_that_comes_from_elsewhere_warns_nobody() -> None:
    data = b'[{"key":"Code","value":"x","type":"otp"}]'
    (field,) = fields.load(data)
    hidden = fields.hidden(field)
    assert (field.type, hidden.type, hidden.value) == ("otp", "otp", Secret("x"))
    assert fields.dump([hidden]) == data


def test_members_are_written_in_the_usual_order() -> None:
    field = Field(
        "Code",
        "x",
        "source_code",
        filename="a.py",
        language="python",
        extra={"x_extra": {"kept": True}},
    )
    assert fields.dump([field]) == (
        b'[{"key":"Code","value":"x","type":"source_code","selectedProgrammingLanguage":"python",'
        b'"filename":"a.py","x_extra":{"kept":true}}]'
    )


def test_members_are_written_in_the_order_in_which_they_were_read() -> None:
    data = (
        b'[{"x":1,"filename":"f","type":"text","y":[],"value":"v","key":"k",'
        b'"selectedProgrammingLanguage":"l"}]'
    )
    (field,) = fields.load(data)
    assert (field.language, field.filename, dict(field.extra)) == ("l", "f", {"x": 1, "y": []})
    assert fields.dump([field]) == data
    changed = dataclasses.replace(field, value="w", filename=None)
    assert fields.dump([changed]) == data.replace(b'"v"', b'"w"').replace(b'"filename":"f",', b"")


def test_control_characters_are_escaped_as_a_browser_escapes_them() -> None:
    assert fields.dump([Field('"\\/\b\f\n\r\t\x00\x1f\x7f\u2028é🐎', "")]).decode() == (
        '[{"key":"\\"\\\\/\\b\\f\\n\\r\\t\\u0000\\u001f\x7f\u2028é🐎","value":"","type":"password"}]'
    )


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"key": 1}, "bad-key"),
        ({"key": None}, "bad-key"),
        ({"key": b"k"}, "bad-key"),
        ({"key": "\ud800"}, "lone-surrogate"),
        ({"value": b"v"}, "bad-value"),
        ({"value": 7}, "bad-value"),
        ({"value": None}, "bad-value"),
        ({"type": 1}, "bad-type"),
        ({"type": "\udfff"}, "lone-surrogate"),
        ({"language": 1}, "bad-language"),
        ({"filename": ["f"]}, "bad-filename"),
        ({"extra": {"key": "other"}}, "duplicate-member"),
        ({"filename": "f", "extra": {"filename": "g"}}, "duplicate-member"),
    ],
)
def test_a_field_that_cannot_be_one_is_refused_when_it_is_made(
    arguments: dict[str, Any], reason: str
) -> None:
    with pytest.raises(FieldError) as caught:
        Field(**{"key": "k", "value": "v", **arguments})
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    ("field", "reason"),
    [
        (Field("k", "a\ud800"), "lone-surrogate"),
        (Field("k", Secret("a\udc00"), type="password"), "lone-surrogate"),
        (Field("k", Secret(b"\xed\xa0\x80")), "not-utf8"),
        (Field("k", Secret(b"\xff")), "not-utf8"),
        (Field("k", Secret("é".encode()[:1])), "not-utf8"),
        (Field("k", "v", extra={"x": float("nan")}), "not-finite"),
        (Field("k", "v", extra={"x": [float("-inf")]}), "not-finite"),
        (Field("k", "v", extra={"x": {1: 2}}), "not-a-json-value"),
        (Field("k", "v", extra={"x": b"bytes"}), "not-a-json-value"),
        (Field("k", "v", extra={"x": Secret("s")}), "not-a-json-value"),
        (Field("k", "v", extra={"x": 1 << 5000}), "not-a-json-value"),
        (Field("k", "v", extra={"x": "\ud800"}), "lone-surrogate"),
        (Field("k", "v", extra={"\ud800": 1}), "lone-surrogate"),
    ],
)
def test_what_json_cannot_hold_is_refused_when_it_is_written(field: Field, reason: str) -> None:
    with pytest.raises(FieldError) as caught:
        fields.dump([field])
    assert caught.value.reason == reason


def test_what_was_refused_for_its_depth_on_reading_is_refused_on_writing() -> None:
    loop: list[object] = []
    loop.append(loop)
    for levels, fits in ((98, True), (99, False)):
        nested: object = 1
        for _ in range(levels):
            nested = [nested]
        text = json.dumps(
            [{"key": "k", "value": "v", "type": "text", "x": nested}], separators=(",", ":")
        ).encode()
        if fits:
            assert fields.dump([Field("k", "v", "text", extra={"x": nested})]) == text
            assert fields.dump(fields.load(text)) == text
            continue
        for call in (
            lambda: fields.load(text),  # noqa: B023
            lambda: fields.dump([Field("k", "v", extra={"x": nested})]),  # noqa: B023
        ):
            with pytest.raises(FieldError) as caught:
                call()
            assert caught.value.reason == "too-deep"
    with pytest.raises(FieldError) as caught:
        fields.dump([Field("k", "v", extra={"x": loop})])
    assert caught.value.reason == "too-deep"


@pytest.mark.parametrize("size", [65_535, 65_536, 65_537, 131_072, 200_000])
@pytest.mark.parametrize("unit", ["a", "é", "中", "🐎", '"', "\x01", "\n"])
def test_a_large_value_is_the_same_in_slices(size: int, unit: str) -> None:
    text = "x" + unit * (size // len(unit.encode()))
    expected = json.dumps(
        [{"key": "k", "value": text, "type": "text"}], ensure_ascii=False, separators=(",", ":")
    )
    for value in (text, Secret(text), Secret(text.encode())):
        assert fields.dump([Field("k", value, type="text")]) == expected.encode()


def test_many_small_fields_come_in_few_chunks_and_in_order() -> None:
    array = [Field(f"k{index}", "v" * (index % 4000), type="text") for index in range(300)]
    array.insert(150, Field("large", "w" * 40_000, type="text"))
    pieces = list(fields.chunks(array))
    assert fields.load(b"".join(pieces)) == array
    assert len(pieces) < 30
    assert all(0 < len(piece) <= 65_536 for piece in pieces)


def test_the_limit_is_on_the_whole_plaintext() -> None:
    frame = len(fields.dump([Field("k", "", type="text")]))
    fits = Field("k", "v" * (fields.PLAINTEXT_LIMIT - frame), type="text")
    assert len(fields.dump([fits])) == fields.PLAINTEXT_LIMIT == 16 * 1024 * 1024
    with pytest.raises(PayloadTooLargeError):
        fields.dump([dataclasses.replace(fits, key="kk")])


def test_the_limit_stops_the_work_as_soon_as_it_is_passed() -> None:
    asked = 0

    def endless() -> Iterator[Field]:
        nonlocal asked
        while True:
            asked += 1
            yield Field("k", "\x00" * 1_000_000, type="text")

    with pytest.raises(PayloadTooLargeError):
        for _ in fields.chunks(endless()):
            pass
    assert asked == 3  # six bytes for each control character


def test_a_value_is_in_no_repr_and_survives_a_copy() -> None:
    field = Field("Password", "s3cret", filename="f", extra={"x": "s3cret"})
    assert (
        repr(field)
        == str(field)
        == "Field('Password', ..., type='password', filename='f', extra=...)"
    )
    assert copy.deepcopy(field) == copy.copy(field) == field
    assert field != Field("Password", "other", filename="f", extra={"x": "s3cret"})


def test_a_field_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Field("k", "v").value = "w"  # type: ignore[misc]


@pytest.mark.parametrize(
    "text", ["1.0", "1e3", "-0", "-0.0", "1E400", "0.10", "1e-7", "123456789012345678901234567890"]
)
def test_a_number_keeps_its_spelling(text: str) -> None:
    number = jsontext.loads(text.encode())
    assert isinstance(number, int | float)
    assert jsontext.dumps(number) == text
    assert copy.deepcopy(number) == number
    assert jsontext.dumps(copy.deepcopy(number)) == text


def test_a_number_longer_than_python_reads_is_kept() -> None:
    text = "9" * 50_000
    number = jsontext.loads(text.encode())
    assert isinstance(number, jsontext.Number)
    assert jsontext.dumps(number) == text


def test_a_float_is_written_as_a_browser_writes_it() -> None:
    assert jsontext.dumps([1.0, 1e21, 1e20, 1e-6, 1e-7, -0.0, 1.5e300, 0.1]) == (
        "[1,1e+21,100000000000000000000,0.000001,1e-7,0,1.5e+300,0.1]"
    )
