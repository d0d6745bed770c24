"""The write loop of every network sink.

Read, write what is missing, read again if the outcome is unknown.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from sealpipe.plugin import (
    Locator,
    Mode,
    PluginError,
    UnavailableError,
    UnknownOutcomeError,
    merge_fields,
)

TRIES: Final = 12
"""Attempts under concurrent writes, before the core retries later."""
MAX_BACKOFF: Final = 0.5
"""Maximum seconds before another attempt; random, to spread out competing writers."""


class Snapshot(NamedTuple):
    """The state of a target.

    `values` (None: it does not exist), its list of `markers`, the sink's own `raw` data.
    """

    values: Mapping[str, bytes] | None
    version: str = ""
    markers: str = ""
    raw: Any = None


class Outcome(NamedTuple):
    """The last snapshot, the version that holds the values, and whether this call wrote it."""

    snapshot: Snapshot
    version: str
    is_written: bool


Read = Callable[[], Snapshot]
Write = Callable[[Snapshot, Mapping[str, bytes], int], str | None]
"""Writes what the target lacks, given the snapshot, the values, and the number of earlier attempts.

Returns the version, or None if another writer was faster. Raises UnknownOutcomeError if the outcome
is unknown.
"""


def store_and_confirm(
    read: Read, write: Write, wanted: Mapping[str, bytes], target: object, mode: Mode, marker: str
) -> Outcome:
    """Write the values to `target` (its name in errors), even if others write to it.

    Raises PluginError.
    """
    outcome_error: UnknownOutcomeError | None = None
    for tries in range(TRIES):
        if tries and outcome_error is None:
            # Not for a secret.
            time.sleep(random.uniform(0, min(MAX_BACKOFF, 0.02 * 2**tries)))  # noqa: S311
        snapshot = _read_again(read, outcome_error)
        after = merge_fields(
            snapshot.values, wanted, mode=mode, marked=has_marker(snapshot.markers, marker)
        )
        if after is None:
            return Outcome(snapshot, snapshot.version, is_written=outcome_error is not None)
        if outcome_error is not None:
            raise UnavailableError(
                f"{target} was not written: the store failed", remedy="run it again"
            )
        try:
            version = write(snapshot, after, tries)
        except UnknownOutcomeError as error:
            outcome_error = error
            continue
        if version is not None:
            return Outcome(snapshot, version, is_written=True)
    raise UnavailableError(
        f"{target} cannot be written now: other writers keep changing it",
        remedy="run it again later",
    )


def entries_snapshot(
    present: Mapping[str, bytes], wanted: Mapping[str, bytes], raw: Any
) -> Snapshot:
    """Return the snapshot of a target whose keys are entries of their own.

    Its other entries do not matter.

    `present` has those keys of `wanted` that exist. What is missing beside equal values is no
    conflict.
    """
    is_complete = present.keys() == wanted.keys()
    is_conflict = any(value != wanted[key] for key, value in present.items())
    return Snapshot(present if is_complete or is_conflict else None, raw=raw)


def require_same(read_back_values: object, sent: object, locator: Locator) -> None:
    """Raise PluginError if the content read back differs from what was sent."""
    if read_back_values != sent:
        raise PluginError(
            f"{locator} did not read back as it was written", remedy="check what else writes to it"
        )


def has_marker(markers: str, marker: str) -> bool:
    """Return whether a space-separated list of markers contains this one."""
    return marker in markers.split()


def add_marker(markers: str, marker: str, limit: int) -> str:
    """Append a marker to the list; drop the oldest ones until it has at most `limit` characters."""
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
