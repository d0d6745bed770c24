"""Pages say in words what their pictures show, and no picture is left over.

Whether a picture is out of date is told by what draws it: tests/cli/scenarios/test_recordings.py
for terminals, tests/e2e/browser/test_pictures.py for pages.
"""

from __future__ import annotations

import html
import re
from pathlib import Path

from sealpipe.batch.steps.states import State
from support.parts import ROOT

DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("**/*.md"))]
PICTURES = sorted((DOCS / "pictures").iterdir())
SHOWN = re.compile(r"!\[([^\]]*)\]\(([^)]+)\)")
BYTES_AT_MOST = 60_000


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


def test_each_picture_is_small_and_on_a_page() -> None:
    assert {picture for _, picture, _ in shown()} == {*PICTURES}
    assert [picture for picture in PICTURES if picture.stat().st_size > BYTES_AT_MOST] == []


def test_the_diagram_of_a_batch_has_every_state() -> None:
    page = (DOCS / "reference/batch-file.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```text\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    (diagram,) = (block for block in blocks if "►" in block or "▼" in block)
    assert {*State} <= {*re.findall(r"\w+", diagram)}
