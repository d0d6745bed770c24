"""docs/how-to/request-secrets.md says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

from sealpipe.command_settings import COMMANDS
from sealpipe.prompts import parse_prompt
from sealpipe.state.receipt import parse_receipt
from sealpipe.wire.fields import TYPES

PAGE = (Path(__file__).resolve().parents[3] / "docs/how-to/request-secrets.md").read_text(
    encoding="utf-8"
)


def test_its_table_of_prompts_is_what_is_parsed() -> None:
    rows = re.findall(r"^\| `(.+?)` \| `(.+?)` \| (.+?) \| `(.+?)` \|$", PAGE, re.MULTILINE)
    assert len(rows) == 3
    assert [tuple(parse_prompt(given)) for given, *_ in rows] == [tuple(rest) for _, *rest in rows]


def test_it_names_every_type_and_every_option_that_is_there() -> None:
    told = set(re.findall(r"`([a-z_]+)`", PAGE.split("is the type:")[1].split(".")[0]))
    assert told == set(TYPES)
    options = {setting.option for setting in COMMANDS["request"]}
    # A title and a description are named as words.
    assert {option for option in options if option not in PAGE} <= {"--title", "--description"}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", PAGE)) <= options | {
        "--output",
        "--list",
        "--to",
    }


def test_its_receipt_is_one() -> None:
    (text,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    assert parse_receipt(text).dump() == text
