"""The page of a batch's report, opened from its file: for everybody, in light, dark and on paper,
without network.
"""

from __future__ import annotations

import os
import re
from base64 import b64decode
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from e2e.browser.axe import LOOKS, rules_passed, violations
from e2e.browser.chrome import PHONE, WIDE, Browser
from sealpipe.batch.report.figures import RowFacts, make_report
from sealpipe.batch.report.page import make_page
from sealpipe.batch.steps.states import HOUR, Progress, Schedule, State

DAY = 24 * HOUR
BEGIN = 1_790_000_000_000_000
OUT = Progress(short_code="c", created_at=BEGIN, delivered_at=BEGIN, expires_at=BEGIN + 30 * DAY)
HOSTILE = (
    "<script>window.pwned = 1</script><img src=http://elsewhere.example/x "
    "onerror='window.pwned = 1'>\u202e"
)


def rows() -> Iterator[RowFacts]:
    """Twelve vendors: eight have submitted, one row is blocked, one failed, and some have hostile
    names.
    """
    for number in range(8):
        used_at = BEGIN + (number * number % 11) * DAY
        progress = replace(
            OUT,
            used_at=used_at,
            submissions=1,
            collected=1,
            outcome="collected",
            reminded=number % 3,
        )
        events = [
            (BEGIN, {"what": "delivered"}),
            (used_at, {"what": "collected", "submissions": 1}),
        ]
        yield RowFacts(f"vendor-{number}", State.DONE, used_at, None, progress, history=events)
    trouble = replace(OUT, problem=f"refused: {HOSTILE}", remedy=f"ask {HOSTILE}", exit_code=14)
    events = [(BEGIN, {"what": "failed", "problem": HOSTILE})]
    yield RowFacts(HOSTILE, State.BLOCKED, BEGIN, None, trouble, history=events)
    yield RowFacts("W" * 300, State.FAILED, BEGIN, BEGIN + DAY, trouble)
    yield RowFacts("waiting", State.WAITING, BEGIN, BEGIN + 12 * DAY, OUT)
    yield RowFacts("cancelled", State.CANCELLED, BEGIN, None, OUT)


@pytest.fixture
def page(browser: Browser, tmp_path: Path) -> Iterator[Browser]:
    """The page in the browser, which has loaded the file and nothing else, has run nothing and has
    said nothing.
    """
    report = make_report(
        "vendors-2026-q4",
        "request",
        "https://api.example/v1",
        rows(),
        Schedule((3 * DAY,)),
        BEGIN + 11 * DAY,
    )
    file = tmp_path / "report.html"
    file.write_text(make_page(report), "utf-8")
    browser.driver.get(file.as_uri())
    yield browser
    assert browser.trouble() == [f"a request to {file.as_uri()}"]
    browser.forgive()


@pytest.fixture
def screenshots(tmp_path: Path) -> Path:
    """Where pictures are kept, to be looked at: see `test_accessibility.py`."""
    folder = Path(os.environ.get("SEALPIPE_TESTS_SCREENSHOTS") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def on_screen(browser: Browser, size: tuple[int, int], *, dark: bool) -> None:
    browser.look(*size, dark=dark)


def on_paper(browser: Browser, size: tuple[int, int], *, dark: bool) -> None:
    """A printer gets light pages, whatever the screen has."""
    browser.look(*size)
    scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
    browser.cdp("Emulation.setEmulatedMedia", media="print", features=scheme)


CUT = """const all = 'main, section, .scroll, table, tbody, tbody *';
return [...document.querySelectorAll(all)].filter(each => {
    const box = each.getBoundingClientRect(), style = getComputedStyle(each);
    return !each.checkVisibility({visibilityProperty: true, opacityProperty: true})
      || box.height === 0
      || box.left < 0 || box.right > document.documentElement.clientWidth + 1
      || style.overflow !== 'visible'
        && (each.scrollWidth > each.clientWidth || each.scrollHeight > each.clientHeight);
}).map(each => each.tagName + ' ' + each.textContent.slice(0, 60))"""
"""What of the rows is hidden, has no size, sticks out of the page, or is cut."""

Look = Callable[[Browser], None]
LOOK_NAMES: dict[str, Look] = {
    "light": lambda browser: on_screen(browser, WIDE, dark=False),
    "dark": lambda browser: on_screen(browser, WIDE, dark=True),
    "phone": lambda browser: on_screen(browser, PHONE, dark=False),
    "paper": lambda browser: on_paper(browser, (794, 1123), dark=True),
}


@pytest.mark.parametrize("look", LOOK_NAMES)
def test_axe_finds_nothing_and_nothing_is_too_wide(page: Browser, look: str) -> None:
    try:
        LOOK_NAMES[look](page)
        page.run("document.querySelectorAll('details').forEach(each => each.open = true)")
        assert [*violations(page), *violations(page, LOOKS), *page.overflows()] == []
        assert rules_passed(page) > 15
    finally:
        page.cdp("Emulation.setEmulatedMedia", media="", features=[])


def test_on_a_phone_each_row_is_read_from_top_to_bottom(page: Browser) -> None:
    """375 pixels wide: no value is beside the screen, and each stands beside the name of its
    column.
    """
    page.look(375, 812)
    page.run("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert (
        page.run(
            "const box = document.querySelector('.scroll'); return box.scrollWidth - "
            "box.clientWidth"
        )
        == 0
    )
    assert page.run(CUT) == page.overflows() == []
    labels = page.run("""return [...document.querySelectorAll('tbody tr:first-child')].map(row =>
        [...row.querySelectorAll('td')].map(cell =>
          JSON.parse(getComputedStyle(cell, '::before').content)))""")
    assert labels == [["State", "Since", "Next step", "Submissions", "Reminders"]] * 12
    sizes = page.run(
        "return [...document.querySelectorAll('tbody *')].map(each => "
        "getComputedStyle(each).fontSize)"
    )
    assert min(float(size.removesuffix("px")) for size in sizes) >= 13
    roles = [
        page.all(each)[0].aria_role
        for each in ("table", "thead th", "tbody tr", "tbody th", "tbody td")
    ]
    assert roles == ["table", "columnheader", "row", "rowheader", "cell"]


def test_a_picture_of_each_look_differs(page: Browser, screenshots: Path) -> None:
    pictures = {}
    try:
        for look, show in LOOK_NAMES.items():
            show(page)
            pictures[look] = page.png()
            (screenshots / f"batch-report.{look}.png").write_bytes(pictures[look])
    finally:
        page.cdp("Emulation.setEmulatedMedia", media="", features=[])
    assert len(set(pictures.values())) == len(LOOK_NAMES)


def test_it_prints_on_pages_with_every_row(page: Browser, screenshots: Path) -> None:
    on_paper(page, (739, 979), dark=False)  # what the margins of a sheet leave, in pixels
    try:
        page.run("document.querySelectorAll('details').forEach(each => each.open = true)")
        names = page.run(
            "return [...document.querySelectorAll('th[scope=row]')].map(each => each.textContent)"
        )
        cut = page.run(CUT)
        pages = page.run("return document.documentElement.scrollHeight / window.innerHeight")
        printed = b64decode(page.cdp("Page.printToPDF", printBackground=False)["data"])
        on_one = b64decode(
            page.cdp("Page.printToPDF", printBackground=False, paperHeight=190)["data"]
        )
    finally:
        page.cdp("Emulation.setEmulatedMedia", media="", features=[])
    (screenshots / "batch-report.pdf").write_bytes(printed)
    assert (len(names), names[0][:8], names[-1]) == (12, "<script>", "vendor-7")
    assert cut == page.overflows() == []
    assert 1 < pages <= count_pages(printed) <= pages + 2
    assert count_pages(on_one) == 1


def count_pages(pdf: bytes) -> int:
    assert pdf.startswith(b"%PDF-")
    return len(re.findall(rb"/Type\s*/Page\b", pdf))


def test_a_reader_hears_numbers_chart_and_rows(page: Browser) -> None:
    assert page.one("h1").text == "vendors-2026-q4"
    assert page.one("svg").accessible_name == "Submissions over time"
    assert page.run("return document.querySelectorAll('th[scope=row]').length") == 12
    assert "8 of 12 rows with a submission, 2 need attention" in page.text()
    assert "<script>window.pwned = 1</script>" in page.text()
