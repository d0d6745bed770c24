"""Parse and check the text of a setting. UsageError says what is wrong with it."""

from __future__ import annotations

import re
from datetime import date, time
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from sealpipe import times
from sealpipe.errors import SettingError, UsageError
from sealpipe.loopback import is_cleartext
from sealpipe.reference import Reference, parse
from sealpipe.reference.text import PARAMETER_NAME

if TYPE_CHECKING:
    from sealpipe.settings import Setting

_MAX_LENGTH: Final = 2_147_483_647


def _check_http_url(name: str, text: str, allow_cleartext: str) -> str:
    try:
        parts = urlsplit(text)
        number = parts.port  # raises ValueError for a port that is none
    except ValueError:
        raise SettingError(f"{name} is not a URL", remedy="write it as https://host/path") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or re.search(r"[\s\x00-\x1f]", text):
        raise SettingError(f"{name} is not an http(s) URL", remedy="write it as https://host/path")
    if parts.username is not None or parts.query or parts.fragment or "?" in text or "#" in text or number == 0:
        raise SettingError(
            f"{name} contains a user, a query, a fragment or port 0", remedy="write it as https://host/path"
        )
    if is_cleartext(parts.scheme, parts.hostname):
        raise SettingError(
            f"{name} uses http:// to a remote host: {allow_cleartext} would be sent unencrypted",
            remedy="use https://; http:// works for loopback only",
        )
    return text.rstrip("/")


def parse_base_url(text: str) -> str:
    """Check the API's URL. It must end in /v1, which is never added."""
    url = _check_http_url("the base URL", text, "the credential")
    if not url.endswith("/v1"):
        raise SettingError("the base URL does not end in /v1", remedy="add /v1 at the end of SEALPIPE_BASE_URL")
    return url


def parse_link_base_url(text: str) -> str:
    """Check the URL that links start with."""
    return _check_http_url("the link base URL", text, "the page that opens the link")


def parse_service_tag(text: str) -> str:
    """Check the service's short tag, as in the credential's prefix."""
    if not re.fullmatch(r"[a-z][a-z0-9]{0,15}", text, re.ASCII):
        raise SettingError("the service tag is not a short lower-case word", remedy="use a tag such as `svc`")
    return text


def parse_seconds(text: str) -> float:
    """Parse a duration (`60s`, `2m`) into seconds."""
    return times.parse_duration(text).total_seconds()


def parse_bind_text(text: str) -> str:
    """Check the text that a sealed link is bound to: one printable line of at most 512 characters."""
    if not text.strip():
        raise UsageError("the text to bind a sealed link to is empty", remedy="give a text, or leave the option out")
    if not text.isprintable() or len(text) > 512:
        raise UsageError(
            "the text to bind a sealed link to is not one printable line of at most 512 characters",
            remedy="use a text that both jobs know, such as github:OWNER/REPO:RUN_ID",
        )
    return text


def parse_code(text: str) -> str:
    """Check a short code; UsageError if it is empty, or a link."""
    from sealpipe.wire.link import called  # few commands take one as an option

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
        raise UsageError(f"{text[:20]!r} is not a whole number", remedy="write a whole number, 1 or more")
    if int(text) < 1:
        raise UsageError(f"{text[:20]} is too small", remedy="use 1 or more")
    if int(text) > _MAX_LENGTH:
        raise UsageError(f"{text[:20]} is too large", remedy=f"use at most {_MAX_LENGTH}")
    return int(text)


def parse_limit(text: str) -> int | str:
    """Parse a limit: a count, `plan` or `unset`."""
    return text if text in ("plan", "unset") else parse_count(text)


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


def parse_param(text: str) -> tuple[str, Reference]:
    """Parse `NAME=REF` into a name and a reference."""
    name, equals, ref = text.partition("=")
    if not equals or not re.fullmatch(PARAMETER_NAME, name):
        raise UsageError("the value is not NAME=REF", remedy="write it as limit=text:5 or code=env:SHORT_CODE")
    return name, parse(ref, "what follows the first =")


def parse_ask(text: str) -> Any:
    """Parse `[ID=]PROMPT[:TYPE]` into a Prompt."""
    from sealpipe.prompts import parse_prompt  # who shares asks for nothing

    return parse_prompt(text)


def parse_key_choice(text: str) -> str | Reference:
    """Parse `credential`, or a reference to a key."""
    return text if text == "credential" else parse(text, "the key")


NOTIFY_ON = ("viewed", "denied", "expired", "deleted")


def parse_events(text: str) -> tuple[str, ...]:
    """Parse a comma-separated list of distinct events."""
    events = tuple(text.split(","))
    for event in events:
        if event not in NOTIFY_ON:
            raise UsageError(f"{event[:20]!r} is not an event", remedy=f"choose from {', '.join(NOTIFY_ON)}")
    if len(set(events)) < len(events):
        raise UsageError("the list repeats an event", remedy="list each event once")
    return events


FLAG_VALUES: Final = frozenset({"1", "true", "t", "yes", "y", "on", "0", "false", "f", "no", "n", "off"})
"""Values that the environment and the config file may give to an option that takes no value."""


def check_value(setting: Setting, value: object, where: str) -> None:
    """Check a value as its command would. SettingError names `where` it was set; an empty text counts as unset."""
    for text in _split_texts(setting, value):
        try:
            _check_one(setting, text)
        except UsageError as error:
            message, remedy = _strip_quotes(text, error.message), error.remedy or f"correct {where}, or unset it"
        else:
            continue
        raise SettingError(f"{where}: {message}", remedy=remedy)


def _strip_quotes(text: str, message: str) -> str:
    """A message without what it quotes of the value: a report is shown to others, and a value may be misplaced."""
    quoted = text[:20]
    for form in (repr(quoted), quoted):
        if message.startswith(form):
            message = f"the value{message.removeprefix(form)}"
    return "the value is not valid" if len(quoted) > 3 and quoted in message else message


def _split_texts(setting: Setting, value: object) -> list[str]:
    """One text, or for a setting that may be repeated one a line, or each of a list."""
    values = value if isinstance(value, list) else [value]
    texts = [each.isoformat() if isinstance(each, date | time) else str(each) for each in values]
    if setting.multiple and not isinstance(value, list):
        texts = [line for text in texts for line in text.split("\n") if line.strip()]
    return [text for text in texts if text]


def _check_one(setting: Setting, text: str) -> None:
    # What is wrong is not repeated: where one of a few words belongs, a secret may stand.
    if setting.flag and text.strip().lower() not in FLAG_VALUES:
        raise UsageError("the value is not a boolean", remedy="write true or false")
    if setting.choices and text not in setting.choices:
        raise UsageError("the value is not one of the choices", remedy=f"choose from {', '.join(setting.choices)}")
    if not setting.flag and not setting.choices:
        setting.parse(text)
