"""The option that writes scenarios, and a service whose codes are made for them."""

from __future__ import annotations

import pytest

from cli.scenarios.scenario import draw_bytes
from sealpipe_rehearsal.running_service import RunningService


def pytest_addoption(parser: pytest.Parser) -> None:
    """It is there where this folder, or what is in it, is named."""
    parser.addoption("--update", action="store_true", help="write what commands print into the scenarios")


@pytest.fixture
def even_codes(service: RunningService, monkeypatch: pytest.MonkeyPatch) -> RunningService:
    """The service, whose codes all begin with a letter or a digit."""
    monkeypatch.setattr(service.service, "token_bytes", draw_bytes)
    return service


@pytest.fixture
def is_update(request: pytest.FixtureRequest) -> bool:
    """Whether files are written in place of compared."""
    return bool(request.config.getoption("--update", default=False))
