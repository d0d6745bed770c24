"""What a report tells of rows: numbers, the timeline, the next step, what went wrong; as JSON, CSV
and a page.
"""

from __future__ import annotations

import csv
import io
import json
import re
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealpipe.batch.report.chart import describe_chart, draw_chart
from sealpipe.batch.report.figures import (
    ATTENTION,
    BatchReport,
    RowFacts,
    make_report,
    make_timeline,
)
from sealpipe.batch.report.files import describe_event, to_csv, to_members
from sealpipe.batch.report.page import make_page
from sealpipe.batch.steps.states import HOUR, Progress, Schedule, State

DAY = 24 * HOUR
BEGIN = 1_790_000_000_000_000
"""2026-09-21, 14:13:20 UTC."""
NOW = BEGIN + 11 * DAY
OUT = Progress(
    short_code="CODE-OF-A-LINK",
    created_at=BEGIN,
    delivered_at=BEGIN,
    touched_at=BEGIN,
    expires_at=BEGIN + 30 * DAY,
)
USED = replace(
    OUT, used_at=BEGIN + 2 * DAY, submissions=2, collected=2, outcome="collected", reminded=1
)
TROUBLED = replace(OUT, problem="connection refused", remedy="check the address", exit_code=10)
HISTORY = (
    (BEGIN, {"what": "created", "short_code": "CODE-OF-A-LINK"}),
    (BEGIN, {"what": "delivered", "unclear": []}),
    (BEGIN + 2 * DAY, {"what": "collected", "submissions": 2, "late": 0}),
)
ROWS = (
    RowFacts("acme", State.DONE, BEGIN + 2 * DAY, None, USED, history=HISTORY),
    RowFacts(
        "beta", State.WAITING, BEGIN, BEGIN + 12 * DAY, replace(OUT, reminders=2, looked_at=NOW)
    ),
    RowFacts("delta", State.FAILED, BEGIN + DAY, BEGIN + 11 * DAY, TROUBLED),
    RowFacts("carol", State.NEW, BEGIN, BEGIN, Progress()),
    RowFacts("gone", State.WAITING, BEGIN, None, OUT, is_gone=True),
)
CODES = ("CODE-OF-A-LINK", "CODE-OF-THE-FIRST")
REMINDED = Schedule((3 * DAY, 7 * DAY), DAY)
HOSTILE = (
    "<script>window.pwned = 1</script>",
    "\"><img src=x onerror=alert(1)>'",
    "</style></title><svg onload=alert(1)>",
    "&lt;b&gt;",
    "right\u202eto left\x1b[2J\nnext",
    "=HYPERLINK(1)",
    "\ud800",
)


def report(*rows: RowFacts, kind: str = "request") -> BatchReport:
    return make_report(
        "vendors",
        kind,  # type: ignore[arg-type]
        "https://api.example/v1",
        rows or ROWS,
        REMINDED,
        NOW,
    )


def test_the_numbers_are_those_of_the_rows() -> None:
    told = report()
    assert told.counts == {State.FAILED: 1, State.NEW: 1, State.WAITING: 2, State.DONE: 1}
    assert (told.over, told.troubled, told.used) == (1, 1, 1)
    assert [told.add_up(name) for name in ("submissions", "stored", "reminders")] == [2, 2, 1]


def test_what_needs_attention_comes_first() -> None:
    assert [row.key for row in report().rows] == ["delta", "carol", "beta", "gone", "acme"]
    assert sorted(ATTENTION) == sorted(State)


def test_each_row_says_what_comes_next_and_when() -> None:
    steps = {row.key: (row.next_step, row.next_at) for row in report().rows}
    assert steps == {
        "acme": ("", None),
        "beta": ("poll", BEGIN + 12 * DAY),
        "delta": ("remind", BEGIN + 11 * DAY),
        "carol": ("create", BEGIN),
        "gone": ("", None),
    }


def test_a_row_in_trouble_says_why_and_what_to_do() -> None:
    row = report().rows[0]
    assert (row.problem, row.remedy, row.exit_code) == (
        "connection refused",
        "check the address",
        10,
    )
    text = Reader(make_page(report())).text
    assert "connection refused" in text
    assert "check the address" in text


def test_a_row_that_the_file_no_longer_has_is_told() -> None:
    row = next(each for each in report().rows if each.key == "gone")
    assert row.problem == "the file no longer has this row: it is left alone"
    assert row.remedy == "put it back, or run `sealpipe batch cancel vendors -- gone`"


def test_what_was_asked_for_a_row_that_is_gone_is_told_as_its_next_step() -> None:
    cancelled = replace(OUT, wish="cancel")
    told = report(RowFacts("gone", State.ENDING, BEGIN, NOW, cancelled, is_gone=True)).rows[0]
    assert (told.next_step, told.next_at, told.problem) == ("end", NOW, "")


def test_texts_from_outside_are_redacted() -> None:
    row = RowFacts(
        "canary",
        State.FAILED,
        0,
        0,
        TROUBLED,
        history=[(0, {"what": "failed", "problem": "canary"})],
    )
    told = make_report(
        "v", "request", "", [row], REMINDED, NOW, redact=lambda text: text.replace("canary", "-")
    )
    assert "canary" not in json.dumps(to_members(told)) + to_csv(told) + make_page(told)


def test_no_problem_tells_the_code_of_a_link() -> None:
    first = [(BEGIN, {"what": "created", "short_code": "CODE-OF-THE-FIRST"})]
    lines = [(NOW, {"what": "blocked", "problem": f"the key of {code} is lost"}) for code in CODES]
    progress = replace(
        TROUBLED, problem="CODE-OF-A-LINK could not be used", remedy="look at CODE-OF-A-LINK"
    )
    told = report(RowFacts("acme", State.BLOCKED, BEGIN, None, progress, history=[*first, *lines]))
    assert told.rows[0].problem == "[withheld] could not be used"
    for file in (json.dumps(to_members(told)), to_csv(told), make_page(told)):
        assert "[withheld]" in file
        assert not any(code in file for code in CODES)


def test_the_timeline_counts_rows_by_the_time() -> None:
    timeline = make_timeline([0, HOUR], [5 * HOUR], 10 * HOUR)
    assert timeline is not None
    assert (timeline.begin, timeline.step) == (0, HOUR // 4)
    assert [timeline.delivered[number] for number in (0, 3, 4, 40)] == [1, 1, 2, 2]
    assert [timeline.used[number] for number in (19, 20, 40)] == [0, 1, 1]


@given(
    st.lists(st.integers(BEGIN, BEGIN + 400 * DAY), max_size=30),
    st.lists(st.integers(BEGIN, NOW), max_size=30),
)
def test_a_timeline_ends_with_all_rows_in_few_steps(delivered: list[int], used: list[int]) -> None:
    timeline = make_timeline(delivered, used, NOW)
    assert (timeline is None) == (not delivered and not used)
    if timeline is not None:
        assert (timeline.delivered[-1], timeline.used[-1]) == (len(delivered), len(used))
        assert len(timeline.delivered) == len(timeline.used) <= 62
        assert (
            timeline.begin
            <= min([*delivered, *used])
            <= max([*delivered, *used, NOW])
            <= timeline.end
        )


def test_json_has_each_row_with_its_history_and_no_short_code() -> None:
    members = to_members(report())
    assert (members["total"], members["counts"]["waiting"], members["submissions"]) == (5, 2, 2)
    acme = next(row for row in members["rows"] if row["key"] == "acme")
    assert (acme["state"], acme["used_at"], acme["stored"]) == ("done", "2026-09-23T14:13:20Z", 2)
    assert acme["history"][2] == {
        "at": "2026-09-23T14:13:20Z",
        "what": "collected",
        "submissions": 2,
    }
    assert "CODE-OF-A-LINK" not in json.dumps(members)


def test_events_are_told_in_words() -> None:
    lines = [describe_event(line) for line in report(ROWS[0]).rows[0].history]
    assert lines == ["created", "delivered", "collected 2 submissions"]


@pytest.mark.parametrize(
    "first", ["=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20", " ="]
)
def test_no_cell_of_the_csv_is_a_formula(first: str) -> None:
    text = to_csv(report(RowFacts(f"{first}1+1", State.NEW, 0, 0, Progress())))
    assert text.startswith("\ufeff")
    header, row = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""))
    assert header[:2] == ["key", "state"]
    assert row[0].startswith("'")
    assert row[0].isprintable()


class Reader(HTMLParser):
    """What a browser would make of a page: elements with their attributes, and the text outside of
    the style.
    """

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.style = ""
        self._inside = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag

    def handle_data(self, data: str) -> None:
        if self._inside == "style":
            self.style += data
            self._inside = ""
        else:
            self.text += data


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_rows_are_only_text_in_the_page(text: str) -> None:
    progress = replace(TROUBLED, problem=text, remedy=text, outcome=text)
    row = RowFacts(
        text,
        State.FAILED,
        BEGIN,
        BEGIN,
        progress,
        history=[(BEGIN, {"what": text, "problem": text})],
    )
    plain = report(
        row._replace(key="k", progress=TROUBLED, history=[(BEGIN, {"what": "w", "problem": "p"})])
    )
    expected = [tag for tag, _ in Reader(make_page(plain)).elements]
    page = make_page(
        make_report("vendors", "request", "https://api.example/v1", [row], REMINDED, NOW)
    )
    found = [tag for tag, _ in Reader(page).elements]
    assert [tag for tag in found if tag != "span"] == [tag for tag in expected if tag != "span"]
    assert page.replace("\n", "").isprintable()
    if text.isprintable():
        assert text in Reader(page).text


@pytest.mark.parametrize("kind", ["request", "share"])
def test_the_page_loads_runs_and_links_nothing(kind: str) -> None:
    page = Reader(make_page(report(kind=kind)))
    tags = {tag for tag, _ in page.elements}
    assert (
        tags & {"a", "script", "img", "link", "iframe", "form", "base", "object", "use", "image"}
        == set()
    )
    names = {name for _, attributes in page.elements for name in attributes}
    assert names & {"href", "src", "style", "srcset", "action"} == set()
    assert "url(" not in page.style
    assert "@import" not in page.style


def test_the_policy_allows_the_style_and_nothing_else() -> None:
    page = Reader(make_page(report()))
    policy = (
        next(
            each["content"] for tag, each in page.elements if tag == "meta" and "http-equiv" in each
        )
        or ""
    )
    digest = b64encode(sha256(page.style.encode()).digest()).decode()
    assert (
        policy
        == f"default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'sha256-{digest}'"
    )


def test_the_chart_has_a_text_with_its_numbers() -> None:
    told = report()
    assert describe_chart(told) in draw_chart(told)
    assert describe_chart(told).endswith("1 of 5 at the end. Delivered: 4 of 5.")


@pytest.mark.parametrize("days", [1, 2, 3, 11, 40, 400])
def test_the_chart_names_a_few_moments_from_the_first_to_near_the_last(days: int) -> None:
    told = make_report("v", "request", "https://api.example/v1", ROWS, REMINDED, BEGIN + days * DAY)
    moments = [float(x) for x in re.findall(r'<text x="([0-9.]+)" y="248"', draw_chart(told))]
    assert 3 <= len(moments) <= 5
    gaps = [after - before for before, after in pairwise(moments)]
    assert min(gaps) > 0
    assert max(gaps) - min(gaps) < 1
    assert moments[0] == 44
    assert moments[-1] + gaps[0] > 704


def test_a_batch_without_deliveries_has_no_chart() -> None:
    told = report(RowFacts("a", State.NEW, BEGIN, BEGIN, Progress()))
    assert draw_chart(told) == ""
    assert "No link was delivered yet." in make_page(told)


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (ROWS, "1 of 5 rows with a submission, 1 needs attention"),
        (ROWS[:1], "1 of 1 row with a submission, and the batch has ended"),
        (ROWS[1:2], "0 of 1 row with a submission"),
    ],
)
def test_the_page_says_how_far_the_batch_is(rows: tuple[RowFacts, ...], sentence: str) -> None:
    assert f">{sentence}<" in make_page(report(*rows))
