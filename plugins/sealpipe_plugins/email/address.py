"""Exactly one email address, and nothing that a mail system could read as more than one.

By hand: `email.utils` accepts names, comments, quotes and lists, and no other parser is a dependency.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from sealpipe.plugin import ReferenceValueError

_LOCAL: Final = re.compile(r"[A-Za-z0-9#$&'*+/=^_{}~-]+(?:\.[A-Za-z0-9#$&'*+/=^_{}~-]+)*")
_MOST_LOCAL, _MOST = 64, 254
"""Octets of the local part and of the whole, by RFC 5321."""

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


def address(text: str) -> str:
    """The address with its domain in ASCII. ReferenceValueError says what is wrong, never what was given."""
    for sign in text:
        if not sign.isprintable() or sign.isspace():
            raise _bad("white space, or a character that cannot be seen")
        if sign in _HINTS:
            raise _bad(_HINTS[sign])
    local, at, domain = text.rpartition("@")
    if not at or "@" in local:
        raise _bad("not exactly one @")
    if not _LOCAL.fullmatch(_as_letters(local)) or local.startswith("-") or len(local.encode()) > _MOST_LOCAL:
        raise _bad("a part before the @ that is none")
    whole = f"{local}@{_domain(domain)}"
    if len(whole.encode()) > _MOST:
        raise _bad("too many characters")
    return whole


def _as_letters(local: str) -> str:
    """With an x for each letter or digit beyond ASCII (RFC 6531); what has two ways of being written is no letter."""
    if unicodedata.normalize("NFKC", local) != local:
        return ""
    return "".join("x" if sign > "\x7f" and unicodedata.category(sign)[0] in "LMN" else sign for sign in local)


def _domain(domain: str) -> str:
    import idna  # httpx brings it

    try:
        encoded = idna.encode(domain.lower(), strict=True, std3_rules=True).decode("ascii")
    except (idna.IDNAError, UnicodeError):
        encoded = ""
    labels = encoded.split(".")
    if len(labels) < 2 or not all(labels) or labels[-1].isdigit():
        raise _bad("a domain that is none")
    return encoded


def _bad(what: str) -> ReferenceValueError:
    return ReferenceValueError(
        f"the recipient is not one address: it has {what}", remedy="write it as email:name@example.com"
    )
