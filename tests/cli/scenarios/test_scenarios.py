"""Every scenario in this folder: `pytest tests/cli/scenarios -k NAME`, and `--update` after a message has changed."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest

from cli.scenarios.scenario import Scenario
from cli.scenarios.writer import update
from sealpipe_rehearsal.running_service import RunningService
from support.terminal import Terminal

FILES = sorted(Path(__file__).parent.glob("*.txt"))


def draw(length: int) -> bytes:
    """What becomes a short code; none begins with a dash: those have tests of their own."""
    drawn = secrets.token_bytes(length)
    return drawn if drawn[0] >> 2 != 62 else draw(length)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_scenario(
    file: Path,
    user: Terminal,
    service: RunningService,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(service.service, "token_bytes", draw)
    scenario = Scenario(file, user, service)
    if request.config.getoption("--update", default=False):
        update(file, scenario)
    else:
        scenario.run()
