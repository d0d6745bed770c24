"""From inputs to the words of a command line. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import quote

from sealpipe_action.table import Input, inputs


class InputError(Exception):
    """An input is wrong: nothing was started. `code` is the step's exit code."""

    def __init__(self, message: str, remedy: str = "", code: int = 2) -> None:
        super().__init__(message)
        self.message, self.remedy, self.code = message, remedy, code


def given(action: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Every input by its name; what is not set has its default. InputError for a switch that is neither."""
    found = {each.name: environ.get(each.variable, "") or each.default for each in inputs(action)}
    for each in inputs(action):
        if each.kind == "flag" or each.default in ("true", "false"):
            found[each.name] = found[each.name].strip() or "false"
            if found[each.name] not in ("true", "false"):
                raise InputError(f"the input {each.name} is neither true nor false")
    return found


def words(action: str, values: Mapping[str, str], *, rehearsing: bool = False) -> list[str]:
    """The options for what was given: one word each, so that no value is taken for an option."""
    wanted = [each for each in inputs(action) if each.kind != "own" and not (rehearsing and each.real)]
    return [word for each in wanted for word in _words(each, values[each.name])]


def left_out(action: str, values: Mapping[str, str]) -> list[str]:
    """The inputs that were given, and that a rehearsal leaves out."""
    empty = ("", "false")
    return [each.name for each in inputs(action) if each.real and values[each.name] not in empty]


def _words(each: Input, value: str) -> Iterator[str]:
    if each.kind == "flag":
        yield from [each.flag] if value == "true" else []
    elif each.kind == "lines":
        yield from (f"{each.flag}={line}" for line in lines(value))
    elif value:
        yield f"{each.flag}={value}"


def lines(text: str) -> list[str]:
    """The lines that hold something; YAML's own indentation is not part of them."""
    return [line.strip() for line in re.split(r"\r\n|[\r\n]", text) if line.strip()]


def fields(text: str) -> list[str]:
    """The lines of `fields` or of the file that `fields-from` names; # at the start makes a remark."""
    return [line for line in lines(text) if not line.startswith("#")]


def encoded(code: str) -> str:
    """A short code as an output: what a shell or an expression could read is %XX. It is opaque, and may be anything."""
    return quote(code, safe="", errors="replace")


def is_encoded(word: str) -> bool:
    """Whether a word is such an output already."""
    return re.fullmatch(r"(?:[A-Za-z0-9._~-]|%[0-9A-F]{2})+", word) is not None


def one_of(name: str, value: str, choices: Sequence[str]) -> str:
    """The value. InputError where it is none of the choices."""
    if value not in choices:
        raise InputError(f"the input {name} is none of {', '.join(choices)}")
    return value


class Wanted(NamedTuple):
    """A line of `map`: the member of `values`, the prompt, and whether it is no secret (`PROMPT:text`)."""

    name: str
    prompt: str
    plain: bool


def mapping(text: str) -> list[Wanted]:
    """`map`: an allow-list. InputError where a name is none, or is there twice."""
    found: list[Wanted] = []
    for line in lines(text):
        name, equals, prompt = (part.strip() for part in line.partition("="))
        if not equals or not prompt or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", name):
            raise InputError("a line of map is not NAME=PROMPT", "a name has letters, digits, _ and -")
        if name in (each.name for each in found):
            raise InputError(f"map has the name {name} twice")
        plain = prompt.endswith(":text")
        found.append(Wanted(name, prompt.removesuffix(":text").rstrip() if plain else prompt, plain))
    return found


def stand_ins(references: Sequence[str], environ: Mapping[str, str]) -> dict[str, str]:
    """For a rehearsal: a value for each variable that a reference names and that is empty, as secrets are in forks."""
    names = [found[1] for each in references for found in re.finditer(r"(?:^|=)env:(?://)?([^?#=]+)", each)]
    return {name: f"stand-in for {name}" for name in names if not environ.get(name)}
