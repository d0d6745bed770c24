"""Starting the browser of these tests: Debian's Chromium without windows, its driver, and the door
to the service.
"""

from __future__ import annotations

import socket
from pathlib import Path

from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

from support.parts import program
from support.wires import Wire, pump_both

WIDE = (1100, 900)
_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-default-apps", "--disable-extensions", "--metrics-recording-only",
    "--no-default-browser-check", "--hide-scrollbars", "--force-color-profile=srgb", "--lang=en-GB",
    # The tests open one page after another: a process for each would take a quarter of its time.
    "--renderer-process-limit=1",
    # Names lead nowhere: what a page asks of another host shows in the log and reaches nobody.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)  # fmt: skip


def launch(folder: Path) -> Chrome:
    """Chromium with a profile of its own in `folder`; what it downloads goes to
    `folder/downloads`.
    """
    shell, chromedriver = program("chromium-headless-shell"), program("chromedriver")
    downloads = folder / "downloads"
    downloads.mkdir()
    options = ChromeOptions()
    options.binary_location = shell
    for flag in (
        *_FLAGS,
        f"--user-data-dir={folder / 'profile'}",
        f"--window-size={WIDE[0]},{WIDE[1]}",
    ):
        options.add_argument(flag)
    options.add_experimental_option(
        "prefs",
        {"download.default_directory": str(downloads), "download.prompt_for_download": False},
    )
    # The same engine without the windows, tabs and services around it: a quarter less work for each
    # page.
    options.set_capability("browserName", "chrome-headless-shell")
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    options.unhandled_prompt_behavior = "accept"
    driver = Chrome(options=options, service=Service(chromedriver))
    # Nobody can be asked; Chromium itself allows it to a page that has just been clicked.
    driver.execute_cdp_cmd(
        "Browser.grantPermissions",
        {"permissions": ["clipboardSanitizedWrite", "clipboardReadWrite"]},
    )
    # What the preferences say is not yet so for the first download.
    behavior = {"behavior": "allow", "downloadPath": str(downloads)}
    driver.execute_cdp_cmd("Browser.setDownloadBehavior", behavior)
    driver.get("about:blank")  # the browser's own first page asks for a good deal
    return driver


class Recorder(Wire):
    """Stands before a service and keeps every byte that it is told: `heard`."""

    def __init__(self, port: int) -> None:
        super().__init__(self._serve_one)
        self.heard = bytearray()
        self._behind = port

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def _serve_one(self, client: socket.socket) -> None:
        with socket.create_connection(("127.0.0.1", self._behind)) as upstream:
            pump_both(client, upstream, self.heard)
