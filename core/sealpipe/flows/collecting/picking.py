"""Which of the answers are taken. Pure. Whoever has the link may answer, so one is the rule."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from sealpipe.api.refusals import printable
from sealpipe.errors import TooManyAnswers
from sealpipe.flows.collecting.result import Received

WORDS = ("only", "newest", "oldest", "each")
"""What `pick` may say; anything else is the short code of a submission, or its marker."""
_SHOWN = 10
_NEVER = datetime.min.replace(tzinfo=UTC)


def pick(found: Sequence[Received], how: str, short_code: str) -> list[Received]:
    """Those that are taken; none where there is none. Raises TooManyAnswers."""
    if how == "each":
        return list(found)
    if how not in ("newest", "oldest"):
        named = [each for each in found if how in ("only", each.short_code, each.marker)]
        if len(named) > 1:
            raise _too_many(named, len(found), short_code)
        return named
    if not found:
        return []
    # What carries no time is older than what does; else in the service's order.
    ordered = sorted(enumerate(found), key=lambda each: (each[1].created_at or _NEVER, each[0]))
    return [ordered[-1 if how == "newest" else 0][1]]


def any_taken(found: Sequence[Received], how: str) -> bool:
    """Whether there is anything to take, be it too much."""
    return any(how in WORDS or how in (each.short_code, each.marker) for each in found)


def _too_many(named: Sequence[Received], answers: int, short_code: str) -> TooManyAnswers:
    shown = named[:_SHOWN]
    codes = [each.short_code for each in shown]
    # Should one code ever stand for two, the marker tells them apart.
    clear = [each.short_code is not None and codes.count(each.short_code) == 1 for each in shown]
    names = [
        printable(str(each.short_code), 60) if told else each.marker for each, told in zip(shown, clear, strict=True)
    ]
    more = ", ..." if len(named) > _SHOWN else ""
    return TooManyAnswers(
        f"{short_code} has {answers} answers, and one is taken: {', '.join(names)}{more}; nothing was stored",
        short_code=short_code,
    )
