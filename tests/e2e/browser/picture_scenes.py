"""What the pictures of pages in the docs show: a share, a form, submissions and a report that
somebody might have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from e2e.browser.asked import ask
from e2e.browser.chrome import PHONE
from e2e.browser.sending import field, send
from e2e.browser.stage import Stage
from sealpipe.batch.report.figures import RowFacts, make_report
from sealpipe.batch.report.page import make_page
from sealpipe.batch.steps.states import HOUR, Progress, Schedule, State

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
"""The service's time in every picture."""
DAY = 24 * HOUR
WINDOW = (760, 480)
PROMPTS = [("User name", "text"), ("Staging password", "password")]


def _share(stage: Stage, _: Path) -> str:
    fields = [
        field("correct-horse-battery", "password", "Password"),
        field("deploy", "text", "User"),
        field("https://staging.acme.example/login", "url", "Login page"),
    ]
    until = (NOON + timedelta(hours=72)).isoformat()
    link = send(
        stage.service, fields, title="Staging database", access_counts_left=2, expired_at=until
    )
    stage.opens(link)
    return "Login page"


def _form(stage: Stage, _: Path) -> str:
    asked = ask(
        stage.job,
        title="Access to staging",
        description="For the release on Friday.",
        fields=PROMPTS,
    )
    stage.browser.open(asked.collect_link)
    stage.browser.press("Open the form")
    stage.browser.type("User name", "deploy")
    stage.browser.type("Staging password", "tr0ub4dor-and-3")
    stage.browser.run("document.activeElement.blur()")  # a cursor blinks
    return "Seal and send"


def _submissions(stage: Stage, _: Path) -> str:
    asked = ask(stage.job, title="Access to staging", fields=PROMPTS[1:])
    for password in ("tr0ub4dor-and-3", "correct-horse-battery"):
        asked.answer({"Staging password": password})
    stage.browser.open(asked.access_link)
    return "2 submissions, opened in this browser"


def _vendors() -> Iterator[RowFacts]:
    """Four of six have submitted, one waits, and one has to be decided."""
    begin = round(NOON.timestamp() * 1_000_000)
    out = Progress(
        short_code="S3cT0nVxq2Lm", created_at=begin, delivered_at=begin, expires_at=begin + 14 * DAY
    )
    for number, name in enumerate(("acme", "bolt", "core", "dune")):
        at = begin + (number * number % 7 + 1) * DAY
        done = replace(
            out, used_at=at, submissions=1, collected=1, outcome="collected", reminded=number % 2
        )
        history = [(begin, {"what": "delivered"}), (at, {"what": "collected", "submissions": 1})]
        yield RowFacts(name, State.DONE, at, None, done, history=history)
    yield RowFacts("echo", State.WAITING, begin, begin + 9 * DAY, replace(out, reminded=2))
    problem = "the message to [withheld] may have been sent: the mail server did not answer"
    remedy = "`sealpipe batch reissue vendors flux` asks again, with a new link"
    unclear = replace(out, problem=problem, remedy=remedy, exit_code=11)
    yield RowFacts(
        "flux", State.BLOCKED, begin, None, unclear, history=[(begin, {"what": "blocked"})]
    )


def _report(stage: Stage, folder: Path) -> str:
    now = round(NOON.timestamp() * 1_000_000) + 8 * DAY
    report = make_report(
        "vendors",
        "request",
        "https://api.example/v1",
        _vendors(),
        Schedule((3 * DAY, 7 * DAY)),
        now,
    )
    file = folder / "report.html"
    file.write_text(make_page(report), "utf-8")
    stage.browser.driver.get(file.as_uri())
    return "vendors"


class Picture(NamedTuple):
    """The way to a page, what its picture shows in words, and how it is looked at."""

    way: Callable[[Stage, Path], str]
    alternative: str
    size: tuple[int, int] = WINDOW
    dark: bool = False


_SHARE = (
    "The recipient's page of a share, Staging database, once it is open: a password behind "
    "dots, a user and a "
)
PICTURES = {
    "recipient": Picture(
        _share,
        (
            f"{_SHARE}login page, each with a button that copies it; the password has one that "
            "shows it."
        ),
    ),
    "recipient-dark": Picture(_share, f"{_SHARE}login page, light text on a dark page.", dark=True),
    "recipient-phone": Picture(_share, f"{_SHARE}login page, below each other on a phone.", PHONE),
    "submitter": Picture(
        _form,
        "The submitter's page of a request, Access to staging: a form with a user name, a hidden "
        "staging password and the button Seal and send.",
    ),
    "submitter-phone": Picture(
        _form,
        (
            "The submitter's page on a phone, in dark mode: the two inputs below each other, "
            "and the button below both."
        ),
        PHONE,
        dark=True,
    ),
    "owner": Picture(
        _submissions,
        "The owner's page of a request: two submissions, opened in the browser, the newest first, "
        "each with a password behind dots.",
    ),
    "report": Picture(
        _report,
        "The report of a batch of six vendors: figures, a chart of the submissions over time, and "
        "a row for each vendor, first the one that somebody has to decide.",
        (1000, 480),
    ),
}
