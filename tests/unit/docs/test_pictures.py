"""Pictures and diagrams of the pages say in words what they show.

Whether a picture is out of date is told by what draws it: tests/cli/scenarios/test_recordings.py
for terminals, tests/e2e/browser/test_pictures.py for pages.
"""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

from sealpipe.batch.steps.states import State
from support.parts import ROOT

DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("**/*.md"))]
PICTURES = sorted((DOCS / "pictures").iterdir())
SHOWN = re.compile(r"!\[([^\]]*)\]\(([^)]+)\)")
BYTES_AT_MOST = 60_000
BLOCK = re.compile(
    r"(?:\A|\n\n)((?:(?!```|\n\n)[\s\S])*)\n\n```(\w*)\n([\s\S]*?)^```$", re.MULTILINE
)
"""A block, the paragraph before it, and its language."""
DRAWN = re.compile("[─│►▼]")
COLUMNS_AT_MOST = 100


def alternative(picture: Path) -> str:
    """Return what a picture says that it shows."""
    if picture.suffix == ".svg":
        found = re.search(r"<desc [^>]*>(.*)</desc>", picture.read_text(encoding="utf-8"))
        assert found is not None, picture
        return html.unescape(found[1])
    content = picture.read_bytes()
    chunk = content.index(b"tEXtDescription\0")
    size = int.from_bytes(content[chunk - 4 : chunk])
    return content[chunk + 4 :][:size].partition(b"\0")[2].decode("latin-1")


def shown() -> list[tuple[Path, Path, str]]:
    """Return each page with a picture, the picture, and the words in its place."""
    return [
        (page, (page.parent / target).resolve(), " ".join(words.split()))
        for page in PAGES
        for words, target in SHOWN.findall(page.read_text(encoding="utf-8"))
    ]


def test_each_page_says_what_its_pictures_show() -> None:
    for page, picture, words in shown():
        assert picture in PICTURES, f"{page}: {picture}"
        assert words == alternative(picture), page


@pytest.mark.parametrize("picture", PICTURES, ids=lambda path: path.name)
def test_each_picture_is_small_and_on_a_page(picture: Path) -> None:
    assert picture.stat().st_size <= BYTES_AT_MOST
    assert picture in [each for _, each, _ in shown()]
    assert len(alternative(picture)) > 60


def diagrams(page: Path) -> list[tuple[str, str, str]]:
    """Return the paragraph before each diagram of a page, its language, and the diagram."""
    return [
        found for found in BLOCK.findall(page.read_text(encoding="utf-8")) if DRAWN.search(found[2])
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_a_sentence_before_each_diagram_says_what_it_shows(page: Path) -> None:
    drawn = [line for line in page.read_text(encoding="utf-8").splitlines() if DRAWN.search(line)]
    for words, language, diagram in diagrams(page):
        assert language == "text"
        assert words.startswith("The diagram: ")
        assert max(map(len, diagram.splitlines())) <= COLUMNS_AT_MOST
        drawn = [line for line in drawn if line not in diagram]
    assert drawn == []


def test_the_diagram_of_a_batch_has_every_state() -> None:
    ((_, _, diagram),) = diagrams(DOCS / "reference/batch-file.md")
    assert {*State} <= {*re.findall(r"\w+", diagram)}
