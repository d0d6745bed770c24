"""`[ID=]PROMPT[:TYPE]`: whatever parses prints, and parses again as the same."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sealpipe.errors import UsageError
from sealpipe.prompts import MAX_LENGTH, Prompt, check_prompts, parse_prompt
from sealpipe.wire.fields import TYPES

TEXTS = st.text(max_size=80) | st.from_regex(
    r"[ -~]{0,20}=?[ -~]{0,20}:?(text|password|date|x)?", fullmatch=True
)


@pytest.mark.parametrize(
    ("text", "prompt"),
    [
        ("Staging password", ("staging_password", "Staging password", "password")),
        ("user=User name:text", ("user", "User name", "text")),
        ("user=User name", ("user", "User name", "password")),
        ("Expires:date", ("expires", "Expires", "date")),
        # A type is one word behind the last colon.
        ("URL (https://x):url", ("url_https_x", "URL (https://x)", "url")),
        ("Time: hh:mm:text", ("time_hh_mm", "Time: hh:mm", "text")),
        ("x:text:password", ("x_text", "x:text", "password")),
        ("x:Text:password", ("x_text", "x:Text", "password")),
        ("Server (host:port)", ("server_host_port", "Server (host:port)", "password")),
        ("Password: for staging", ("password_for_staging", "Password: for staging", "password")),
        ("Code at 12:30", ("code_at_12_30", "Code at 12:30", "password")),
        ("x:", ("x", "x:", "password")),
        # What stands before the first = is an id only where it can be one.
        ("Query (a=b)", ("query_a_b", "Query (a=b)", "password")),
        ("a=b=c", ("a", "b=c", "password")),
        ("2fa=Code", ("field_2fa_code", "2fa=Code", "password")),
        ("2nd password", ("field_2nd_password", "2nd password", "password")),
        ("Пароль", ("field", "Пароль", "password")),
        ("pw=Пароль:text", ("pw", "Пароль", "text")),
        ("W" * 90, ("w" * 64, "W" * 90, "password")),
    ],
)
def test_an_id_a_prompt_and_a_type(text: str, prompt: tuple[str, str, str]) -> None:
    assert parse_prompt(text) == Prompt(*prompt)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        ("  ", "is empty"),
        ("id=", "is empty"),
        (":text", "is empty"),
        ("id=:text", "is empty"),
        ("two\nlines", "control character"),
        ("\x1b[31mred", "control character"),
        ("right\u202eto left", "control character"),
        ("half\ud800", "control character"),
        ("x" * (MAX_LENGTH + 1), "more than 500 characters"),
    ],
)
def test_what_cannot_be_asked_is_refused_and_not_shown_raw(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says) as refused:
        parse_prompt(text)
    assert f"{refused.value.message}{refused.value.remedy}".isprintable()


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("Password:pasword", "password"),
        ("user=User name:txt", "text"),
        ("x:Text", "text"),
        ("Key:multi-line", "multiline"),
        ("Script:source-code", "source_code"),
        ("Password:secret", None),
        ("x:pasword:txxt", "text"),
        ("Time: hh:mm", None),
        ("Пароль:пароль", None),
    ],
)
def test_an_unknown_type_is_refused_with_the_nearest_and_the_known_types(
    text: str, near: str | None
) -> None:
    with pytest.raises(UsageError) as refused:
        parse_prompt(text)
    word = text.rpartition(":")[2]
    assert refused.value.message == f"'{word}' is not a field type"
    assert refused.value.remedy.startswith(
        f"did you mean {near}? known types: text, " if near else "known types: text, "
    )
    assert parse_prompt(f"{text}:text").text.endswith(f":{word}"), "the remedy holds"


def parsed_or_none(text: str) -> Prompt | None:
    try:
        return parse_prompt(text)
    except UsageError:
        return None


@given(TEXTS)
@example("a=:text:text")
@example("a= :text")
@example("ß=ß")
@example("_=_")
@example("---")
@example("İ")
def test_what_parses_prints_and_parses_again(text: str) -> None:
    prompt = parsed_or_none(text)
    if prompt is None:
        return
    assert parse_prompt(str(prompt)) == prompt
    assert prompt.type in TYPES
    assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,63}", prompt.id)
    assert prompt.text in text


@given(st.lists(TEXTS, max_size=6))
@example([])
@example(["a", "a"])
@example(["A b", "a-b"])
@example(["x=a", "y=a:text"])
def test_no_two_prompts_of_a_request_are_alike(texts: list[str]) -> None:
    parsed = [prompt for prompt in map(parsed_or_none, texts) if prompt is not None]
    if parsed and len({each.id for each in parsed}) == len({each.text for each in parsed}) == len(
        parsed
    ):
        assert list(check_prompts(parsed)) == parsed
    else:
        with pytest.raises(UsageError, match=r"two prompts have the (id|text)|has no prompts"):
            check_prompts(parsed)
