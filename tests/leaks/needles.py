"""The detector: does any part of a secret stand in some bytes, in any of the usual encodings?

A secret is looked for by its windows: every 8 bytes of it (12 characters of base64, 16 of hex, ...), forwards
and backwards, so that a part of it is found as surely as the whole. What is searched need not be text.
"""

from __future__ import annotations

import base64
import html
import json
import urllib.parse
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

RAW = 8
"""Bytes of a secret that must not stand together anywhere."""


@dataclass(frozen=True, order=True)
class Found:
    """A part of a secret, by the secret's name, its encoding, and where it stood."""

    secret: str
    encoding: str
    place: str = ""


def encodings(value: bytes) -> Iterator[tuple[str, bytes, int]]:
    """Each encoding of a value: its name, the encoded bytes, and how many of these make a window."""
    yield "raw", value, RAW
    yield "reversed", value[::-1], RAW
    for shift in range(3):
        # Characters that only the value decides: those of what may stand before and after it are cut off.
        text = base64.b64encode(bytes(shift) + value)
        core = text[(0, 2, 3)[shift] : len(text) - (4 if text.endswith(b"=") else 0)]
        yield f"base64, shift {shift}", core, 12
        yield f"base64url, shift {shift}", core.translate(bytes.maketrans(b"+/", b"-_")), 12
    yield "hex", value.hex().encode(), 16
    yield "HEX", value.hex().upper().encode(), 16
    yield "spaced hex", value.hex(" ").encode(), 23
    yield "escaped bytes", "".join(f"\\x{byte:02x}" for byte in value).encode(), 32
    yield "decimals", ", ".join(map(str, value)).encode(), 24
    yield "percent, every byte", "".join(f"%{byte:02X}" for byte in value).encode(), 24
    yield "Percent, every byte", "".join(f"%{byte:02x}" for byte in value).encode(), 24
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return
    yield "UTF-16", text.encode("utf-16-le"), 16
    yield "JSON", json.dumps(text)[1:-1].encode(), 12
    yield "JSON, not ASCII", json.dumps(text, ensure_ascii=False)[1:-1].encode(), 12
    yield "JSON in JSON", json.dumps(json.dumps(text)[1:-1])[1:-1].encode(), 12
    yield "URL", urllib.parse.quote(text, safe="").encode(), 12
    yield "form", urllib.parse.quote_plus(text).encode(), 12
    yield "HTML", html.escape(text).encode(), 12
    yield "repr", repr(text)[1:-1].encode(), 12
    yield "repr of bytes", repr(value)[2:-1].encode(), 12


class Detector:
    """Knows secrets by name, and finds them."""

    def __init__(self, secrets: Mapping[str, bytes]) -> None:
        self._windows: dict[int, dict[bytes, tuple[str, str]]] = defaultdict(dict)
        for name, value in secrets.items():
            assert len(value) >= RAW, f"{name} is too short to be told from chance"
            for encoding, encoded, size in encodings(value):
                for start in range(len(encoded) - size + 1):
                    self._windows[size].setdefault(encoded[start : start + size], (name, encoding))

    def find(self, data: bytes, place: str = "") -> set[Found]:
        """Every secret and encoding that stands in the data, in part or whole."""
        found = set()
        for size, windows in self._windows.items():
            for start in range(len(data) - size + 1):
                match = windows.get(data[start : start + size])
                if match:
                    found.add(Found(*match, place))
        return found
