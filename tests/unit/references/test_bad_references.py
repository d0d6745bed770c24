"""References with one fault each: the reason is told, the text is not."""

from __future__ import annotations

import pytest

from sealpipe.errors import ReferenceSyntaxError
from sealpipe.reference import FieldSpec, Key, Pointer, Reference, parse_field

PASTED = "hunter2-Canary"

# text (with the pasted canary in it), a part of the reason
BAD = [
    ("", "is empty where a reference is required"),
    ("Label=", "is empty where a reference is required"),
    (f"{PASTED}", "does not start with a name and a colon"),
    (f"Password={PASTED}", "what follows the first = is not a reference"),
    (f"{PASTED}==", "what follows the first = is not a reference"),
    (f"C:\\{PASTED}", "a single letter before : is not a name"),
    (f"L=C:\\{PASTED}", "a single letter before : is not a name"),
    (f":{PASTED}", "does not start with a name and a colon"),
    (f"1env:{PASTED}", "does not start with a name and a colon"),
    (f"en v:{PASTED}", "does not start with a name and a colon"),
    (f"=env:{PASTED}", "the label before = is empty"),
    (f'""=env:{PASTED}', "the label before = is empty"),
    (f'"{PASTED}', "the quotes of the label are not closed"),
    (f'"{PASTED}"', "the quoted label is not followed by ="),
    (f'"a"b=env:{PASTED}', "the quoted label is not followed by ="),
    (f'"\\n"=env:{PASTED}', "lone \\ between the quotes"),
    (f'a"b=env:{PASTED}', 'there is a " in the label'),
    (f"a\tb=env:{PASTED}", "control character (U+0009) in the label"),
    (f"a\udc80b=env:{PASTED}", "the label is not UTF-8"),
    (f"env:{PASTED}\n", "control character (U+000A) in the body"),
    (f"env:{PASTED}\x7f", "control character (U+007F) in the body"),
    (f"env:{PASTED}\x85", "control character (U+0085) in the body"),
    (f"env:{PASTED}\udcff", "the body is not UTF-8"),
    (f"env:{PASTED}%", "a % in the body that is not an escape"),
    (f"env:{PASTED}%2", "a % in the body that is not an escape"),
    (f"env:{PASTED}%0A", "a % in the body that is not an escape"),
    (f"env:{PASTED}%20", "a % in the body that is not an escape"),
    (f"env:{PASTED}%2F", "a % in the body that is not an escape"),
    (f"env:{PASTED}%26", "a % in the body that is not an escape"),
    (f"env:{PASTED}?", "parameter 1 has no ="),
    (f"env:A?{PASTED}", "parameter 1 has no ="),
    (f"env:A?trim=1&{PASTED}", "parameter 2 has no ="),
    ("env:A?trim=1&", "parameter 2 has no ="),
    (f"env:A?={PASTED}", "parameter 1 has an invalid name"),
    (f"env:A?a b={PASTED}", "parameter 1 has an invalid name"),
    (f"env:A?x={PASTED}?y=1", "there is a ? in parameter 1"),
    (f"env:A?x={PASTED}%zz", "a % in parameter 1 that is not an escape"),
    (f"env:A?x={PASTED}\x01", "control character (U+0001) in parameter 1"),
    (f"env:A?x={PASTED}&x=1", "parameter 2 is given twice"),
    ("env:A?trim=1&trim=1", "parameter trim is given twice"),
    (f"env:A?decode={PASTED}", "parameter decode has an invalid value"),
    (f"env:A?trim={PASTED}", "parameter trim has an invalid value"),
    ("env:A?optional=yes", "parameter optional has an invalid value"),
    (f"env:A?format={PASTED}", "parameter format has an invalid value"),
    (f"env:A?type={PASTED}", "parameter type has an invalid value"),
    ("env:A?type=source_code&lang=", "parameter lang has an invalid value"),
    (f"env:A?lang={PASTED}", "lang= is a hint for source code only"),
    (f"env:A?filename={PASTED}", "filename= is only for source code and Markdown"),
    (f"env:A?type=markdown&filename=../{PASTED}", "parameter filename has an invalid value"),
    ("env:A?type=markdown&filename=..", "parameter filename has an invalid value"),
    (f"env:{PASTED}#", "item 1 of the selector is empty"),
    (f"env:A#{PASTED},", "item 2 of the selector is empty"),
    (f"env:A#,{PASTED}", "item 1 of the selector is empty"),
    (f"env:A#={PASTED}", "the label in item 1 of the selector is empty"),
    (f'env:A#""={PASTED}', "the label in item 1 of the selector is empty"),
    (f"env:A#{PASTED}=", "item 1 of the selector is empty"),
    (f"env:A#a={PASTED}=b", "there is a second = in item 1"),
    (f"env:A#{PASTED}=*", "gives one label to every key"),
    (f"env:A#*{PASTED}", "begins with * or /"),
    (f"env:A#*=a,{PASTED}", "begins with * or /"),
    (f"env:A#/x={PASTED}", "begins with * or /"),
    (f"env:A#/{PASTED}/~2", "lone ~ in the JSON pointer"),
    (f"env:A#/{PASTED}~", "lone ~ in the JSON pointer"),
    (f"env:A#{PASTED}%41", "a % in item 1 of the selector"),
    (f'env:A#{PASTED}"', 'there is a " inside item 1'),
    (f'env:A#"{PASTED}', "the quotes of item 1 of the selector are not closed"),
    (f'env:A#"a"{PASTED}', "something follows the quotes in item 1"),
    (f"env:A#{PASTED}\x00", "control character (U+0000) in the selector"),
    (f"L=env:A#{PASTED},b", "one label is given for several fields"),
    (f"{PASTED}=env:A#*", "one label is given for several fields"),
    (f"L=env:A#M={PASTED}", "one before the reference and one in the selector"),
]


@pytest.mark.parametrize(("text", "reason"), BAD)
def test_a_bad_reference_is_refused_for_its_one_fault(text: str, reason: str) -> None:
    with pytest.raises(ReferenceSyntaxError) as caught:
        parse_field(text)
    error = caught.value
    assert reason in error.message
    assert error.exit_code == 2
    assert error.remedy
    assert (
        PASTED
        not in f"{error.message} {error.remedy} {error!r} {error.__context__!r} {error.__cause__!r}"
    )


def test_of_a_text_with_a_name_only_the_name_is_shown() -> None:
    with pytest.raises(ReferenceSyntaxError, match=r"^postgres: there is a %") as caught:
        parse_field("postgres://user:p%40ss@host/db")
    assert "ss@host" not in caught.value.message


def test_a_token_that_could_be_a_name_is_not_shown() -> None:
    token = "ghp" + "x" * 60
    with pytest.raises(ReferenceSyntaxError) as caught:
        parse_field(f"{token}:a%b")
    assert token not in caught.value.message


@pytest.mark.parametrize(
    "make",
    [
        lambda: Reference("e", "A"),
        lambda: Reference("env:", "A"),
        lambda: Reference("env", "A", (), ()),
        lambda: Reference("env", "A", (("a&b", ""),)),
        lambda: Reference("env", "\n"),
        lambda: Key("a\x1b"),
        lambda: Key("a", ""),
        lambda: Pointer(()),
        lambda: Pointer(("a\r",)),
        lambda: FieldSpec("", Reference("env", "A")),
    ],
)
def test_what_cannot_be_written_cannot_be_made(make: object) -> None:
    assert callable(make)
    with pytest.raises(ReferenceSyntaxError):
        make()
