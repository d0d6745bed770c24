"""The loop of every sink behind a network: look, write what is missing, and look again where the outcome is unclear."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from sealpipe.plugin import Locator, Mode, PluginError, UnavailableError, UnknownOutcomeError, merge_fields

TRIES: Final = 12
"""How often others may write in between before the core is asked to try again later."""
MAX_BACKOFF: Final = 0.5
"""Seconds before another try, at most: writers who met must not meet again."""


class Snapshot(NamedTuple):
    """What a target holds. `values` is None for nothing, `markers` the list kept beside them, `raw` the sink's own."""

    values: Mapping[str, bytes] | None
    version: str = ""
    markers: str = ""
    raw: Any = None


class Outcome(NamedTuple):
    """The target as it was seen last, the version that holds the values, and whether this call wrote it."""

    snapshot: Snapshot
    version: str
    wrote: bool


Read = Callable[[], Snapshot]
Write = Callable[[Snapshot, Mapping[str, bytes], int], str | None]
"""Writes what the target must hold: the snapshot, the values, and the number of tries before.

Returns the version; None where somebody else wrote in between, so that one has to look again. Raises
UnknownOutcomeError where nobody knows whether it was written.
"""


def store_and_confirm(
    read: Read, write: Write, wanted: Mapping[str, bytes], target: object, mode: Mode, marker: str
) -> Outcome:
    """Make a target, which errors name, hold the values, whoever else writes there. Raises PluginError."""
    outcome_error: UnknownOutcomeError | None = None
    for tries in range(TRIES):
        if tries and outcome_error is None:
            time.sleep(random.uniform(0, min(MAX_BACKOFF, 0.02 * 2**tries)))  # noqa: S311 - not for a secret
        snapshot = _read_again(read, outcome_error)
        after = merge_fields(snapshot.values, wanted, mode=mode, marked=has_marker(snapshot.markers, marker))
        if after is None:
            return Outcome(snapshot, snapshot.version, wrote=outcome_error is not None)
        if outcome_error is not None:
            raise UnavailableError(f"{target} was not written: the store failed", remedy="run it again")
        try:
            version = write(snapshot, after, tries)
        except UnknownOutcomeError as error:
            outcome_error = error
            continue
        if version is not None:
            return Outcome(snapshot, version, wrote=True)
    raise UnavailableError(f"{target} cannot be written now: others keep writing there", remedy="run it again later")


def require_same(read_back_values: object, sent: object, locator: Locator) -> None:
    """Raise PluginError where what was read back differs from what was sent."""
    if read_back_values != sent:
        raise PluginError(f"{locator} did not read back as it was written", remedy="check what else writes to it")


def has_marker(markers: str, marker: str) -> bool:
    """Whether a list of markers, separated by blanks, has this one."""
    return marker in markers.split()


def add_marker(markers: str, marker: str, limit: int) -> str:
    """Return the list with a marker at its end, the oldest dropped until it fits into `limit` characters."""
    kept_markers = [*(each for each in markers.split() if each != marker), marker]
    while len(" ".join(kept_markers)) > limit and len(kept_markers) > 1:
        kept_markers.pop(0)
    return " ".join(kept_markers)


def _read_again(read: Read, outcome_error: UnknownOutcomeError | None) -> Snapshot:
    failure: PluginError
    try:
        return read()
    except PluginError as error:
        failure = outcome_error or error
    raise failure
