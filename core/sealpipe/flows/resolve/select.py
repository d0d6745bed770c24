"""From a document to the fields that a reference takes out of it. Pure.

Errors name the reference and keys, never a value. What is missing or empty is SecretNotFoundError; a reference that
does not fit its document is ReferenceValueError; a value that cannot be text, PluginError.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, NoReturn

from sealpipe.errors import ReferenceValueError, SecretNotFoundError
from sealpipe.flows.resolve.decode import decode_text, parse_document, to_scalar, to_secret, trim
from sealpipe.plugin import Document
from sealpipe.reference import Everything, Item, Key, Pointer, Reference
from sealpipe.secret import Secret
from sealpipe.wire.fields import Field

_INDEX: Final = re.compile(r"0|[1-9][0-9]{0,8}")
_KEYS_SHOWN: Final = 20


class _RawValue(NamedTuple):
    """A value as the document has it, its label, what an error calls it, and the document's own key for it."""

    label: str
    value: Any
    where: str
    key: str = ""


def select(document: Document, ref: Reference, *, label: str | None = None, form: str = "") -> list[Field]:
    """The fields, in the order of the selector. Empty where all of them are optional and missing.

    `form` is the source's format where the reference names none. `decode=` applies to the document where one of
    these is read, else to each value; `trim=` applies to each value, last.
    """
    how = ref.param("decode")
    content: Any = document.content
    form = ref.param("format", form) or ""
    if form:
        if isinstance(content, Mapping):
            _bad(f"{ref} is a map already", "leave format= out", ref)
        content = parse_document(decode_text(content, how, str(ref)) if how else content, form, str(ref))
        how = None
    elif document.format and not isinstance(content, Mapping):
        content = parse_document(content, document.format, str(ref))
    fields = []
    for taken in _select_raw(content, ref):
        value = to_scalar(taken.value, taken.where)
        if how and value:
            value = decode_text(value, how, taken.where)
        if ref.flag("trim"):
            value = trim(value)
        if value:
            secret = to_secret(value, taken.where)
            hidden = document.secret and taken.key not in document.public
            fields.append(_field(label or taken.label, secret, value, ref, hidden=hidden))
        elif not ref.flag("optional"):
            raise SecretNotFoundError(
                f"{taken.where} is empty",
                locator=str(ref),
                remedy="give it a value, or add ?optional=1 to leave the field out",
            )
    return fields


def missing_error(ref: Reference, what: str, remedy: str = "") -> SecretNotFoundError:
    """The error for something that is not there, with the way to leave it out."""
    return SecretNotFoundError(what, locator=str(ref), remedy=remedy or "add ?optional=1 to leave the field out")


def _field(label: str, secret: Secret, value: bytes | str, ref: Reference, *, hidden: bool) -> Field:
    kind = ref.param("type")
    if kind is None and not hidden:
        kind = "text"
    if kind is None:  # said here: asking the field would copy a large value
        broken = "\n" in value if isinstance(value, str) else b"\n" in value
        kind = "multiline" if broken else "password"
    shown = secret if hidden else secret.reveal()
    return Field(label, shown, kind, language=ref.param("lang"), filename=ref.param("filename"))


def _select_raw(content: Any, ref: Reference) -> Iterator[_RawValue]:
    if ref.selector is None:
        if isinstance(content, Mapping):
            _bad(f"{ref} is a map, and no key is selected", f"add #KEY, or #* for all; {_keys(content)}", ref)
        if isinstance(content, list):
            _bad(f"{ref} is a list of {len(content)}", "point into it: #/0", ref)
        yield _RawValue(_last_part(ref), content, str(ref))
        return
    if not isinstance(content, Mapping | list):
        _bad(f"{ref} is one value, not a map", "leave the selector out, or add format=json, yaml or dotenv", ref)
    for item in ref.selector:
        yield from _item(content, item, ref)


def _item(content: Any, item: Item, ref: Reference) -> Iterator[_RawValue]:
    if isinstance(item, Pointer):
        yield from _pointer(content, item, ref)
    elif not isinstance(content, Mapping):
        _bad(f"{ref} is a list of {len(content)}, not a map", "point into it: #/0", ref)
    elif isinstance(item, Everything):
        if not content and not ref.flag("optional"):
            raise missing_error(ref, f"{ref} is a map without any key")
        for key, value in content.items():
            yield _RawValue(str(key) or _last_part(ref), value, _where(ref, Key(str(key))), str(key))
    elif item.name in content:
        yield _RawValue(item.label or item.name or _last_part(ref), content[item.name], _where(ref, item), item.name)
    elif not ref.flag("optional"):
        raise missing_error(ref, f"there is no key {_shown(item.name)} in {_whole(ref)}", _keys(content))


def _pointer(content: Any, item: Pointer, ref: Reference) -> Iterator[_RawValue]:
    value = content
    for number, token in enumerate(item.tokens, 1):
        if isinstance(value, Mapping) and token in value:
            value = value[token]
        elif isinstance(value, list) and _INDEX.fullmatch(token) and int(token) < len(value):
            value = value[int(token)]
        elif ref.flag("optional"):
            return
        else:
            there = _keys(value) if isinstance(value, Mapping) else ""
            raise missing_error(ref, f"there is nothing at {Pointer(item.tokens[:number])} in {_whole(ref)}", there)
    label = item.label or item.tokens[-1] or _last_part(ref)
    yield _RawValue(label, value, _where(ref, item), item.tokens[0])


def _last_part(ref: Reference) -> str:
    """The label that a reference gives by itself: the last part of its path, else its source's name."""
    return ref.body.rstrip("/").rpartition("/")[2] or ref.name


def _whole(ref: Reference) -> str:
    return str(Reference(ref.name, ref.body, ref.params))


def _where(ref: Reference, item: Item) -> str:
    return f"{_whole(ref)}#{item}"


def _keys(content: Mapping[str, Any]) -> str:
    """What keys there are. They come from outside: nothing unprintable, and not without end."""
    names = [_shown(str(key)) for key in content]
    more = f" and {len(names) - _KEYS_SHOWN} more" if len(names) > _KEYS_SHOWN else ""
    return f"its keys: {', '.join(names[:_KEYS_SHOWN])}{more}" if names else "it has no keys"


def _shown(key: str) -> str:
    text = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in key[:64])
    return f'"{text}{"..." if len(key) > 64 else ""}"'


def _bad(what: str, remedy: str, ref: Reference) -> NoReturn:
    raise ReferenceValueError(what, locator=str(ref), remedy=remedy)
