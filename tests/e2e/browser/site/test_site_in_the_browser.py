"""The site as people use it: by eye, by ear, by keyboard, on a phone, in the dark, on paper, without JavaScript."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

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
    assert browser.run("return [...document.styleSheets].filter(sheet => sheet.cssRules.length).length") > 4
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
