"""Documents and values: parse JSON, YAML and dotenv, decode, trim, and prove that a value is text.

Nothing is interpreted beyond the structure: a number keeps its spelling, a dotenv value is not expanded. A parser's own
error is never shown, and never kept behind ours: it holds the text. Bytes are kept exactly. A value that needs no
change is not copied: it may be megabytes.
"""

from __future__ import annotations

import codecs
import io
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final, NoReturn

from sealpipe.errors import EncodingError, NotConfiguredError, PluginError, ReferenceValueError
from sealpipe.secret import Secret
from sealpipe.wire import jsontext
from sealpipe.wire.encoding import decode_base64, decode_base64url

_WHITESPACE: Final = " \t\r\n\f\v"
_SLICE_SIZE: Final = 64 * 1024


def to_scalar(value: Any, where: str) -> bytes | str:
    """A value of a document as text or bytes; empty for a null.

    Numbers and booleans are their JSON text, spelled as the document spelled them. A null holds nothing:
    its text would pass for a password. Maps and lists are refused.
    """
    if value is None:
        return b""
    if isinstance(value, bytes | str):
        return value
    if isinstance(value, Mapping | list | tuple):
        kind = "a map" if isinstance(value, Mapping) else "a list"
        raise ReferenceValueError(f"{where} is {kind}, not a value", locator=where, remedy="point into it: #/key/key")
    if isinstance(value, bool | int | float):
        try:
            return jsontext.dumps(value)
        except EncodingError:
            pass
    raise PluginError(f"{where} is a {type(value).__name__}, which has no text", locator=where)


def decode_text(value: bytes | str, encoding: str, where: str) -> bytes:
    """The bytes that base64, base64url or hex text stands for. White space between them is not counted."""
    raw = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
    text = raw.translate(None, _WHITESPACE.encode()).decode("latin-1")  # never fails: the alphabet is checked below
    reason = ""
    try:
        if encoding == "hex":
            return bytes.fromhex(text)
        if encoding == "base64":
            return decode_base64(text)
        if len(text) % 4 == 0:
            text = text.removesuffix("=").removesuffix("=")  # some write the padding, the RFC lets them
        return decode_base64url(text)
    except EncodingError as error:
        reason = error.message
    except ValueError:
        reason = "a character that is no hexadecimal digit, or an odd number of them"
    raise PluginError(f"{where} is not {encoding}: {reason}", locator=where, remedy="remove decode=, or fix the value")


def trim(value: bytes | str) -> bytes | str:
    """Without white space (ASCII) at both ends."""
    return value.strip(_WHITESPACE) if isinstance(value, str) else value.strip(_WHITESPACE.encode())


def is_utf8(value: bytes | str) -> bool:
    """Whether it is text in UTF-8, found out slice by slice."""
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
    """The value, closed. PluginError where it is not UTF-8: a share holds text."""
    if is_utf8(value):
        return Secret(value)
    # Never raised where the error of the decoder could be seen: that holds the value.
    if isinstance(value, bytes) and value[:2] in (b"\xff\xfe", b"\xfe\xff"):
        remedy = "it looks like UTF-16, as some Windows programs write: store it as UTF-8"
    else:
        remedy = (
            "a share holds text: encode it first (base64 FILE | sealpipe share -f LABEL=stdin:) and tell the "
            "recipient; decode= is for a value that is base64 or hex where it lives"
        )
    raise PluginError(f"{where} is not UTF-8 text", locator=where, remedy=remedy)


_BOM: Final = b"\xef\xbb\xbf"
_NULL: Final = "tag:yaml.org,2002:null"


def parse_document(content: bytes | str, form: str, where: str) -> Any:
    """The content of a document. Raises PluginError naming `where`, and the line where that is known."""
    if not is_utf8(content):
        _refuse(where, form, "it is not UTF-8 text")
    data = content.encode("utf-8") if isinstance(content, str) else content
    data = data.removeprefix(_BOM)  # a mark of the file, not of what is in it
    return {"json": _parse_json, "yaml": _parse_yaml, "dotenv": _parse_dotenv}[form](data, where)


def _refuse(where: str, form: str, reason: str) -> NoReturn:
    raise PluginError(f"{where} cannot be read as {form}: {reason}", locator=where, remedy="fix it, or change format=")


def _parse_json(data: bytes, where: str) -> Any:
    try:
        return jsontext.loads(data)
    except EncodingError as error:
        reason = error.message
    _refuse(where, "json", reason)


def _parse_dotenv(data: bytes, where: str) -> dict[str, str]:
    from dotenv.parser import parse_stream  # comes with pydantic-settings; only this needs it

    values: dict[str, str] = {}
    for binding in parse_stream(io.StringIO(data.decode("utf-8"))):
        if binding.error:
            _refuse(where, "dotenv", f"line {binding.original.line} is not NAME=VALUE")
        # A name without = sets nothing. It is no key either: a line of a secret would pass for one.
        if binding.key is not None and binding.value is not None:
            values[binding.key] = binding.value  # the last one counts, as in a shell
    return values


def _parse_yaml(data: bytes, where: str) -> Any:
    try:
        yaml = import_module("yaml")
    except ImportError:
        yaml = None
    if yaml is None:
        raise NotConfiguredError(
            f"{where}: reading YAML needs a package that is not installed",
            locator=where,
            remedy="pip install pyyaml",
        )
    reason = "it is nested too deeply"
    try:
        return _convert_yaml(yaml.compose(data.decode("utf-8"), Loader=yaml.SafeLoader), {})
    except yaml.YAMLError as error:
        problem_mark = getattr(error, "problem_mark", None)
        reason = "it is not YAML" if problem_mark is None else f"line {problem_mark.line + 1}"
    except _NotAMapError as error:
        reason = f"line {error.line} repeats a key, or has one that is no text"
    except RecursionError:
        pass
    _refuse(where, "yaml", reason)


class _NotAMapError(Exception):  # never leaves this module
    def __init__(self, node: Any) -> None:
        self.line = node.start_mark.line + 1


def _convert_yaml(node: Any, converted: dict[int, Any]) -> Any:
    """A node as its value. Scalars keep their text (`0123`, `yes`); an alias is the same value, not a copy."""
    if node is None or node.tag == _NULL:
        return None
    if isinstance(node.value, str):
        return node.value
    if id(node) in converted:
        return converted[id(node)]
    if node.id == "sequence":
        items: list[Any] = []
        converted[id(node)] = items
        items.extend(_convert_yaml(item, converted) for item in node.value)
        return items
    members: dict[str, Any] = {}
    converted[id(node)] = members
    for key, value in node.value:
        if not isinstance(key.value, str) or key.value in members:
            raise _NotAMapError(key)
        members[key.value] = _convert_yaml(value, converted)
    return members
