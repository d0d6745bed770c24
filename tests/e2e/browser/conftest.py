"""One browser and one service for all tests of this folder; both forget between tests.

`browser` opens links of `service` through `recorder`, which keeps every byte that the server is
told. After each test it is asked what happened: a script's error, a breach of the page's policy
(CSP), a request to another origin, a dialog or another window fails the test (`Browser.trouble`).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver import Chrome

from e2e.browser.chrome import Browser, guarded
from e2e.browser.launching import Recorder, launch
from sealpipe_rehearsal.running_service import RunningService
from support.job import Job
from support.terminal import extended, one_service, service

__all__ = ["extended", "one_service", "service"]


@pytest.fixture(scope="session")
def one_chrome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Chrome, Path]]:
    folder = tmp_path_factory.mktemp("chromium")
    driver = launch(folder)
    try:
        yield driver, folder / "downloads"
    finally:
        driver.quit()


@pytest.fixture
def recorder(service: RunningService) -> Iterator[Recorder]:
    with Recorder(service.address.port) as recorder:
        yield recorder


@pytest.fixture
def browser(one_chrome: tuple[Chrome, Path], recorder: Recorder) -> Iterator[Browser]:
    with guarded(Browser(one_chrome[0], recorder, one_chrome[1])) as browser:
        yield browser


@pytest.fixture
def job(service: RunningService, tmp_path: Path) -> Job:
    """A job with a credential of its own at the service: it shares, asks and collects."""
    return Job(tmp_path, service)
