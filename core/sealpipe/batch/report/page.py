"""A report as one page that needs nothing else.

No network, no script, no font, no picture beside it.

Everything that comes from rows is hostile text: it is escaped, and the page's policy lets nothing
run or load.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from hashlib import sha256
from html import escape
from typing import Final

from sealpipe.api.responses import escape_text
from sealpipe.batch.report.chart import USED, draw_chart
from sealpipe.batch.report.figures import BatchReport, ReportedRow
from sealpipe.batch.report.files import MAX_TEXT, describe_event, format_moment, name_step
from sealpipe.batch.report.style import STYLE
from sealpipe.batch.steps.states import State, is_troubled

_POLICY: Final = (
    "default-src 'none'; base-uri 'none'; form-action 'none'; "
    f"style-src 'sha256-{b64encode(sha256(STYLE.encode()).digest()).decode()}'"
)
STATE_NAMES: Final = {
    State.NEW: "new",
    State.SENDING: "sending",
    State.WAITING: "waiting",
    State.ENDING: "ending",
    State.DONE: "done",
    State.EXPIRED: "expired",
    State.CANCELLED: "cancelled",
    State.FAILED: "failed",
    State.BLOCKED: "blocked",
}
_COLUMNS: Final = ("Row", "State", "Since", "Next step", "Used", "Reminders")


def make_page(report: BatchReport) -> str:
    """Return the HTML page of a report."""
    name = _show(report.name)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="robots" content="noindex">
<title>{name}: batch report</title>
<style>{STYLE}</style>
</head>
<body>
<header>
<p class="kind">Batch of {report.kind}s</p>
<h1>{name}</h1>
<p class="quiet">{_show(report.service)}, as of {_show_time(report.made_at)}</p>
</header>
<main>
<section aria-labelledby="numbers">
<h2 id="numbers">{_summarize(report)}</h2>
{_list_numbers(report)}
</section>
{_show_chart(report)}
<section aria-labelledby="rows">
<h2 id="rows">Rows</h2>
<div class="scroll" role="region" aria-label="Table of rows" tabindex="0">
<table>
<thead><tr>{"".join(f'<th scope="col">{column}</th>' for column in _columns(report))}</tr></thead>
{"".join(_show_row(report, row) for row in report.rows)}</table>
</div>
</section>
</main>
<footer><p>Made by sealpipe. This page holds no secret and no link.</p></footer>
</body>
</html>
"""


def _columns(report: BatchReport) -> Iterable[str]:
    used = "Submissions" if report.kind == "request" else "Opened"
    return (used if column == "Used" else column for column in _COLUMNS)


def _summarize(report: BatchReport) -> str:
    """Return the batch in a sentence."""
    total = len(report.rows)
    text = f"{report.used} of {_count(total, 'row')} {USED[report.kind]}"
    if report.troubled:
        text += f", {report.troubled} {'needs' if report.troubled == 1 else 'need'} attention"
    elif total and report.over == total:
        text += ", and the batch has ended"
    return text


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _list_numbers(report: BatchReport) -> str:
    numbers = [(STATE_NAMES[state], number, str(state)) for state, number in report.counts.items()]
    if report.kind == "request":
        numbers += [
            ("submissions", report.add_up("submissions"), ""),
            ("stored", report.add_up("stored"), ""),
        ]
    numbers.append(("reminders sent", report.add_up("reminders"), ""))
    tiles = (
        f'<div class="{kind}"><dt>{name}</dt><dd>{number}</dd></div>'
        for name, number, kind in numbers
    )
    return f"<dl>{''.join(tiles)}</dl>"


def _show_chart(report: BatchReport) -> str:
    title = "Submissions over time" if report.kind == "request" else "Opened over time"
    chart = draw_chart(report) or '<p class="quiet">No link was delivered yet.</p>'
    return f'<section aria-labelledby="time"><h2 id="time">{title}</h2>{chart}</section>'


def _show_row(report: BatchReport, row: ReportedRow) -> str:
    used = (
        row.submissions
        if report.kind == "request"
        else _show_time(row.used_at)
        if row.used_at
        else "-"
    )
    outcome = (
        f' <span class="quiet">{_show(row.outcome)}</span>'
        if row.outcome not in ("", str(row.state))
        else ""
    )
    step = _show(name_step(report, row)) or "-"
    if row.next_at is not None:
        step += "<br>now" if row.next_at <= report.made_at else f"<br>{_show_time(row.next_at)}"
    state = f'<span class="state {row.state}">{STATE_NAMES[row.state]}</span>{outcome}'
    values = (state, _show_time(row.since), step, used, row.reminders)
    _, *columns = _columns(report)
    cells = (
        f'<th scope="row">{_show(row.key)}</th>',
        *(
            f'<td data-label="{column}">{value}</td>'
            for column, value in zip(columns, values, strict=True)
        ),
    )
    notes = _show_problem(row) + _show_history(row)
    more = f'<tr class="more"><td colspan="{len(cells)}">{notes}</td></tr>' if notes else ""
    return f"<tbody><tr>{''.join(cells)}</tr>{more}</tbody>\n"


def _show_problem(row: ReportedRow) -> str:
    if not row.problem:
        return ""
    kind = "problem" if is_troubled(row.state) else "quiet"
    remedy = f"<br>{_show(row.remedy)}" if row.remedy else ""
    return f'<p class="{kind}">{_show(row.problem)}{remedy}</p>'


def _show_history(row: ReportedRow) -> str:
    if not row.history:
        return ""
    lines = "".join(
        f"<li>{_show_time(line.at)} {_show(describe_event(line))}</li>" for line in row.history
    )
    return f"<details><summary>History of {_show(row.key)}</summary><ol>{lines}</ol></details>"


def _show(text: str) -> str:
    """Return text from outside as HTML.

    No markup, no control character, nothing that changes the direction.
    """
    return escape(escape_text(text, MAX_TEXT))


def _show_time(moment: int) -> str:
    full = format_moment(moment) or ""
    return f'<time datetime="{full}">{full[:10]} {full[11:16]}&nbsp;UTC</time>'
