"""`dotenv:PATH`: values as lines of a 0600 dotenv file that every reader understands alike."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence

from sealpipe.plugin import (
    Locator,
    Mode,
    Receipt,
    ReferenceValueError,
    Sink,
    Stored,
    UnsupportedError,
    WriteConflictError,
    missing,
)
from sealpipe_plugins.local import dotenv_lines, files

_UNKNOWN: Mapping[str, bytes] = {"": b""}  # a key that no file has: something else is there


class DotenvSink(Sink):
    """Dotenv files of this machine. A value that some reader would get wrong is refused."""

    def describe(self, locator: Locator, mode: Mode) -> str:
        """What would be written."""
        path = files.path_of(locator)
        return {
            "create": f"write the new dotenv file {path}",
            "replace": f"write the dotenv file {path} in the place of what is there",
            "merge": f"set keys of the dotenv file {path}, keeping its other lines",
        }[mode]

    def put(self, locator: Locator, fields: Sequence[Stored], *, mode: Mode, marker: str) -> Receipt:  # noqa: ARG002
        """Write the whole file anew, and read it back."""
        path = files.path_of(locator)
        quote = _quote(locator)
        values = {key: _value(key, field, quote) for key, field in files.unique(fields).items()}

        def decide(there: bytes | None) -> bytes | None:
            return _wanted(locator, there, values, mode)

        already = files.settle(self.context, locator, path, mode, decide)
        found = files.look(locator, path)
        if found is None or not values.items() <= _read_back(locator, found.content, values).items():
            raise WriteConflictError(
                f"{locator} was changed by another while it was written", remedy="see who writes there"
            )
        return Receipt(locator, already=already)


def _quote(locator: Locator) -> str:
    quote = locator.param("quote", "none") or ""
    if quote not in dotenv_lines.QUOTES:
        raise ReferenceValueError(
            f"{locator} has a quote= that it does not take", remedy=f"it is one of {', '.join(dotenv_lines.QUOTES)}"
        )
    return quote


def _value(key: str, field: Stored, quote: str) -> str:
    """A value as it is spelled in a file. ReferenceValueError for the key, UnsupportedError for the value."""
    if not key:
        raise ReferenceValueError("each line needs a key", remedy="name the key to store it under: #KEY=PROMPT")
    if not dotenv_lines.KEY.fullmatch(key):
        raise ReferenceValueError(
            "a key cannot be a variable's name", remedy="use letters, digits and _, no digit in front"
        )
    if key in dotenv_lines.NEVER_READ_BACK:
        raise ReferenceValueError(f"a shell keeps {key} for itself", remedy="store it under another key")
    try:
        value: str | None = files.content_of(field).decode("utf-8")
    except UnicodeDecodeError:
        value = None  # the error holds the value: it must not stand behind ours
    if value is None:
        raise UnsupportedError(f"the value for {key} is no text", remedy=_ELSEWHERE)
    sign = dotenv_lines.odd(value, quote)
    if sign is not None:
        raise UnsupportedError(
            f"the value for {key} has {_named(sign)}, which the readers of dotenv files take differently "
            + ("where no quotes are around it" if quote == "none" else f"in {quote} quotes"),
            remedy=_way_out(value, quote),
        )
    value = dotenv_lines.QUOTES[quote][0].join(("", value, ""))
    if len(f"{key}={value}".encode()) > dotenv_lines.LINE_LIMIT:
        raise UnsupportedError(
            f"the value for {key} makes a line of more than {dotenv_lines.LINE_LIMIT} bytes, which Docker refuses",
            remedy="store it with file: or dir:",
        )
    return value


_ELSEWHERE = "store it with file: or dir:, which keep any value exactly"
_NAMES = {"${": "${ (dollar sign and brace)", "\n": "a line end", "\t": "a tab", " ": "a blank"}


def _named(sign: str) -> str:
    """A character by its name: all that is told of a value."""
    if sign in _NAMES:
        return _NAMES[sign]
    name = unicodedata.name(sign, "")
    if not name or not sign.isprintable():
        return name.lower() or "a control character"
    return f"{sign} ({name.lower()})"


def _way_out(value: str, quote: str) -> str:
    """The quotes that would do, if any."""
    fits = [each for each in ("single", "double") if each != quote and dotenv_lines.odd(value, each) is None]
    if not fits:
        return _ELSEWHERE
    return f"?quote={fits[0]} writes it, for all readers but Docker's --env-file; or {_ELSEWHERE}"


def _wanted(locator: Locator, there: bytes | None, values: Mapping[str, str], mode: Mode) -> bytes | None:
    """What the file has to hold; None where nothing has to change. Raises WriteConflictError, UnsupportedError."""
    wanted = {key: value.encode() for key, value in values.items()}
    found, before = _found(locator, there, values, mode)
    if missing(before, wanted, mode=mode, marked=False) is None:
        return None
    if mode != "merge":
        found = []
    try:
        after = "".join(dotenv_lines.merged(found, values)).encode()
        if before is None or mode != "merge":
            return after
        if dotenv_lines.values(dotenv_lines.pieces(after, values)) == {**before, **wanted}:
            return after
        line, why = 1, "the other keys would change with it"
    except dotenv_lines.DotenvSyntaxError as error:
        line, why = error.line, error.why
    raise _unsafe(locator, line, why)


def _found(
    locator: Locator, there: bytes | None, values: Mapping[str, str], mode: Mode
) -> tuple[list[dotenv_lines.Piece], Mapping[str, bytes] | None]:
    """The pieces of the file, and what it sets. One that is not understood is only ever replaced as a whole."""
    if there is None:
        return [], None
    try:
        found = dotenv_lines.pieces(there, values)
        return found, dotenv_lines.values(found)
    except dotenv_lines.DotenvSyntaxError as error:
        line, why = error.line, error.why
    if mode == "merge":
        raise _unsafe(locator, line, why)
    return [], _UNKNOWN


def _read_back(locator: Locator, content: bytes, values: Mapping[str, str]) -> dict[str, str]:
    _, now = _found(locator, content, values, "replace")
    return {key: value.decode() for key, value in (now or {}).items()}


def _unsafe(locator: Locator, line: int, why: str) -> UnsupportedError:
    return UnsupportedError(
        f"{locator}: line {line} cannot be kept safely ({why}); nothing was written",
        remedy="mend that line, or name another file; --mode replace writes the file anew",
    )
