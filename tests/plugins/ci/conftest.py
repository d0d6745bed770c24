"""The rehearsal service, a user's terminal, and fakes of the programs of CI systems."""

from __future__ import annotations

from pathlib import Path

import pytest

from plugins.ci.fakes import FakePrograms
from support.terminal import bare, one_service, service, user

__all__ = ["bare", "one_service", "service", "user"]


@pytest.fixture
def programs(tmp_path: Path) -> FakePrograms:
    """A folder with a fake of buildkite-agent and one of circleci."""
    return FakePrograms(tmp_path / "programs")
