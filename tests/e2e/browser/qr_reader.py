"""QR codes made by the page's encoder in Node, as pictures, and read by somebody else's reader
(zxing-cpp).
"""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zxingcpp
from PIL import Image

from support.parts import ROOT, program

PAGE = ROOT / "plugins/sealpipe_service/page"
_CALL = """
import { readFileSync } from "node:fs";
import * as qr from "./qr.js";
const [what, ...given] = JSON.parse(readFileSync(0, "utf-8"));
const plain = (key, value) => (value instanceof Uint8Array ? Array.from(value) : value);
console.log(JSON.stringify(given.map((each) => qr[what](...each)), plain));
"""
_QUIET, _SCALE = 4, 3


@dataclass(frozen=True)
class Read:
    """What a reader makes of a picture with one code."""

    data: bytes
    text: str
    version: int
    level: str
    mask: int
    unspoilt: bool
    """Nothing had to be corrected."""


class Encoder:
    """qr.js in Node: its exports, by name, each called once for every tuple of arguments."""

    def __init__(self, folder: Path) -> None:
        # Node takes a .js file for a module where a package.json says so; the page has no use for
        # one.
        (folder / "package.json").write_text('{"type": "module"}')
        for name in ("qr.js", "qr_codewords.js"):
            shutil.copy(PAGE / name, folder / name)
        (folder / "call.js").write_text(_CALL)
        self._script = folder / "call.js"

    def call(self, what: str, given: list[tuple[Any, ...]]) -> list[Any]:
        asked = json.dumps([what, *given])  # in ASCII: half a surrogate pair passes as an escape
        node = [program("node"), str(self._script)]
        done = subprocess.run(node, input=asked, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return list(json.loads(done.stdout))

    def codes(self, texts: list[str]) -> list[Any]:
        return self.call("qrCode", [(text,) for text in texts])


def picture(size: int, dark: list[int]) -> Image.Image:
    """A symbol on white with its quiet zone."""
    assert len(dark) == size * size
    symbol = Image.frombytes("L", (size, size), bytes(0 if bit else 255 for bit in dark))
    paper = Image.new("L", (size + 2 * _QUIET,) * 2, 255)
    paper.paste(symbol, (_QUIET, _QUIET))
    return paper.resize((paper.width * _SCALE,) * 2, Image.Resampling.NEAREST)


def read(image: Image.Image) -> Read:
    """The one code of a picture."""
    found = zxingcpp.read_barcodes(image)
    assert len(found) == 1, f"{len(found)} codes are in it"
    (code,) = found
    about = code.extra
    return Read(
        data=bytes(code.bytes),
        text=code.text,
        version=int(about["Version"]),
        level=about["ECLevel"],
        mask=int(about["DataMask"]),
        unspoilt=about["UEC"] == 1.0,
    )
