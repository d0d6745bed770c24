"""From the text of a setting to its value. UsageError says what is wrong with it."""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import urlsplit

from sealpipe import times
from sealpipe.errors import SettingError, UsageError
from sealpipe.loopback import in_clear
from sealpipe.reference import Reference, parse
from sealpipe.reference.text import PARAMETER_NAME

_MOST: Final = 2_147_483_647


def _http_url(name: str, text: str, in_clear_goes: str) -> str:
    try:
        parts = urlsplit(text)
        number = parts.port  # raises ValueError for a port that is none
    except ValueError:
        raise SettingError(f"{name} is not an address", remedy="write it as https://host/path") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or re.search(r"[\s\x00-\x1f]", text):
        raise SettingError(f"{name} is not an http(s) address", remedy="write it as https://host/path")
    if parts.username is not None or parts.query or parts.fragment or "?" in text or "#" in text or number == 0:
        raise SettingError(
            f"{name} has a user, a query, a fragment or port 0 in it", remedy="write it as https://host/path"
        )
    if in_clear(parts.scheme, parts.hostname):
        raise SettingError(
            f"{name} uses http:// to a host that is not this machine: {in_clear_goes} would travel in clear",
            remedy="use https://; http:// is for loopback only",
        )
    return text.rstrip("/")


def base_url(text: str) -> str:
    """The API's address. It ends in /v1 already: that is checked, never added."""
    url = _http_url("the base URL", text, "the credential")
    if not url.endswith("/v1"):
        raise SettingError("the base URL does not end in /v1", remedy="set SEALPIPE_BASE_URL with /v1 at its end")
    return url


def link_base_url(text: str) -> str:
    """The address that links start with."""
    return _http_url("the link base URL", text, "the page that opens the link")


def service_tag(text: str) -> str:
    """The service's short tag, as in the credential's prefix."""
    if not re.fullmatch(r"[a-z][a-z0-9]{0,15}", text, re.ASCII):
        raise SettingError("the service tag is not a short lower-case word", remedy="it is `svc` or the like")
    return text


def seconds(text: str) -> float:
    """A span given as a duration (`60s`, `2m`)."""
    return times.parse_duration(text).total_seconds()


def bind(text: str) -> str:
    """A text that a sealed link is bound to: one line that shows as it is, 512 characters at most."""
    if not text.strip():
        raise UsageError("a sealed link cannot be bound to nothing", remedy="name a text, or leave the option out")
    if not text.isprintable() or len(text) > 512:
        raise UsageError(
            "what a sealed link is bound to is one line of at most 512 characters that can be printed",
            remedy="name what is known on both sides, such as github:OWNER/REPO:RUN_ID",
        )
    return text


def code(text: str) -> str:
    """A short code; UsageError for none, and for a link."""
    from sealpipe.wire.link import called  # few commands take one as an option

    called(text)
    return text


def views(text: str) -> int | None:
    """How often a share may be opened; None for `unlimited`."""
    if text == "unlimited":
        return None
    return count(text)


def count(text: str) -> int:
    """A whole number from 1 to 2,147,483,647."""
    if not re.fullmatch(r"-?[0-9]{1,100}", text, re.ASCII):
        raise UsageError(f"{text[:20]!r} is not a whole number", remedy="write a whole number from 1 up")
    if int(text) < 1:
        raise UsageError(f"{text[:20]} is too small", remedy="it is at least 1")
    if int(text) > _MOST:
        raise UsageError(f"{text[:20]} is too large", remedy=f"it is at most {_MOST}")
    return int(text)


def limit(text: str) -> int | str:
    """A number of the operator's: a count, or a word that the rehearsal knows."""
    return text if text in ("plan", "unset") else count(text)


def header_name(text: str) -> str:
    """The name of an HTTP header."""
    if not re.fullmatch(r"[A-Za-z0-9-]{1,100}", text, re.ASCII):
        raise UsageError("a header's name is letters, digits and -")
    return text


def port(text: str) -> int:
    """A TCP port."""
    number = count(text)
    if number > 65535:
        raise UsageError(f"{number} is not a port", remedy="a port is at most 65535")
    return number


def param(text: str) -> tuple[str, Reference]:
    """`NAME=REF`: a name, and where its value comes from."""
    name, equals, ref = text.partition("=")
    if not equals or not re.fullmatch(PARAMETER_NAME, name):
        raise UsageError("this is not NAME=REF", remedy="write it as limit=text:5 or code=env:SHORT_CODE")
    return name, parse(ref, "what follows the first =")


def ask(text: str) -> Any:
    """`[ID=]PROMPT[:TYPE]` as a Prompt."""
    from sealpipe.prompts import parse_prompt  # who shares asks for nothing

    return parse_prompt(text)


def opens_with(text: str) -> str | Reference:
    """`credential`, or where a key comes from."""
    return text if text == "credential" else parse(text, "the key")


NOTIFY_ON = ("viewed", "denied", "expired", "deleted")


def notify_on(text: str) -> tuple[str, ...]:
    """Events parted by commas, each known and none twice."""
    events = tuple(text.split(","))
    for event in events:
        if event not in NOTIFY_ON:
            raise UsageError(f"{event[:20]!r} is no event", remedy=f"choose from {', '.join(NOTIFY_ON)}")
    if len(set(events)) < len(events):
        raise UsageError("an event is named twice", remedy="name each event once")
    return events
