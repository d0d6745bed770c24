"""The wire format's page is executed: each block of Python prints the text below it.

`python tests/unit/docs/test_explanation.py` writes what they print into the page.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs/explanation/wire-format.md"
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)


def as_run(text: str) -> tuple[str, dict[str, Any]]:
    """Return the page with what its blocks print, run in one session, and the session's names."""
    names: dict[str, Any] = {}

    def run(block: re.Match[str]) -> str:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block[1], PAGE.name, "exec"), names)  # noqa: S102 - our own page
        shown = f"\n```text\n{printed.getvalue()}```\n" if printed.getvalue() else ""
        return f"```python\n{block[1]}```\n{shown}"

    return BLOCK.sub(run, text), names


def test_every_line_of_the_wire_format_page_is_true() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert len(BLOCK.findall(text)) >= 10
    assert as_run(text)[0] == text


def test_the_wire_format_page_is_of_our_vectors() -> None:
    names = as_run(PAGE.read_text(encoding="utf-8"))[1]
    folder = ROOT / "tests/unit/wire/vectors"
    vectors = {
        vector["name"]: vector
        for kind in ("seal-envelope", "seal-box")
        for vector in map(json.loads, (folder / f"{kind}.jsonl").read_text(encoding="utf-8").splitlines())
    }
    envelope, box = (vectors[name]["result"]["data"] for name in ("seal-envelope_no-passcode", "seal-box_a-submission"))
    assert names["b64encode"](names["envelope"]).decode() == envelope
    assert names["b64encode"](names["box"]).decode() == box


PARTS = ("What is promised", "How it is done", "How it is shown", "What is not promised")


@pytest.mark.parametrize("name", ["resume", "deleted-once", "what-the-service-sees", "batch"])
def test_a_promise_is_explained_shown_and_bounded(name: str) -> None:
    text = (ROOT / f"docs/explanation/{name}.md").read_text(encoding="utf-8")
    assert tuple(re.findall(r"^## (.+)$", text, re.MULTILINE)) == PARTS
    shown = text.partition(f"## {PARTS[2]}\n")[2].partition("\n## ")[0]
    rows = [line for line in shown.splitlines() if line.startswith("| ")][2:]
    assert len(rows) >= 3
    for row in rows:
        assert re.search(r"`tests/[\w/]+\.py", row), row


if __name__ == "__main__":
    PAGE.write_text(as_run(PAGE.read_text(encoding="utf-8"))[0], encoding="utf-8")
