"""The service in a rehearsal: its clock moves, a log keeps all, calls can be made to fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import ClassVar

from sealpipe_service import listing
from sealpipe_service.context import Service
from sealpipe_service.responses import refuse

from .clock import MovableClock
from .database import RehearsalDatabase
from .fault_plan import FaultPlan
from .log import Log

MOMENTS: Mapping[str, str] = {
    "share.expiring": "share_not_expired",
    "requests.listing": "request_failed",
    "request.ending": "request_failed",
}
"""Moments at which a valid call can fail, with its refusal (specification: Errors, 42 and 11)."""


def ignore_moment(moment: str) -> None:
    """The default of `RehearsedService.on_moment`."""


@dataclass
class RehearsedService(Service):
    """A service that a test controls.

    `on_moment` is called with the name of each moment that a handler reaches, in its thread; it may
    block or raise. `failing` counts for each of MOMENTS how many calls are to fail there.
    """

    is_rehearsal: ClassVar[bool] = True

    clock: MovableClock
    log: Log
    database: RehearsalDatabase = field(kw_only=True)
    on_moment: Callable[[str], None] = ignore_moment
    faults: FaultPlan = field(default_factory=FaultPlan)
    failing: dict[str, int] = field(default_factory=dict)
    custody_digests: set[bytes] = field(init=False)
    """The SHA-256 of every custody secret that the service was told of."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.clock.on_advance = self._pass_time
        self.custody_digests = {
            bytes.fromhex(row["custody_sha256"])
            for row in self.store.list_keys()
            if row["custody_sha256"]
        }

    def _pass_time(self) -> None:
        listing.sweep(self)
        self.deliverer.wake()

    def reach(self, moment: str) -> None:
        """Let the call fail at this moment if it is to, and tell `on_moment`."""
        if self.failing.get(moment, 0) > 0:
            self.failing[moment] -= 1
            refuse(MOMENTS[moment])
        self.on_moment(moment)

    @contextmanager
    def next_call_fails(self) -> Iterator[None]:
        """Let the next call that reaches one of MOMENTS in the block fail with 500/42 or 500/11."""
        before = dict(self.failing)
        self.failing |= dict.fromkeys(MOMENTS, 1)
        try:
            yield
        finally:
            self.failing.clear()
            self.failing |= before
