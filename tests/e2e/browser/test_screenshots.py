"""A picture of every state, wide and on a phone, in light and dark.

SEALPIPE_TESTS_SCREENSHOTS names a folder that keeps them, to be looked at; without it they are
taken all the same.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from e2e.browser.chrome import PHONE, WIDE, Browser
from e2e.browser.states import STATES, Stage
from sealpipe_rehearsal.running_service import RunningService
from support.job import Job

LOOKS = {
    "wide-light": (WIDE, False),
    "wide-dark": (WIDE, True),
    "phone-light": (PHONE, False),
    "phone-dark": (PHONE, True),
}


@pytest.mark.parametrize("state", STATES)
def test_a_picture_of_each_state(
    browser: Browser, job: Job, extended: RunningService, state: str, tmp_path: Path
) -> None:
    browser.says(STATES[state](Stage(browser, job, extended)))
    folder = Path(os.environ.get("SEALPIPE_TESTS_SCREENSHOTS") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    pictures = {}
    papers = {}
    for look, (size, dark) in LOOKS.items():
        browser.look(*size, dark=dark)
        pictures[look] = browser.png()
        papers[look] = browser.run("return getComputedStyle(document.body).backgroundColor")
        (folder / f"{state}.{look}.png").write_bytes(pictures[look])
    assert len(set(pictures.values())) == len(LOOKS)
    assert (
        papers["wide-light"] == papers["phone-light"] != papers["wide-dark"] == papers["phone-dark"]
    )
