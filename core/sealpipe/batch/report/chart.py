"""The chart of a report: how many links were delivered and used by when, as SVG.

No script, no style of its own.
"""

from __future__ import annotations

from html import escape
from typing import Final, NamedTuple

from sealpipe.batch.report.figures import DAY, BatchReport, Timeline
from sealpipe.batch.report.files import to_datetime

_WIDTH: Final = 720
_HEIGHT: Final = 260
_LEFT: Final = 44
_RIGHT: Final = 16
_TOP: Final = 14
_BOTTOM: Final = 34
_MOST_LABELS: Final = 5
_LABELS: Final = 'aria-labelledby="chart-title" aria-describedby="chart-text"'
USED: Final = {"request": "with a submission", "share": "opened"}
"""What is told of a row whose link was used."""


class _Scale(NamedTuple):
    """Where a moment and a number of rows lie in the picture."""

    timeline: Timeline
    top: int

    def x(self, moment: float) -> float:
        span = max(1, self.timeline.end - self.timeline.begin)
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (moment - self.timeline.begin) / span

    def y(self, number: float) -> float:
        return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * number / self.top


def draw_chart(report: BatchReport) -> str:
    """Return the figure of a report's timeline; empty if no link was delivered yet."""
    timeline = report.timeline
    if timeline is None:
        return ""
    scale = _Scale(timeline, _choose_top(len(report.rows)))
    parts = [
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" {_LABELS}>',
        f'<title id="chart-title">{_name_uses(report)} over time</title>',
        f'<desc id="chart-text">{escape(describe_chart(report))}</desc>',
        *_draw_grid(scale),
        *_draw_times(scale),
        f'<path class="delivered" d="{_draw_steps(scale, timeline.delivered)}"/>',
        f'<path class="area" d="{_draw_area(scale, timeline.used)}"/>',
        f'<path class="used" d="{_draw_steps(scale, timeline.used)}"/>',
        "</svg>",
    ]
    return (
        f"<figure>{''.join(parts)}<figcaption>"
        f'<span><i class="mark"></i>{USED[report.kind]}</span> '
        '<span><i class="mark mark-delivered"></i>delivered</span></figcaption></figure>'
    )


def describe_chart(report: BatchReport) -> str:
    """Return the chart in a sentence, for people who do not see it."""
    timeline = report.timeline
    if timeline is None:
        return "No link was delivered yet."
    halves = [
        timeline.begin + timeline.step * (len(timeline.used) * part // 4) for part in (1, 2, 3)
    ]
    numbers = [timeline.used[len(timeline.used) * part // 4] for part in (1, 2, 3)]
    by = ", ".join(
        f"{number} by {_format(moment)}" for moment, number in zip(halves, numbers, strict=True)
    )
    total, word = len(report.rows), USED[report.kind]
    return (
        f"Rows {word}: {by}, {timeline.used[-1]} of {total} at the end. Delivered: "
        f"{timeline.delivered[-1]} of {total}."
    )


def _name_uses(report: BatchReport) -> str:
    return "Submissions" if report.kind == "request" else "Opened shares"


def _choose_top(number: int) -> int:
    """Return the top of the scale: the next round number that four lines divide."""
    return max(4, -(-number // 4) * 4)


def _draw_grid(scale: _Scale) -> list[str]:
    parts = []
    for quarter in range(5):
        number = scale.top * quarter // 4
        y = f"{scale.y(number):.1f}"
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y}" y2="{y}"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y}" dy="4" text-anchor="end">{number}</text>')
    return parts


def _draw_times(scale: _Scale) -> list[str]:
    """Label a few moments of the axis, from its begin to its end."""
    timeline = scale.timeline
    steps = len(timeline.delivered) - 1
    every = max(1, -(-steps // (_MOST_LABELS - 1)))
    parts = []
    for number in range(0, steps + 1, every):
        moment = timeline.begin + number * timeline.step
        x = scale.x(moment)
        anchor = "start" if number == 0 else "end" if x > _WIDTH - 60 else "middle"
        parts.append(
            f'<text x="{x:.1f}" y="{_HEIGHT - 12}" '
            f'text-anchor="{anchor}">{_format(moment, timeline.step)}</text>'
        )
    return parts


def _format(moment: int, step: int = 0) -> str:
    """Return a time as short as the steps allow, in UTC."""
    at = to_datetime(moment)
    return (
        f"{at:%Y-%m-%d}"
        if step >= DAY
        else f"{at:%m-%d %H:%M}"
        if step
        else f"{at:%Y-%m-%d %H:%M} UTC"
    )


def _draw_steps(scale: _Scale, numbers: tuple[int, ...]) -> str:
    """Return the path of a number that only grows: level, then up."""
    timeline = scale.timeline
    path = f"M{_LEFT} {scale.y(numbers[0]):.1f}"
    for index, number in enumerate(numbers[1:], 1):
        path += f"H{scale.x(timeline.begin + index * timeline.step):.1f}"
        if number != numbers[index - 1]:
            path += f"V{scale.y(number):.1f}"
    return path


def _draw_area(scale: _Scale, numbers: tuple[int, ...]) -> str:
    ground = f"{scale.y(0):.1f}"
    return f"{_draw_steps(scale, numbers)}V{ground}H{_LEFT}Z"
