"""The site as people use it: by eye, by ear, by keyboard, on a phone, in the dark, on paper,
without JavaScript.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest
from selenium.webdriver.common.keys import Keys

from e2e.browser.axe import LOOKS, violations
from e2e.browser.chrome import PHONE, WIDE, Browser

KINDS = [
    "index.html",
    "tutorial/first-share.html",
    "how-to/index.html",
    "how-to/ci/jenkins.html",
    "products/vault.html",
    "reference/commands/share.html",
    "reference/exit-codes.html",
    "explanation/threat-model.html",
    "search.html?q=vault",
    "no/such/page",
]
"""One page of each kind."""


def open_page(browser: Browser, page: str) -> None:
    browser.open(f"{browser.origin}/{page}")
    browser.one("h1")


def pasted(browser: Browser) -> str:
    """What the clipboard holds, pasted into a place of the test's own."""
    browser.run(
        "document.body.append(document.createElement('textarea')); "
        "document.querySelector('textarea').focus()"
    )
    browser.keys(Keys.CONTROL + "v")
    text: str = browser.run(
        "const area = document.querySelector('textarea'); const text = area.value; "
        "area.remove(); return text"
    )
    return text


@contextmanager
def without_javascript(browser: Browser) -> Iterator[None]:
    browser.cdp("Emulation.setScriptExecutionDisabled", value=True)
    try:
        yield
    finally:
        browser.cdp("Emulation.setScriptExecutionDisabled", value=False)


@pytest.mark.parametrize("page", KINDS)
def test_axe_finds_nothing_and_nothing_is_wider_than_a_phone(browser: Browser, page: str) -> None:
    open_page(browser, page)
    found = [*violations(browser), *browser.overflows()]
    for size, dark, rules in ((WIDE, True, LOOKS), (PHONE, True, LOOKS), (PHONE, False, ())):
        browser.look(*size, dark=dark)
        found += [*violations(browser, rules), *browser.overflows()]
    assert not found, found


@pytest.mark.parametrize("page", ["index.html", "reference/exit-codes.html", "products/vault.html"])
def test_a_page_has_all_its_text_and_links_without_javascript(browser: Browser, page: str) -> None:
    open_page(browser, page)
    article = "return document.querySelector('article').innerText"
    shown = browser.run(article)
    links = len(browser.all(".sidebar-tree a"))
    with without_javascript(browser):
        browser.open(f"{browser.origin}/{page}")
        assert browser.run("return document.documentElement.className") == "no-js"
        assert browser.run(article) == shown
        assert len(browser.all(".sidebar-tree a")) == links >= 6
        browser.named("Products", "a").click()
        browser.wait(lambda: browser.driver.title.startswith("Products"))


def test_a_block_of_a_terminal_is_copied_without_prompts_and_output(browser: Browser) -> None:
    open_page(browser, "tutorial/first-request.html")
    block = (
        "[...document.querySelectorAll('.highlight-console')].find(e => "
        "e.innerText.includes('rehearsal answer'))"
    )
    shown: str = browser.run(f"return {block}.querySelector('pre').textContent")
    typed = shown.partition("\nsealpipe")[0].splitlines()[:2]
    assert typed[0].startswith("$ sealpipe rehearsal answer http"), typed
    assert typed[0].endswith("\\")
    assert len(shown.splitlines()) == 3, "a code is printed below what is typed"
    browser.run(f"{block}.querySelector('button').click()")
    browser.wait(
        lambda: (
            browser.run("return document.querySelector('[role=status]').textContent") == "Copied"
        )
    )
    assert pasted(browser) == "\n".join(typed).removeprefix("$ ")


def test_a_block_is_copied_by_keyboard_and_the_button_says_so(browser: Browser) -> None:
    open_page(browser, "index.html")
    block = browser.one("#share-in-60-seconds .highlight-sh:nth-of-type(2) pre")
    script = "arguments[0].tabIndex = 0; arguments[0].focus()"
    browser.run(script, block)
    browser.tab_to("Copy")
    browser.keys(Keys.ENTER)
    browser.wait(lambda: browser.focused() == "Copied", "the word")
    assert browser.run("return document.querySelector('[role=status]').textContent") == "Copied"
    assert pasted(browser) == block.get_property("textContent").rstrip("\n")
    assert "export SEALPIPE_API_KEY" in block.text


def test_every_block_has_its_button_and_none_covers_its_code(browser: Browser) -> None:
    open_page(browser, "tutorial/first-share.html")
    browser.look(*PHONE)
    blocks = browser.all("div.highlight")
    assert len(browser.all("div.highlight > .copy")) == len(blocks) > 5
    hidden = """const [block] = arguments; const pre = block.querySelector('pre');
      pre.scrollLeft = pre.scrollWidth;
      const range = document.createRange(); range.selectNodeContents(pre);
      const copy = block.querySelector('.copy').getBoundingClientRect();
      return range.getBoundingClientRect().right > copy.left"""
    wide = [block for block in blocks if browser.run("return arguments[0].scrollWidth > 0", block)]
    assert [block.text for block in wide if browser.run(hidden, block)] == []


@pytest.mark.parametrize("page", ["index.html", "how-to/run-a-batch.html"])
def test_a_picture_of_a_terminal_does_not_move_and_is_as_large_as_code_on_a_phone(
    browser: Browser, page: str
) -> None:
    browser.look(*PHONE)
    open_page(browser, page)
    size = """const image = document.querySelector('img[src$=".svg"]');
      return [image.complete, image.clientWidth, image.naturalWidth, image.parentElement.tabIndex,
              image.src]"""
    browser.wait(lambda: browser.run(size)[0], "the picture")
    _, width, natural, tabindex, source = browser.run(size)
    assert width == natural > PHONE[0]
    assert tabindex == 0  # the keyboard scrolls it
    assert browser.overflows() == []
    drawing = browser.run("return fetch(arguments[0]).then(answer => answer.text())", source)
    assert "<text" in drawing
    assert not any(word in drawing for word in ("animat", "@keyframes", "hidden"))


def test_no_reference_table_has_to_be_scrolled_on_a_phone(browser: Browser, site: Path) -> None:
    browser.look(375, 740)
    pages = sorted(
        page.relative_to(site).as_posix() for page in (site / "reference").rglob("*.html")
    )
    wide = """return [...document.querySelectorAll('.table-wrapper')]
      .filter(e => e.scrollWidth > e.clientWidth)
      .map(e => e.textContent.slice(0, 60))"""
    scrolled, rows = {}, 0
    for page in pages:
        open_page(browser, page)
        scrolled[page] = browser.run(wide)
        rows += len(browser.all(".table-wrapper.rows"))
    assert {page: tables for page, tables in scrolled.items() if tables} == {}
    assert rows > 5


def test_a_wide_table_is_a_list_of_its_rows_on_a_phone_and_stays_a_table(browser: Browser) -> None:
    open_page(browser, "reference/ci-systems.html")
    assert browser.all(".table-wrapper.rows") == []
    browser.look(*PHONE)
    browser.wait(lambda: browser.all(".table-wrapper.rows"), "a list")
    table = browser.all(".table-wrapper.rows table")[0]
    heads = [head.get_property("textContent") for head in table.find_elements("css selector", "th")]
    rows = [
        row.find_elements("css selector", "td")
        for row in table.find_elements("css selector", "tbody tr")
    ]
    cells = next(row for row in rows if all(cell.get_property("textContent") for cell in row))
    empty = [cell for row in rows for cell in row if not cell.get_property("textContent")]
    assert empty
    assert not any(cell.is_displayed() for cell in empty)
    label = "return getComputedStyle(arguments[0], '::before').content"
    labels = [browser.run(label, cell) for cell in cells]
    assert labels == ["none", *(f'"{head}: " / ""' for head in heads[1:])]
    assert [cell.rect["x"] for cell in cells] == [cells[0].rect["x"]] * len(cells)
    assert table.aria_role == "table"
    assert {cell.aria_role for cell in cells} == {"cell"}
    assert violations(browser) == []
    browser.look(*WIDE)
    browser.wait(lambda: not browser.all(".table-wrapper.rows"), "a table")


SEARCHES = {
    "collect now": {"how-to/collect.html", "how-to/run-a-batch.html"},
    "revoke": {"how-to/a-stolen-key.html", "how-to/rotate-a-key.html"},
    "onboarding": {
        "how-to/onboarding-forty-contractors.html",
        "how-to/send-a-link.html",
        "how-to/adopt.html",
    },
    "forty contractors": {"how-to/onboarding-forty-contractors.html"},
    "vendor rotation": {"how-to/vendor-rotation.html"},
    "break-glass": {"how-to/break-glass.html"},
    "Break glass": {"how-to/break-glass.html"},
    "rotate a secret": {"how-to/rotate-a-secret.html"},
    "terraform outputs": {"how-to/terraform-outputs.html"},
    "evidence audit": {"how-to/evidence-for-an-audit.html"},
    "vault": {"products/vault.html"},
}


@pytest.mark.parametrize("words", SEARCHES)
def test_the_search_knows_what_people_call_it(browser: Browser, words: str) -> None:
    found = results(browser, words)
    assert set(found[: len(SEARCHES[words])]) == SEARCHES[words]


def test_the_search_puts_the_projects_own_pages_last(browser: Browser) -> None:
    found = results(browser, "test")
    own = [
        page.startswith("contributing/") or ("/" not in page and page != "index.html")
        for page in found
    ]
    assert own == sorted(own)
    assert 3 < own.count(True) < len(own)


def results(browser: Browser, words: str) -> list[str]:
    """The pages that a search finds, in their order."""
    open_page(browser, f"search.html?q={quote(words)}")
    browser.wait(
        lambda: "Search Results" in browser.text() and "finished" in browser.text(),
        "the end of the search",
    )
    links: list[str] = browser.run(
        "return [...document.querySelectorAll('#search-results li > a')].map(e => "
        "e.getAttribute('href'))"
    )
    return [link.partition("?")[0].partition("#")[0] for link in links]


def test_the_search_finds_a_page(browser: Browser) -> None:
    open_page(browser, "index.html")
    browser.one(".sidebar-search").send_keys("approle", Keys.ENTER)
    browser.wait(lambda: "Vault and OpenBao" in browser.text(), "a result")
    browser.one("#search-results a[href*='products/vault.html']")


def test_the_dark_look_can_be_chosen_and_stays(browser: Browser) -> None:
    open_page(browser, "index.html")
    background = "return getComputedStyle(document.body).backgroundColor"
    light = browser.run(background)
    browser.one(".theme-toggle").click()
    dark = browser.run(background)
    assert dark != light
    open_page(browser, "products/vault.html")
    assert browser.run(background) == dark
    browser.forgive()  # the theme says on the console what it changes to


def test_a_screen_that_is_dark_gets_the_dark_look(browser: Browser) -> None:
    open_page(browser, "index.html")
    background = "return getComputedStyle(document.body).backgroundColor"
    light = browser.run(background)
    browser.look(*WIDE, dark=True)
    assert browser.run(background) != light


def test_the_keyboard_skips_to_the_content_first(browser: Browser) -> None:
    open_page(browser, "products/vault.html")
    browser.keys(Keys.TAB)
    assert browser.focused() == "Skip to content"
    browser.keys(Keys.ENTER)
    assert browser.driver.current_url.endswith("#furo-main-content")


def test_the_keyboard_opens_the_menu_of_a_phone(browser: Browser) -> None:
    open_page(browser, "products/vault.html")
    browser.look(*PHONE)
    assert browser.all(".sidebar-tree a") == []
    browser.tab_to("Toggle site navigation sidebar")
    browser.keys(Keys.SPACE)
    browser.wait(lambda: browser.all(".sidebar-tree a"), "the menu")


def test_a_page_that_is_not_there_looks_like_the_others_and_leads_home(browser: Browser) -> None:
    open_page(browser, "how-to/no/such/page.html")
    assert browser.one("h1").text == "Page not found"
    assert (
        browser.run(
            "return [...document.styleSheets].filter(sheet => sheet.cssRules.length).length"
        )
        > 4
    )
    browser.press("The home page")
    browser.says("Share in 60 seconds")


def test_paper_has_the_text_and_no_menu(browser: Browser) -> None:
    open_page(browser, "products/vault.html")
    browser.cdp("Emulation.setEmulatedMedia", media="print")
    try:
        assert browser.all(".sidebar-drawer, .toc-drawer, footer, .theme-toggle") == []
        assert browser.all("article h1, article pre")
    finally:
        browser.cdp("Emulation.setEmulatedMedia", media="")
