"""Each block of Python on the pages RUN prints the text below it; `python
tests/unit/docs/test_explanation.py` writes what they print into the pages.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from sealpipe.cli.render import SCHEMA
from sealpipe.plugin import API

ROOT = Path(__file__).resolve().parents[3]
WIRE = ROOT / "docs/explanation/wire-format.md"
RUN = (WIRE, ROOT / "docs/explanation/architecture.md")
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)


def as_run(text: str) -> tuple[str, dict[str, Any]]:
    """Return a page with what its blocks print, run in one session, and the session's names."""
    names: dict[str, Any] = {}

    def run(block: re.Match[str]) -> str:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            # Our own page.
            exec(compile(block[1], "a page of explanation", "exec"), names)  # noqa: S102
        shown = f"\n```text\n{printed.getvalue()}```\n" if printed.getvalue() else ""
        return f"```python\n{block[1]}```\n{shown}"

    return BLOCK.sub(run, text), names


@pytest.mark.parametrize("page", RUN, ids=lambda path: path.stem)
def test_every_block_prints_what_its_page_says(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert len([shown for _, shown in BLOCK.findall(text) if shown]) >= 2
    assert as_run(text)[0] == text


def test_the_wire_format_page_is_of_our_vectors() -> None:
    names = as_run(WIRE.read_text(encoding="utf-8"))[1]
    folder = ROOT / "tests/unit/wire/vectors"
    vectors = {
        vector["name"]: vector
        for kind in ("seal-envelope", "seal-box")
        for vector in map(
            json.loads, (folder / f"{kind}.jsonl").read_text(encoding="utf-8").splitlines()
        )
    }
    envelope, box = (
        vectors[name]["result"]["data"]
        for name in ("seal-envelope_no-passcode", "seal-box_a-submission")
    )
    assert names["b64encode"](names["envelope"]).decode() == envelope
    assert names["b64encode"](names["box"]).decode() == box


def test_the_stability_page_has_the_numbers_of_the_code() -> None:
    text = (ROOT / "docs/reference/stability.md").read_text(encoding="utf-8")
    assert f'`"schema": {SCHEMA}`' in text
    assert f"(`api={API}`)" in text
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    pythons = re.findall(r"Python :: (3\.\d+)", project)
    assert f"{pythons[0]} to {pythons[-1]} now" in text


if __name__ == "__main__":
    for page in RUN:
        page.write_text(as_run(page.read_text(encoding="utf-8"))[0], encoding="utf-8")
