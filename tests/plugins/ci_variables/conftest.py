"""The fakes of GitHub and GitLab, and a sink for each; sockets are closed after each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from plugins.ci_variables.using import Storing
from support.fake_github import FakeGitHub
from support.fake_gitlab import FakeGitLab


@pytest.fixture(autouse=True)
def _closing() -> Iterator[None]:
    yield
    while Storing.open:
        Storing.open.pop().http().close()


@pytest.fixture
def hub() -> Iterator[FakeGitHub]:
    with FakeGitHub() as server:
        yield server


@pytest.fixture
def lab() -> Iterator[FakeGitLab]:
    with FakeGitLab() as server:
        yield server
