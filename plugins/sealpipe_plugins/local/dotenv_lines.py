"""Dotenv files that all readers parse alike.

Shells, python-dotenv, Node's readers, Docker's `--env-file`.

Docker has no quotes, and the others parse quoted text differently. So a value is written in one of
three quoting styles (`QUOTES`), using only the characters that its readers parse alike;
tests/plugins/local verifies them. python-dotenv parses files here, but what its set_key() writes is
parsed differently by other readers.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from dotenv.parser import parse_stream

KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
LINE_LIMIT = 65_535
"""Maximum bytes of a line, without its newline: Docker's client refuses a file with a longer
one.
"""

NEVER_READ_BACK = frozenset({
    "BASHOPTS", "BASHPID", "BASH_ARGC", "BASH_ARGV", "BASH_COMMAND", "BASH_COMPAT", "BASH_LINENO",
    "BASH_MONOSECONDS", "BASH_SOURCE", "BASH_SUBSHELL", "BASH_VERSINFO", "BASH_XTRACEFD",
    "DIRSTACK", "EPOCHREALTIME", "EPOCHSECONDS", "EUID", "FUNCNAME", "GROUPS", "HISTCMD", "LINENO",
    "OPTIND", "PIPESTATUS", "PPID", "RANDOM", "SECONDS", "SHELLOPTS", "SRANDOM", "UID", "_",
})  # fmt: skip
"""Variables that a shell reserves: setting them fails, has side effects, or prints an error."""

# Excludes #, because readers for Node and Ruby end the value there. ~ expands to the home directory
# at the start and after a colon. JavaScript treats U+FEFF, a byte order mark, as a blank.
_PLAIN = re.compile(r"(?!~)(?:[A-Za-z0-9!%*+,\-./=?@\[\]^_{}~]|:(?!~)|[^\x00-\x9f\s\ufeff])*")
_CONTROL = r"\x00-\x1f\x7f-\x9f\u2028\u2029"
# python-dotenv expands ${...} in any quotes; python-dotenv and Node interpret backslashes that a
# shell keeps.
_SINGLE = re.compile(r"(?:[^'\\$" + _CONTROL + r"]|\$(?!\{))*")
_DOUBLE = re.compile(rf"[^\"\\$`{_CONTROL}]*")

QUOTES: Mapping[str, tuple[str, re.Pattern[str]]] = {
    "none": ("", _PLAIN),
    "single": ("'", _SINGLE),
    "double": ('"', _DOUBLE),
}
"""The quoting styles: the quote and the characters that are valid in it.

Docker reads only `none`.
"""

# In an argument of `export`, a shell expands more than in an assignment.
_GLOB_CHARACTERS = frozenset("{*?[~")

_LEAD = re.compile(r"(?:[ \t]*\r?\n)*[ \t]*")
_ASSIGNMENT = re.compile(
    r"(?P<export>export[ \t]+)?(?P<key>[A-Za-z_][A-Za-z0-9_.-]*)[ \t]*(?P<rest>=.*)?\r?", re.DOTALL
)
_SHELL_WORDS = frozenset({
    "if", "then", "else", "elif", "fi", "do", "done", "case", "esac", "while", "until", "for", "in",
    "function", "select", "time", "coproc",
})  # fmt: skip


class DotenvSyntaxError(Exception):
    """A file that cannot be changed safely.

    `line`, from 1, and `reason`, which never quotes the text.
    """

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(line, reason)
        self.line = line
        self.reason = reason


class Assignment(NamedTuple):
    """A group of lines that belong together. `key` is empty for blank lines and comments.

    `lead` is the text before the assignment (blank lines), `export` that word with its blanks,
    `raw` everything after the `=`, None if there is no `=`.
    """

    text: str
    lead: str = ""
    export: str = ""
    key: str = ""
    raw: str | None = None


def is_plain(value: str) -> bool:
    """Return whether all readers parse `KEY=value` as this value."""
    return find_unwritable(value, "none") is None


def find_unwritable(value: str, quote: str) -> str | None:
    """Return the first character (or `${`) that cannot be written in these quotes, or None."""
    match = QUOTES[quote][1].match(value)
    end = match.end() if match else 0
    if end == len(value):
        return None
    remaining = value[end : end + 2]
    # Unquoted, `~` expands to the home directory at the start and after a colon.
    return {"${": "${" if quote == "single" else "$", ":~": "~"}.get(remaining, remaining[0])


def parse(data: bytes, values_to_set: Mapping[str, str]) -> list[Assignment]:
    """Parse a file into assignments.

    Raises DotenvSyntaxError if readers disagree about where an assignment ends.

    Also raises it if Docker would parse a line inside a value as an assignment to one of the keys
    to set.
    """
    try:
        text: str | None = data.decode("utf-8")
    except UnicodeDecodeError:
        text = None
    if text is None:
        raise DotenvSyntaxError(1, "the file is not UTF-8")
    for character in ("\0", "\r"):
        find_unwritable = text.replace("\r\n", "\n") if character == "\r" else text
        if character in find_unwritable:
            raise DotenvSyntaxError(
                find_unwritable[: find_unwritable.index(character)].count("\n") + 1,
                "it has a control character",
            )
    if text.startswith("\ufeff"):
        raise DotenvSyntaxError(
            1, "it begins with a byte order mark, which a shell reads as part of the first name"
        )
    assignments = []
    for binding in parse_stream(io.StringIO(text, newline="")):
        original = binding.original
        if binding.error:
            raise DotenvSyntaxError(
                original.line + _count_leading_lines(original.string),
                "it is not NAME=VALUE, or a quote is not closed",
            )
        assignments.append(
            _parse_assignment(original.string, original.line, binding.key, values_to_set)
        )
    if "".join(assignment.text for assignment in assignments) != text:
        raise DotenvSyntaxError(1, "it cannot be parsed exactly")
    return assignments


def merge(assignments: list[Assignment], values_to_set: Mapping[str, str]) -> Iterator[str]:
    """Iterate over the file's text with these values set or added. All other lines stay unchanged.

    Raises DotenvSyntaxError.
    """
    remaining, line = dict(values_to_set), 1
    last_text = ""
    for assignment in assignments:
        if assignment.key in values_to_set:
            value = values_to_set[assignment.key]
            remaining.pop(assignment.key, None)
            if (
                assignment.export
                and value[:1] not in ("'", '"')
                and not _GLOB_CHARACTERS.isdisjoint(value)
            ):
                raise DotenvSyntaxError(
                    line + assignment.lead.count("\n"),
                    "a shell would expand the value after `export`",
                )
            last_text = f"{assignment.lead}{assignment.export}{assignment.key}={value}\n"
        else:
            last_text = assignment.text
        line += assignment.text.count("\n")
        yield last_text
    if remaining and last_text and not last_text.endswith("\n"):
        yield "\n"
    yield from (f"{key}={value}\n" for key, value in remaining.items())


def read_values(assignments: list[Assignment]) -> dict[str, bytes]:
    """Return each key's values as written; several if the file sets the key more than once."""
    spellings: dict[str, list[str]] = {}
    for assignment in assignments:
        if assignment.key:
            spellings.setdefault(assignment.key, []).append(
                "\0" if assignment.raw is None else assignment.raw
            )
    return {key: "\n".join(dict.fromkeys(each)).encode() for key, each in spellings.items()}


def _parse_assignment(
    text: str, line: int, key: str | None, values_to_set: Mapping[str, str]
) -> Assignment:
    lead = _LEAD.match(text)
    assert lead is not None  # noqa: S101 - it matches nothing, too
    before, body = lead.group(), text[lead.end() :]
    line += before.count("\n")
    if not body or body.startswith("#"):
        return Assignment(text)
    match = _ASSIGNMENT.fullmatch(body.removesuffix("\n"))
    if match is None or key is None or match["key"] != key:
        raise DotenvSyntaxError(line, "it is not NAME=VALUE")
    if match["export"] and not KEY.fullmatch(key):
        raise DotenvSyntaxError(
            line, "a shell may stop there: it exports something that is not a variable"
        )
    if match["rest"] is None:
        if key in _SHELL_WORDS:
            raise DotenvSyntaxError(line, "it is a shell keyword")
        return Assignment(text, _blank_lines(before), match["export"] or "", key)
    raw = match["rest"][1:]
    if key in NEVER_READ_BACK:
        raise DotenvSyntaxError(line, "a shell reserves that variable, and may stop there")
    if _is_ambiguous(raw, exported=bool(match["export"])):
        raise DotenvSyntaxError(line, "a shell would not end the value where other readers do")
    for number, each in enumerate(raw.split("\n")[1:], line + 1):
        if each.partition("=")[0].strip() in values_to_set:
            raise DotenvSyntaxError(number, "Docker parses it as one of the keys to write")
    return Assignment(text, _blank_lines(before), match["export"] or "", key, raw)


def _blank_lines(lead: str) -> str:
    """Return the complete lines before an assignment."""
    return lead[: lead.rfind("\n") + 1]


def _count_leading_lines(text: str) -> int:
    return text[: len(text) - len(text.lstrip())].count("\n")


# One step of a shell through a value: plain words, whole quoted strings, and expansions with one
# pair of braces.
_SIMPLE = r"\$(?![({'\[])|\$\{[A-Za-z_]\w*(?::?-[\w./:@%+,-]*)?\}"
_QUOTED = rf"\"(?:[^\"\\`$]|\\.|{_SIMPLE})*\""
_STEP = re.compile(
    r"(?P<word>[^ \t\n\v\f\\'\"`$();|&<>]+)|(?P<blank>[ \t](?!#))|[ "
    r"\t]+#[^\n]*|\\[^\n]|'[^']*'|&(?=[A-Za-z_]\w*=)"
    rf"|{_QUOTED}|{_SIMPLE}",
    re.DOTALL,
)


def _is_ambiguous(raw: str, *, exported: bool) -> bool:
    """Return whether a shell would read past the value, start another command, or stop."""
    position, in_later_word = 0, False
    while position < len(raw):
        step = _STEP.match(raw, position)
        if step is None:
            return True
        blank = step["blank"] is not None or step.group().lstrip(" \t").startswith("#")
        # In a later word bash takes NAME[ for an array element and reads on to the closing bracket;
        # `export` takes each word for a variable's name, and dash exits if one is invalid.
        if in_later_word and not blank and (exported or "[" in (step["word"] or "")):
            return True
        in_later_word = in_later_word or step["blank"] is not None
        position = step.end()
    return False
