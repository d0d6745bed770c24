"""Every scenario in this folder: `pytest tests/cli/scenarios -k NAME`, and `--update` after a
message has changed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.scenarios.scenario import Scenario
from cli.scenarios.writer import update
from sealpipe_rehearsal.running_service import RunningService
from support.terminal import Terminal

FILES = sorted(Path(__file__).parent.glob("*.txt"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_scenario(file: Path, user: Terminal, service: RunningService, *, is_update: bool) -> None:
    scenario = Scenario(file, user, service)
    if is_update:
        update(file, scenario)
    else:
        scenario.run()
