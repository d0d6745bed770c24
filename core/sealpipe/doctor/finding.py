"""One line of the report."""

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


def fine(check: str, detail: str) -> Finding:
    """As it should be, or merely told."""
    return Finding(check, "ok", detail)


def doubtful(check: str, detail: str, remedy: str = "") -> Finding:
    """Something may not work."""
    return Finding(check, "warn", detail, remedy)


def failed(check: str, error: SealpipeError) -> Finding:
    """It does not work, for the reason that the error says."""
    return Finding(check, "fail", error.message, error.remedy, error)


def going_on(check: str, findings: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """The findings; an error that ends them is one more, and ends nothing else."""
    try:
        yield from findings()
    except SealpipeError as error:
        yield failed(check, error)
