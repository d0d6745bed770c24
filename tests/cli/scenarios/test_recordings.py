"""The pictures of the docs' terminals are what the commands print now."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.scenarios.picture import draw
from cli.scenarios.recording import Recording
from sealpipe_rehearsal.running_service import RunningService
from support.parts import ROOT
from support.terminal import Terminal

FILES = sorted(Path(__file__).parent.glob("recordings/*.txt"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_picture_of_a_recording(
    file: Path, user: Terminal, service: RunningService, *, is_update: bool
) -> None:
    recording = Recording(file, user, service)
    picture = draw(recording.title, recording.alternative, recording.record())
    path = ROOT / f"docs/pictures/{file.stem}.svg"
    if is_update:
        path.write_text(picture, "utf-8")
    assert picture == path.read_text("utf-8"), (
        "docs/CONTRIBUTING.md names the command that draws all pictures again"
    )
