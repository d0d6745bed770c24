"""The rules for arguments of Python calls, by name and type: a name means the same everywhere."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import wraps
from os import PathLike, fsencode, fspath
from typing import Any, Final, ParamSpec, TypeVar

from sealpipe.errors import EncodingError, PointError, UsageError
from sealpipe.parsing import NOTIFY_ON
from sealpipe.prompts import Prompt
from sealpipe.reference import FieldSpec, Reference, Target
from sealpipe.secret import Secret, strips_frames
from sealpipe.state.entry import Entry
from sealpipe.state.receipt import Receipt
from sealpipe.wire.encoding import decode_base64, decode_base64url
from sealpipe.wire.fields import Field
from sealpipe.wire.jsontext import dumps, is_text

P = ParamSpec("P")
T = TypeVar("T")

MAX_INTEGER: Final = 2**31 - 1
MAX_CODE_LENGTH: Final = 4096
"""Characters of a short code, which becomes part of a URL."""
_ANY_ORDER: Final = (list, tuple, set, frozenset)
_KEY: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,253}[\x21-\x7e])?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Rule:
    """What an argument must be: `description` says it in words, `accepts` checks it.

    `example` is how a program may write it, unless EXAMPLES has a better one for the argument.
    """

    description: str
    accepts: Callable[[Any], bool]
    example: str


def _is_text(value: object) -> bool:
    return isinstance(value, str) and is_text(value)


def _is_code(value: object) -> bool:
    return isinstance(value, str) and len(value) <= MAX_CODE_LENGTH and is_text(value)


def _list_of(
    holds: Callable[[Any], bool], kinds: tuple[type[Any], ...] = (list, tuple)
) -> Callable[[Any], bool]:
    """Check for a collection of one of these kinds in which every element passes `holds`."""
    return lambda value: isinstance(value, kinds) and all(map(holds, value))


_is_text_list = _list_of(_is_text, _ANY_ORDER)


def _is_secret(value: object) -> bool:
    if isinstance(value, Secret):
        try:
            value = value.reveal()
        except (
            UnicodeError,
            AttributeError,
        ):  # a lone surrogate, or a Secret that does not hold text
            return False
    return _is_text(value)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_INTEGER


def _is_moment(value: object) -> bool:
    if not isinstance(value, datetime) or value.utcoffset() is None:
        return False
    try:
        value.astimezone(UTC)
    except (OverflowError, ValueError):
        return False
    return True


def _is_duration(value: object) -> bool:
    return isinstance(value, timedelta) or _is_text(value)


def _is_deadline(value: object) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number or _is_duration(value)


def _is_path(value: object) -> bool:
    if not isinstance(value, str | PathLike):
        return False
    try:
        text = fspath(value)
        return isinstance(text, str) and text != "" and b"\0" not in fsencode(text)
    except (UnicodeError, TypeError):
        return False


def _make_base64_check(
    minimum: int, maximum: int | None = None, first_byte: int | None = None
) -> Callable[[object], bool]:
    def is_base64(value: object) -> bool:
        try:
            data = decode_base64(value) if isinstance(value, str) else b""
        except EncodingError:
            return False
        return (
            len(data) >= minimum
            and (maximum is None or len(data) <= maximum)
            and (first_byte is None or data[0] == first_byte)
        )

    return is_base64


def _is_token(value: object) -> bool:
    try:
        return isinstance(value, str) and len(decode_base64url(value)) == 32
    except EncodingError:
        return False


def _is_point(value: object) -> bool:
    if not isinstance(value, bytes | bytearray | memoryview):
        return False
    from sealpipe.wire.keys import public_key  # loads cryptography

    try:
        public_key(bytes(value))
    except PointError:
        return False
    return True


def _is_idempotency_key(value: object) -> bool:
    return isinstance(value, str) and _KEY.fullmatch(value) is not None


def _is_pair(value: object) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2 and all(map(_is_text, value))


def _field(value: object) -> bool:
    # Sealing checks large values; for others the error names the argument here (a lone surrogate).
    return (
        _is_text(value)
        or isinstance(value, FieldSpec)
        or (isinstance(value, Field) and _is_secret(value.value))
    )


def _prompt(value: object) -> bool:
    return _is_text(value) or (isinstance(value, Prompt) and all(map(_is_text, value)))


def _is_json_object(value: object) -> bool:
    if not isinstance(value, Mapping):
        return False
    try:
        dumps(value, levels=90)
    except (EncodingError, RecursionError, ValueError):
        return False
    return True


def _params(value: object) -> bool:
    pairs = (
        value.items()
        if isinstance(value, Mapping)
        else value
        if isinstance(value, list | tuple)
        else [None]
    )
    return all(
        isinstance(each, tuple) and len(each) == 2 and _is_text(each[0]) and _reference(each[1])
        for each in pairs
    )


def _reference(value: object) -> bool:
    return _is_text(value) or isinstance(value, Reference)


def _is_event_list(value: object) -> bool:
    return _is_text_list(value) and isinstance(value, list | tuple) and set(value) <= set(NOTIFY_ON)


def _is_request(value: object) -> bool:
    return _is_code(value) or isinstance(value, Receipt)


def _is_opening_key(value: object) -> bool:
    return _is_secret(value) or isinstance(value, Reference) or _is_key_pair(value)


def _is_sealing_key(value: object) -> bool:
    return _is_text(value) or _is_key_pair(value)  # `request` checks the word itself


def _is_key_pair(value: object) -> bool:
    from sealpipe.wire.keys import KeyPair  # loads elliptic curves, which few programs need

    return isinstance(value, KeyPair)


def _make_choice_rule(*words: str) -> Rule:
    return Rule(
        f"one of {', '.join(words)}",
        lambda value: isinstance(value, str) and value in words,
        f'"{words[0]}"',
    )


_TEXT = Rule("text (a str of whole characters)", _is_text, '"some text"')
_TEXTS = Rule("a list of texts", _is_text_list, '["some text"]')
_SECRET = Rule("text or a Secret", _is_secret, 'Secret(os.environ["PASSCODE"])')
_TOKEN = Rule(
    "32 bytes in base64url, 43 characters without padding",
    _is_token,
    "tokens.access_token(content_key)",
)

BY_TYPE: Final[Mapping[str, Rule]] = {
    "str": _TEXT,
    "str | Secret": _SECRET,
    "str | Path": Rule("a path", _is_path, '"some/folder"'),
    "int": Rule(f"a whole number from 1 to {MAX_INTEGER}", _is_count, "10"),
    "bool": Rule("True or False", lambda value: isinstance(value, bool), "True"),
    "datetime": Rule(
        "a datetime with a time zone", _is_moment, "datetime(2030, 12, 31, tzinfo=UTC)"
    ),
    "timedelta | str": Rule(
        'a timedelta, or text such as "24h"', _is_duration, "timedelta(hours=24)"
    ),
    "Sequence[str]": _TEXTS,
    "Reference | str": Rule(_TEXT.description, _reference, '"file:seed"'),
    "Sequence[Reference | str]": Rule(
        _TEXTS.description,
        _list_of(_reference, _ANY_ORDER),
        '["vault:secret/app#password=Password"]',
    ),
    "Sequence[Target | str]": Rule(
        _TEXTS.description,
        _list_of(lambda each: _is_text(each) or isinstance(each, Target), _ANY_ORDER),
        '["email:{to}"]',
    ),
}
"""Rules by annotation, for arguments without a rule by name."""

RULES: Final[Mapping[str, Rule]] = {
    "passcode": Rule(
        _SECRET.description, lambda value: _is_secret(value) or _reference(value), '"env:PASSCODE"'
    ),
    **dict.fromkeys(("access_token", "passcode_verifier"), _TOKEN),
    "short_code": Rule(
        f"a short code, of at most {MAX_CODE_LENGTH} characters", _is_code, '"aB3xY9"'
    ),
    "data": Rule(
        "an envelope in standard base64 with padding, at least 44 bytes of it",
        _make_base64_check(44),
        "envelope.seal(content_key, plaintext)",
    ),
    "item_key_wrap": Rule(
        "a box in standard base64: 142 bytes, the first of them 1",
        _make_base64_check(142, 142, 1),
        "sealed_box.seal(key_pair.public_key, content_key)",
    ),
    "public_key": Rule(
        "the 65 bytes of an uncompressed point on P-256", _is_point, "key_pair.public_key"
    ),
    "idempotency_key": Rule(
        "1 to 255 visible ASCII characters", _is_idempotency_key, "str(uuid.uuid4())"
    ),
    "fields": Rule(
        "a list of Fields and references",
        _list_of(_field),
        '[Field("User", "ada"), "Password=env:DB_PASSWORD"]',
    ),
    "prompts": Rule("a list of Prompts and texts", _list_of(_prompt), '["Staging password"]'),
    "params": Rule("a mapping of names to references", _params, '{"to": "env:RECIPIENT"}'),
    "arguments": Rule(
        "a mapping of JSON values by name, at most 90 levels deep",
        _is_json_object,
        '{"short_code": "aB3xY9"}',
    ),
    "notify_on": Rule(f"a list of {', '.join(NOTIFY_ON)}", _is_event_list, '["viewed"]'),
    "request": Rule("a short code or a Receipt", _is_request, '"aB3xY9"'),
    "requests": Rule("a list of short codes and Receipts", _list_of(_is_request), '["aB3xY9"]'),
    "key": Rule(
        "`credential`, a reference, a Secret or a key pair",
        _is_opening_key,
        '"vault:secret/requests#seed"',
    ),
    "status": _make_choice_rule("expired"),
    "custody": _make_choice_rule("auto", "require", "off"),
    "mode": _make_choice_rule("create", "replace", "merge"),
    "after": _make_choice_rule("keep", "expire"),
    "entry": Rule(
        "an open entry of an Outbox",
        lambda value: isinstance(value, Entry),
        "outbox.open(outbox_id)",
    ),
    "on_progress": Rule("a function", callable, "print"),
    "deadline": Rule(
        'a number of seconds, a timedelta, or text such as "60s"', _is_deadline, '"60s"'
    ),
}

RULES_BY_CALL: Final[Mapping[tuple[str, str], Rule]] = {
    ("create_request", "fields"): Rule(
        "a list of (prompt, type) pairs", _list_of(_is_pair), '[("Staging password", "password")]'
    ),
    ("create_request", "passcode"): _SECRET,
    ("request", "key"): Rule("`credential`, `new` or a key pair", _is_sealing_key, '"new"'),
}
"""Rules for names that mean something else in one call."""

EXAMPLES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("api_key", "api_key_previous"), 'Secret(os.environ["SEALPIPE_API_KEY"])'),
    "base_url": '"https://api.example.com/v1"',
    "ca_file": '"ca.pem"',
    "confirm": '"aB3xY9"',
    "cursor": "log.next_cursor",
    "ip_whitelist": '["192.0.2.0/24"]',
    "link_base_url": '"https://example.com/s"',
    "message_template": '"Your password: {link}"',
    "organization_id": '"org-1"',
    "pick": '"newest"',
    "references": '["vault:secret/app/db#user,password"]',
    "restricted_domains": '["example.com"]',
    "service_tag": '"svc"',
    "timed_view": "30",
}
"""Examples that tell more than those of the arguments' rules."""


def checks_arguments(function: Callable[P, T]) -> Callable[P, T]:
    """Check a function's arguments before each call, and strip the frames of what it raises.

    The wrong value is a UsageError; an argument that is missing or unknown is Python's own
    TypeError.
    """
    positional = function.__code__.co_varnames[: function.__code__.co_argcount]
    name = "Client" if function.__name__ == "__init__" else function.__name__

    @wraps(function)
    @strips_frames
    def wrapper(*args: P.args, **options: P.kwargs) -> T:
        given = {**dict(zip(positional, args, strict=False)), **options}
        for argument in given.keys() & function.__annotations__.keys():
            check_argument(name, argument, function.__annotations__[argument], given[argument])
        return function(*args, **options)

    # So Python's TypeError calls it, as our UsageError does: `AsyncClient` has the same methods.
    function.__qualname__ = name
    return wrapper


def check_argument(call: str, argument: str, annotation: str, value: object) -> None:
    """Check an argument of a call by its rule.

    UsageError names the argument and the kind of what it was given, never its value: it may be a
    secret.
    """
    rule = find_rule(call, argument, annotation)
    if rule is None or (value is None and annotation.endswith("| None")) or rule.accepts(value):
        return
    raise UsageError(
        f"{call}(): {argument} is not {rule.description} (got {_describe_kind(value)})",
        remedy=f"write {argument}={EXAMPLES.get(argument, rule.example)}",
    )


def find_rule(call: str, argument: str, annotation: str) -> Rule | None:
    """Find the rule for an argument: by its name, else by its type in the signature."""
    by_type = BY_TYPE.get(annotation.removesuffix(" | None"))
    return RULES_BY_CALL.get((call, argument)) or RULES.get(argument) or by_type


def _describe_kind(value: object) -> str:
    """Name the type of a value, and of what a list holds."""
    kinds = sorted({type(each).__name__ for each in value}) if isinstance(value, _ANY_ORDER) else []
    return " of ".join(filter(None, (type(value).__name__, ", ".join(kinds[:3]))))
