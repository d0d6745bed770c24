"""What a check reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from sealpipe.errors import SealpipeError


@dataclass(frozen=True, slots=True)
class Finding:
    """What was checked, its status, and what to do.

    `error` is set if the check failed: it has the exit code.
    """

    check: str
    status: Literal["ok", "warn", "fail"]
    detail: str
    remedy: str = ""
    error: SealpipeError | None = field(default=None, repr=False)


def report_ok(check: str, detail: str) -> Finding:
    """Report a success, or a fact."""
    return Finding(check, "ok", detail)


def report_warning(check: str, detail: str, remedy: str = "") -> Finding:
    """Report that something may not work."""
    return Finding(check, "warn", detail, remedy)


def report_failure(check: str, error: SealpipeError) -> Finding:
    """Report that something does not work, and why."""
    return Finding(check, "fail", error.message, error.remedy, error)


def run_check(check: str, findings: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """Yield the findings of a check.

    An error that ends the check becomes a finding, and other checks go on.
    """
    try:
        yield from findings()
    except SealpipeError as error:
        yield report_failure(check, error)
