"""One value on its way from a document to a field: decode, trim, and the proof that it is text.

Bytes are kept exactly. A value that needs no change is not copied: it may be megabytes.
"""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from typing import Any, Final

from sealpipe.errors import EncodingError, PluginError, ReferenceValueError
from sealpipe.secret import Secret
from sealpipe.wire import jsontext
from sealpipe.wire.encoding import decode_base64, decode_base64url

_WHITE: Final = " \t\r\n\f\v"
_SLICE: Final = 64 * 1024


def scalar(value: Any, where: str) -> bytes | str:
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


def decoded(value: bytes | str, how: str, where: str) -> bytes:
    """The bytes that base64, base64url or hex text stands for. White space between them is not counted."""
    raw = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
    text = raw.translate(None, _WHITE.encode()).decode("latin-1")  # never fails: the alphabet is checked below
    reason = ""
    try:
        if how == "hex":
            return bytes.fromhex(text)
        if how == "base64":
            return decode_base64(text)
        if len(text) % 4 == 0:
            text = text.removesuffix("=").removesuffix("=")  # some write the padding, the RFC lets them
        return decode_base64url(text)
    except EncodingError as error:
        reason = error.message
    except ValueError:
        reason = "a character that is no hexadecimal digit, or an odd number of them"
    raise PluginError(f"{where} is not {how}: {reason}", locator=where, remedy="leave decode= out, or mend the value")


def trimmed(value: bytes | str) -> bytes | str:
    """Without white space (ASCII) at both ends."""
    return value.strip(_WHITE) if isinstance(value, str) else value.strip(_WHITE.encode())


def is_utf8(value: bytes | str) -> bool:
    """Whether it is text in UTF-8, found out slice by slice."""
    if isinstance(value, str):
        return jsontext.is_text(value)
    if value.isascii():
        return True
    decoder = codecs.getincrementaldecoder("utf-8")()
    view = memoryview(value)
    try:
        for start in range(0, len(view), _SLICE):
            decoder.decode(view[start : start + _SLICE])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def as_secret(value: bytes | str, where: str) -> Secret:
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
