"""The plaintext of a share or a submission: a JSON array of labelled values.

Specification: "Plaintext field array (client-side, inside the ciphertext)"; gaps: "field types, further".
What is written is what a browser's `JSON.stringify` gives; what is read is kept whole, so that
`dump(load(data)) == data` for every compact `data`, members that we do not know included.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from sealpipe.errors import EncodingError, FieldError
from sealpipe.wire import jsontext
from sealpipe.wire.encoding import PLAINTEXT_LIMIT as PLAINTEXT_LIMIT
from sealpipe.wire.encoding import within_limit
from sealpipe.wire.escape import escaped
from sealpipe.wire.field import FILENAME as FILENAME
from sealpipe.wire.field import LANGUAGE as LANGUAGE
from sealpipe.wire.field import TYPES as TYPES
from sealpipe.wire.field import Field as Field

_WRONG_LABELS: Final = ("label", "name", "title")
_CHUNK: Final = 64 * 1024
_LEVELS_LEFT: Final = jsontext.DEPTH_LIMIT - 2  # inside the array and a field's object


def chunks(fields: Iterable[Field]) -> Iterator[bytes]:
    """The JSON text of the fields as UTF-8, in pieces of about 64 KiB at most, none of them empty.

    A value is escaped slice by slice, a Secret made from bytes from its bytes: it is never copied whole.
    Raises FieldError with reason `lone-surrogate`, `not-utf8`, `not-finite`, `too-deep` or
    `not-a-json-value`, and PayloadTooLargeError as soon as PLAINTEXT_LIMIT is passed.
    """
    for chunk in within_limit(_gathered(_pieces(fields))):
        yield bytes(chunk)


def dump(fields: Iterable[Field]) -> bytes:
    """The JSON text of the fields as UTF-8, compact and not ASCII-escaped. Raises as `chunks` does."""
    return b"".join(chunks(fields))


def load(data: bytes) -> list[Field]:
    """The fields of a plaintext, in order; values are str.

    Raises FieldError with the reasons of `jsontext.loads`, or `not-an-array`, `not-an-object`, `missing-key`
    (`label-not-key` where `label`, `name` or `title` stands in its place), `missing-value`, `missing-type`,
    `bad-key`, `bad-value`, `bad-type` (not text).
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
    return [_field(item, number) for number, item in enumerate(array, 1)]


def _field(item: object, number: int) -> Field:
    if not isinstance(item, dict):
        raise FieldError("not-an-object", f"field {number} is not an object")
    for name in ("key", "value", "type"):
        if name not in item:
            raise _missing(item, name, number)
        if not isinstance(item[name], str):
            raise FieldError(f"bad-{name}", f"field {number}: its `{name}` is not text")
    # A hint that is no text (null, say) is nothing to us, and still kept as it was.
    hints = {name: item[name] for name in (LANGUAGE, FILENAME) if isinstance(item.get(name), str)}
    taken = {"key", "value", "type", *hints}
    return Field(
        item["key"],
        item["value"],
        item["type"],
        language=hints.get(LANGUAGE),
        filename=hints.get(FILENAME),
        extra={name: member for name, member in item.items() if name not in taken},
        order=item,
    )


def _missing(item: Mapping[str, object], name: str, number: int) -> FieldError:
    wrong = next((label for label in _WRONG_LABELS if label in item), None) if name == "key" else None
    if wrong is None:
        return FieldError(f"missing-{name}", f"field {number} has no `{name}`")
    return FieldError("label-not-key", f"field {number} has `{wrong}` where its label's name is `key`")


def _pieces(fields: Iterable[Field]) -> Iterator[bytes]:
    separator = b"[{"
    for field in fields:
        for name, member in field.members().items():
            yield separator + _json(name) + b":"
            if name == "value":
                yield b'"'
                yield from escaped(field.value)
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
