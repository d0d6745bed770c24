"""The checks of `sealpipe doctor`, and the findings that they report.

    settings         global settings and where they come from, values for commands, the credential
    state_directory  the state directory and the outbox in it
    plugins          installed plugins, named stores, policies and observers
    connectivity     host, proxy, certificate, clock; whether links lead anywhere
    scopes           what the API key may do
    roundtrip        a test share
    conformance      the wire format's vectors

Nothing here changes anything, except for the test share of `--roundtrip`. No finding holds a secret.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from sealpipe.errors import SealpipeError


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at, how it stands, and what to do. `error` is there where it failed: it has the exit code."""

    check: str
    status: Literal["ok", "warn", "fail"]
    detail: str
    remedy: str = ""
    error: SealpipeError | None = field(default=None, repr=False)


def report_ok(check: str, detail: str) -> Finding:
    """As it should be, or merely told."""
    return Finding(check, "ok", detail)


def report_warning(check: str, detail: str, remedy: str = "") -> Finding:
    """Something may not work."""
    return Finding(check, "warn", detail, remedy)


def report_failure(check: str, error: SealpipeError) -> Finding:
    """It does not work, for the reason that the error says."""
    return Finding(check, "fail", error.message, error.remedy, error)


def run_check(check: str, findings: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """The findings; an error that ends them is one more, and ends nothing else."""
    try:
        yield from findings()
    except SealpipeError as error:
        yield report_failure(check, error)
