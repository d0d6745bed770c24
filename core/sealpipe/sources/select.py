"""Selects the fields that a reference names from a document; decodes and encodes values. No I/O.

Errors name the reference and keys, never a value. A missing or empty value is SecretNotFoundError;
a reference that does not fit its document is ReferenceValueError; a value that cannot be text is
PluginError. Bytes are kept exactly, and a value that needs no change is not copied: it may be
megabytes.
"""

from __future__ import annotations

import binascii
import codecs
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple, NoReturn

from sealpipe.errors import (
    EncodingError,
    PayloadTooLargeError,
    PluginError,
    ReferenceValueError,
    SecretNotFoundError,
)
from sealpipe.plugin import Document
from sealpipe.reference import Everything, Item, Key, Pointer, Reference
from sealpipe.secret import Secret
from sealpipe.wire import jsontext
from sealpipe.wire.encoding import (
    PLAINTEXT_LIMIT,
    decode_base64,
    decode_base64url,
    encode_base64url,
)
from sealpipe.wire.fields import Field

_WHITESPACE: Final = " \t\r\n\f\v"
_SLICE_SIZE: Final = 64 * 1024
_INDEX: Final = re.compile(r"0|[1-9][0-9]{0,8}")
_MAX_KEYS_SHOWN: Final = 20
_PARAMETERS_FIRST: Final = "parameters stand before the selector: REF?optional=1#KEY"


class _RawValue(NamedTuple):
    """A value in a document, its label, its name in errors, and its key in the document."""

    label: str
    value: Any
    location: str
    key: str = ""


class SelectedValue(NamedTuple):
    """A value as it was selected: not empty, decoded, trimmed and encoded.

    `data` may be anything, text or not.
    """

    label: str
    data: bytes | str
    location: str
    is_secret: bool
    """False if the source says that it is public."""

    def choose_type(self, ref: Reference) -> str:
        """Return the type of the field that holds it."""
        # Determined here: the field would copy a large value.
        has_newline = "\n" in self.data if isinstance(self.data, str) else b"\n" in self.data
        given = ref.param("type")
        return given or (
            "text" if not self.is_secret else "multiline" if has_newline else "password"
        )


def select(
    document: Document, ref: Reference, *, label: str | None = None, form: str = ""
) -> list[Field]:
    """Return the fields in the order of the selector; none if all are optional and missing.

    `form` is the source's format, for a reference that names none. `decode=` applies to the
    document if the reference names its format, else to each value; `trim=` and, last, `encode=` to
    each value.
    """
    return [
        _make_field(label or each.label, each, ref)
        for each in select_values(document, ref, form=form)
    ]


def select_bytes(
    document: Document, ref: Reference, *, label: str | None = None, form: str = ""
) -> list[Field]:
    """Return the fields as `select` does, but of any bytes: no share can hold them."""
    return [
        Field(label or each.label, Secret(each.data), each.choose_type(ref))
        for each in select_values(document, ref, form=form)
    ]


def select_values(document: Document, ref: Reference, *, form: str = "") -> Iterator[SelectedValue]:
    """Yield the values as `select` does, but of any bytes."""
    encoding = ref.param("decode")
    content: Any = document.content
    form = ref.param("format", form) or ""
    if form:
        if isinstance(content, Mapping):
            _refuse(f"{ref} is already a map", "leave format= out", ref)
        if encoding and ref.param("format"):
            content, encoding = decode_text(content, encoding, str(ref)), None
        content = _parse(content, form, str(ref))
    elif document.format and not isinstance(content, Mapping):
        content = _parse(content, document.format, str(ref))
    for raw in _select_raw(content, ref):
        value = to_scalar(raw.value, raw.location)
        if encoding and value:
            value = decode_text(value, encoding, raw.location)
        if ref.flag("trim"):
            value = trim(value)
        if value and (text_encoding := ref.param("encode")):
            value = encode_value(value, text_encoding, raw.location)
        if value:
            yield SelectedValue(
                raw.label, value, raw.location, document.secret and raw.key not in document.public
            )
        elif not ref.flag("optional"):
            raise SecretNotFoundError(
                f"{raw.location} is empty",
                locator=str(ref),
                remedy="give it a value, or add ?optional=1 to leave the field out",
            )


def _parse(content: bytes | str, form: str, where: str) -> Any:
    from sealpipe.sources import documents  # most shares only read single values

    if not is_utf8(content):
        documents.refuse_document(where, form, "it is not UTF-8 text")
    return documents.parse_document(content, form, where)


def make_missing_error(ref: Reference, what: str, remedy: str = "") -> SecretNotFoundError:
    """Make the error for something missing, with the remedy that leaves the field out."""
    return SecretNotFoundError(
        what, locator=str(ref), remedy=remedy or "add ?optional=1 to leave the field out"
    )


def _make_field(label: str, value: SelectedValue, ref: Reference) -> Field:
    encoding = ref.param("encode")
    if encoding and len(value.data) > PLAINTEXT_LIMIT:
        # Said here: its owner knows the size that it has before it is encoded.
        raise PayloadTooLargeError(
            f"{value.location} is more than {PLAINTEXT_LIMIT // 1024 // 1024} MiB in {encoding}"
        )
    secret = to_secret(value.data, value.location)
    field_value = secret if value.is_secret else secret.reveal()
    return Field(
        label,
        field_value,
        value.choose_type(ref),
        language=ref.param("lang"),
        filename=ref.param("filename"),
    )


def _select_raw(content: Any, ref: Reference) -> Iterator[_RawValue]:
    if ref.selector is None:
        if isinstance(content, Mapping):
            _refuse(
                f"{ref} is a map, and no key is selected",
                f"add #KEY, or #* for all; {_list_keys(content)}",
                ref,
            )
        if isinstance(content, list):
            _refuse(f"{ref} is a list of {len(content)}", "point into it: #/0", ref)
        yield _RawValue(_get_default_label(ref), content, str(ref))
        return
    if not isinstance(content, Mapping | list):
        _refuse(
            f"{ref} is one value, not a map",
            "leave the selector out, or add ?format=json, yaml or dotenv before the #",
            ref,
        )
    for item in ref.selector:
        yield from _select_item(content, item, ref)


def _select_item(content: Any, item: Item, ref: Reference) -> Iterator[_RawValue]:
    if isinstance(item, Pointer):
        yield from _select_pointer(content, item, ref)
    elif not isinstance(content, Mapping):
        _refuse(f"{ref} is a list of {len(content)}, not a map", "point into it: #/0", ref)
    elif isinstance(item, Everything):
        if not content and not ref.flag("optional"):
            raise make_missing_error(ref, f"{ref} is a map without any key")
        for key, value in content.items():
            yield _RawValue(
                str(key) or _get_default_label(ref),
                value,
                _format_item(ref, Key(str(key))),
                str(key),
            )
    elif item.name in content:
        yield _RawValue(
            item.label or item.name or _get_default_label(ref),
            content[item.name],
            _format_item(ref, item),
            item.name,
        )
    elif not ref.flag("optional"):
        raise make_missing_error(
            ref,
            f"there is no key {_quote_key(item.name)} in {_format_document(ref)}",
            _PARAMETERS_FIRST if "?" in (item.label or item.name) else _list_keys(content),
        )


def _select_pointer(content: Any, item: Pointer, ref: Reference) -> Iterator[_RawValue]:
    value = content
    for number, token in enumerate(item.tokens, 1):
        if isinstance(value, Mapping) and token in value:
            value = value[token]
        elif isinstance(value, list) and _INDEX.fullmatch(token) and int(token) < len(value):
            value = value[int(token)]
        elif ref.flag("optional"):
            return
        else:
            keys_hint = _list_keys(value) if isinstance(value, Mapping) else ""
            raise make_missing_error(
                ref,
                f"there is nothing at {Pointer(item.tokens[:number])} in {_format_document(ref)}",
                keys_hint,
            )
    label = item.label or item.tokens[-1] or _get_default_label(ref)
    yield _RawValue(label, value, _format_item(ref, item), item.tokens[0])


def _get_default_label(ref: Reference) -> str:
    """Return the label of a reference without one.

    The last part of its path, else its source's name.
    """
    return ref.body.rstrip("/").rpartition("/")[2] or ref.name


def _format_document(ref: Reference) -> str:
    return str(Reference(ref.name, ref.body, ref.params))


def _format_item(ref: Reference, item: Item) -> str:
    return f"{_format_document(ref)}#{item}"


def _list_keys(content: Mapping[str, Any]) -> str:
    """List the keys for a remedy.

    They come from outside, so they are escaped and their number is limited.
    """
    names = [_quote_key(str(key)) for key in content]
    rest = f" and {len(names) - _MAX_KEYS_SHOWN} more" if len(names) > _MAX_KEYS_SHOWN else ""
    return f"its keys: {', '.join(names[:_MAX_KEYS_SHOWN])}{rest}" if names else "it has no keys"


def _quote_key(key: str) -> str:
    text = "".join(
        character if character.isprintable() else f"\\u{ord(character):04x}"
        for character in key[:64]
    )
    return f'"{text}{"..." if len(key) > 64 else ""}"'


def _refuse(what: str, remedy: str, ref: Reference) -> NoReturn:
    raise ReferenceValueError(what, locator=str(ref), remedy=remedy)


def to_scalar(value: Any, where: str) -> bytes | str:
    """Return a document's value as text or bytes; empty for null.

    Numbers and booleans become JSON text, as spelled in the document. Null becomes empty, because
    its text would be taken for a password. Maps and lists are refused.
    """
    if value is None:
        return b""
    if isinstance(value, bytes | str):
        return value
    if isinstance(value, Mapping | list | tuple):
        kind = "a map" if isinstance(value, Mapping) else "a list"
        raise ReferenceValueError(
            f"{where} is {kind}, not a value", locator=where, remedy="point into it: #/key/key"
        )
    if isinstance(value, bool | int | float):
        try:
            return jsontext.dumps(value)
        except EncodingError:
            pass
    raise PluginError(f"{where} is a {type(value).__name__}, which has no text", locator=where)


def decode_text(value: bytes | str, encoding: str, where: str) -> bytes:
    """Return the bytes of base64, base64url or hex text; white space in it is ignored.

    Raises PluginError.
    """
    raw = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
    # Never fails: the alphabet is checked below.
    text = raw.translate(None, _WHITESPACE.encode()).decode("latin-1")
    reason = ""
    try:
        if encoding == "hex":
            return bytes.fromhex(text)
        if encoding == "base64":
            return decode_base64(text)
        if len(text) % 4 == 0:
            # RFC 4648 allows base64url with padding.
            text = text.removesuffix("=").removesuffix("=")
        return decode_base64url(text)
    except EncodingError as error:
        reason = error.message
    except ValueError:
        reason = "a character that is no hexadecimal digit, or an odd number of them"
    raise PluginError(
        f"{where} is not {encoding}: {reason}",
        locator=where,
        remedy="remove decode=, or fix the value",
    )


_ENCODERS: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "base64": lambda data: binascii.b2a_base64(data, newline=False),
    "base64url": lambda data: encode_base64url(data).encode(),
    "hex": binascii.hexlify,
}
"""Bytes from bytes: text would be one more copy of a large value."""


def encode_value(value: bytes | str, encoding: str, where: str) -> bytes:
    """Return the bytes of a value as one line of base64, base64url (without padding) or hex.

    In ASCII; `decode_text` accepts it. Raises PluginError for half a surrogate pair, which has no
    bytes.
    """
    if isinstance(value, str) and not is_utf8(value):
        raise _make_text_error(value, where)
    return _ENCODERS[encoding](value.encode() if isinstance(value, str) else value)


def trim(value: bytes | str) -> bytes | str:
    """Remove white space (ASCII) at both ends."""
    return value.strip(_WHITESPACE) if isinstance(value, str) else value.strip(_WHITESPACE.encode())


def is_utf8(value: bytes | str) -> bool:
    """Return whether the value is UTF-8 text, checked slice by slice."""
    if isinstance(value, str):
        return jsontext.is_text(value)
    if value.isascii():
        return True
    decoder = codecs.getincrementaldecoder("utf-8")()
    view = memoryview(value)
    try:
        for start in range(0, len(view), _SLICE_SIZE):
            decoder.decode(view[start : start + _SLICE_SIZE])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def to_secret(value: bytes | str, where: str) -> Secret:
    """Wrap the value in a Secret. PluginError if it is not UTF-8: a share holds text."""
    if is_utf8(value):
        return Secret(value)
    raise _make_text_error(value, where)


def _make_text_error(value: bytes | str, where: str) -> PluginError:
    """Make the error for a value that is not UTF-8; it does not contain the value."""
    if isinstance(value, str):
        remedy = "it has half a surrogate pair: correct it at its source"
    elif value[:2] in (b"\xff\xfe", b"\xfe\xff"):
        remedy = (
            "it looks like UTF-16, as some Windows programs write: store it as UTF-8; "
            "if it is no text, add ?encode=base64"
        )
    else:
        remedy = (
            "a share holds text: add ?encode=base64, and tell the recipient to decode it "
            "(`base64 -d`)"
        )
    return PluginError(f"{where} is not UTF-8 text", locator=where, remedy=remedy)
