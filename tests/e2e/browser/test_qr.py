"""A field of type `qr` is a QR code that somebody else's reader reads: of the encoder alone, and in
the page.
"""

from __future__ import annotations

import random
from io import BytesIO
from itertools import pairwise
from math import isqrt
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from e2e.browser.chrome import PHONE, WIDE, Browser
from e2e.browser.qr_reader import Encoder, picture, read
from e2e.browser.sending import field, send
from sealpipe_rehearsal.running_service import RunningService

# How many bytes each version holds, by ISO/IEC 18004, table 7; the encoder takes M up to 15 and L
# from 13.
_M = (14, 26, 42, 62, 84, 106, 122, 152, 180, 213, 251, 287, 331, 362, 412)
_L = (
    425, 458, 520, 586, 644, 718, 792, 858, 929, 1003, 1091, 1171, 1273, 1367, 1465, 1528, 1628,
    1732, 1840, 1952, 2068, 2188, 2303, 2431, 2563, 2699, 2809, 2953,
)  # fmt: skip
HOLDS = [
    *((room, at, "M") for at, room in enumerate(_M, 1)),
    *((room, at, "L") for at, room in enumerate(_L, 13)),
]
OTPAUTH = "otpauth://totp/Acme:bob?secret=JBSWY3DPEHPK3PXP&issuer=Acme"
LIMIT = 2300
BOXES = """return [...document.querySelectorAll('.qr')].map(e => e.getBoundingClientRect()).map(
    ({x, y, width, height}) => ({x: x + scrollX, y: y + scrollY, width, height}))"""
VALUES = "return [...document.querySelectorAll('.value')].map(e => e.textContent)"


def some_text(length: int) -> str:
    """Letters that no mode but the bytes' could hold, always the same."""
    letters = "abcdefghijklmnopqrstuvwxyz0123456789/:?&=%"
    return "".join(random.Random(length).choices(letters, k=length))  # noqa: S311


@pytest.fixture
def encoder(tmp_path: Path) -> Encoder:
    return Encoder(tmp_path)


# --- The encoder ----------------------------------------------------------------------------------


def test_each_version_is_read_full_to_the_last_byte_and_the_next_begins_behind_it(
    encoder: Encoder,
) -> None:
    expected = [(1, 1, "M"), *HOLDS]
    expected += [
        (room + 1, version, level) for (room, _, _), (_, version, level) in pairwise(HOLDS)
    ]
    texts = [some_text(length) for length, _, _ in expected]
    for (length, version, level), text, code in zip(
        expected, texts, encoder.codes(texts), strict=True
    ):
        came = read(picture(**code))
        assert (came.data, came.version, came.level, came.unspoilt) == (
            text.encode(),
            version,
            level,
            True,
        ), length


UNICODE = {
    "one letter beyond ASCII": "é",
    "one letter of each length in UTF-8": "aé€🐎",
    "a family joined to one": "👩‍👩‍👧‍👦 and a flag 🇨🇿",
    "other scripts": "žluťoučký kůň, 日本語, العربية, עברית, ไทย",
    "what Latin-1 would read otherwise": "Ã© is not é",
    "a byte order mark": "\ufefftext",
    "controls": "\u0000\u0001\t\r\n\u001b[2J\u007f",
    "markup": "<svg onload=window.pwned=1>&amp;",
    "the last that fits with its charset": "é" * 1476,
    "a third of the limit in letters of four bytes": "🐎" * 738,
}


def test_every_text_is_read_as_it_is(encoder: Encoder) -> None:
    for name, code in zip(UNICODE, encoder.codes(list(UNICODE.values())), strict=True):
        came = read(picture(**code))
        assert came.data == UNICODE[name].encode(), name
        assert came.unspoilt, name
        if UNICODE[name].isprintable():  # others are shown as symbols
            assert came.text == UNICODE[name], name


def test_what_no_version_holds_and_what_is_no_text_gives_no_code(encoder: Encoder) -> None:
    none = ["a" * 2954, "é" * 1477, "🐎" * LIMIT, "half a pair \ud83d", "\udc00", "a" * 100_000]
    assert encoder.codes(none) == [None] * len(none)


def test_each_of_the_eight_masks_is_read_and_the_least_tiring_is_taken(encoder: Encoder) -> None:
    texts = [(OTPAUTH,), (some_text(200),), ("aaaaaaaaaaaaaa",), ("\u0000" * 100,)]
    alike = encoder.call("candidates", texts)
    for (text,), tried, taken in zip(texts, alike, encoder.call("qrCode", texts), strict=True):
        size, masks = tried["size"], tried["masks"]
        seen = [read(picture(size, dark)) for dark in masks]
        assert [(came.mask, came.data) for came in seen] == [
            (number, text.encode()) for number in range(8)
        ]
        points = encoder.call("penalty", [(dark, size) for dark in masks])
        assert len(set(points)) > 1
        assert taken["dark"] == masks[points.index(min(points))]


# By hand, from 7.8.3.1: a run of five 3 points and 1 more for each beyond, a square of four 3, a
# finder 40, and 10 for each 5 % off half.
_FINDER = """
1111111
1000001
1011101
1011101
1011101
1000001
1111111
"""
_FINDER_IN_DARK = "1" * 9 + "".join(f"1{row}1" for row in _FINDER.split()) + "1" * 9
PENALTIES = {
    "all dark": ("1" * 36, 12 * 4 + 25 * 3 + 100),
    "all light": ("0" * 25, 10 * 3 + 16 * 3 + 100),
    "a chequerboard": ("".join(str((at // 6 + at) % 2) for at in range(36)), 0),
    "a finder in the light of the quiet zone": (
        "".join(_FINDER.split()),
        2 * (5 + 3 + 3 * 40 + 3 + 5) + 4 * 3 + 30,
    ),
    "a finder in the dark is none": (_FINDER_IN_DARK, 2 * (4 * 7 + 2 * 3) + 32 * 3 + 60),
}


def test_the_penalties_are_those_of_the_standard(encoder: Encoder) -> None:
    symbols = [
        ([int(bit) for bit in drawing], isqrt(len(drawing))) for drawing, _ in PENALTIES.values()
    ]
    came = dict(zip(PENALTIES, encoder.call("penalty", symbols), strict=True))
    assert came == {name: points for name, (_, points) in PENALTIES.items()}


# --- The page -------------------------------------------------------------------------------------


def opened(browser: Browser, service: RunningService, *fields: dict[str, Any]) -> None:
    browser.open(send(service, list(fields)))
    browser.press("Open it")
    browser.one("#hide")


def shown(browser: Browser) -> list[Image.Image]:
    """Each code as it is to be seen: its own box of the screen, and nothing around it."""
    return [Image.open(BytesIO(browser.png(box))).convert("L") for box in browser.run(BOXES)]


@pytest.mark.parametrize(
    ("size", "dark"), [(WIDE, False), (WIDE, True), (PHONE, False), (PHONE, True)]
)
def test_a_camera_reads_what_is_on_the_screen(
    browser: Browser, extended: RunningService, size: tuple[int, int], *, dark: bool
) -> None:
    browser.look(*size, dark=dark)
    texts = [OTPAUTH, "x", "WIFI:T:WPA;S:žluťoučký 🐎;P:p\\;;", some_text(84)]
    opened(
        browser,
        extended,
        *(field(text, "qr", f"Code {number}") for number, text in enumerate(texts, 1)),
    )
    browser.wait(lambda: len(browser.all(".qr")) == len(texts), "the codes")
    pictures = shown(browser)
    assert [read(code).text for code in pictures] == texts
    for code in pictures:
        # The quiet zone is white to its corners but for the box's own round ones.
        assert {code.getpixel((at, 6)) for at in range(12, code.width - 12)} == {255}
        assert code.width == code.height <= size[0]
    assert browser.overflows() == []


def test_the_most_characters_are_read_and_one_more_is_text_alone(
    browser: Browser, extended: RunningService
) -> None:
    most = some_text(LIMIT)
    opened(
        browser,
        extended,
        field(most, "qr", "Most"),
        field(most + "a", "qr", "Over"),
        field("🐎" * 2300, "qr", "Wide"),
    )
    browser.wait(lambda: len(browser.all(".qr, .field .hint")) == 3, "a code and two hints")
    (code,) = shown(browser)
    assert read(code).data == most.encode()
    assert [hint.text for hint in browser.all(".field .hint")] == ["Too long for a QR code."] * 2
    assert browser.run(VALUES) == [most, most + "a", "🐎" * 2300]


def test_the_code_stands_above_its_text_and_has_a_name(
    browser: Browser, extended: RunningService
) -> None:
    opened(browser, extended, field(OTPAUTH, "qr", "Second\u202efactor"))
    code = browser.one(".qr")
    assert code.get_attribute("role") == "img"
    assert code.accessible_name == "QR code: Second⟨U+202E⟩factor"
    assert code.rect["y"] + code.rect["height"] <= browser.one(".field .value").rect["y"]
    assert browser.run(VALUES) == [OTPAUTH]
    assert browser.named("Copy Second⟨U+202E⟩factor")


def test_nothing_has_no_code_and_what_is_no_text_says_so(
    browser: Browser, extended: RunningService
) -> None:
    opened(
        browser,
        extended,
        field("", "qr", "Empty"),
        field("half \ud83d", "qr", "Half"),
        field("", "url", "Nowhere"),
    )
    seen = browser.says("This is not valid text: no QR code can hold it.")
    assert browser.all(".qr, .qr-place") == []
    assert len(browser.all(".field .hint")) == 1
    assert "Not a web address" not in seen


def test_many_qr_codes_are_drawn_when_scrolled_to(
    browser: Browser, extended: RunningService
) -> None:
    opened(
        browser,
        extended,
        *(field(some_text(1000), "qr", f"Code {number}") for number in range(300)),
    )
    browser.one("li:first-child .qr")
    assert len(browser.run("return [...document.querySelectorAll('.qr')]")) < 20
    browser.run("document.querySelector('.field:last-child').scrollIntoView()")
    assert browser.one("li:last-child .qr").accessible_name == "QR code: Code 299"
    browser.press("Hide it now")
    browser.says("It is hidden again")
    assert browser.all("svg.qr") == []
