"""A fake of how the GitHub runner reads what a step writes: workflow commands and the files (ActionCommand,
FileCommandManager of the runner's published source; CI-FACTS)."""

from __future__ import annotations

import re
from typing import NamedTuple

KNOWN = ("add-mask", "add-matcher", "add-path", "debug", "echo", "endgroup", "error", "group", "notice")
KNOWN += ("remove-matcher", "save-state", "set-env", "set-output", "stop-commands", "warning")
SUMMARY_LIMIT = 1024 * 1024
_DATA = (("\r", "%0D"), ("\n", "%0A"), ("%", "%25"))
_PROPERTY = (*_DATA[:2], (":", "%3A"), (",", "%2C"), _DATA[2])
_OLD = ((";", "%3B"), *_DATA[:2], ("]", "%5D"), _DATA[2])


class Command(NamedTuple):
    """A workflow command."""

    name: str
    properties: dict[str, str]
    data: str


def command(line: str) -> Command | None:
    """`::name a=b::data` after blanks, or `##[name a=b]data` anywhere; None where it is only a line."""
    new = re.match(r"\s*::(?P<info>.*?)::(?P<data>.*)\Z", line, re.DOTALL)
    if new:
        found = _command(new["info"], ",", new["data"], _PROPERTY, _DATA)
        if found:
            return found
    old = re.search(r"##\[(?P<info>[^\]]*)\](?P<data>.*)\Z", line, re.DOTALL)
    return _command(old["info"], ";", old["data"], _OLD, _OLD) if old else None


def _command(
    info: str, separator: str, data: str, inner: tuple[tuple[str, str], ...], outer: tuple[tuple[str, str], ...]
) -> Command | None:
    name, _, rest = info.partition(" ")
    if name.lower() not in KNOWN:
        return None
    pairs = [part.split("=", 1) for part in rest.strip().split(separator) if "=" in part]
    return Command(name.lower(), {key: _unescaped(value, inner) for key, value in pairs}, _unescaped(data, outer))


def _unescaped(text: str, table: tuple[tuple[str, str], ...]) -> str:
    for token, replacement in table:
        text = text.replace(replacement, token)
    return text


def pairs(text: str) -> list[tuple[str, str]]:
    """What GITHUB_OUTPUT or GITHUB_ENV says, in order. ValueError where the runner fails the step."""
    found: list[tuple[str, str]] = []
    rest = text.split("\n")
    if rest and not rest[-1]:
        rest.pop()
    lines = iter(rest)
    for line in lines:
        equals, heredoc = line.find("="), line.find("<<")
        if not line:
            continue
        if equals >= 0 and (heredoc < 0 or equals < heredoc):
            name, _, value = line.partition("=")
        elif heredoc >= 0:
            name, _, delimiter = line.partition("<<")
            held: list[str] = []
            if not name or not delimiter:
                raise ValueError(line)
            for inner in lines:
                if inner == delimiter:
                    break
                held.append(inner)
            else:
                raise ValueError(f"no {delimiter}")
            value = "\n".join(held)
        else:
            raise ValueError(line)
        found.append((name, value))
    return found


def read_lines(text: str) -> list[str]:
    """As .NET reads lines: CR, LF and CRLF each end one."""
    parts = re.split(r"\r\n|[\r\n]", text)
    return parts[:-1] if parts and not parts[-1] else parts
