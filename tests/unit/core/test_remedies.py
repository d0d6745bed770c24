"""A traceback shows what to do next: in words of Python where Python called, and never twice."""

from __future__ import annotations

import ast
import asyncio
import copy
import pickle
import re
import subprocess
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sealpipe import (
    Client,
    Field,
    RateLimitError,
    SealpipeError,
    UsageError,
    aresolve,
    resolve,
)
from sealpipe.errors import Note, note_remedy
from sealpipe.minting import mint
from sealpipe.secret import strips_frames
from support.commands import SEALPIPE

CORE = Path(__file__).parents[3] / "core" / "sealpipe"
SETTINGS: dict[str, Any] = {
    "api_key": mint().credential.reveal(), "base_url": "http://127.0.0.1:9/v1",
    "link_base_url": "http://127.0.0.1/s",
}  # fmt: skip
FIELD = Field("Password", "s3cret")

OPTION = re.compile(r"(?:^|\s)--?[a-z]")
COMMAND = re.compile(r"`[^`]*`")
"""A whole command: a program can have it run, or a person can."""
COMMAND_LINE_ONLY = re.compile(
    r"(cli|copy|mcp|batch|run|doctor|testing)/|(lookup|share/sealed_link)\.py"
)
"""Modules that no method of a client uses, or only with words of a command line."""


def shown_after_message(error: SealpipeError) -> str:
    """What a traceback ends with."""
    return "".join(traceback.format_exception(error)).rpartition(error.message)[2]


@pytest.mark.parametrize(
    ("call", "remedy"),
    [
        (lambda c: c.share([FIELD], send="email:{to}"), 'write send=["email:{to}"]'),
        (lambda c: c.share([]), 'name at least one field: ["env:DB_PASSWORD"]'),
        (lambda c: c.share([FIELD], message_template="{link}"), 'write send=["email:{to}"]'),
        (lambda c: c.share([FIELD], passcode_to=["email:a@example.com"]),
            "write passcode_generate=True"),
        (lambda c: c.share([FIELD], passcode_generate=True), 'write passcode_to=["email:{to}"]'),
        (lambda c: c.share([FIELD], send=["email:{to}"]),
            'write params={"to": REF}, or {{ for a brace'),
        (lambda c: c.share([FIELD], send=["email:a@x.com", "email:b@x.com"]),
            "allow views=2, or make a share"),
        (lambda c: c.share([FIELD], also_to=["file:{name}"]), "write name=NAME"),
        (lambda c: c.request([]), 'give at least one prompt: ["Staging password"]'),
        (lambda c: c.request(["Password"], seed_to="file:seed"),
            'write key="new", or leave seed_to out'),
        (lambda c: c.collect("aB3", pick="each", to=["file:x"]),
            'or choose one, such as pick="newest"'),
        (lambda c: c.purge_request("aB3", confirm="aB4"), "repeat the short code: confirm=CODE"),
        (lambda c: list(c.iter_shares(limit=0)), "write limit=10"),
        (lambda _: resolve(["no reference"]), "such as env:DB_PASSWORD"),
    ],
)  # fmt: skip
def test_a_traceback_shows_the_remedy_in_words_of_python(
    call: Callable[[Any], object], remedy: str
) -> None:
    with Client(**SETTINGS) as client, pytest.raises(UsageError) as caught:
        call(client)
    text = shown_after_message(caught.value)
    assert text.count(remedy) == 1
    assert not OPTION.search(text)


def test_so_it_is_where_references_are_resolved_in_asyncio() -> None:
    with pytest.raises(UsageError) as caught:
        asyncio.run(aresolve("env:A"))
    assert shown_after_message(caught.value).count("write references=") == 1


def test_a_remedy_that_changed_on_its_way_is_shown_once_and_before_the_other_notes() -> None:
    @strips_frames
    def inner() -> None:
        raise UsageError("it is wrong", remedy="the first remedy")

    @strips_frames
    def outer() -> None:
        try:
            inner()
        except UsageError as error:
            error.add_note(Note("a note"))
            error.remedy = "the second remedy"
            raise

    with pytest.raises(UsageError) as caught:
        outer()
    assert caught.value.__notes__ == ["the second remedy", "a note"]


def test_what_the_message_says_already_is_not_repeated() -> None:
    error = SealpipeError("wait, and try again", remedy="try again")
    note_remedy(error)
    assert error.__notes__ == []


def test_an_error_keeps_both_texts_when_it_is_copied() -> None:
    for made in (
        copy.copy,
        copy.deepcopy,
        lambda each: pickle.loads(pickle.dumps(each)),  # noqa: S301 - its own
    ):
        error = made(RateLimitError("no"))
        assert ("--deadline" in error.remedy, "--deadline" in error.remedy.python) == (True, False)


def test_a_command_prints_its_own_words_once() -> None:
    words = ["share", "-f", "text:x", "--passcode-generate", "--send", "email:a@example.com"]
    environ = {"SEALPIPE_API_KEY": SETTINGS["api_key"], "SEALPIPE_BASE_URL": SETTINGS["base_url"]}
    done = subprocess.run(
        [*SEALPIPE, *words], env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.count("add --passcode-to CHANNEL") == 1
    assert "passcode_to=" not in done.stderr


def remedies(tree: ast.AST) -> Iterator[ast.expr]:
    """What stands where a remedy does, in a call, an assignment or a class."""
    for node in ast.walk(tree):
        names = [node.arg or ""] if isinstance(node, ast.keyword) else []
        names += map(ast.unparse, node.targets) if isinstance(node, ast.Assign) else []
        if any(name.endswith("remedy") for name in names):
            yield node.value  # type: ignore[attr-defined]  # each of them has one


def test_a_remedy_with_an_option_says_it_in_words_of_python_too() -> None:
    wrong, seen = [], 0
    for path in sorted(CORE.rglob("*.py")):
        name = path.relative_to(CORE).as_posix()
        for value in (
            () if COMMAND_LINE_ONLY.match(name) else remedies(ast.parse(path.read_bytes()))
        ):
            is_both = isinstance(value, ast.Call) and ast.unparse(value.func) == "Remedy"
            python = value.keywords[0].value if is_both and isinstance(value, ast.Call) else value
            pieces = [
                str(each.value) for each in ast.walk(python) if isinstance(each, ast.Constant)
            ]
            seen += is_both
            if OPTION.search(COMMAND.sub("", "".join(pieces))):
                wrong.append(f"{name}:{value.lineno}: {''.join(pieces)}")
    assert wrong == [], 'write remedy=Remedy("add --option", python="write option=")'
    assert seen > 20
