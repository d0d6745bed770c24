"""Which of the answers are taken. Pure. Whoever has the link may answer, so one is the rule."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from sealpipe.api.refusals import escape_text
from sealpipe.errors import SubmissionNotFoundError, TooManySubmissionsError, UsageError
from sealpipe.flows.collect.result import OpenedSubmission, describe_no_match

WORDS = ("only", "newest", "oldest", "each")
"""What `pick` may say; anything else is the short code of a submission, or its marker."""
_SYNONYMS = {
    **dict.fromkeys(("last", "latest", "recent", "youngest"), "newest"),
    **dict.fromkeys(("first", "earliest"), "oldest"),
    **dict.fromkeys(("all", "every", "both"), "each"),
    **dict.fromkeys(("any", "one", "single"), "only"),
}
"""What people write for one of them."""
_NEAR = 0.75
"""How much of a word is a slip of one of ours: of no word of more than ten letters, and codes have twelve."""
_SHOWN = 10
_NEVER = datetime.min.replace(tzinfo=UTC)


def pick(found: Sequence[OpenedSubmission], how: str, short_code: str) -> list[OpenedSubmission]:
    """Those that are taken; none where there is none. Raises TooManySubmissionsError."""
    if how == "each":
        return list(found)
    if how not in ("newest", "oldest"):
        named = [each for each in found if how in ("only", each.short_code, each.marker)]
        if len(named) > 1:
            raise _too_many_error(named, len(found), short_code)
        return named
    if not found:
        return []
    # What carries no time is older than what does; else in the service's order.
    ordered = sorted(enumerate(found), key=lambda each: (each[1].created_at or _NEVER, each[0]))
    return [ordered[-1 if how == "newest" else 0][1]]


def check_pick(how: str) -> None:
    """UsageError for what is a slip of one of the words, and would be waited for as the code of an answer."""
    if how in WORDS:
        return
    from difflib import get_close_matches  # a word of ours is the rule

    word = how.lower()
    # A code of letters alone that looks like a word of ours is still named by its marker, which has a dot.
    near = _SYNONYMS.get(word) or next(iter(get_close_matches(word, WORDS, 1, _NEAR)), None)
    if near and word.isascii() and word.isalpha():
        raise UsageError(
            f"{how!r} is none of {', '.join(WORDS)}, and hardly the code of an answer",
            remedy=f"did you mean {near}? An answer whose code looks so is named by its marker",
        )


def has_match(found: Sequence[OpenedSubmission], how: str) -> bool:
    """Whether there is anything to take, be it too much."""
    return any(how in WORDS or how in (each.short_code, each.marker) for each in found)


def _too_many_error(named: Sequence[OpenedSubmission], answers: int, short_code: str) -> TooManySubmissionsError:
    return TooManySubmissionsError(
        f"{short_code} has {answers} submissions, but --pick only accepts exactly one: {_name_submissions(named)}; "
        "nothing was stored",
        short_code=short_code,
    )


def no_match_error(found: Sequence[OpenedSubmission], how: str, short_code: str) -> SubmissionNotFoundError:
    """That a request is over, and what it has; `found` is not empty."""
    return SubmissionNotFoundError(
        f"{short_code} is over, and {describe_no_match(len(found), how)}: "
        f"{_name_submissions(found)}; nothing was stored",
        short_code=short_code,
    )


def _name_submissions(named: Sequence[OpenedSubmission]) -> str:
    shown = named[:_SHOWN]
    codes = [each.short_code for each in shown]
    # Should one code ever stand for two, the marker tells them apart.
    clear = [each.short_code is not None and codes.count(each.short_code) == 1 for each in shown]
    names = [
        escape_text(str(each.short_code), 60) if told else each.marker for each, told in zip(shown, clear, strict=True)
    ]
    return ", ".join(names) + (", ..." if len(named) > _SHOWN else "")
