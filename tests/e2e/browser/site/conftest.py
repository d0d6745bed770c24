"""The built site in the browser of the tests beside this folder: `browser` opens its pages through
`recorder`.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.browser.launching import Recorder
from e2e.browser.site.serving import build, served


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """The folder of the site, built once for all workers."""
    folder = tmp_path_factory.getbasetemp()
    site = (folder if worker_id == "master" else folder.parent) / "site"
    with site.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not site.with_suffix(".built").exists():
            build(site)
            site.with_suffix(".built").touch()
    return site


@pytest.fixture(scope="session")
def port(site: Path) -> Iterator[int]:
    """The port of a static host."""
    with served(site) as port:
        yield port


@pytest.fixture
def recorder(port: int) -> Iterator[Recorder]:
    """Stands before the static host in place of the rehearsal service."""
    with Recorder(port) as recorder:
        yield recorder
