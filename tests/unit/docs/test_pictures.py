"""Pictures and diagrams of the pages say in words what they show.

Whether a picture is out of date is told by what draws it: tests/cli/scenarios/test_recordings.py for terminals,
tests/e2e/browser/test_pictures.py for pages.
"""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

from support.parts import ROOT

DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("**/*.md"))]
PICTURES = sorted((DOCS / "pictures").iterdir())
SHOWN = re.compile(r"!\[([^\]]*)\]\(([^)]+)\)")
BYTES_AT_MOST = 60_000
DIAGRAM = re.compile(r"(?<=\n\n)([^\n`][^`]*?)\n\n```(\w*)\n([^`]*[─│►▼][^`]*)^```$", re.MULTILINE)


def alternative(picture: Path) -> str:
    """Return what a picture says that it shows."""
    if picture.suffix == ".svg":
        found = re.search(r"<desc [^>]*>(.*)</desc>", picture.read_text(encoding="utf-8"))
        assert found is not None, picture
        return html.unescape(found[1])
    from PIL import Image

    with Image.open(picture) as image:
        return str(image.info["Description"])


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
