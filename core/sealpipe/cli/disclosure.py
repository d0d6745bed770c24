"""The ONE gate in front of every link and value that goes to stdout (DESIGN 6.7).

A command asks for leave before anything is sent or fetched, and writes the secret through what it got. In a CI system
whoever reads the log reads stdout: there the caller says by --print that stdout is captured.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sealpipe.ci_systems import CISystem, ci_system, runner_reads_stderr
from sealpipe.cli import masking, render
from sealpipe.errors import DeliveryError, UsageError
from sealpipe.secret import Secret

if TYPE_CHECKING:
    from sealpipe.registry import Registry

WAIT: Final = 0.25
"""Seconds between masks and value. A runner reads the two streams in two threads, and either may be late."""


@dataclass(frozen=True)
class Disclosure:
    """Leave to put a secret on stdout, or none. Made by `plan` alone."""

    system: CISystem | None
    allowed: bool
    printing: bool

    def put(self, registry: Callable[[], Registry], hidden: Iterable[Secret], write: Callable[[], None]) -> None:
        """Mask what is to be hidden, wait until the runner knows, then write. DeliveryError where a mask gets lost."""
        if not self.allowed:
            raise DeliveryError("nothing secret may go to stdout here", remedy="add --print, where you capture stdout")
        masks = self.system is not None and self.system.mask is not None
        heard = masks and runner_reads_stderr()
        masked = masking.hide(registry, hidden) and heard
        if masks and self.printing and not masked:
            raise DeliveryError("what would stand on stdout could not be masked: stderr is closed by now")
        if masked:
            import time

            time.sleep(WAIT)
        write()

    def resume(self, entry_id: str | None) -> str:
        """The command line that finishes an entry with the same leave."""
        return f"sealpipe resume {entry_id}" + (" --print" if self.allowed and self.printing and self.system else "")


NONE: Final = Disclosure(None, allowed=False, printing=False)
"""For a command whose result is no secret."""


def plan(
    what: str,
    others: str,
    *,
    printing: bool,
    elsewhere: bool = False,
    dry_run: bool = False,
    addresses: Sequence[str] = (),
) -> Disclosure:
    """Ask for leave, before anything is sent. UsageError where `what` would stand in a job's log.

    `others` names the ways that need none, `elsewhere` tells that one of them is taken. A link needs none either where
    its addresses are all loopback: it is a rehearsal's. A dry run tells that the run itself would be refused.
    """
    system = ci_system(os.environ)
    if system is None or elsewhere:
        return Disclosure(system, allowed=not elsewhere, printing=printing)
    try:
        _check(system, what, others, printing=printing or _are_loopback(addresses), asked=printing)
    except UsageError as error:
        if not dry_run:
            raise
        render.note(f"sealpipe: {error.message}; the run itself would be refused: {error.remedy}")
        return Disclosure(system, allowed=False, printing=printing)
    return Disclosure(system, allowed=True, printing=printing)


def _check(system: CISystem, what: str, others: str, *, printing: bool, asked: bool) -> None:
    if not printing:
        raise UsageError(
            f"this is a job of {system.title}, and {what} would stand in its log",
            remedy=f"{others}; or add --print, where you capture stdout",
        )
    if asked and system.mask is not None and not runner_reads_stderr():
        raise UsageError(
            f"--print: stderr does not reach the runner of {system.title}, so {what} could not be masked",
            remedy="leave stderr as it is: no file, no null device, not closed",
        )


def _are_loopback(addresses: Sequence[str]) -> bool:
    from urllib.parse import urlsplit

    from sealpipe.loopback import is_loopback

    return bool(addresses) and all(is_loopback(urlsplit(each).hostname or "") for each in addresses)
