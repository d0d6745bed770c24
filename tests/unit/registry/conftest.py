"""The rehearsal service, a user's terminal, and a folder of installed distributions."""

from pathlib import Path

import pytest

from support.distributions import Site
from support.terminal import bare, one_service, service, user

__all__ = ["bare", "one_service", "service", "user"]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """Distributions that this process finds, too."""
    found = Site(tmp_path / "site")
    monkeypatch.syspath_prepend(str(found.folder))
    return found
