"""The browser of these tests sees what a page must never do: each of these guards has something
that trips it.
"""

from __future__ import annotations

import pytest

from e2e.browser.chrome import Browser
from sealpipe_rehearsal.running_service import RunningService
from support.ports import silent_port

DOES: dict[str, tuple[str, str]] = {
    "throws": ("setTimeout(() => { throw new Error('oops') })", "oops"),
    "asks-elsewhere": ("fetch('https://elsewhere.example/x').catch(() => 0)", "elsewhere.example"),
    "another-port": (f"new Image().src = 'http://127.0.0.1:{silent_port()}/x.png'",
        f"127.0.0.1:{silent_port()}"),
    "breaks-its-policy": ("new Image().src = 'data:image/gif;base64,R0lGODlhAQABAAAAACw='",
        "Content Security Policy"),
    "asks-the-person": ("setTimeout(() => alert('hello'))", "hello"),
    "opens-a-window": ("window.open('about:blank')", "another window"),
    "is-taken-over": ("window.pwned = 1", "hostile script"),
}  # fmt: skip


@pytest.mark.parametrize("does", DOES)
def test_the_guard_sees_a_page_that(browser: Browser, service: RunningService, does: str) -> None:
    browser.open(f"{service.link_base_url}/r/none")
    assert browser.trouble() == []
    script, expected = DOES[does]
    browser.run(script)
    browser.wait(lambda: any(expected in each for each in browser.trouble()), expected)
    browser.forgive()
    assert browser.trouble() == []


def test_the_server_records_every_byte_and_no_fragment(
    browser: Browser, service: RunningService
) -> None:
    browser.open(f"{service.link_base_url}/r/none#1fragment-of-a-test")
    browser.wait(lambda: browser.run("return document.readyState") == "complete")
    assert b"GET /s/r/none HTTP/1.1" in browser.heard()
    assert b"fragment-of-a-test" not in browser.heard()
