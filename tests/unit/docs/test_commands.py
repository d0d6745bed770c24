"""Every command line of sealpipe in the docs has a command and options that exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

from sealpipe.cli.main import cli

ROOT = Path(__file__).resolve().parents[3]
TEXTS = sorted(
    [ROOT / "README.md", *(ROOT / "docs").glob("**/*.md"), *(ROOT / "docs").glob("**/*.yml")]
)
MADE_UP = {"COMMAND", "shelf", "...", "live"}
"""Words that stand for a command; `sealpipe live test` is a title."""
END = re.compile(r"\s*(?:[|;&)<>]|\s#|$)|[`\"]?\)")
WORD = re.compile(r"'[^']*'|\"[^\"]*\"|[^\s'\"|;&()<>`]+")


def lines_of(text: str) -> Iterator[str]:
    """Yield the command lines of a page: in blocks of code, and in code of a sentence, which may be
    wrapped.
    """
    for block in re.findall(r"^```(?:sh|console|yaml)\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        yield from re.sub(r"\\\n\s*", " ", block).splitlines()
    prose = re.sub(r"^ *```.*?^ *```", "", text, flags=re.DOTALL | re.MULTILINE)
    yield from (code.replace("\n", " ") for code in re.findall(r"`([^`]+)`", prose))


def calls_in(text: str) -> Iterator[list[str]]:
    """Yield the words after each `sealpipe`, to the end of the command."""
    for line in lines_of(text):
        line = re.sub(r"\s# .*", "", line)
        for found in re.finditer(r"(?:^|[\s$(;&'\"|])sealpipe (?!sealpipe)(?=[a-z-])", line):
            words: list[str] = []
            rest = line[found.end() :]
            while not END.match(rest):
                word = WORD.match(rest.lstrip())
                if word is None:
                    break
                words.append(word[0])
                rest = rest.lstrip()[word.end() :]
            yield words


def find_problem(words: list[str]) -> str:
    """Return what is wrong with a command line: a command or an option that does not exist; empty
    if nothing is.
    """
    command: click.Command = cli
    context = click.Context(cli)
    rest = list(words)
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        name = rest.pop(0)
        names = name.split("|") if "|" in name else [name]
        if not {*names} <= {*command.list_commands(context)}:
            return "" if name in MADE_UP else f"no command {name}"
        command = command.get_command(context, names[0]) or command
    known = {
        option for each in (command, cli) for param in each.params for option in param.opts
    } | {"--help", "-h"}
    for word in rest:
        if word == "--":
            return ""
        option = word.partition("=")[0].rstrip(",.:")
        if re.fullmatch(r"--[a-z][a-z-]*|-[a-z]", option) and option not in known:
            return f"no option {option}"
    return ""


def test_every_command_line_in_the_docs_has_options_that_exist() -> None:
    found = {
        (text.relative_to(ROOT).as_posix(), " ".join(words)): find_problem(words)
        for text in TEXTS
        for words in calls_in(text.read_text(encoding="utf-8"))
    }
    assert len(found) > 250
    assert {call: problem for call, problem in found.items() if problem} == {}


def test_a_wrong_command_line_is_noticed() -> None:
    (words,) = calls_in("```sh\nlink=$(sealpipe share -f 'A=env:B' --no-such-option)\n```")
    assert words == ["share", "-f", "'A=env:B'", "--no-such-option"]
    assert find_problem(words) == "no option --no-such-option"
    assert find_problem(["sheer"]) == "no command sheer"
