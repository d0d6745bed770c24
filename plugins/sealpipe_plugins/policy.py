"""A policy from a TOML file: what may leave, to whom, for how long.

    [policy]
    file = "/etc/sealpipe/policy.toml"

and there

    sources = ["vault", "prod-*"]             # stores that may be read; patterns
    recipients = ["email:*@example.com"]      # channel and target; patterns
    longest_expiry = "7d"
    most_views = 3                            # of a share
    most_submissions = 1                      # of a request
    types = ["password", "text"]
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from sealpipe.plugin import NotConfigured, Outgoing, Refusal, hookimpl

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_SLACK = timedelta(seconds=60)
"""What passes between the plan and this check."""


@hookimpl
def sealpipe_check_outgoing(plan: Outgoing, config: Mapping[str, Any]) -> None:
    """Raises Refusal for the first rule that is broken, NotConfigured where the policy itself cannot be read."""
    for name, value in _rules(config).items():
        _RULES[name](plan, value)


def _rules(config: Mapping[str, Any]) -> dict[str, Any]:
    file = config.get("file")
    if config.keys() - {"file"} or not isinstance(file, str) or not Path(file).is_absolute():
        raise NotConfigured("the policy needs a file, by its absolute path, and nothing else", remedy="mend [policy]")
    try:
        rules = tomllib.loads(Path(file).read_text(encoding="utf-8"))
    except OSError as error:
        raise NotConfigured(f"the policy {file} cannot be read: {error.strerror}", remedy="mend [policy]") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        raise NotConfigured(f"the policy {file} is not TOML", remedy="check it with a TOML linter") from None
    for name, value in rules.items():
        if name not in _RULES or not _SHAPES[name](value):
            raise NotConfigured(
                f"the policy {file} has a rule {name[:40]!r} that does not exist, or not in this form",
                remedy=f"the rules are {', '.join(_RULES)}",
            )
    return rules


def _each(what: str, of: Callable[[Outgoing], tuple[str, ...]]) -> Callable[[Outgoing, list[str]], None]:
    def check(plan: Outgoing, allowed: list[str]) -> None:
        for each in of(plan):
            if not any(fnmatchcase(each, pattern) for pattern in allowed):
                raise Refusal(f"the {what} {each} is not allowed")

    return check


def _expiry(plan: Outgoing, longest: str) -> None:
    most = _span(longest)
    if plan.expires_at is None or plan.expires_at - datetime.now(UTC) > most + _SLACK:
        raise Refusal(f"it has to expire within {longest}")


def _views(plan: Outgoing, most: int) -> None:
    if plan.kind == "share" and (plan.views is None or plan.views > most):
        raise Refusal(f"it may be opened {most} time(s) at most")


def _submissions(plan: Outgoing, most: int) -> None:
    if plan.kind == "request" and (plan.views is None or plan.views > most):
        raise Refusal(f"it may be answered {most} time(s) at most")


def _span(text: str) -> timedelta:
    return timedelta(**{_UNITS[text[-1]]: int(text[:-1])})


def _texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


_RULES: Mapping[str, Callable[[Outgoing, Any], None]] = {
    "sources": _each("source", lambda plan: plan.sources),
    "recipients": _each("recipient", lambda plan: plan.recipients),
    "types": _each("field type", lambda plan: tuple(kind for _, kind in plan.labels)),
    "longest_expiry": _expiry,
    "most_views": _views,
    "most_submissions": _submissions,
}
_SHAPES: Mapping[str, Callable[[object], bool]] = {
    "sources": _texts,
    "recipients": _texts,
    "types": _texts,
    "longest_expiry": lambda value: isinstance(value, str) and bool(re.fullmatch(r"[1-9][0-9]{0,5}[smhdw]", value)),
    "most_views": _number,
    "most_submissions": _number,
}
