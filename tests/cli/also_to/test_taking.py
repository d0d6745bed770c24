"""What a target takes out of fields: exactly the values, or a word about why not that shows none of
them.
"""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealpipe.errors import ReferenceValueError, UsageError
from sealpipe.prompts import Prompt
from sealpipe.reference import Key, Reference
from sealpipe.secret import Secret
from sealpipe.sinks.targets import SHARE, MisfitError, map_keys, parse_targets, select_values
from sealpipe.sinks.write import plan_share_writes
from sealpipe.wire.fields import Field

LABELS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=6)
VALUES = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


def stored(text: str, *fields: tuple[str, str]) -> dict[str, bytes]:
    (target,) = parse_targets([text])
    found = [Field(label, Secret(value)) for label, value in fields]
    taken = select_values(
        target, map_keys(target, [Prompt("pw", "Password"), Prompt("who", "User")]), found
    )
    return {each.key: each.value.reveal_bytes() for each in taken}


BOTH = ("Password", " s3cret\n"), ("User", "bob")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("vault:a#pw", {"pw": b" s3cret\n"}),
        ("vault:a?trim=1#pw", {"pw": b"s3cret"}),
        ("vault:a#*", {"pw": b" s3cret\n", "who": b"bob"}),
        ("vault:a?trim=1#k=who,l=pw", {"k": b"bob", "l": b"s3cret"}),
    ],
)
def test_values_are_taken_as_they_are_unless_the_target_says_otherwise(
    text: str, expected: dict[str, bytes]
) -> None:
    assert stored(text, *BOTH) == expected


@pytest.mark.parametrize("how", ["base64", "base64url", "hex"])
@given(value=st.binary(min_size=1, max_size=30))
def test_an_encoded_answer_is_stored_decoded_byte_for_byte(how: str, value: bytes) -> None:
    encode = {
        "base64": lambda data: base64.b64encode(data).decode(),
        "base64url": lambda data: base64.urlsafe_b64encode(data).decode(),
        "hex": bytes.hex,
    }[how]
    assert stored(f"vault:a?decode={how}#pw", ("Password", encode(value))) == {"pw": value}


def test_what_is_missing_or_empty_is_left_out_where_that_is_allowed() -> None:
    assert stored("vault:a?optional=1#*", ("User", "bob")) == {"who": b"bob"}
    assert stored("vault:a?optional=1#*", ("User", "bob"), ("Password", "")) == {"who": b"bob"}
    assert stored("vault:a?optional=1&trim=1#pw", ("Password", " \n")) == {}


@pytest.mark.parametrize(
    ("text", "fields", "words"),
    [
        ("vault:a#pw", [("User", "canary")], "it has no value for pw"),
        ("vault:a#pw", [("Password", "")], "its value for pw is empty"),
        ("vault:a?trim=1#pw", [("Password", "  ")], "its value for pw is empty"),
        ("vault:a?decode=hex#pw", [("Password", "canary!")], "its value for pw is not hex"),
        (
            "vault:a#pw",
            [("Password", "canary1"), ("Password", "canary2")],
            "it fills in pw several times",
        ),
        (
            "vault:a?optional=1#pw",
            [("Password", "canary1"), ("Password", "canary2")],
            "it fills in pw several times",
        ),
    ],
)
def test_a_mismatch_is_reported_without_its_value(
    text: str, fields: list[tuple[str, str]], words: str
) -> None:
    with pytest.raises(MisfitError, match=words) as caught:
        stored(text, *fields)
    assert "canary" not in str(caught.value)


def test_the_same_answer_twice_is_one() -> None:
    assert stored("vault:a#pw", ("Password", "x"), ("Password", "x")) == {"pw": b"x"}


def test_without_the_prompts_a_single_field_is_the_answer() -> None:
    (target,) = parse_targets(["file:a"])
    (only,) = select_values(target, map_keys(target, None), [Field("anything", Secret("x"))])
    assert (only.key, only.value.reveal()) == ("", "x")
    with pytest.raises(MisfitError, match="it has 2 fields, but the target accepts one"):
        select_values(
            target, map_keys(target, None), [Field("a", Secret("x")), Field("b", Secret("y"))]
        )


@given(st.dictionaries(LABELS, VALUES.filter(bool), min_size=1, max_size=4))
def test_every_field_of_a_share_is_stored_under_its_label(values: dict[str, str]) -> None:
    fields = [Field(label, Secret(value)) for label, value in values.items()]
    (write,) = plan_share_writes(parse_targets(["vault:a#*"]), fields)
    assert {each.key: each.value.reveal() for each in write.fields} == values


@given(
    st.lists(st.tuples(LABELS, VALUES), min_size=1, max_size=4),
    st.lists(LABELS, min_size=1, max_size=3),
)
def test_any_fields_and_any_target_store_a_label_s_own_value_or_are_refused(
    rows: list[tuple[str, str]], names: list[str]
) -> None:
    fields = [Field(label, Secret(value)) for label, value in rows]
    several = [name for name in names if len({value for label, value in rows if label == name}) > 1]
    absent = [name for name in names if name not in dict(rows) or (name, "") in rows]
    items = tuple(Key(name, f"k{number}") for number, name in enumerate(names))
    try:
        found = plan_share_writes(parse_targets([Reference("vault", "a", (), items)]), fields)
    except (UsageError, ReferenceValueError):
        assert several or absent
        return
    assert not several
    assert not absent
    (write,) = found
    assert [(each.key, each.value.reveal()) for each in write.fields] == [
        (f"k{number}", dict(rows)[name]) for number, name in enumerate(names)
    ]


def test_targets_in_one_place_are_one_parcel_and_must_agree() -> None:
    fields = [Field("a", Secret("1")), Field("b", Secret("2"))]
    (write,) = plan_share_writes(
        parse_targets(["vault:x?mode=merge#A=a", "vault:x?mode=merge#B=b"]), fields
    )
    assert (write.keys, write.mode) == (("A", "B"), "merge")
    for texts in (
        ["vault:x#A=a", "vault:x#A=b"],
        ["vault:x#A=a", "vault:x?mode=merge#B=b"],
        ["vault:x?optional=1#A=a", "vault:x?trim=1#A=a"],
    ):
        with pytest.raises(UsageError, match="two targets contradict each other about vault:x"):
            plan_share_writes(parse_targets(texts), fields)
    with pytest.raises(UsageError, match="contradict"):
        plan_share_writes(parse_targets(["vault:x", "vault:x#A=a"]), fields[:1])


def test_an_optional_target_of_a_share_lacks_what_fell_away_and_takes_the_rest() -> None:
    fields = [Field("User", Secret("bob"))]
    (write,) = plan_share_writes(
        parse_targets(["vault:x?optional=1#password=Password,user=User"]), fields
    )
    assert write.keys == ("user",)
    assert plan_share_writes(parse_targets(["vault:x?optional=1#password=Password"]), fields) == ()
    with pytest.raises(UsageError, match="the share has no field 'Password'"):
        plan_share_writes(parse_targets(["vault:x#password=Password"]), fields)


@pytest.mark.parametrize(
    ("text", "values", "words"),
    [
        (
            "vault:x#k=a",
            [("a", "1"), ("a", "2")],
            "the share has the field a several times, with different values",
        ),
        ("vault:x#k=a", [("a", "")], "the field a is empty"),
        ("vault:x?decode=hex#k=a", [("a", "xyz")], "the field a is not hex"),
    ],
)
def test_a_mismatching_field_is_named_by_its_label(
    text: str, values: list[tuple[str, str]], words: str
) -> None:
    with pytest.raises(ReferenceValueError, match=words):
        plan_share_writes(
            parse_targets([text]), [Field(label, Secret(value)) for label, value in values]
        )


@pytest.mark.parametrize("text", ["vault:x", "vault:x#nobody", "vault:x?decode=hex#*"])
def test_a_hostile_label_never_reaches_a_message_as_it_is(text: str) -> None:
    fields = [
        Field("\x1b]0;x\x07\n::add-mask::\u202e" + "y" * 300, Secret("zz")),
        Field("\r", Secret("zz")),
    ]
    with pytest.raises((UsageError, ReferenceValueError)) as caught:
        plan_share_writes(parse_targets([text]), fields)
    told = caught.value.message + caught.value.remedy
    assert told.isprintable()
    assert len(told) < 500
    assert SHARE.part in told.lower()
