"""Encodes a mail whose text cannot become headers or markup, and parses it to verify that.

The headers are not made with `email.message`: it decodes RFC 2047 words when a header is assigned,
and their contents, line breaks included, then appear in the message (CPython before 3.12.3 and
3.13). So a title such as `=?utf-8?q?=0D=0ABcc:...?=` would inject headers.
"""

from __future__ import annotations

import base64
import binascii
import re
import secrets
import textwrap
from collections.abc import Sequence
from email import message_from_string
from email.headerregistry import AddressHeader
from email.message import MIMEPart
from email.policy import compat32, default
from typing import Final, NamedTuple

from sealpipe.plugin import PluginError, UnsupportedError


class NamedAddress(NamedTuple):
    """One address with a name, which may be empty."""

    name: str
    address: str


class Token(NamedTuple):
    """A value that is written unchanged: a date, an id."""

    text: str


class Header(NamedTuple):
    """A header: an address, a token, or one line of text."""

    name: str
    value: NamedAddress | Token | str


def write_mail(headers: Sequence[Header], plain: str, html: str) -> bytes:
    """Return the mail: these headers, and a body as plain text and as HTML, with CRLF.

    ASCII, except for other letters in an address (RFC 6532). Raises UnsupportedError if the result
    would be parsed differently: then it must not be sent.
    """
    boundary = f"=_{secrets.token_hex(16)}"  # "=_" cannot occur in quoted-printable text
    encoded = [(name, _encode_value(value)) for name, value in headers]
    encoded += [
        ("MIME-Version", "1.0"),
        ("Content-Type", f'multipart/alternative;\r\n boundary="{boundary}"'),
    ]
    parts = _encode_part(boundary, "plain", plain) + _encode_part(boundary, "html", html)
    content = f"{_join_headers(encoded)}\r\n{parts}--{boundary}--\r\n"
    try:
        difference = _find_difference(content, encoded, headers, (plain, html))
    # The reader is the standard library's: it may fail in any way.
    except Exception as error:  # noqa: BLE001
        difference = f"it cannot be read ({type(error).__name__})"
    if difference:
        raise unsafe_mail_error(difference)
    return content.encode()


def unsafe_mail_error(difference: str) -> PluginError:
    """Return the error for a mail that would be parsed differently. It was not sent."""
    return UnsupportedError(
        f"the mail would arrive changed: {difference}",
        remedy="nothing was sent; use a simpler title",
    )


_MAX_COLUMNS: Final = 76
"""Maximum columns of a line: RFC 5322 recommends 78, RFC 2047 requires 76."""

_MAX_WORD: Final = 39
"""Bytes in one RFC 2047 word: 52 in base64 and 12 of syntax, after the header's name."""

_ATOMS: Final = re.compile(r"[A-Za-z0-9!#$%&'*+/^_`{|}~-]+(?: [A-Za-z0-9!#$%&'*+/^_`{|}~-]+)*")


def _join_headers(encoded: Sequence[tuple[str, str]]) -> str:
    return "".join(f"{name}: {value}\r\n" for name, value in encoded)


def _encode_value(value: NamedAddress | Token | str) -> str:
    if isinstance(value, str):
        return _encode_text(value)
    return _encode_mailbox(value) if isinstance(value, NamedAddress) else value.text


def _encode_text(text: str) -> str:
    """Encode the value of an unstructured header.

    Unchanged if it is unambiguous, otherwise as RFC 2047 words.

    The contents of these words are not decoded again.
    """
    if (
        text.isascii()
        and text.isprintable()
        and "=?" not in text
        and text == " ".join(text.split())
    ):
        rows = textwrap.wrap(
            text, _MAX_COLUMNS - len("Subject: "), break_long_words=False, break_on_hyphens=False
        )
        if all(len(row) < _MAX_COLUMNS - len("Subject: ") for row in rows):
            return "\r\n ".join(rows)
    return _encode_words(text)


def _encode_words(text: str) -> str:
    words, chunk = [], b""
    for character in text:
        if len(chunk + character.encode()) > _MAX_WORD:
            words.append(chunk)
            chunk = b""
        chunk += character.encode()
    return "\r\n ".join(
        f"=?utf-8?b?{base64.b64encode(word).decode()}?=" for word in [*words, chunk] if word
    )


def _encode_mailbox(mailbox: NamedAddress) -> str:
    if not mailbox.name:
        return mailbox.address
    if (
        not (mailbox.name.isascii() and mailbox.name.isprintable())
        or "=?" in mailbox.name
        or len(mailbox.name) > _MAX_COLUMNS // 2
    ):
        name = _encode_words(mailbox.name)
    elif _ATOMS.fullmatch(mailbox.name):
        name = mailbox.name
    else:
        name = '"' + re.sub(r'(["\\])', r"\\\1", mailbox.name) + '"'
    return (
        f"{name}\r\n <{mailbox.address}>"
        if len(f"{name}{mailbox.address}") > _MAX_COLUMNS // 2
        else f"{name} <{mailbox.address}>"
    )


_PART: Final = (
    ("Content-Type", 'text/{kind}; charset="utf-8"'),
    ("Content-Transfer-Encoding", "quoted-printable"),
)


def _encode_part(boundary: str, kind: str, text: str) -> str:
    # Quoted-printable: no mail server needs to re-encode it, so the link stays intact.
    body = binascii.b2a_qp(text.encode(), istext=True).decode("ascii").replace("\n", "\r\n")
    head = "".join(f"{name}: {value.format(kind=kind)}\r\n" for name, value in _PART)
    return f"--{boundary}\r\n{head}\r\n{body}\r\n"


def _find_difference(
    content: str,
    encoded: Sequence[tuple[str, str]],
    expected: Sequence[Header],
    bodies: tuple[str, str],
) -> str:
    """Parse the finished mail and return how it differs from the input.

    An empty string if it does not.
    """
    if re.search(r"[\x00-\x09\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n)|(?<!\r)\n", content):
        return "it has a control character"
    if max(map(len, content.encode().split(b"\r\n"))) > _MAX_LINE:
        return "it has a line that is too long"
    if list(message_from_string(content, policy=compat32).raw_items()) != list(encoded):
        return "its headers differ"
    message = message_from_string(content, policy=default)
    if [name for name, _ in message.items()] != [name for name, _ in encoded]:
        return "its headers differ"
    for name, value in expected:
        if not _matches(message[name], value):
            return f"its {name} differs"
    if (
        message.get_content_type() != "multipart/alternative"
        or message.defects
        or message.preamble
        or message.epilogue
    ):
        return "its body differs"
    parts = list(message.iter_parts())
    if [_read_part(part) for part in parts] != [
        (kind, text) for kind, text in zip(_KINDS, bodies, strict=True)
    ]:
        return "its body differs"
    return ""


_MAX_LINE: Final = 998
"""Maximum octets of a line (RFC 5322)."""

_KINDS: Final = ("plain", "html")


def _matches(parsed: object, expected: NamedAddress | Token | str) -> bool:
    if not isinstance(expected, NamedAddress):
        text = expected if isinstance(expected, str) else expected.text
        return str(parsed) == text and not getattr(parsed, "defects", ())
    if not isinstance(parsed, AddressHeader):
        return False
    mailboxes = [(_without_spaces(each.display_name), each.addr_spec) for each in parsed.addresses]
    return mailboxes == [(_without_spaces(expected.name), expected.address)] and [
        each.display_name for each in parsed.groups
    ] == [None]


def _without_spaces(name: str) -> str:
    """Remove spaces that the standard library inserts between two RFC 2047 words of a name."""
    return "".join(name.split())


def _read_part(part: MIMEPart) -> tuple[str, str] | None:
    """Return kind and text of a part; None if it has unexpected content."""
    kind = part.get_content_subtype()
    if part.items() != [(name, value.format(kind=kind)) for name, value in _PART] or part.defects:
        return None
    return kind, str(part.get_content()).replace("\r\n", "\n")
