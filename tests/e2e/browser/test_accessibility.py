"""Every state of every page: for keyboard and screen reader (axe-core), on a phone's width, in
light and dark.
"""

from __future__ import annotations

import pytest

from e2e.browser.axe import LOOKS, rules_passed, violations
from e2e.browser.chrome import PHONE, WIDE, Browser
from e2e.browser.states import STATES, Stage
from sealpipe_rehearsal.running_service import RunningService
from support.job import Job


@pytest.mark.parametrize("state", STATES)
def test_axe_finds_nothing_and_nothing_is_wider_than_a_phone(
    browser: Browser, job: Job, extended: RunningService, state: str
) -> None:
    told = STATES[state](Stage(browser, job, extended))
    browser.says(told)
    found = [*violations(browser), *_too_wide(browser)]
    for size, dark in ((WIDE, True), (PHONE, False)):
        browser.look(*size, dark=dark)
        found += [*violations(browser, LOOKS), *_too_wide(browser)]
    assert not found, found
    heading = browser.one("h1")
    assert heading.text
    assert len(browser.all("main")) == 1
    # A screen reader is told where it is, and the page's name says the same.
    assert browser.driver.title
    assert browser.run("return document.documentElement.lang") == "en"


def test_axe_does_find_what_is_wrong(browser: Browser, job: Job, extended: RunningService) -> None:
    browser.says(STATES["request-ready"](Stage(browser, job, extended)))
    assert rules_passed(browser) > 15
    browser.run(
        "document.querySelector('label').remove(); "
        "document.querySelector('main').style.color = '#ccc'"
    )
    rules = {each.partition(":")[0] for each in violations(browser)}
    assert {"color-contrast", "label"} <= rules


def _too_wide(browser: Browser) -> list[str]:
    return [f"wider than the window: {each}" for each in browser.overflows()]
