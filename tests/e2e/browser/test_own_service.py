"""The pages at a service of one's own: as in a rehearsal, but nobody says who they are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from e2e.browser.asked import FORM, Asked, ask
from e2e.browser.chrome import Browser
from sealpipe_rehearsal.running_service import RunningService
from support.job import Job
from support.own_service import OwnRunning, make_own_service


@pytest.fixture
def own_job(browser: Browser, tmp_path: Path) -> Iterator[Job]:
    own = make_own_service(tmp_path / "service")
    with own.running("--workers", "2"):
        running = OwnRunning(own)
        browser.origin = running.origin
        yield Job(tmp_path / "job", cast(RunningService, running))
        assert browser.trouble() == []
        browser.forgive()
        running.close()


def open_form(browser: Browser, asked: Asked) -> None:
    browser.open(asked.collect_link)
    browser.press("Open the form")


def test_a_recipient_and_a_submitter_do_what_they_do(browser: Browser, own_job: Job) -> None:
    shared = own_job.share(SEALPIPE_SHARE_TITLE="Staging")
    assert shared.code == 0, shared
    browser.open(shared.out.strip())
    text = browser.says("Something was shared with you")
    assert "rehears" not in text
    browser.press("Open it")
    browser.says("DB_PASSWORD")
    asked = ask(own_job)
    open_form(browser, asked)
    for name, value in FORM.items():
        browser.type(name, value)
    browser.press("Seal and send")
    browser.says("Sent, and only they can read it")
    assert [value for _, value, _ in asked.typed()[0]] == list(FORM.values())


@pytest.mark.parametrize(
    "condition",
    [{"requires_login": True}, {"requires_mfa": True}, {"restricted_domains": ["example.org"]}],
    ids=str,
)
def test_who_cannot_sign_in_is_told_so(
    browser: Browser, own_job: Job, condition: dict[str, Any]
) -> None:
    open_form(browser, ask(own_job, **condition))
    text = browser.says("The request is restricted", "nobody can sign in here", "passcode")
    assert "Signed in as" not in text
    assert browser.all("input") == []
