"""Which of the answers are taken. Pure. Whoever has the link may answer, so one is the rule."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from sealpipe.errors import TooManyAnswers
from sealpipe.flows.collecting.result import Received

WORDS = ("only", "newest", "oldest", "each")
"""What `pick` may say; anything else is the short code of a submission."""
_NEVER = datetime.min.replace(tzinfo=UTC)


def pick(found: Sequence[Received], how: str, short_code: str) -> list[Received]:
    """Those that are taken; none where there is none. Raises TooManyAnswers."""
    if how == "each":
        return list(found)
    if how not in WORDS:
        return [each for each in found if each.short_code == how]
    if how == "only" and len(found) > 1:
        codes = ", ".join(str(each.short_code) for each in found[:10])
        raise TooManyAnswers(
            f"{short_code} has {len(found)} answers, and one is taken: {codes}; nothing was stored",
            short_code=short_code,
        )
    if not found:
        return []
    # What carries no time is older than what does; else in the service's order.
    ordered = sorted(enumerate(found), key=lambda each: (each[1].created_at or _NEVER, each[0]))
    return [ordered[-1 if how == "newest" else 0][1]]
