"""What `collect` prints: progress on stderr; on stdout the submitted values, or where they are stored."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from sealpipe.cli import render
from sealpipe.cli.disclosure import Disclosure
from sealpipe.errors import SealpipeError
from sealpipe.flows.collect.options import CollectOptions
from sealpipe.flows.collect.result import CollectResult, OpenedSubmission, Progress
from sealpipe.flows.session import Session
from sealpipe.secret import Secret
from sealpipe.times import format_time
from sealpipe.wire.fields import revealed

_SELDOM: Final = 300.0
"""Seconds between two lines of waiting where nobody watches."""
_MOST: Final = 20
"""Lines of one kind, at most."""


class ProgressReport:
    """Shows progress: a countdown on a terminal, elsewhere a line now and then."""

    def __init__(self) -> None:
        self._watched = render.is_terminal()
        self.tick = 1.0 if self._watched else None
        self._told_at = -_SELDOM
        self._status = False
        self._troubles: dict[str, tuple[str, float]] = {}

    def __call__(self, progress: Progress) -> None:
        if progress.event == "waiting":
            self._waiting(progress)
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
        if self._status:
            render.print_status("")
            self._status = False

    def _is_news(self, code: str, detail: str) -> bool:
        """Whether the same problem was not printed recently: an outage repeats every 15 seconds."""
        before, told_at = self._troubles.get(code, ("", -_SELDOM))
        if detail == before and time.monotonic() - told_at < _SELDOM:
            return False
        self._troubles[code] = detail, time.monotonic()
        return True

    def _waiting(self, progress: Progress) -> None:
        line = f"waiting for {render.count(progress.waiting, 'request')}, {_clock(progress.left)} left"
        if self._watched:
            render.print_status(f"{line}, next check in {_clock(progress.next_look)}")
            self._status = True
        elif time.monotonic() - self._told_at >= _SELDOM:
            self._told_at = time.monotonic()
            render.print_note(line)


def print_warnings(result: CollectResult) -> None:
    """Print warnings about a result."""
    code = render.escape(result.short_code)
    for each in result.unreadable[:_MOST]:
        reason = render.escape(each.reason)
        render.print_note(f"{code}: submission {render.escape(each.short_code or '-')} cannot be used: {reason}")
    if len(result.unreadable) > _MOST:
        render.print_note(f"{code}: and {len(result.unreadable) - _MOST} more")
    if result.kept_in is not None:
        render.print_note(f"{code}: kept the ciphertext in {result.kept_in}")
    if result.skipped:
        render.print_note(f"{code}: skipped {render.count(result.skipped, 'submission')} without end-to-end encryption")
    print_late(result)
    if result.submissions:
        count = render.count(len(result.submissions), "submission")
        render.print_note(f"{code}: {count}. The sender is not authenticated: anyone with the link can submit.")
    for warning in result.warnings:
        render.print_note(f"sealpipe: {warning}")


def print_late(result: CollectResult) -> None:
    """Print how many submissions arrived while the request expired: with `--pick each` they were stored, too."""
    if result.late:
        code, stored = render.escape(result.short_code), result.ended is not None and result.pick == "each"
        what = "collected, too" if stored else "kept for `sealpipe collect --pick`"
        count = render.count(result.late, "submission")
        render.print_note(f"{code}: {count} arrived while the request expired: {what}")


def print_errors(problems: Sequence[SealpipeError], first: SealpipeError | None) -> None:
    """Print all errors but the one that the command ends with."""
    told = _words(first) if first is not None else ""
    others = [words for words in dict.fromkeys(map(_words, problems)) if words != told]
    for words in others[:_MOST]:
        render.print_note(f"sealpipe: {words}")
    if len(others) > _MOST:
        render.print_note(f"sealpipe: and {len(others) - _MOST} more")


def _words(error: SealpipeError) -> str:
    place = getattr(error, "locator", "")
    return f"{place}: {error.message}" if place and place not in error.message else error.message


def show(
    session: Session,
    results: Sequence[CollectResult],
    options: CollectOptions,
    values: dict[str, Any],
    leave: Disclosure,
) -> None:
    """Print the result on stdout; values only through `leave`. DeliveryError if stdout cannot be written."""
    if values["to"] or values["dir"] or values["dry_run"] or not any(result.submissions for result in results):
        _show(results, values)
    else:
        leave.write(session.registry, _hidden(results, options), lambda: _show(results, values))


def _show(results: Sequence[CollectResult], values: dict[str, Any]) -> None:
    stored = bool(values["to"] or values["dir"])
    if values["output"] == "json":
        rows = [_members(result, with_values=not stored and not values["dry_run"]) for result in results]
        render.print_json_rows(rows[0] if len(rows) == 1 else rows)
        return
    lines: list[str] = []
    for result in results:
        own = list(_lines(result, stored=stored, dry_run=values["dry_run"]))
        apart = [""] if lines and own and not stored and not values["dry_run"] else []
        lines += apart + own
    if lines:
        render.print_lines(lines)


def _lines(result: CollectResult, *, stored: bool, dry_run: bool) -> Iterator[str]:
    show = render.escape
    if dry_run:
        for plan in result.planned:
            keys = ", ".join(map(show, plan.keys))
            told = f"would {show(plan.words)}" + (f" ({keys})" if keys else "")
            yield f"{show(result.short_code)}\t{plan.submission}\t{told}"
    elif stored:
        for placed in result.stored:
            there = "already there" if placed.already else "stored" if placed.known else "stored, not read back"
            yield f"{show(result.short_code)}\t{placed.submission}\t{show(placed.target)}\t{there}"
    else:
        for number, received in enumerate(result.submissions):
            if number:
                yield ""
            yield from (f"{show(field.key)}: {show(revealed(field))}" for field in received.fields)


def _members(result: CollectResult, *, with_values: bool) -> dict[str, Any]:
    members: dict[str, Any] = {
        "schema": render.SCHEMA,
        "short_code": result.short_code,
        "status": result.status,
        "count": result.count,
        "submissions": [_submission(each, with_values=with_values) for each in result.submissions],
        "unreadable": [
            {"short_code": each.short_code, "created_at": _moment(each), "reason": each.reason}
            for each in result.unreadable
        ],
        "skipped": result.skipped,
        "stored": [{**each._asdict(), "keys": list(each.keys)} for each in result.stored],
        "late": result.late,
        "ended": None if result.ended is None else result.ended.outcome,
        "kept_in": None if result.kept_in is None else str(result.kept_in),
    }
    if result.planned:
        members["planned"] = [{**each._asdict(), "keys": list(each.keys)} for each in result.planned]
    errors = [error for error in (result.error, *result.failures) if error is not None]
    return {**members, "errors": [render.describe_error(error) for error in errors]} if errors else members


def _submission(received: OpenedSubmission, *, with_values: bool) -> dict[str, Any]:
    rows = [
        {**field.members(), "value": revealed(field)} if with_values else {"key": field.key, "type": field.type}
        for field in received.fields
    ]
    created = None if received.created_at is None else format_time(received.created_at)
    return {"short_code": received.short_code, "created_at": created, "marker": received.marker, "fields": rows}


def _hidden(results: Sequence[CollectResult], options: CollectOptions) -> Iterator[Secret]:
    """Yield all values to mask: all but those for a prompt of type `text`.

    The prompt's own type counts: the type in a submission is whatever its sender wrote.
    """
    plain = {job.short_code: {each.text for each in job.prompts or () if each.type == "text"} for job in options.jobs}
    typed = [
        text
        for each in results
        for row in each.submissions
        for field in row.fields
        if field.key not in plain[each.short_code]
        for text in (revealed(field), *_texts(field.extra))
    ]
    # As they are, and as they stand on stdout: a runner hides only what it finds letter by letter.
    forms = dict.fromkeys(
        form for text in typed for form in (text, render.escape_inline(text), render.escape_json(text))
    )
    yield from map(Secret, forms)


def _texts(extra: object) -> Iterator[str]:
    """Yield the texts in unknown members: they may be secret, too."""
    if isinstance(extra, str):
        yield extra
    elif isinstance(extra, Mapping | list):
        for each in extra.values() if isinstance(extra, Mapping) else extra:
            yield from _texts(each)
    elif not isinstance(extra, bool | None):
        yield json.dumps(extra)


def _moment(each: Any) -> str | None:
    return None if each.created_at is None else format_time(each.created_at)


def _clock(seconds: float) -> str:
    whole = max(0, round(seconds))
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"
