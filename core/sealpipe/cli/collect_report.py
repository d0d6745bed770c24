"""What `collect` prints: progress on stderr.

On stdout the submitted values, or where they are stored.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from sealpipe.cli import render
from sealpipe.cli.disclosure import Disclosure
from sealpipe.collect.options import CollectPlan
from sealpipe.collect.results import CollectResult, OpenedSubmission, Progress
from sealpipe.errors import SealpipeError
from sealpipe.parsing import format_optional_time
from sealpipe.secret import Secret
from sealpipe.session import Session
from sealpipe.wire.fields import printable, revealed

_QUIET_INTERVAL: Final = 300.0
"""Seconds between two lines of progress if stderr is no terminal."""
_MAX_LINES: Final = 20
"""Maximum number of lines of one kind."""


class ProgressReport:
    """Shows progress: a countdown on a terminal, elsewhere a line every five minutes."""

    def __init__(self) -> None:
        self._is_terminal = render.is_terminal()
        self.tick = 1.0 if self._is_terminal else None
        self._printed_at = -_QUIET_INTERVAL
        self._has_status = False
        self._failures: dict[str, tuple[str, float]] = {}

    def __call__(self, progress: Progress) -> None:
        if progress.event == "waiting":
            self._print_waiting(progress)
            return
        self.clear()
        code, detail = render.escape(progress.short_code), render.escape(progress.detail)
        if progress.event == "trouble":
            if progress.left > 0 and self._is_news(code, detail):
                render.print_note(f"{code}: {detail}; still waiting")
        elif progress.event in ("stored", "already", "not stored"):
            render.print_note(f"{code}: {progress.event} in {detail}")
        elif progress.event == "ended":
            render.print_note(f"{code}: {detail}")

    def clear(self) -> None:
        """Clear the countdown."""
        if self._has_status:
            render.print_status("")
            self._has_status = False

    def _is_news(self, code: str, detail: str) -> bool:
        """Return whether this problem was not printed recently.

        An outage recurs every 15 seconds.
        """
        last_detail, printed_at = self._failures.get(code, ("", -_QUIET_INTERVAL))
        if detail == last_detail and time.monotonic() - printed_at < _QUIET_INTERVAL:
            return False
        self._failures[code] = detail, time.monotonic()
        return True

    def _print_waiting(self, progress: Progress) -> None:
        line = (
            f"waiting for {render.count(progress.waiting, 'request')}, "
            f"{render.format_duration(progress.left)} left"
        )
        if self._is_terminal:
            render.print_status(
                f"{line}, next check in {render.format_duration(progress.next_look)}"
            )
            self._has_status = True
        elif time.monotonic() - self._printed_at >= _QUIET_INTERVAL:
            self._printed_at = time.monotonic()
            render.print_note(line)


def print_warnings(result: CollectResult) -> None:
    """Print warnings about a result."""
    code = render.escape(result.short_code)
    for each in result.unreadable[:_MAX_LINES]:
        reason = render.escape(each.reason)
        render.print_note(
            f"{code}: submission {render.escape(each.short_code or '-')} cannot be used: {reason}"
        )
    if len(result.unreadable) > _MAX_LINES:
        render.print_note(f"{code}: and {len(result.unreadable) - _MAX_LINES} more")
    if result.kept_in is not None:
        render.print_note(f"{code}: kept the ciphertext in {result.kept_in}")
    if result.skipped:
        render.print_note(
            f"{code}: skipped {render.count(result.skipped, 'submission')} without "
            "end-to-end encryption"
        )
    print_late_arrivals(result)
    if result.submissions:
        count = render.count(len(result.submissions), "submission")
        render.print_note(
            f"{code}: {count}. The sender is not authenticated: anyone with the link can submit."
        )
    for warning in result.warnings:
        render.print_note(f"sealpipe: {warning}")


def print_late_arrivals(result: CollectResult) -> None:
    """Print how many submissions arrived while the request expired.

    `--pick each` stores these, too.
    """
    if result.late:
        code, is_stored = (
            render.escape(result.short_code),
            result.ended is not None and result.pick == "each",
        )
        effect = "collected, too" if is_stored else "kept for `sealpipe collect --pick`"
        count = render.count(result.late, "submission")
        render.print_note(f"{code}: {count} arrived while the request expired: {effect}")


def print_errors(problems: Sequence[SealpipeError], first: SealpipeError | None) -> None:
    """Print all errors except the one that the command ends with."""
    first_text = _format_error(first) if first is not None else ""
    texts = [text for text in dict.fromkeys(map(_format_error, problems)) if text != first_text]
    for text in texts[:_MAX_LINES]:
        render.print_note(f"sealpipe: {text}")
    if len(texts) > _MAX_LINES:
        render.print_note(f"sealpipe: and {len(texts) - _MAX_LINES} more")


def _format_error(error: SealpipeError) -> str:
    locator = getattr(error, "locator", "")
    return (
        f"{locator}: {error.message}" if locator and locator not in error.message else error.message
    )


def print_results(
    session: Session,
    results: Sequence[CollectResult],
    plan: CollectPlan,
    values: dict[str, Any],
    gate: Disclosure,
) -> None:
    """Print the results on stdout; values only through `gate`.

    DeliveryError if stdout cannot be written.
    """
    if (
        values["to"]
        or values["dir"]
        or values["dry_run"]
        or not any(result.submissions for result in results)
    ):
        _print_results(results, values)
    else:
        gate.write(
            session.registry, _list_secrets(results, plan), lambda: _print_results(results, values)
        )


def _print_results(results: Sequence[CollectResult], values: dict[str, Any]) -> None:
    is_stored = bool(values["to"] or values["dir"])
    if values["output"] == "json":
        rows = [
            _to_members(result, with_values=not is_stored and not values["dry_run"])
            for result in results
        ]
        render.print_json_rows(rows[0] if len(rows) == 1 else rows)
        return
    lines: list[str] = []
    for result in results:
        result_lines = list(_format_lines(result, is_stored=is_stored, dry_run=values["dry_run"]))
        separator = (
            [""] if lines and result_lines and not is_stored and not values["dry_run"] else []
        )
        lines += separator + result_lines
    if lines:
        render.print_lines(lines)


def _format_lines(result: CollectResult, *, is_stored: bool, dry_run: bool) -> Iterator[str]:
    escape = render.escape
    if dry_run:
        for plan in result.planned:
            keys = ", ".join(map(escape, plan.keys))
            description = f"would {escape(plan.words)}" + (f" ({keys})" if keys else "")
            yield f"{escape(result.short_code)}\t{plan.submission}\t{description}"
    elif is_stored:
        for written in result.stored:
            state = (
                "already there"
                if written.already
                else "stored"
                if written.known
                else "stored, not read back"
            )
            columns = (
                escape(result.short_code),
                str(written.submission),
                escape(written.target),
                state,
            )
            yield "\t".join(columns)
    else:
        for number, submission in enumerate(result.submissions):
            if number:
                yield ""
            yield from (
                f"{escape(field.key)}: {escape(revealed(field))}" for field in submission.fields
            )


def _to_members(result: CollectResult, *, with_values: bool) -> dict[str, Any]:
    members: dict[str, Any] = {
        "schema": render.SCHEMA,
        "short_code": result.short_code,
        "status": result.status,
        "count": result.count,
        "submissions": [
            _describe_submission(each, with_values=with_values) for each in result.submissions
        ],
        "unreadable": [
            {
                "short_code": each.short_code,
                "created_at": format_optional_time(each.created_at),
                "reason": each.reason,
            }
            for each in result.unreadable
        ],
        "skipped": result.skipped,
        "stored": [{**each._asdict(), "keys": list(each.keys)} for each in result.stored],
        "late": result.late,
        "ended": None if result.ended is None else result.ended.outcome,
        "kept_in": None if result.kept_in is None else str(result.kept_in),
    }
    if result.planned:
        members["planned"] = [
            {**each._asdict(), "keys": list(each.keys)} for each in result.planned
        ]
    errors = [error for error in (result.error, *result.failures) if error is not None]
    return (
        {**members, "errors": [render.describe_error(error) for error in errors]}
        if errors
        else members
    )


def _describe_submission(submission: OpenedSubmission, *, with_values: bool) -> dict[str, Any]:
    rows = [
        {**printable(field), "value": revealed(field)}
        if with_values
        else {"key": field.key, "type": field.type}
        for field in submission.fields
    ]
    created_at = format_optional_time(submission.created_at)
    return {
        "short_code": submission.short_code,
        "created_at": created_at,
        "marker": submission.marker,
        "fields": rows,
    }


def _list_secrets(results: Sequence[CollectResult], plan: CollectPlan) -> Iterator[Secret]:
    """Yield all values to mask: all except those for prompts of type `text`.

    Only the prompt's own type counts; the submitter controls the type in the submission.
    """
    public_prompts = {
        job.short_code: {each.text for each in job.prompts or () if each.type == "text"}
        for job in plan.jobs
    }
    values = [
        text
        for each in results
        for row in each.submissions
        for field in row.fields
        if field.key not in public_prompts[each.short_code]
        for text in (revealed(field), *_find_texts(field.extra))
    ]
    # As they are, and as stdout spells them: a runner masks only exact matches.
    spellings = dict.fromkeys(
        spelling
        for text in values
        for spelling in (text, render.escape_inline(text), render.escape_json(text))
    )
    yield from map(Secret, spellings)


def _find_texts(extra: object) -> Iterator[str]:
    """Yield the texts in unknown members, which may be secret, too."""
    if isinstance(extra, str):
        yield extra
    elif isinstance(extra, Mapping | list):
        for each in extra.values() if isinstance(extra, Mapping) else extra:
            yield from _find_texts(each)
    elif not isinstance(extra, bool | None):
        yield json.dumps(extra)
