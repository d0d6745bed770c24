"""Parses and formats values as people write them.

Durations, times, URLs and hosts, counts, short codes, events.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from sealpipe.errors import Remedy, SettingError, UsageError, find_similar, quote_input

_MAX_COUNT: Final = 2_147_483_647
_DURATION = re.compile(r"([0-9]{1,9})([smhdw])", re.ASCII)
# No hour 24: Python 3.14 and later would read it as the next day.
_RFC3339 = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ](?!24)\d\d:\d\d:\d\d(\.\d{1,9})?(?P<zone>[Zz]|[+-]\d\d:\d\d)?", re.ASCII
)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


_NAME = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._-]{1,100}")
NAME_PLACEHOLDER: Final = "{name}"
ADD_NAME: Final = Remedy("add --name NAME", python="write name=NAME")


def parse_name(text: str) -> str:
    """Parse the owner's name for a share or a request.

    It can stand in a path, and never makes one. Raises UsageError.

    The text is not shown: it may be a secret.
    """
    if not _NAME.fullmatch(text):
        raise UsageError(
            (
                "the name has other characters than letters, digits, `.`, `-` and `_`, or more "
                "than 100 of them"
            ),
            remedy="write it as staging-db",
        )
    return text


def fill_name(path: str, name: str | None, option: str) -> str:
    """Return a path with `{name}` filled in; other braces stay.

    UsageError, which calls it `option`, without a name, or for one that would be obeyed there
    (`begins_special`).
    """
    before = path.split(NAME_PLACEHOLDER)[:-1]
    if before and name is None:
        raise UsageError(f"{option} contains {{name}}, and there is no name", remedy=ADD_NAME)
    if name and any(begins_special(each, name) for each in before):
        raise UsageError(
            f"{option}: the name would begin a part of the path with . or -",
            remedy="write the name as staging-db",
        )
    return path.replace(NAME_PLACEHOLDER, name or "")


def begins_special(before: str, text: str) -> bool:
    """Return whether filled-in text begins a path part with `.`, `-` or `~` (after `before`).

    Programs obey such names: files such as `.bashrc`, an option such as `-rf`, and the home folder
    `~root`.
    """
    return text.startswith((".", "-", "~")) and (not before or before.endswith("/"))


def find_nearest_file(path: Path) -> Path | None:
    """Return the nearest name in the folder of a path where nothing is, or None."""
    try:
        names = [] if path.exists() else [each.name for each in path.parent.iterdir()]
    except (OSError, ValueError):  # ValueError: a NUL character in the name
        names = []
    return next((path.with_name(each) for each in find_similar(path.name, names)), None)


def parse_duration(text: str) -> timedelta:
    """Parse `N(s|m|h|d|w)`. UsageError if the text is no duration, or it is zero."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise UsageError(
            f"{quote_input(text)} is not a duration",
            remedy="write a whole number and one of s m h d w, such as 72h",
        )
    seconds = int(match[1]) * _SECONDS[match[2]]
    if seconds == 0:
        raise UsageError("a duration cannot be zero", remedy="write at least 1s")
    if seconds > 100 * 366 * 86400:
        raise UsageError(
            f"{quote_input(text)} is more than a hundred years",
            remedy=Remedy("use --no-expiry for no end", python="write expires_in=None for no end"),
        )
    return timedelta(seconds=seconds)


def as_duration(value: timedelta | str) -> timedelta:
    """Return a duration as a timedelta; parses text as `parse_duration` does."""
    return parse_duration(value) if isinstance(value, str) else value


def as_seconds(value: timedelta | str | float) -> float:
    """Return a duration in seconds. A number is already in seconds."""
    return as_duration(value).total_seconds() if isinstance(value, timedelta | str) else value


def parse_time(text: str) -> datetime:
    """Parse an RFC 3339 time with a time zone into an aware datetime. Raises UsageError."""
    match = _RFC3339.fullmatch(text)
    remedy = "write it as 2026-12-31T12:00:00Z or 2026-12-31T12:00:00+01:00"
    if match is None:
        raise UsageError(f"{quote_input(text)} is not an RFC 3339 time", remedy=remedy)
    if match["zone"] is None:
        raise UsageError(f"{quote_input(text)} has no time zone", remedy=remedy)
    try:
        moment = datetime.fromisoformat(text.upper())
        moment.astimezone(UTC)  # near the first and the last year, it may overflow
    except (ValueError, OverflowError):
        raise UsageError(
            f"{quote_input(text)} is not an existing date or time", remedy=remedy
        ) from None
    return moment


def format_time(moment: datetime) -> str:
    """Format a time as RFC 3339 in UTC, in whole seconds: `2026-12-31T12:00:00Z`.

    UsageError without a time zone.
    """
    if moment.tzinfo is None or moment.utcoffset() is None:
        raise UsageError(
            "a time without a time zone could mean any of them",
            remedy="give the datetime a tzinfo, such as datetime.UTC",
        )
    return moment.astimezone(UTC).replace(microsecond=0, tzinfo=None).isoformat() + "Z"


def format_optional_time(moment: datetime | None) -> str | None:
    """Format a time as `format_time` does; None for none, such as an expiry that never comes."""
    return None if moment is None else format_time(moment)


_OCTET: Final = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_IPV4: Final = re.compile(rf"127(?:\.{_OCTET}){{3}}")


def is_loopback(host: str) -> bool:
    """Whether a host can only be this machine: `localhost`, `::1`, or 127.x.x.x in full.

    Other spellings (127.1, 2130706433, 0x7f.1, ::ffff:127.0.0.1, 0.0.0.0, names below localhost) do
    not count: resolvers disagree about them. `host` is as a URL parser returns it: in lower case,
    without brackets.
    """
    return host in ("localhost", "::1") or _IPV4.fullmatch(host) is not None


def is_cleartext(scheme: str, host: str) -> bool:
    """Return whether others could read what is sent: neither https nor to loopback."""
    return scheme != "https" and not (scheme == "http" and is_loopback(host))


def check_http_url(
    name: str, text: str, allow_cleartext: str, form: str = "https://host/path"
) -> str:
    """Check a URL called `name` in errors, and return it in its one spelling.

    `allow_cleartext` is what http:// would send unencrypted, `form` how it is written.
    """
    remedy = f"write it as {form}"
    try:
        parts = urlsplit(text)
        number = parts.port  # raises ValueError for an invalid port
    except ValueError:
        raise SettingError(f"{name} is not a URL", remedy=remedy) from None
    host = (parts.hostname or "").rstrip(".")
    if parts.scheme not in ("http", "https") or not host or re.search(r"[\s\x00-\x1f]", text):
        raise SettingError(f"{name} is not an http(s) URL", remedy=remedy)
    if (
        parts.username is not None
        or parts.query
        or parts.fragment
        or "?" in text
        or "#" in text
        or number == 0
    ):
        raise SettingError(
            f"{name} contains a user, a query, a fragment or port 0",
            remedy=remedy,
        )
    if is_cleartext(parts.scheme, host):
        raise SettingError(
            f"{name} uses http:// to a remote host: {allow_cleartext} would be sent unencrypted",
            remedy="use https://; http:// works for loopback only",
        )
    # One spelling: it names a request's ledger, so that a second one would not know of a DELETE
    # that was sent.
    address = f"[{host}]" if ":" in host else host
    if number not in (None, DEFAULT_PORTS[parts.scheme]):
        address += f":{number}"
    return f"{parts.scheme}://{address}{parts.path.rstrip('/')}"


DEFAULT_PORTS: Final = {"http": 80, "https": 443}


def parse_base_url(text: str) -> str:
    """Check the API's URL. It must end in /v1, which is never added."""
    url = check_http_url("the base URL", text, "the credential")
    if not url.endswith("/v1"):
        raise SettingError(
            "the base URL does not end in /v1", remedy="add /v1 at the end of SEALPIPE_BASE_URL"
        )
    return url


def parse_link_base_url(text: str) -> str:
    """Check the URL that links start with."""
    return check_http_url("the link base URL", text, "the page that opens the link")


def parse_service_tag(text: str) -> str:
    """Check the service's short tag, as in the credential's prefix."""
    if not re.fullmatch(r"[a-z][a-z0-9]{0,15}", text, re.ASCII):
        raise SettingError(
            "the service tag is not a short lower-case word", remedy="use a tag such as `svc`"
        )
    return text


def parse_seconds(text: str) -> float:
    """Parse a duration (`60s`, `2m`) into seconds."""
    return parse_duration(text).total_seconds()


def parse_bind_text(text: str) -> str:
    """Check the text that a sealed link is bound to.

    One printable line of at most 512 characters.
    """
    if not text.strip():
        raise UsageError(
            "the text to bind a sealed link to is empty", remedy="give a text, or omit the option"
        )
    if not text.isprintable() or len(text) > 512:
        raise UsageError(
            "the text to bind a sealed link to is not one printable line of at most 512 characters",
            remedy="use a text that both jobs know, such as github:OWNER/REPO:RUN_ID",
        )
    return text


def parse_code(text: str) -> str:
    """Check a short code; UsageError if it is empty, or a link."""
    from sealpipe.wire.link import called  # few commands have such an option

    called(text)
    return text


def parse_views(text: str) -> int | None:
    """Parse how often a share can be opened; None for `unlimited`."""
    if text == "unlimited":
        return None
    return parse_count(text)


def parse_count(text: str) -> int:
    """Parse a whole number from 1 to 2,147,483,647."""
    if not re.fullmatch(r"-?[0-9]{1,100}", text, re.ASCII):
        raise UsageError(
            f"{quote_input(text)} is not a whole number", remedy="write a whole number, 1 or more"
        )
    if int(text) < 1:
        raise UsageError(f"{text} is too small", remedy="use 1 or more")
    if int(text) > _MAX_COUNT:
        raise UsageError(f"{text} is too large", remedy=f"use at most {_MAX_COUNT}")
    return int(text)


def parse_limit(text: str) -> int | str:
    """Parse a limit: a count, `plan`, `unset` or `unlimited`."""
    return text if text in ("plan", "unset", "unlimited") else parse_count(text)


_ADDRESS = re.compile(r"://|(?<=:)https?:", re.IGNORECASE)
"""The start of a URL, even with a slash missing."""
_PARTS = re.compile(r"([/\\]*)([^/\\?#]*)([^?#]*)([?#]?)(.*)", re.DOTALL)
_TOKEN = re.compile(r"(?<=[/\\])(?=[^/\\]*[0-9A-Z])[^/\\]{16,}")
"""A segment of a path that may be a credential: long, and with a digit or a capital letter."""


def redact_address(target: str) -> str:
    """A target as messages, lists and the audit log show it.

    An address without what may be a credential.

    That is a user, a query, a fragment, and long segments of the path with a digit or a capital
    letter.
    """
    start = _ADDRESS.search(target)
    parts = None if start is None else _PARTS.fullmatch(target, start.end())
    if start is None or parts is None:
        return target
    slashes, host, path, mark, rest = parts.groups()
    user, at, host_name = host.rpartition("@")
    shown = f"***@{host_name}" if at and user else host
    path, rest = _TOKEN.sub("***", path), "***" if rest else ""
    return f"{target[: start.end()]}{slashes}{shown}{path}{mark}{rest}"


def parse_header_name(text: str) -> str:
    """Check the name of an HTTP header."""
    if not re.fullmatch(r"[A-Za-z0-9-]{1,100}", text, re.ASCII):
        raise UsageError("the header name is not valid", remedy="use letters, digits and -")
    return text


def parse_port(text: str) -> int:
    """Parse a TCP port."""
    number = parse_count(text)
    if number > 65535:
        raise UsageError(f"{number} is not a port", remedy="use a port from 1 to 65535")
    return number


def parse_loopback_address(text: str) -> tuple[str, int]:
    """Parse `127.0.0.1:PORT`, an address of this machine that only this machine reaches."""
    host, colon, port = text.rpartition(":")
    if not colon:
        raise UsageError(
            "the address is not a host and a port", remedy="write it as 127.0.0.1:PORT"
        )
    if not is_loopback(host.lower()) or ":" in host:
        raise UsageError("the address is not on loopback", remedy="write it as 127.0.0.1:PORT")
    return host, parse_port(port)


def parse_ask(text: str) -> Any:
    """Parse `[ID=]PROMPT[:TYPE]` into a Prompt."""
    from sealpipe.prompts import parse_prompt  # only `request` has prompts

    return parse_prompt(text)


NOTIFY_ON = ("viewed", "denied", "expired", "deleted")


def parse_events(text: str) -> tuple[str, ...]:
    """Parse a comma-separated list of distinct events."""
    events = tuple(text.split(","))
    for event in events:
        if event not in NOTIFY_ON:
            raise UsageError(
                f"{quote_input(event)} is not an event",
                remedy=f"choose from {', '.join(NOTIFY_ON)}",
            )
    if len(set(events)) < len(events):
        raise UsageError("the list repeats an event", remedy="list each event once")
    return events
