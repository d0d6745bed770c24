"""What a call from Python is given, checked before anything is sent: a wrong call is a UsageError that names what.

One table: a parameter of one name means the same in every call. No value is shown, for it may be a secret.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from inspect import Parameter, Signature, signature
from os import PathLike, fsencode, fspath
from typing import Any, Final

from sealpipe.errors import EncodingError, PointError, UsageError
from sealpipe.secret import Secret
from sealpipe.setting_values import NOTIFY_ON
from sealpipe.wire.encoding import decode_base64, decode_base64url
from sealpipe.wire.jsontext import dumps, is_text

MOST: Final = 2**31 - 1
LONGEST: Final = 4096
"""Characters of a short code, which stands in an address."""
_KEY: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,253}[\x21-\x7e])?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Rule:
    """What an argument has to be: `what` says it, `holds` looks."""

    what: str
    holds: Callable[[Any], bool]


def checked(function: Callable[..., Any], args: Sequence[Any], options: Mapping[str, Any], skip: int = 0) -> None:
    """UsageError where a function cannot be called with these arguments. The first `skip` are not the caller's."""
    name, parameters = function.__name__, _signature(function)
    name = "Client" if name == "__init__" else name
    known = list(parameters.parameters.values())
    places = [each.name for each in known if each.kind is Parameter.POSITIONAL_OR_KEYWORD][: skip + len(args)]
    if len(places) < skip + len(args):
        raise UsageError(f"{name}() was given too many arguments by position", remedy="give them by their names")
    given = dict(zip(places[skip:], args, strict=True))
    for option in options:
        if option in given or option not in parameters.parameters or option in places[:skip]:
            raise _unexpected(name, option, [each.name for each in known[skip:]], twice=option in given)
    given.update(options)
    lacking = [each.name for each in known[skip:] if each.default is Parameter.empty and each.name not in given]
    if lacking:
        hint = ", or use Client.from_settings()" if name == "Client" else ""
        raise UsageError(f"{name}() lacks {' and '.join(lacking)}", remedy=f"give {', '.join(lacking)}{hint}")
    for argument, value in given.items():
        if value is None and _takes_none(parameters.parameters[argument]):
            continue
        rule = SPECIAL.get((name, argument)) or RULES.get(argument)
        if rule is not None and not rule.holds(value):
            raise UsageError(f"{name}(): {argument} is not {rule.what}", remedy=f"give {argument} as {rule.what}")


def _takes_none(parameter: Parameter) -> bool:
    """Whether None means something: `views=None` is no limit, `expires_in=None` no end."""
    return parameter.default is None or str(parameter.annotation).endswith("| None")


@cache
def _signature(function: Callable[..., Any]) -> Signature:
    return signature(function)


def _unexpected(name: str, option: str, known: Sequence[str], *, twice: bool) -> UsageError:
    if twice:
        return UsageError(f"{name}() was given {option} twice", remedy="give it once")
    from difflib import get_close_matches  # for an error only

    near = get_close_matches(option, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"it takes {', '.join(known) or 'none'}"
    return UsageError(f"{name}() takes no argument {option[:60]}", remedy=hint)


# -- what each is -------------------------------------------------------------------------------


def _text(value: object) -> bool:
    return isinstance(value, str) and is_text(value)


def _code(value: object) -> bool:
    return isinstance(value, str) and len(value) <= LONGEST and is_text(value)


def _texts(value: object) -> bool:
    return isinstance(value, list | tuple | set | frozenset) and all(map(_text, value))


def _secret(value: object) -> bool:
    if isinstance(value, Secret):
        try:
            value = value.reveal()
        except (UnicodeError, AttributeError):  # half a character; a Secret of something that is no text
            return False
    return _text(value)


def _count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST


def _moment(value: object) -> bool:
    if not isinstance(value, datetime) or value.utcoffset() is None:
        return False
    try:
        value.astimezone(UTC)
    except (OverflowError, ValueError):
        return False
    return True


def _duration(value: object) -> bool:
    return isinstance(value, timedelta) or _text(value)


def _deadline(value: object) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number or _duration(value)


def _path(value: object) -> bool:
    if not isinstance(value, str | PathLike):
        return False
    try:
        text = fspath(value)
        return isinstance(text, str) and text != "" and b"\0" not in fsencode(text)
    except (UnicodeError, TypeError):
        return False


def _base64(least: int, most: int | None = None, first: int | None = None) -> Callable[[object], bool]:
    def holds(value: object) -> bool:
        try:
            data = decode_base64(value) if isinstance(value, str) else b""
        except EncodingError:
            return False
        return len(data) >= least and (most is None or len(data) <= most) and (first is None or data[0] == first)

    return holds


def _token(value: object) -> bool:
    try:
        return isinstance(value, str) and len(decode_base64url(value)) == 32
    except EncodingError:
        return False


def _point(value: object) -> bool:
    if not isinstance(value, bytes | bytearray | memoryview):
        return False
    from sealpipe.wire.keys import public_key  # loads cryptography

    try:
        public_key(bytes(value))
    except PointError:
        return False
    return True


def _key(value: object) -> bool:
    return isinstance(value, str) and _KEY.fullmatch(value) is not None


def _pairs(value: object) -> bool:
    return isinstance(value, list | tuple) and all(
        isinstance(pair, list | tuple) and len(pair) == 2 and all(map(_text, pair)) for pair in value
    )


def _fields(value: object) -> bool:
    from sealpipe.wire.fields import Field

    # A large value is looked at when it is sealed; half a character in a small one is told by name here.
    return isinstance(value, list | tuple) and all(
        _text(each) or (isinstance(each, Field) and _secret(each.value)) for each in value
    )


def _prompts(value: object) -> bool:
    from sealpipe.prompts import Prompt

    return isinstance(value, list | tuple) and all(
        _text(each) or (isinstance(each, Prompt) and all(map(_text, each))) for each in value
    )


def _json(value: object) -> bool:
    if not isinstance(value, Mapping):
        return False
    try:
        dumps(value, levels=90)
    except (EncodingError, RecursionError, ValueError):
        return False
    return True


def _strings(value: object) -> bool:
    return isinstance(value, Mapping) and all(_text(name) and _text(each) for name, each in value.items())


def _events(value: object) -> bool:
    return _texts(value) and isinstance(value, list | tuple) and set(value) <= set(NOTIFY_ON)


def _request(value: object) -> bool:
    from sealpipe.state.receipt import Receipt

    return _code(value) or isinstance(value, Receipt)


def _requests(value: object) -> bool:
    return isinstance(value, list | tuple) and all(map(_request, value))


def _opens(value: object) -> bool:
    from sealpipe.reference import Reference
    from sealpipe.wire.keys import KeyPair

    return _secret(value) or isinstance(value, Reference | KeyPair)


def _seals(value: object) -> bool:
    from sealpipe.wire.keys import KeyPair

    return isinstance(value, KeyPair) or _text(value)  # which word it is, the flow looks


def _one_of(*words: str) -> Rule:
    return Rule(f"one of {', '.join(words)}", lambda value: isinstance(value, str) and value in words)


def _entry(value: object) -> bool:
    from sealpipe.state.entry import Entry

    return isinstance(value, Entry)


_TEXT = Rule("text (a str of whole characters)", _text)
_TEXTS = Rule("a list of texts", _texts)
_SECRET = Rule("text or a Secret", _secret)
_COUNT = Rule(f"a whole number from 1 to {MOST}", _count)
_FLAG = Rule("True or False", lambda value: isinstance(value, bool))
_MOMENT = Rule("a datetime with a time zone", _moment)
_DURATION = Rule('a timedelta, or text such as "24h"', _duration)
_PATH = Rule("a path", _path)
_TOKEN = Rule("32 bytes in base64url, 43 characters without padding", _token)

RULES: Final[Mapping[str, Rule]] = {
    **dict.fromkeys(
        ("title", "description", "organization_id", "confirm", "pick", "cursor", "seed_to", "name"), _TEXT
    ),
    **dict.fromkeys(("message_template", "base_url", "link_base_url", "service_tag"), _TEXT),
    **dict.fromkeys(("send", "passcode_to", "also_to", "to", "references"), _TEXTS),
    **dict.fromkeys(("restricted_domains", "ip_whitelist"), _TEXTS),
    **dict.fromkeys(("api_key", "api_key_previous", "passcode"), _SECRET),
    **dict.fromkeys(("page", "limit", "views", "timed_view", "max_submissions"), _COUNT),
    **dict.fromkeys(("requires_login", "requires_mfa", "passcode_generate", "resend"), _FLAG),
    **dict.fromkeys(("expires_at", "since", "until"), _MOMENT),
    **dict.fromkeys(("expires_in", "wait"), _DURATION),
    **dict.fromkeys(("outbox", "keep", "folder", "state", "ca_file"), _PATH),
    **dict.fromkeys(("access_token", "passcode_verifier"), _TOKEN),
    "short_code": Rule(f"a short code, of at most {LONGEST} characters", _code),
    "data": Rule("an envelope in standard base64 with padding, at least 44 bytes of it", _base64(44)),
    "item_key_wrap": Rule("a box in standard base64: 142 bytes, the first of them 1", _base64(142, 142, 1)),
    "public_key": Rule("the 65 bytes of an uncompressed point on P-256", _point),
    "idempotency_key": Rule("1 to 255 visible ASCII characters", _key),
    "fields": Rule("a list of Fields and references", _fields),
    "prompts": Rule("a list of Prompts and texts", _prompts),
    "params": Rule("a mapping of names to references", _strings),
    "arguments": Rule("a mapping of JSON values by name, at most 90 levels deep", _json),
    "notify_on": Rule(f"a list of {', '.join(NOTIFY_ON)}", _events),
    "request": Rule("a short code or a Receipt", _request),
    "requests": Rule("a list of short codes and Receipts", _requests),
    "key": Rule("`credential`, a reference, a Secret or a key pair", _opens),
    "status": _one_of("expired"),
    "custody": _one_of("auto", "require", "off"),
    "mode": _one_of("create", "replace", "merge"),
    "after": _one_of("keep", "expire"),
    "entry": Rule("an open entry of an Outbox", _entry),
    "on_progress": Rule("a function", callable),
    "deadline": Rule('a number of seconds, a timedelta, or text such as "60s"', _deadline),
}  # fmt: skip

SPECIAL: Final[Mapping[tuple[str, str], Rule]] = {
    ("create_request", "fields"): Rule("a list of pairs of texts: prompt and type", _pairs),
    ("request", "key"): Rule("`credential`, `new` or a key pair", _seals),
}
"""Where a name means something else in one call."""
