"""The grammar of targets: what is written where, what may be there, and what of it is ours to
choose.
"""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealpipe.errors import ReferenceSyntaxError, UsageError
from sealpipe.prompts import Prompt
from sealpipe.reference import Everything, Key, Pointer, Reference, parse
from sealpipe.sinks.targets import (
    REQUEST,
    SHARE,
    KeyMapping,
    SinkTarget,
    escape_name,
    make_plain_name,
    map_keys,
    parse_targets,
)

PROMPTS = [Prompt("staging_password", "Staging password"), Prompt("user", "User name", "text")]
TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12)
NAMES = st.from_regex(r"[a-z][a-z0-9.-]{1,8}", fullmatch=True)
ITEMS = st.one_of(st.just(Everything()), st.builds(Key, TEXT, st.none() | TEXT))
PARAMS = st.fixed_dictionaries(
    {},
    optional={
        "mode": st.sampled_from(["create", "replace", "merge"]),
        "optional": st.sampled_from("01"),
        "trim": st.sampled_from("01"),
        "decode": st.sampled_from(["base64", "base64url", "hex"]),
        "region": TEXT,
    },
)
BODIES = TEXT.map(lambda text: text.replace("{", "{{").replace("}", "}}"))
REFERENCES = st.builds(
    lambda name, body, params,
    items: Reference(name, body, tuple(params.items()), tuple(items) or None),
    NAMES, BODIES, PARAMS, st.lists(ITEMS, max_size=3),
)  # fmt: skip


def target(text: str | Reference) -> SinkTarget:
    (found,) = parse_targets([text])
    return found


def taken(text: str) -> list[tuple[str, str | None]]:
    """Keys, and the prompts whose answers go there."""
    return [(pick.key, pick.label) for pick in map_keys(target(text), PROMPTS)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("vault:a#password=Staging password", [("password", "Staging password")]),
        ("vault:a#password=staging_password", [("password", "Staging password")]),
        ("vault:a#Staging password", [("staging_password", "Staging password")]),
        ("vault:a#user", [("user", "User name")]),
        ("vault:a#pw=staging_password,login=user",
            [("pw", "Staging password"), ("login", "User name")]),
        ("vault:a#a=user,b=user", [("a", "User name"), ("b", "User name")]),
        ("vault:a#*", [("staging_password", "Staging password"), ("user", "User name")]),
        ('vault:a#"a,b"=user', [("a,b", "User name")]),
    ],
)  # fmt: skip
def test_left_of_the_equals_is_the_key_and_right_of_it_the_prompt(
    text: str, expected: list[tuple[str, str]]
) -> None:
    assert taken(text) == expected


def test_an_id_stands_before_a_text() -> None:
    prompts = [Prompt("b", "a"), Prompt("a", "b")]
    assert map_keys(target("vault:x#k=a"), prompts) == [KeyMapping("k", "b", "a")]


@pytest.mark.parametrize(
    ("text", "words", "remedy"),
    [
        ("file:a", "accepts one value, but the request has 2", "staging_password, user"),
        ("vault:a#nobody", "has no prompt 'nobody'", "user (User name)"),
        ("vault:a#x=user,x=staging_password", "writes the key 'x' twice", "#KEY=PROMPT"),
        ("vault:a#*,user", "writes the key 'user' twice", "#KEY=PROMPT"),
        ("vault:a#user,user", "writes the key 'user' twice", "#KEY=PROMPT"),
    ],
)
def test_an_invalid_target_error_names_what_is_valid(text: str, words: str, remedy: str) -> None:
    with pytest.raises(UsageError) as caught:
        taken(text)
    assert words in caught.value.message
    assert remedy in caught.value.remedy


def test_one_prompt_needs_no_selector_and_goes_under_no_key() -> None:
    assert map_keys(target("file:a"), PROMPTS[:1]) == [
        KeyMapping("", "Staging password", "staging_password")
    ]


def test_without_the_prompts_a_name_stands_for_itself_and_all_of_them_for_nothing() -> None:
    assert map_keys(target("vault:a#k=Some text"), None) == [
        KeyMapping("k", "Some text", "Some text")
    ]
    assert map_keys(target("file:a"), None) == [KeyMapping("", None, "the submitted value")]
    with pytest.raises(UsageError, match="needs the prompts, which a short code does not contain"):
        map_keys(target("vault:a#*"), None)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("vault:a#/x", "a JSON pointer names no prompt"),
        ("vault:a#k=/x/y", "a JSON pointer names no prompt"),
        ("vault:a?type=text#x", "type= does not apply to a target"),
        ("vault:a?format=json#x", "format= does not apply to a target"),
        ("vault:a?filename=x&type=markdown#x", "does not apply to a target"),
        ("vault:a?mode=overwrite#x", "the mode is not one of create, replace, merge"),
        ("vault:a?mode=#x", "the mode is not one of"),
        ("vault:{x}#x", "unknown placeholder {x}"),
        ("vault:{submission}#x", "unknown placeholder {submission}"),
        ("vault:{#x", "is not part of a placeholder"),
        ("vault:a}#x", "is not part of a placeholder"),
    ],
)
def test_what_means_nothing_in_a_target_is_refused(text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        target(text)
    assert words in caught.value.message
    assert caught.value.remedy


@pytest.mark.parametrize(
    "text", ["vault:a?trim=2#x", "vault:a?decode=rot13#x", "vault:a?optional=yes#x", "a?mode=x"]
)
def test_a_parameter_with_a_value_that_it_does_not_take_is_no_reference(text: str) -> None:
    with pytest.raises(ReferenceSyntaxError):
        target(text)


def test_the_default_mode_is_for_those_that_name_none() -> None:
    one, other = parse_targets(["vault:a#x", "vault:b?mode=create#x"], "merge")
    assert (one.mode, other.mode) == ("merge", "create")


def test_a_mode_that_is_none_is_refused_as_default_too() -> None:
    with pytest.raises(UsageError, match="the default: the mode is not one of"):
        parse_targets(["vault:a#x"], "overwrite")  # type: ignore[arg-type]


def test_places_are_filled_and_only_those_that_the_command_knows() -> None:
    (found,) = parse_targets(
        ["dir:in/{request}/{submission}/{{x}}#*"], placeholders=("request", "submission")
    )
    assert set(found.placeholders) == {"request", "submission"}
    filled = found.fill({"request": "{submission}", "submission": "s"})
    assert filled == Reference("dir", "in/{submission}/s/{x}")


@given(REFERENCES)
def test_any_reference_is_a_target_or_refused_as_a_usage_error(ref: Reference) -> None:
    found = target(ref)
    assert found.mode == ref.param("mode", "create")
    assert target(found.text) == found, "what an outbox entry keeps of it means the same"
    filled = found.fill({})
    assert filled.body == ref.body.replace("{{", "{").replace("}}", "}")
    assert set(filled.params) == {pair for pair in ref.params if pair[0] == "region"}
    assert filled.selector is None


@given(st.text(max_size=40))
def test_any_text_is_a_target_or_refused_as_a_usage_error(text: str) -> None:
    with suppress(UsageError):
        target(text)
    with suppress(UsageError):
        target(f"vault:a?{text}")
    with suppress(UsageError):
        found = target(f"vault:a#{text}")
        assert not any(isinstance(item, Pointer) for item in found.ref.selector or ())


@given(REFERENCES, st.lists(TEXT, min_size=1, max_size=4))
def test_keys_are_ours_labels_the_others_and_no_key_is_written_twice(
    ref: Reference, labels: list[str]
) -> None:
    prompts = [Prompt(f"id{number}", label) for number, label in enumerate(labels)]
    with suppress(UsageError):
        found = map_keys(target(ref), prompts)
        keys = [pick.key for pick in found]
        assert len(set(keys)) == len(keys)
        ours = {item.label for item in ref.selector or () if isinstance(item, Key)} | {
            each.id for each in prompts
        }
        assert set(keys) <= ours | {""}
        assert {pick.label for pick in found} <= set(labels)


@given(st.text(max_size=80))
def test_a_name_in_a_message_is_printable_and_short(name: str) -> None:
    shown = escape_name(name)
    assert shown.isprintable()
    assert len(shown) <= 60 * 10
    assert shown == name[:60] or not name[:60].isprintable()


@given(
    st.none() | st.text(max_size=60),
    st.none() | st.text(max_size=60),
    st.text(max_size=9),
    st.text(max_size=9),
)
def test_a_code_from_outside_is_one_plain_name_that_no_other_has(
    one: str | None, other: str | None, content: str, more: str
) -> None:
    for code in (make_plain_name(one), make_plain_name(one, content)):
        assert parse(f"dir:{code}").body == code
        assert set(code) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
        assert 0 < len(code) <= 80
        assert not code.startswith(".")
    same = (one, content) == (other, more)
    assert (make_plain_name(one, content) == make_plain_name(other, more)) == same or not (
        content and more
    )


@pytest.mark.parametrize("code", ["AbC-1_x", "a", "Z" * 40])
def test_a_plain_code_stays_in_its_name(code: str) -> None:
    assert make_plain_name(code) == code
    assert make_plain_name(code, "content").startswith(f"{code}.")


def test_what_fields_and_prompts_are_called_is_the_command_s_own_word() -> None:
    with pytest.raises(UsageError, match="the share has no field 'x'"):
        map_keys(target("vault:a#x"), PROMPTS, SHARE)
    with pytest.raises(UsageError, match="the request has no prompt 'x'"):
        map_keys(target("vault:a#x"), PROMPTS, REQUEST)
