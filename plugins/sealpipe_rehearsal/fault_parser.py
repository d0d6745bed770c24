"""Parses a fault plan (decoded TOML or JSON) into rows, strictly."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import NoReturn

from sealpipe_service.gateway import ROUTES

from . import fault_checks as checks
from .fault_plan import ALWAYS, ANY, FaultRow, Pattern, is_placeholder
from .faults import FAULTS, Fault

KNOWN_ROUTES = dict.fromkeys(
    [*((route.method, route.path) for route in ROUTES), ("POST", ("mcp",))]
)
"""Every route under /v1, by method and path."""

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
MAX_ROWS = 1_000


class FaultPlanError(ValueError):
    """A fault plan is invalid.

    `number` is the entry's number, from 1; None for the plan as a whole.
    """

    def __init__(self, reason: str, number: int | None = None) -> None:
        super().__init__(reason if number is None else f"fault {number}: {reason}")
        self.reason = reason
        self.number = number


def parse_plan(entries: object) -> list[FaultRow]:
    """Return the rows of a plan, an array of tables.

    Raises FaultPlanError for the first invalid row.
    """
    if not isinstance(entries, list | tuple):
        raise FaultPlanError("a plan is an array of tables")
    if len(entries) > MAX_ROWS:
        raise FaultPlanError(f"a plan has at most {MAX_ROWS} faults")
    rows = []
    for number, entry in enumerate(entries, 1):
        try:
            rows.append(_row(entry))
        except FaultPlanError as error:
            raise FaultPlanError(error.reason, number) from None
    return rows


def _row(entry: object) -> FaultRow:
    if not isinstance(entry, Mapping) or not all(isinstance(name, str) for name in entry):
        raise FaultPlanError("must be a table")
    name = entry.get("fault")
    if not isinstance(name, str):
        raise FaultPlanError("`fault` is missing: the name of the fault")
    fault = FAULTS.get(name)
    if fault is None:
        _refuse_unknown(name, FAULTS, "is not a fault")
    parameters = {key: value for key, value in entry.items() if key not in _COMMON}
    for key in parameters:
        if key not in fault.parameters:
            _refuse_unknown(
                key, [*_COMMON, *fault.parameters], f"is not a parameter of the fault {name}"
            )
    for key, check in _COMMON.items():
        if key in entry and (reason := check(entry[key])):
            raise FaultPlanError(f"`{key}` {reason}")
    times = entry.get("times", 1)
    row = FaultRow(
        pattern=_pattern(entry.get("when", ANY)),
        fault=name,
        after_commit=_after_commit(name, fault, entry),
        times=None if times == ALWAYS else times,
        skip=entry.get("skip", 0),
        parameters={key: _value(key, fault, parameters) for key in fault.parameters},
        source=dict(entry),
    )
    try:
        json.dumps(row.source, allow_nan=False)
    except (
        TypeError,
        ValueError,
        RecursionError,
    ):  # TOML allows times and infinities; JSON does not
        raise FaultPlanError("has a value that JSON cannot represent") from None
    return row


def _value(key: str, fault: Fault, parameters: Mapping[str, object]) -> object:
    parameter = fault.parameters[key]
    if key not in parameters:
        if parameter.default is ...:
            raise FaultPlanError(f"`{key}` is missing: {parameter.help}")
        return parameter.default
    if reason := parameter.check(parameters[key]):
        raise FaultPlanError(f"`{key}` {reason}")
    return parameters[key]


def _after_commit(name: str, fault: Fault, entry: Mapping[str, object]) -> bool:
    parameters = entry.get("after_commit")
    if fault.changes_response and parameters is False:
        raise FaultPlanError(
            f"{name} changes the service's own response, so after_commit cannot be false"
        )
    return fault.changes_response or bool(parameters)


def _pattern(when: str) -> Pattern:
    method, _, route = when.strip().partition(" ")
    if method == ANY and not route:
        return Pattern()
    if method not in (*METHODS, ANY):
        _refuse_unknown(method, METHODS, 'is not a method; write `when` as "POST /shares" or "*"')
    route = route.strip()
    if route in ("", ANY):
        return Pattern(method)
    if not re.fullmatch(r"(/[^/\s]+)+", route) or route.startswith("/v1/"):
        raise FaultPlanError(
            f"`when`: {route[:60]!a} is not a route; write it without /v1, as in /shares/*"
        )
    pattern = Pattern(method, tuple(route.split("/")[1:]))
    if not any(_can_match(pattern, *known) for known in KNOWN_ROUTES):
        routes = [f"{known_method} /{'/'.join(path)}" for known_method, path in KNOWN_ROUTES]
        _refuse_unknown(f"{method} {route}", routes, "is not a route of the service")
    return pattern


def _can_match(pattern: Pattern, method: str, path: Iterable[str]) -> bool:
    # A placeholder in a route matches any segment of the pattern.
    pattern_segments = pattern.path or ()
    filled = tuple(
        want if is_placeholder(got) else got
        for want, got in zip(pattern_segments, path, strict=False)
    )
    return len(pattern_segments) == len(tuple(path)) and pattern.matches(method, filled)


def _refuse_unknown(name: str, known: Iterable[str], what: str) -> NoReturn:
    names = list(known)
    nearest = next(iter(get_close_matches(name, names, 1)), None)
    hint = f"did you mean {nearest!a}?" if nearest else f"use one of {', '.join(names)}"
    raise FaultPlanError(f"{name[:60]!a} {what}; {hint}")


def _times(value: object) -> str | None:
    reason = checks.number(1, 2**31 - 1)(value)
    return None if value == ALWAYS else reason and f'{reason}, or "{ALWAYS}"'


_COMMON: Mapping[str, checks.Check] = {
    "when": lambda value: (
        None if isinstance(value, str) and value.strip() else "must be a method and a route"
    ),
    "fault": lambda _: None,
    "after_commit": checks.switch,
    "times": _times,
    "skip": checks.count,
}
