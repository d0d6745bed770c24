"""An action's inputs, checked and turned into command-line options. No side effects."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import quote

from sealpipe_action.manifest import COMMON, Input, inputs


class InputError(Exception):
    """An input is invalid. `code` is the step's exit code."""

    def __init__(self, message: str, remedy: str = "", code: int = 2) -> None:
        super().__init__(message)
        self.message, self.remedy, self.code = message, remedy, code


def read_inputs(action: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Return every input by name, with defaults.

    Raises InputError for a switch that is neither true nor false.
    """
    result = {each.name: environ.get(each.variable, "") or each.default for each in inputs(action)}
    for each in inputs(action):
        if each.kind == "flag" or each.default in ("true", "false"):
            result[each.name] = result[each.name].strip() or "false"
            if result[each.name] not in ("true", "false"):
                raise InputError(f"the input {each.name} must be true or false")
    return result


def build_options(action: str, values: Mapping[str, str], *, rehearsing: bool = False) -> list[str]:
    """Return the options of an action.

    Each is one argument, so that no value is parsed as an option.
    """
    wanted = (each for each in inputs(action) if not (rehearsing and each.real))
    return _list_options(wanted, values)


def build_common_options(values: Mapping[str, str]) -> list[str]:
    """Return the options that another command of a step takes, too."""
    return _list_options(COMMON, values)


def _list_options(wanted: Iterable[Input], values: Mapping[str, str]) -> list[str]:
    return [
        word
        for each in wanted
        if each.kind != "own"
        for word in _option_words(each, values[each.name])
    ]


def ignored_in_rehearsal(action: str, values: Mapping[str, str]) -> list[str]:
    """Return the inputs that are set but ignored in a rehearsal."""
    empty = ("", "false")
    return [each.name for each in inputs(action) if each.real and values[each.name] not in empty]


def _option_words(each: Input, value: str) -> Iterator[str]:
    if each.kind == "flag":
        yield from [each.flag] if value == "true" else []
    elif each.kind == "lines":
        yield from (f"{each.flag}={line}" for line in split_lines(value))
    elif value:
        yield f"{each.flag}={value}"


def split_lines(text: str) -> list[str]:
    """Return the lines that are not blank, without YAML's indentation."""
    return [line.strip() for line in re.split(r"\r\n|[\r\n]", text) if line.strip()]


def split_fields(text: str) -> list[str]:
    """Return the lines of `fields` or of the file in `fields-from`, without comments (#)."""
    return [line for line in split_lines(text) if not line.startswith("#")]


def encode_code(code: str) -> str:
    """Percent-encode a short code for an output: it is opaque and may contain shell or expression
    syntax.
    """
    return quote(code, safe="", errors="replace")


def is_encoded(word: str) -> bool:
    """Return whether text is already percent-encoded."""
    return re.fullmatch(r"(?:[A-Za-z0-9._~-]|%[0-9A-F]{2})+", word) is not None


def check_choice(name: str, value: str, choices: Sequence[str]) -> str:
    """Return the value. Raises InputError if it is not one of the choices."""
    if value not in choices:
        raise InputError(f"the input {name} must be one of {', '.join(choices)}")
    return value


class MapEntry(NamedTuple):
    """A line of `map`: the member of `values`, the prompt, and whether it is plain text
    (`PROMPT:text`).
    """

    name: str
    prompt: str
    plain: bool


def parse_map(text: str) -> list[MapEntry]:
    """Parse `map`, an allowlist. Raises InputError for a name that is invalid or repeated."""
    result: list[MapEntry] = []
    for line in split_lines(text):
        name, equals, prompt = (part.strip() for part in line.partition("="))
        if not equals or not prompt or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", name):
            raise InputError(
                "a line of map is not NAME=PROMPT", "use letters, digits, _ and - in NAME"
            )
        if name in (each.name for each in result):
            raise InputError(f"map has the name {name} twice")
        plain = prompt.endswith(":text")
        result.append(
            MapEntry(name, prompt.removesuffix(":text").rstrip() if plain else prompt, plain)
        )
    return result


def stand_ins(references: Sequence[str], environ: Mapping[str, str]) -> dict[str, str]:
    """Return a value for each empty variable that a reference names, for a rehearsal (in forks,
    secrets are empty).
    """
    names = [
        result[1]
        for each in references
        for result in re.finditer(r"(?:^|=)env:(?://)?([^?#=]+)", each)
    ]
    return {name: f"stand-in for {name}" for name in names if not environ.get(name)}
