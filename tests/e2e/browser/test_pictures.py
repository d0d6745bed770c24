"""The pictures of the docs' pages show what the browser shows now.

Fonts and the drawing of letters differ between machines and versions of Chromium, so pixels are not
compared. A picture carries the digest of what it was drawn from: the page's elements as they stand
after all that led there, the style sheets, the size of the window, light or dark. It changes if and
only if one of these does.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from e2e.browser.chrome import Browser
from e2e.browser.picture_scenes import NOON, PICTURES, Picture
from e2e.browser.stage import Stage
from sealpipe_rehearsal.running_service import RunningService
from sealpipe_rehearsal.server import start
from support.job import Job
from support.parts import ROOT

PAGE = ROOT / "plugins/sealpipe_service/page"
COLOURS = 64


class Counted:
    """Short codes that are the same in each run."""

    def __init__(self) -> None:
        self._drawn = 0

    def __call__(self, length: int) -> bytes:
        self._drawn += 1
        return b"S" + hashlib.sha256(str(self._drawn).encode()).digest()[: length - 1]


@pytest.fixture
def service() -> Iterator[RunningService]:
    with start(clock=lambda: NOON, token_bytes=Counted(), extended=True) as running:
        yield running


@pytest.fixture(params=PICTURES)
def stage(
    request: pytest.FixtureRequest, browser: Browser, job: Job, service: RunningService
) -> Iterator[Stage]:
    """Where a picture is taken: the window has its size before the page is there."""
    picture = PICTURES[request.param]
    browser.cdp("Emulation.setTimezoneOverride", timezoneId="UTC")
    browser.look(*picture.size, dark=picture.dark)
    yield Stage(browser, job, service)
    browser.forgive()  # one of the pages is a file
    browser.cdp("Emulation.setTimezoneOverride", timezoneId="")


def test_the_picture_of_a_page(
    stage: Stage, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    name = request.node.callspec.params["stage"]
    picture = PICTURES[name]
    stage.browser.says(picture.way(stage, tmp_path))
    digest = digest_of(stage.browser, picture)
    path = ROOT / f"docs/pictures/{name}.png"
    if request.config.getoption("--update"):
        save(path, stage.browser.png(), {"Description": picture.alternative, "Source": digest})
    with Image.open(path) as image:
        assert image.info["Description"] == picture.alternative
        assert image.info["Source"] == digest, (
            "docs/CONTRIBUTING.md names the command that draws all pictures again"
        )
        assert image.width == picture.size[0]


def digest_of(browser: Browser, picture: Picture) -> str:
    elements = browser.run("return document.documentElement.outerHTML").replace(browser.origin, "")
    sheets = browser.run(
        "return [...document.styleSheets].map(each => each.href).filter(each => each)"
    )
    styles = [(PAGE / sheet.rpartition("/")[2]).read_text("utf-8") for sheet in sheets]
    return hashlib.sha256(repr([elements, styles, picture.size, picture.dark]).encode()).hexdigest()


def save(path: Path, png: bytes, texts: dict[str, str]) -> None:
    """Few colours are enough for a page, and a fifth of the bytes."""
    info = PngInfo()
    for key, text in texts.items():
        info.add_text(key, text)
    image = Image.open(io.BytesIO(png)).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    image.save(path, optimize=True, pnginfo=info)
