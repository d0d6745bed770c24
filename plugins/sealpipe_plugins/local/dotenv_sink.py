"""`dotenv:PATH`: values as lines of a 0600 dotenv file that all readers parse the same."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence

from sealpipe.plugin import (
    Locator,
    Mode,
    ReferenceValueError,
    Sink,
    SinkField,
    UnsupportedError,
    WriteConflictError,
    WriteResult,
    merge_fields,
)
from sealpipe_plugins.local import dotenv_lines, files

_UNPARSABLE: Mapping[str, bytes] = {"": b""}  # a key that is in no file: forces a rewrite


class DotenvSink(Sink):
    """Dotenv files of this machine. A value that readers would parse differently is refused."""

    def describe(self, locator: Locator, mode: Mode) -> str:
        """Describe the write."""
        path = files.parse_path(locator)
        return {
            "create": f"write the new dotenv file {path}",
            "replace": f"write the dotenv file {path}, replacing what is there",
            "merge": f"set keys of the dotenv file {path}, keeping its other lines",
        }[mode]

    def put(
        self,
        locator: Locator,
        fields: Sequence[SinkField],
        *,
        mode: Mode,
        marker: str,  # noqa: ARG002
    ) -> WriteResult:
        """Write the whole file and read it back."""
        path = files.parse_path(locator)
        quote = _parse_quote(locator)
        values = {
            key: _spell_value(key, field, quote)
            for key, field in files.fields_by_key(fields).items()
        }

        def decide(existing: bytes | None) -> bytes | None:
            return _new_content(locator, existing, values, mode)

        already = files.write_when_needed(self.context, locator, path, mode, decide)
        written_file = files.read_state(locator, path)
        if (
            written_file is None
            or not values.items() <= _read_back(locator, written_file.content, values).items()
        ):
            raise WriteConflictError(
                f"{locator} was changed by another process while it was written",
                remedy="check what else writes to it",
            )
        return WriteResult(locator, already=already)


def _parse_quote(locator: Locator) -> str:
    quote = locator.param("quote", "none") or ""
    if quote not in dotenv_lines.QUOTES:
        raise ReferenceValueError(
            f"{locator} has an invalid quote=",
            remedy=f"use one of {', '.join(dotenv_lines.QUOTES)}",
        )
    return quote


def _spell_value(key: str, field: SinkField, quote: str) -> str:
    """Return a value as written in a file.

    Raises ReferenceValueError for the key, UnsupportedError for the value.
    """
    if not key:
        raise ReferenceValueError(
            "each line needs a key", remedy="name the key to store it under: #KEY=PROMPT"
        )
    if not dotenv_lines.KEY.fullmatch(key):
        raise ReferenceValueError(
            "a key is not a valid variable name",
            remedy="use letters, digits and _, not starting with a digit",
        )
    if key in dotenv_lines.NEVER_READ_BACK:
        raise ReferenceValueError(
            f"shells reserve the variable {key}", remedy="store it under another key"
        )
    try:
        value: str | None = files.encode_value(field).decode("utf-8")
    except UnicodeDecodeError:
        value = None  # the original error contains the value and must not be chained
    if value is None:
        raise UnsupportedError(f"the value for {key} is not text", remedy=_ELSEWHERE)
    character = dotenv_lines.find_unwritable(value, quote)
    if character is not None:
        raise UnsupportedError(
            (
                f"the value for {key} has {_describe_character(character)}, which dotenv "
                "readers parse differently "
            )
            + ("without quotes" if quote == "none" else f"in {quote} quotes"),
            remedy=_suggest_quotes(value, quote),
        )
    value = dotenv_lines.QUOTES[quote][0].join(("", value, ""))
    if len(f"{key}={value}".encode()) > dotenv_lines.LINE_LIMIT:
        raise UnsupportedError(
            (
                f"the value for {key} makes a line of more than {dotenv_lines.LINE_LIMIT} "
                "bytes, which Docker refuses"
            ),
            remedy="store it with file: or dir:",
        )
    return value


_ELSEWHERE = "store it with file: or dir:, which keep any value exactly"
_NAMES = {"${": "${ (dollar sign and brace)", "\n": "a line end", "\t": "a tab", " ": "a blank"}


def _describe_character(character: str) -> str:
    """Return the name of a character, the only part of a value that may be shown."""
    if character in _NAMES:
        return _NAMES[character]
    name = unicodedata.name(character, "")
    if not name or not character.isprintable():
        return name.lower() or "a control character"
    return f"{character} ({name.lower()})"


def _suggest_quotes(value: str, quote: str) -> str:
    """Return a remedy that names quotes that work, if any do."""
    quotes = [
        each
        for each in ("single", "double")
        if each != quote and dotenv_lines.find_unwritable(value, each) is None
    ]
    if not quotes:
        return _ELSEWHERE
    return f"?quote={quotes[0]} writes it, for all readers but Docker's --env-file; or {_ELSEWHERE}"


def _new_content(
    locator: Locator, existing: bytes | None, values: Mapping[str, str], mode: Mode
) -> bytes | None:
    """Return the new content; None if nothing changes.

    Raises WriteConflictError, UnsupportedError.
    """
    wanted = {key: value.encode() for key, value in values.items()}
    assignments, old_values = _parse_file(locator, existing, values, mode)
    if merge_fields(old_values, wanted, mode=mode, marked=False) is None:
        return None
    if mode != "merge":
        assignments = []
    try:
        new_text = "".join(dotenv_lines.merge(assignments, values)).encode()
        if old_values is None or mode != "merge":
            return new_text
        if dotenv_lines.read_values(dotenv_lines.parse(new_text, values)) == {
            **old_values,
            **wanted,
        }:
            return new_text
        line, reason = 1, "other keys would change"
    except dotenv_lines.DotenvSyntaxError as error:
        line, reason = error.line, error.reason
    raise _unsafe_line_error(locator, line, reason)


def _parse_file(
    locator: Locator, existing: bytes | None, values: Mapping[str, str], mode: Mode
) -> tuple[list[dotenv_lines.Assignment], Mapping[str, bytes] | None]:
    """Parse a file into assignments and their values.

    An invalid file may only be replaced as a whole.
    """
    if existing is None:
        return [], None
    try:
        assignments = dotenv_lines.parse(existing, values)
        return assignments, dotenv_lines.read_values(assignments)
    except dotenv_lines.DotenvSyntaxError as error:
        line, reason = error.line, error.reason
    if mode == "merge":
        raise _unsafe_line_error(locator, line, reason)
    return [], _UNPARSABLE


def _read_back(locator: Locator, content: bytes, values: Mapping[str, str]) -> dict[str, str]:
    _, current = _parse_file(locator, content, values, "replace")
    return {key: value.decode() for key, value in (current or {}).items()}


def _unsafe_line_error(locator: Locator, line: int, reason: str) -> UnsupportedError:
    return UnsupportedError(
        f"{locator}: line {line} cannot be preserved safely ({reason}); nothing was written",
        remedy="fix that line or name another file; --mode replace rewrites the file",
    )
