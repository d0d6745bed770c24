"""How long a share lives: no longer than what is in it is worth anything (DESIGN section 8). Pure but for the clock."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

from sealpipe.errors import PluginError
from sealpipe.flows.planning import SharePlan
from sealpipe.flows.resolve import Cache, earliest_end
from sealpipe.times import format_time

SHORTEST: Final = timedelta(minutes=1)
"""What is over sooner is not worth a link."""


def bounded(plan: SharePlan, cache: Cache) -> tuple[SharePlan, tuple[str, ...]]:
    """The plan with an end no later than its documents', and what to tell people where that changed it.

    Raises PluginError where less than a minute would be left.
    """
    found = earliest_end(cache)
    if found is None:
        return plan, ()
    end, reference = found
    if plan.expires_at is not None and plan.expires_at <= end:
        return plan, ()
    end = end.astimezone(UTC).replace(microsecond=0)
    if end - datetime.now(UTC) < SHORTEST:
        raise PluginError(
            f"{reference} is worth nothing after {format_time(end)}, and that is too soon for a share",
            locator=reference,
            remedy="have it live longer where it comes from (its lease, and the token that reads it)",
        )
    asked = "without an end" if plan.expires_at is None else f"until {format_time(plan.expires_at)}"
    told = f"the share ends at {format_time(end)}, with what {reference} gives; it was asked for {asked}"
    return replace(plan, expires_at=end), (told,)
