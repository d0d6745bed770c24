"""Every state of every page, wide and on a phone, in light and dark: for keyboard and screen reader
(axe-core), and on a phone's width.

SEALPIPE_TESTS_SCREENSHOTS names a folder for a picture of each, to be looked at; without it none is
taken, for they take as long as all the rest.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from e2e.browser.axe import LOOKS, rules_passed, violations
from e2e.browser.chrome import PHONE, WIDE, Browser
from e2e.browser.states import STATES, Stage
from sealpipe_rehearsal.running_service import RunningService
from support.job import Job

SEEN = {
    "wide-light": (WIDE, False),
    "wide-dark": (WIDE, True),
    "phone-light": (PHONE, False),
    "phone-dark": (PHONE, True),
}
CHECKED = ("wide-dark", "phone-dark")
"""Where axe reads colours and sizes once more: it has read the first look whole, and the rules for
a phone change no colour.
"""


@pytest.mark.parametrize("state", STATES)
def test_axe_finds_nothing_nothing_is_wider_than_a_phone_and_dark_is_dark(
    browser: Browser, job: Job, extended: RunningService, state: str
) -> None:
    browser.says(STATES[state](Stage(browser, job, extended)))
    papers = {}
    found = violations(browser)
    for look, (size, dark) in SEEN.items():
        browser.look(*size, dark=dark)
        papers[look] = browser.run("return getComputedStyle(document.body).backgroundColor")
        if folder := os.environ.get("SEALPIPE_TESTS_SCREENSHOTS"):
            Path(folder).mkdir(parents=True, exist_ok=True)
            (Path(folder) / f"{state}.{look}.png").write_bytes(browser.png())
        found += [*(violations(browser, LOOKS) if look in CHECKED else ()), *_too_wide(browser)]
    assert not found, found
    assert (
        papers["wide-light"] == papers["phone-light"] != papers["wide-dark"] == papers["phone-dark"]
    )
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
