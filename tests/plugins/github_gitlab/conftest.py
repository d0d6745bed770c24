"""The fakes of GitHub and GitLab, and a sink for each; sockets are closed after each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from plugins.github_gitlab.using import Storing
from support.storing import hub, lab

__all__ = ["hub", "lab"]


@pytest.fixture(autouse=True)
def _closing() -> Iterator[None]:
    yield
    while Storing.open:
        Storing.open.pop().http().close()
