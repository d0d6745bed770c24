"""Parses exactly one email address, and rejects anything that a mail system could read as several.

A parser of our own: `email.utils` accepts names, comments, quotes and lists, and no dependency has
a stricter one.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from sealpipe.plugin import ReferenceValueError

_LOCAL: Final = re.compile(r"[A-Za-z0-9#$&'*+/=^_{}~-]+(?:\.[A-Za-z0-9#$&'*+/=^_{}~-]+)*")
_MAX_LOCAL, _MAX_ADDRESS = 64, 254
"""Maximum octets of the local part and of the whole address (RFC 5321)."""

_HINTS: Final = {
    ",": "a comma: one address only",
    ";": "a semicolon: one address only",
    "?": "a question mark",
    "<": "an angle bracket: the bare address, without a name",
    '"': "a quoted part",
    "%": "a percent sign, which routes to another host",
    "!": "an exclamation mark, which routes to another host",
    "(": "a comment",
}


def parse_address(text: str) -> str:
    """Return the address with its domain in ASCII.

    ReferenceValueError names the problem, never the input.
    """
    for character in text:
        if not character.isprintable() or character.isspace():
            raise _address_error("white space or an invisible character")
        if character in _HINTS:
            raise _address_error(_HINTS[character])
    local, at_sign, domain = text.rpartition("@")
    if not at_sign or "@" in local:
        raise _address_error("not exactly one @")
    if (
        not _LOCAL.fullmatch(_mask_letters(local))
        or local.startswith("-")
        or len(local.encode()) > _MAX_LOCAL
    ):
        raise _address_error("an invalid part before the @")
    address = f"{local}@{_encode_domain(domain)}"
    if len(address.encode()) > _MAX_ADDRESS:
        raise _address_error("too many characters")
    return address


def _mask_letters(local: str) -> str:
    """Replace each letter or digit beyond ASCII (RFC 6531) by an x.

    Return "" for text that is not normalised.
    """
    if unicodedata.normalize("NFKC", local) != local:
        return ""
    return "".join(
        "x" if character > "\x7f" and unicodedata.category(character)[0] in "LMN" else character
        for character in local
    )


def _encode_domain(domain: str) -> str:
    import idna  # a dependency of httpx

    try:
        encoded = idna.encode(domain.lower(), strict=True, std3_rules=True).decode("ascii")
    except (idna.IDNAError, UnicodeError):
        encoded = ""
    labels = encoded.split(".")
    if len(labels) < 2 or not all(labels) or labels[-1].isdigit():
        raise _address_error("an invalid domain")
    return encoded


def _address_error(what: str) -> ReferenceValueError:
    return ReferenceValueError(
        f"the recipient is not a single address: it has {what}",
        remedy="write it as email:name@example.com",
    )
