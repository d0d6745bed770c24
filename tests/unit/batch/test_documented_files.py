"""The batch files of the how-to page are right as they stand there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sealpipe.batch.file.reading import read_definition
from support.parts import ROOT

PAGE = (ROOT / "docs/how-to/run-a-batch.md").read_text(encoding="utf-8")
FILES = re.findall(r"^```toml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
ROWS = re.findall(r"^```csv\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("kind", ["request", "share"])
def test_a_file_of_the_page_is_read_without_mistakes(tmp_path: Path, kind: str) -> None:
    (text,) = (each for each in FILES if f'kind = "{kind}"' in each)
    (tmp_path / "batch.toml").write_text(text)
    for name in ("vendors.csv", "people.csv"):
        (tmp_path / name).write_text(ROWS[0])
    definition = read_definition(tmp_path / "batch.toml")
    assert [row.key for row in definition.rows] == ["acme", "bolt"]
