"""The plaintext of a share or a submission: an array of labelled values.

Specification: "Plaintext field array (client-side, inside the ciphertext)".
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Generic

from sealpipe.errors import EncodingError, FieldError, find_similar
from sealpipe.secret import Secret, as_secret
from sealpipe.wire import jsontext
from sealpipe.wire.encoding import PLAINTEXT_LIMIT as PLAINTEXT_LIMIT
from sealpipe.wire.encoding import enforce_limit, escaped, utf8
from sealpipe.wire.jsontext import is_text

if TYPE_CHECKING:
    # Type checkers know it; a default is in Python's own since 3.13.
    from typing_extensions import (
        TypeVar,
    )

    Value = TypeVar("Value", bound="str | Secret", default="str | Secret", covariant=True)
else:
    from typing import TypeVar

    Value = TypeVar("Value", bound="str | Secret", covariant=True)

TYPES: Final[Mapping[str, str]] = {
    "text": "one line, shown as it is",
    "password": "one line, hidden until asked for",
    "date": "a date",
    "multiline": "several lines, shown as they are",
    "markdown": "Markdown, with an optional file name",
    "source_code": "source code, with an optional language and file name",
    "url": "a link, clickable where it is absolute http or https",
    "qr": "text of up to 2,300 characters, drawn as a QR code",
}
"""The types that the service's page knows, each with what it is.

Any other is accepted, and shown as text.
"""

LANGUAGE: Final = "selectedProgrammingLanguage"
"""The member with the language of a field of source code."""
FILENAME: Final = "filename"
"""The member with the file name of a field."""


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Field(Generic[Value]):
    """One labelled value.

    `key` is the visible label. `value` is text or a Secret, and is kept as given; in a
    `Field[Secret]`, which is what `resolve` and `collect` return, it is a Secret. `type` is one of
    TYPES or any other text; by default `password`, or `multiline` if the value has a line break.
    `language` and `filename` are hints for source code and Markdown. `extra` has unknown members as
    JSON values; `order` has the names of all members in the order in which they were loaded, and
    does not count for equality.

    Raises FieldError with reason `bad-key`, `bad-value`, `bad-type`, `bad-language`, `bad-filename`
    (not text), `lone-surrogate` (in any member but the value, which is checked when it is written)
    or `duplicate-member`. A type that is not in TYPES is a UserWarning, which names the nearest
    one.
    """

    key: str
    value: Value
    type: str
    language: str | None
    filename: str | None
    extra: Mapping[str, object]
    order: tuple[str, ...] = field(compare=False)

    def __init__(
        self: Field,
        key: str,
        value: str | Secret,
        type: str | None = None,  # noqa: A002  # the member's own name
        *,
        language: str | None = None,
        filename: str | None = None,
        extra: Mapping[str, object] | None = None,
        order: Iterable[str] = (),
    ) -> None:
        if not isinstance(value, str | Secret):
            # A traceback with local variables would show the one, and fail to show the other.
            del (
                value,
                self,
            )
            raise FieldError("bad-value", "a field's value must be text")
        self._fill(key, value, type, language, filename, extra or {}, order)
        if self.type not in TYPES:
            del key, value  # if the warning is raised, as `python -W error` does it
            # What was given as the type is not shown: with mixed-up arguments it may be the value.
            problem = "unknown field type: the recipient's page shows the value as plain text"
            warnings.warn(f"{problem}; {suggest_type(self.type)}", UserWarning, stacklevel=2)

    def _fill(
        self,
        key: object,
        value: str | Secret,
        type: object,  # noqa: A002  # as above
        language: object,
        filename: object,
        extra: Mapping[str, object],
        order: Iterable[str],
    ) -> None:
        attributes = {
            "key": _text(key, "key"),
            "value": value,
            "type": _usual_type(value) if type is None else _text(type, "type"),
            "language": None if language is None else _text(language, "language"),
            "filename": None if filename is None else _text(filename, "filename"),
            "extra": dict(extra),
            "order": tuple(order),
        }
        for name, attribute in attributes.items():
            object.__setattr__(self, name, attribute)
        taken = {"key", "value", "type"} | self._hints().keys()
        if not taken.isdisjoint(self.extra):
            raise FieldError("duplicate-member", "an extra member has the name of one that is set")

    def __repr__(self) -> str:
        shown = f"{self.key!r}, ..., type={self.type!r}"
        for name in ("language", "filename"):
            if getattr(self, name) is not None:
                shown += f", {name}={getattr(self, name)!r}"
        return f"Field({shown}{', extra=...' if self.extra else ''})"

    def _hints(self) -> dict[str, str]:
        hints = {LANGUAGE: self.language, FILENAME: self.filename}
        return {name: hint for name, hint in hints.items() if hint is not None}

    def members(self) -> dict[str, object]:
        """All members by name, in the order in which they are written."""
        members: dict[str, object] = {"key": self.key, "value": self.value, "type": self.type}
        members |= self._hints() | dict(self.extra)
        first = [name for name in self.order if name in members]
        return {name: members[name] for name in dict.fromkeys([*first, *members])}


def printable(field: Field) -> dict[str, object]:
    """The field's members, for `json.dumps`.

    A submitter may have written numbers that it cannot spell.
    """
    return {name: jsontext.finite(member) for name, member in field.members().items()}


def hidden(field: Field) -> Field[Secret]:
    """The field with its value in a Secret: no traceback shows it."""
    made: Field[Secret] = object.__new__(Field)
    value = as_secret(field.value)
    made._fill(
        field.key, value, field.type, field.language, field.filename, field.extra, field.order
    )
    return made


def suggest_type(word: str) -> str:
    """The type that a misspelled one may mean, and all types, for an error or a warning.

    It does not show the word.
    """
    near = [f"did you mean {each}?" for each in find_similar(word[:60].lower(), TYPES)]
    return " ".join([*near, f"known types: {', '.join(TYPES)}"])


def revealed(field: Field) -> str:
    """The field's value as text.

    Raises UnicodeDecodeError for a Secret made from bytes that are not UTF-8.
    """
    return field.value.reveal() if isinstance(field.value, Secret) else field.value


def _usual_type(value: str | Secret) -> str:
    broken = "\n" in value if isinstance(value, str) else b"\n" in utf8(value)
    return "multiline" if broken else "password"


def _text(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise FieldError(f"bad-{name}", f"a field's {name} must be text")
    if not is_text(value):
        raise FieldError("lone-surrogate", f"a field's {name} is not text: half a surrogate pair")
    return value


_WRONG_LABELS: Final = ("label", "name", "title")
_CHUNK: Final = 64 * 1024
_LEVELS_LEFT: Final = jsontext.DEPTH_LIMIT - 2  # inside the array and a field's object


def chunks(fields: Iterable[Field]) -> Iterator[bytes]:
    """The JSON text of the fields as UTF-8, in pieces of up to about 64 KiB, none of them empty.

    Values are escaped slice by slice, so that none is copied whole.
    Raises FieldError with reason `lone-surrogate`, `not-utf8`, `not-finite`, `too-deep` or
    `not-a-json-value`, and PayloadTooLargeError as soon as PLAINTEXT_LIMIT is exceeded.
    """
    for chunk in enforce_limit(_gathered(_pieces(fields))):
        yield bytes(chunk)


def dump(fields: Iterable[Field]) -> bytes:
    """The JSON text of the fields as UTF-8, compact and not ASCII-escaped.

    Raises what `chunks` raises.
    """
    return b"".join(chunks(fields))


def load(data: bytes, *, blank_labels: bool = False) -> list[Field]:
    """The fields of a plaintext, in order; values are str.

    With `blank_labels`, a field without `key` has an empty one, as on the service's page, which
    shows a blank label. Raises FieldError with the reasons of `jsontext.loads`, or `not-an-array`,
    `not-an-object`, `missing-key` (`label-not-key` if it has `label`, `name` or `title` instead),
    `missing-value`, `missing-type`, `bad-key`, `bad-value`, `bad-type` (not text).
    """
    array: object = None
    reason = message = ""
    try:
        array = jsontext.loads(data)
    except EncodingError as error:
        reason, message = error.reason, error.message
    if reason:
        raise FieldError(reason, message)
    if not isinstance(array, list):
        raise FieldError("not-an-array", "the plaintext is not an array of fields")
    return [_field(item, number, blank_labels=blank_labels) for number, item in enumerate(array, 1)]


def _field(item: object, number: int, *, blank_labels: bool) -> Field:
    if not isinstance(item, dict):
        raise FieldError("not-an-object", f"field {number} is not an object")
    if blank_labels:
        item = {"key": "", **item}
    for name in ("key", "value", "type"):
        if name not in item:
            raise _missing(item, name, number)
        if not isinstance(item[name], str):
            raise FieldError(f"bad-{name}", f"field {number}: its `{name}` is not text")
    # A hint that is not text (such as null) is stored in `extra` instead.
    hints = {name: item[name] for name in (LANGUAGE, FILENAME) if isinstance(item.get(name), str)}
    taken = {"key", "value", "type", *hints}
    extra = {name: member for name, member in item.items() if name not in taken}
    # Without a warning: a type that is new to us is nobody's mistake here.
    loaded: Field = object.__new__(Field)
    loaded._fill(
        item["key"],
        item["value"],
        item["type"],
        hints.get(LANGUAGE),
        hints.get(FILENAME),
        extra,
        item,
    )
    return loaded


def _missing(item: Mapping[str, object], name: str, number: int) -> FieldError:
    wrong = (
        next((label for label in _WRONG_LABELS if label in item), None) if name == "key" else None
    )
    if wrong is None:
        return FieldError(f"missing-{name}", f"field {number} has no `{name}`")
    return FieldError(
        "label-not-key", f"field {number} has `{wrong}` where its label's name is `key`"
    )


def _pieces(fields: Iterable[Field]) -> Iterator[bytes]:
    separator = b"[{"
    for each in fields:
        for name, member in each.members().items():
            yield separator + _json(name) + b":"
            if name == "value":
                yield b'"'
                yield from escaped(each.value)
                yield b'"'
            else:
                yield _json(member)
            separator = b","
        separator = b"},{"
    yield b"[]" if separator == b"[{" else b"}]"


def _json(value: object) -> bytes:
    reason = message = ""
    try:
        return jsontext.dumps(value, levels=_LEVELS_LEFT).encode("utf-8")
    except EncodingError as error:
        reason, message = error.reason, error.message
    raise FieldError(reason, message)


def _gathered(pieces: Iterable[bytes]) -> Iterator[bytes]:
    small = bytearray()
    for piece in pieces:
        large = len(piece) > _CHUNK // 2
        if small and (large or len(small) + len(piece) > _CHUNK):
            yield bytes(small)
            small.clear()
        if large:
            yield piece
        else:
            small += piece
    if small:
        yield bytes(small)
