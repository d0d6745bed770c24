"""A policy from a TOML file: which secrets may be shared, from which stores, to whom, for how long.

    [policy]
    file = "/etc/sealpipe/policy.toml"

and in that file (or in the table itself, instead of `file`)

    sources = ["vault", "vault/prod-*", "env"]   # stores that may be read; a slash: plugin/store
    sinks = ["vault/vault"]                      # stores that may be written
    recipients = ["email:*@example.com"]         # channel (or plugin/store) and target
    tools = ["list_shares"]                      # of the hosted MCP endpoint
    actions = ["share", "request", "collect"]
    longest_expiry = "7d"
    most_views = 3                               # of a share
    most_submissions = 1                         # of a request
    types = ["password", "text"]

A machine's policy must set all four lists (`[]` allows nothing); in a user's own policy, a missing
list allows everything.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sealpipe.plugin import (
    NotConfiguredError,
    OutgoingAction,
    VetoError,
    find_file_flaw,
    hookimpl,
    matches_name,
)
from sealpipe.plugin.context import ACTIONS

REQUIRED_LISTS = ("sources", "sinks", "recipients", "tools")
"""Rules that a machine's policy must set."""

# The durations of policies are parsed here: the plugin contract has no function for them.
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_SLACK = timedelta(seconds=60)
"""Maximum time between the plan and this check."""

Rule = Callable[[OutgoingAction, Any], None]


@hookimpl
def sealpipe_check_outgoing(
    plan: OutgoingAction,
    config: Mapping[str, Any],
    enforced: bool,  # noqa: FBT001 - pluggy
) -> None:
    """Raise VetoError for a broken rule, NotConfiguredError if the policy cannot be read."""
    rules = _load_rules(config, enforced=enforced)
    for name, value in rules.items():
        if plan.complete or name in _EARLY_RULES:
            _RULES[name](plan, value)


def _load_rules(config: Mapping[str, Any], *, enforced: bool) -> Mapping[str, Any]:
    is_inline = bool(config) and "file" not in config
    rules, where = (
        (config, "the policy") if is_inline else _read_file(config, {} if enforced else os.environ)
    )
    for name, value in rules.items():
        if name not in _RULES:
            raise NotConfiguredError(
                f"{where} has a rule {name[:40]!r} that does not exist",
                remedy=f"the rules are {', '.join(_RULES)}",
            )
        if not _SHAPES[name](value):
            raise NotConfiguredError(
                f"{where} has an invalid value for the rule {name!r}", remedy=_describe_form(name)
            )
    missing = [name for name in REQUIRED_LISTS if name not in rules]
    if enforced and missing:
        raise NotConfiguredError(
            f"{where} is this machine's and lacks {', '.join(missing)}",
            remedy=f'name all of {", ".join(REQUIRED_LISTS)}: [] allows none, ["*"] allows all',
        )
    return rules


def _describe_form(name: str) -> str:
    if name == "actions":
        return f"write a list of some of {', '.join(ACTIONS)}"
    if name == "longest_expiry":
        return 'write a duration, such as "7d"'
    return (
        'write a list of strings, such as ["*"]'
        if _SHAPES[name] is _is_text_list
        else "write a whole number, 1 or more"
    )


def _read_file(
    config: Mapping[str, Any], environ: Mapping[str, str]
) -> tuple[Mapping[str, Any], str]:
    """Return the rules, and a name for messages.

    `environ` shows which folders the CI created (a machine's: none).
    """
    file = config.get("file")
    if config.keys() - {"file"} or not isinstance(file, str) or not Path(file).is_absolute():
        raise NotConfiguredError(
            "the policy needs either a file, by its absolute path, or rules",
            remedy="correct [policy]",
        )
    try:
        with Path(file).open("rb") as stream:
            flaw = find_file_flaw(Path(file), os.fstat(stream.fileno()), "the policy", environ)
            if flaw is not None:
                raise NotConfiguredError(flaw[0], remedy=flaw[1])
            return tomllib.load(stream), f"the policy {file}"
    except OSError as error:
        raise NotConfiguredError(
            f"the policy {file} cannot be read: {error.strerror}", remedy="correct [policy]"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError):
        raise NotConfiguredError(
            f"the policy {file} is not TOML", remedy="check it with a TOML linter"
        ) from None


def _matches_store(store: str, pattern: str) -> bool:
    """Return whether a pattern matches `plugin/store`, or only the store's name."""
    return matches_name(store if "/" in pattern else store.rpartition("/")[2], pattern)


def _check_stores(what: str, values_of: Callable[[OutgoingAction], Iterable[str]]) -> Rule:
    def check(plan: OutgoingAction, allowed: list[str]) -> None:
        for each in values_of(plan):
            if not any(_matches_store(each, pattern) for pattern in allowed):
                raise VetoError(f"the {what} {each} is not allowed")

    return check


def _check_recipients(plan: OutgoingAction, allowed: list[str]) -> None:
    if not plan.complete:
        return _check_channels(plan, allowed)
    for number, recipient in enumerate(plan.recipients):
        name, _, to = recipient.partition(":")
        channel = plan.channels[number] if number < len(plan.channels) else f"{name}/{name}"
        store_name = channel.rpartition("/")[2]
        if not any(
            matches_name(
                f"{channel if '/' in pattern.partition(':')[0] else store_name}:{to}", pattern
            )
            for pattern in allowed
        ):
            raise VetoError(f"the recipient {recipient} is not allowed (its channel is {channel})")
    return None


def _check_channels(plan: OutgoingAction, allowed: list[str]) -> None:
    """Check only the channels, which are known before anything is read."""
    for channel in plan.channels:
        if not any(_may_match_channel(channel, pattern) for pattern in allowed):
            raise VetoError(f"the channel {channel} is not allowed")


def _may_match_channel(channel: str, pattern: str) -> bool:
    """Return whether a pattern may match a recipient of a channel.

    A `*` may also match the colon.
    """
    head, star, _ = pattern.partition(":")[0].partition("*")
    if "[" in head:
        return True
    return _matches_store(channel, pattern.partition(":")[0]) or (
        bool(star) and _matches_store(channel, f"{head}*")
    )


def _check_each(what: str, values_of: Callable[[OutgoingAction], tuple[str, ...]]) -> Rule:
    def check(plan: OutgoingAction, allowed: list[str]) -> None:
        for each in values_of(plan):
            if not any(matches_name(each, pattern) for pattern in allowed):
                raise VetoError(f"the {what} {each} is not allowed")

    return check


def _check_expiry(plan: OutgoingAction, limit: str) -> None:
    maximum = _parse_duration(limit)
    if plan.kind not in ("share", "request"):
        return
    if plan.expires_at is None or plan.expires_at - datetime.now(UTC) > maximum + _SLACK:
        raise VetoError(f"it has to expire within {limit}")


def _check_views(plan: OutgoingAction, maximum: int) -> None:
    if plan.kind == "share" and (plan.views is None or plan.views > maximum):
        raise VetoError(f"it allows at most {maximum} view{'' if maximum == 1 else 's'}")


def _check_submissions(plan: OutgoingAction, maximum: int) -> None:
    if plan.kind == "request" and (plan.views is None or plan.views > maximum):
        raise VetoError(f"it allows at most {maximum} submission{'' if maximum == 1 else 's'}")


def _parse_duration(text: str) -> timedelta:
    return timedelta(**{_UNITS[text[-1]]: int(text[:-1])})


def _is_text_list(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _is_action_list(value: object) -> bool:
    return isinstance(value, list) and all(each in ACTIONS for each in value)


def _is_positive_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


_RULES: Mapping[str, Rule] = {
    "actions": _check_each("action", lambda plan: (plan.kind,)),
    "sources": _check_stores("source", lambda plan: plan.sources),
    "sinks": _check_stores("sink", lambda plan: plan.sinks),
    "recipients": _check_recipients,
    "tools": _check_each("tool", lambda plan: plan.tools),
    "types": _check_each("field type", lambda plan: tuple(kind for _, kind in plan.labels)),
    "longest_expiry": _check_expiry,
    "most_views": _check_views,
    "most_submissions": _check_submissions,
}
_EARLY_RULES = ("actions", *REQUIRED_LISTS)
"""Rules that can be checked before any source is read."""
_SHAPES: Mapping[str, Callable[[object], bool]] = {
    "actions": _is_action_list,
    "sources": _is_text_list,
    "sinks": _is_text_list,
    "recipients": _is_text_list,
    "tools": _is_text_list,
    "types": _is_text_list,
    "longest_expiry": lambda value: (
        isinstance(value, str) and bool(re.fullmatch(r"[1-9][0-9]{0,5}[smhdw]", value))
    ),
    "most_views": _is_positive_number,
    "most_submissions": _is_positive_number,
}
