"""`sealpipe rehearse --open` in a real browser: the file that it opens leads to the link, and the
link opens.
"""

from __future__ import annotations

import re
import signal
import subprocess
import time
from pathlib import Path

from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from support.commands import SEALPIPE
from support.terminal import PATIENCE, Terminal, bare

__all__ = ["bare"]


def wait_for(file: Path) -> str:
    end = time.monotonic() + PATIENCE
    while not file.exists():
        assert time.monotonic() < end, f"nothing wrote {file.name}"
        time.sleep(0.05)
    return file.read_text().strip()


def test_a_browser_is_led_to_the_link_and_opens_it(
    one_chrome: tuple[Chrome, Path], bare: Terminal
) -> None:
    program = bare.file(
        "browser", '#!/bin/sh\necho "$1" > "$HERE/told.tmp" && mv "$HERE/told.tmp" "$HERE/told"\n'
    )
    program.chmod(0o755)
    environ = bare.with_environ({"BROWSER": f"{program} %s", "HERE": str(bare.here)})
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(
        [*SEALPIPE, "rehearse", "--open"], env=environ, cwd=bare.here, text=True, **streams
    )
    driver = one_chrome[0]
    try:
        driver.get(wait_for(bare.here / "told"))
        wait = WebDriverWait(driver, PATIENCE)
        wait.until(lambda driver: "/s/" in driver.current_url)
        wait.until(
            lambda driver: driver.find_element(By.XPATH, "//button[normalize-space()='Open it']")
        ).click()
        wait.until(lambda driver: "deploy" in driver.find_element(By.TAG_NAME, "body").text)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=PATIENCE)
        shown = re.search(r"\| (http://127\.0\.0\.1:\d+/s/\S+#1\S{43})$", out, re.MULTILINE)
        assert shown is not None
    finally:
        driver.get("about:blank")
        process.kill()
        process.communicate()
    assert process.returncode == 130
