"""A real browser in tests: Debian's Chromium without a window, and what it did seen through its own
log.

Whoever opens a page here asks at the end what happened: `Browser.trouble()` is what a page of ours
must never do.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from selenium.common.exceptions import TimeoutException, WebDriverException
from selenium.webdriver import Chrome
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from e2e.browser.launching import WIDE, Recorder

PATIENCE = 20
"""Seconds; only what is broken takes them."""

_STORAGE = "cookies,local_storage,indexeddb,service_workers,cache_storage"
"""What a page can keep for the next one; `all` also asks for caches of the browser's own, which
takes four times as long.
"""
PHONE = (360, 740)
"""The narrowest that is common; `WIDE` is a desktop's window."""
_DISPLAYED = (
    "return [...document.querySelectorAll(arguments[0])].filter(e => "
    "e.checkVisibility({visibilityProperty: true}))"
)


class Browser:
    """One tab of the browser, for one test.

    `origin` is the only address that its pages may talk to.
    """

    def __init__(self, driver: Chrome, recorder: Recorder, downloads: Path) -> None:
        self.driver = driver
        self.origin = recorder.origin
        self.downloads = downloads
        self._recorder = recorder
        self._log: list[dict[str, Any]] = []
        self._console: list[dict[str, Any]] = []
        self.look(*WIDE)
        self.read()
        self._log, self._console = [], []

    # -- going somewhere ------------------------------------------------------------------------

    def open(self, link: str) -> None:
        """Load a link as if it was clicked elsewhere: anew, even where only its fragment
        differs.
        """
        address = urlsplit(link)
        if self.driver.current_url != "about:blank":
            self.driver.get("about:blank")
        self.driver.get(link.replace(f"{address.scheme}://{address.netloc}", self.origin, 1))

    def look(self, width: int, height: int, *, dark: bool = False) -> None:
        """At this size of window, in light or dark."""
        self.cdp(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.cdp(
            "Emulation.setEmulatedMedia",
            features=[*scheme, {"name": "prefers-reduced-motion", "value": "reduce"}],
        )

    def cdp(self, command: str, **parameters: Any) -> Any:
        """A command of the DevTools protocol."""
        return self.driver.execute_cdp_cmd(command, parameters)

    # -- seeing and doing -----------------------------------------------------------------------

    def wait(self, until: Callable[[], Any], what: str = "what should come") -> Any:
        """What `until` gives once that is truthy; an element that does not exist yet is waited
        for.
        """
        try:
            return WebDriverWait(self.driver, PATIENCE, 0.02, [WebDriverException]).until(
                lambda _: until()
            )
        except TimeoutException:
            raise AssertionError(f"{what} did not come; the page says:\n{self.text()}") from None

    def says(self, *texts: str) -> str:
        """Waits until all of these are to be seen; all that is to be seen."""
        self.wait(lambda: all(text in self.text() for text in texts), f"{texts}")
        return self.text()

    def text(self) -> str:
        """What is to be seen, as text; WebDriver cannot pass on half a surrogate pair."""
        return str(
            self.driver.execute_script(
                "return document.body ? document.body.innerText.toWellFormed() : ''"
            )
        )

    def all(self, css: str) -> list[WebElement]:
        """Every element that is displayed."""
        # In one call: selenium's own is_displayed sends a script of 45 KB for each element.
        found: list[WebElement] = self.run(_DISPLAYED, css)
        return found

    def one(self, css: str) -> WebElement:
        """The one displayed element of these, waited for."""
        found: list[WebElement] = self.wait(lambda: self.all(css), css)
        assert len(found) == 1, f"{len(found)} of {css}"
        return found[0]

    def named(self, name: str, css: str = "input, textarea, select, button, a") -> WebElement:
        """The control of this accessible name, as a screen reader would say it; waited for."""
        element: WebElement = self.wait(
            lambda: next((each for each in self.all(css) if each.accessible_name == name), None),
            f"control {name!r}",
        )
        return element

    def press(self, name: str) -> None:
        """Press the button or follow the link of this name."""
        self.named(name, "button, a").click()

    def type(self, name: str, text: str) -> None:
        """Type into the control of this name."""
        self.named(name, "input, textarea").send_keys(text)

    def keys(self, *keys: str) -> None:
        """Keys of the keyboard, to whatever has the focus: `browser.keys(Keys.TAB, "x")`."""
        for key in keys:
            self.driver.switch_to.active_element.send_keys(key)

    def focused(self) -> str:
        """The accessible name of what has the focus."""
        return self.driver.switch_to.active_element.accessible_name

    def tab_to(self, name: str) -> None:
        """Press Tab until the control of this name has the focus; it must come within one round."""
        seen: list[str] = []
        while (here := self.focused()) != name:
            assert len(seen) < 60, f"Tab never comes to {name!r}, only to {seen}"
            seen.append(here)
            self.keys(Keys.TAB)

    def run(self, script: str, *arguments: Any) -> Any:
        """A script's result: what a person with developer tools would see."""
        return self.driver.execute_script(script, *arguments)

    def overflows(self) -> list[str]:
        """What is wider than the window, so that a person would have to scroll sideways to read."""
        return list(
            self.run(
                """const wide = document.documentElement.clientWidth;
                return document.documentElement.scrollWidth <= wide ? [] :
                  [...document.querySelectorAll('body *')]
                  .filter(e => e.getBoundingClientRect().right > wide + 1)
                  .map(e => e.tagName + '.' + e.className + ' ' + e.textContent.slice(0, 60))"""
            )
        )

    # -- what happened --------------------------------------------------------------------------

    def read(self) -> None:
        """Take in what the browser has logged so far."""
        for entry in self.driver.get_log("performance"):
            self._log.append(json.loads(entry["message"])["message"])
        self._console += self.driver.get_log("browser")

    def heard(self) -> bytes:
        """Every byte that the server was told through this browser, so far."""
        return bytes(self._recorder.heard)

    def forgive(self) -> None:
        """Forget what happened so far: a test meant it."""
        self.leave()
        self.read()
        self._log, self._console = [], []

    def log(self) -> list[dict[str, Any]]:
        """What happened so far, as events of the DevTools protocol."""
        self.read()
        return self._log

    def requests(self) -> list[str]:
        """The address of every request that pages made, or tried to make, in this test; without
        fragments.
        """
        self.read()
        return [
            each["params"]["request"]["url"]
            for each in self._log
            if each["method"] == "Network.requestWillBeSent"
        ]

    def trouble(self) -> list[str]:
        """Everything that a page of ours must never do; empty where all is well."""
        self.read()
        handles = len(self.driver.window_handles) - 1
        abroad = [
            f"a request to {url[:200]}"
            for url in self.requests()
            if not (
                url.startswith((f"{self.origin}/", "data:", "blob:" + self.origin))
                or url == "about:blank"
            )
        ]
        dialogs = [
            f"a dialog: {each['params'].get('message')}"
            for each in self._log
            if each["method"] == "Page.javascriptDialogOpening"
            and each["params"]["type"] != "beforeunload"
        ]
        # Refused requests (403, 404, 410) are said on the console, too: they are answers that pages
        # expect.
        said = [
            f"console: {each['message'][:500]}"
            for each in self._console
            if each["source"] != "network"
        ]
        ran = [] if self.run("return window.pwned === undefined") else ["a hostile script ran"]
        return [*abroad, *dialogs, *said, *ran, *(["another window"] if handles else [])]

    def png(self, box: dict[str, float] | None = None) -> bytes:
        """A screenshot of the whole page, to its end, or of one box of it."""
        size = self.cdp("Page.getLayoutMetrics")["cssContentSize"]
        clip = {
            "x": 0,
            "y": 0,
            "width": size["width"],
            "height": min(size["height"], 6000),
            "scale": 1,
            **(box or {}),
        }
        shot = self.cdp(
            "Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True
        )
        return base64.b64decode(shot["data"])

    def leave(self) -> None:
        """To an empty page; nothing of this test stays in the tab."""
        with suppress(WebDriverException):
            for handle in self.driver.window_handles[1:]:
                self.driver.switch_to.window(handle)
                self.driver.close()
            self.driver.switch_to.window(self.driver.window_handles[0])
        self.driver.get("about:blank")
        self.cdp("Storage.clearDataForOrigin", origin=self.origin, storageTypes=_STORAGE)
        for file in self.downloads.iterdir():
            file.unlink()


@contextmanager
def guarded(browser: Browser) -> Iterator[Browser]:
    """The browser for one test, which fails where a page did what it must never do."""
    try:
        yield browser
        trouble = browser.trouble()
        assert not trouble, trouble
    finally:
        browser.leave()
