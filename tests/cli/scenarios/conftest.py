"""The option that writes scenarios."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """It is there where this folder, or what is in it, is named."""
    parser.addoption("--update", action="store_true", help="write what commands print into the scenarios")


@pytest.fixture
def is_update(request: pytest.FixtureRequest) -> bool:
    """Whether files are written in place of compared."""
    return bool(request.config.getoption("--update", default=False))
