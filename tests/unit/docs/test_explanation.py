"""Pages of explanation: their promises name tests, their claims about others name sources.

Each block of Python on the pages RUN prints the text below it; `python
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


def test_the_stability_page_has_the_numbers_of_the_code() -> None:
    text = (ROOT / "docs/reference/stability.md").read_text(encoding="utf-8")
    assert f'`"schema": {SCHEMA}`' in text
    assert f"(`api={API}`)" in text
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    pythons = re.findall(r"Python :: (3\.\d+)", project)
    assert f"{pythons[0]} to {pythons[-1]} now" in text


COMPARISON = (ROOT / "docs/explanation/comparison.md").read_text(encoding="utf-8")
TOOLS = {
    title: body
    for title, body in re.findall(
        r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", COMPARISON, re.DOTALL | re.MULTILINE
    )
    if not title.startswith(("When ", "sealpipe"))
}
SOURCE = re.compile(r"\[[^]]+\]\((https://[^\s()]+)\), (?:read )?20\d\d-\d\d-\d\d")
COMMIT = re.compile(r"https://github\.com/[\w.-]+/[\w.-]+/(?:blob|tree)/[0-9a-f]{40}/.+")


def rows_of(text: str) -> list[list[str]]:
    """Return the cells of each row of a section's table, less its head."""
    lines = [line.strip("|").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line] for line in lines[2:]]


def test_every_tool_of_the_comparison_is_there() -> None:
    assert len(TOOLS) == 1 + 8
    for title, body in TOOLS.items():
        assert len(rows_of(body)) >= 5, title


@pytest.mark.parametrize("tool", TOOLS)
def test_every_row_about_a_tool_has_dated_sources(tool: str) -> None:
    for row in rows_of(TOOLS[tool]):
        assert all(row), row
        for source in row[-1].split("; "):
            found = SOURCE.fullmatch(source)
            assert found is not None, source
            assert "github.com" not in found[1] or COMMIT.fullmatch(found[1]), source
    if tool != "How to read it":
        prose = [line for line in TOOLS[tool].splitlines() if line and not line.startswith("| ")]
        assert prose == [], "a sentence about a tool stands in a row with its source"


def test_what_the_comparison_says_of_sealpipe_leads_to_our_pages() -> None:
    own = COMPARISON.partition("\n## sealpipe\n")[2].partition("\n## ")[0]
    assert len(rows_of(own)) >= 8
    for row in rows_of(own):
        targets = re.findall(r"\]\(([^)#]+)", row[-1])
        assert targets, row
        assert all((ROOT / "docs/explanation" / target).is_file() for target in targets), row
    better = COMPARISON.partition("\n## When ")[2].partition("\n## ")[0]
    assert len(rows_of(better)) >= 5
    assert all("](" in row[-1] for row in rows_of(better))


@pytest.mark.parametrize(
    ("page", "no_account"),
    [
        ("README.md", "Everything here runs on that copy, without an account."),
        ("core/README.md", "It needs no account."),
        ("docs/index.md", "You need no account: the service runs on your machine."),
        ("docs/explanation/which-service.md", "Nothing here needs an account."),
    ],
)
def test_who_looks_first_reads_which_service_it_is(page: str, no_account: str) -> None:
    text = " ".join((ROOT / page).read_text(encoding="utf-8").replace("**", "").split())
    for words in ("CredenShare", "This project is independent of ", "hosted service", no_account):
        assert words in text, words
    assert "never reached" in text
    assert (
        page in {"core/README.md", "docs/explanation/which-service.md"}
        or "explanation/which-service.md" in text
    )


if __name__ == "__main__":
    for page in RUN:
        page.write_text(as_run(page.read_text(encoding="utf-8"))[0], encoding="utf-8")
