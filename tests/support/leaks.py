"""The detector: does any part of a secret stand in some bytes, in any of the usual encodings?

A secret is looked for by its windows: every 8 bytes of it (12 characters of base64, 16 of hex,
...), forwards and backwards, so that a part of it is found as surely as the whole. What is searched
need not be text. `shown` and `exposed` make of a Python object or an exception what logs, reports
and debuggers would.
"""

from __future__ import annotations

import base64
import copy
import dataclasses
import html
import io
import json
import logging
import pickle
import pprint
import traceback
import urllib.parse
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

RAW = 8
"""Bytes of a secret that must not stand together anywhere."""


@dataclass(frozen=True, order=True)
class Found:
    """A part of a secret, by the secret's name, its encoding, and where it stood."""

    secret: str
    encoding: str
    place: str = ""


def encodings(value: bytes) -> Iterator[tuple[str, bytes, int]]:
    """Each encoding of a value: its name, the encoded bytes, and how many of these make a
    window.
    """
    yield "raw", value, RAW
    yield "reversed", value[::-1], RAW
    for shift in range(3):
        # Characters that only the value decides: those of what may stand before and after it are
        # cut off.
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


TESTS = str(Path(__file__).resolve().parents[1])


def shown(thing: object) -> str:
    """What everything that prints, logs, copies or serializes an object would make of it."""
    return "\n".join(_told(way, thing) for way in WAYS)


def _told(way: Callable[[Any], object], thing: object) -> str:
    try:
        return str(way(thing))
    except Exception as error:  # noqa: BLE001 - a refusal must not tell either
        return "".join(traceback.format_exception(error))


WAYS: tuple[Callable[[Any], object], ...] = (
    repr,
    str,
    ascii,
    format,
    lambda thing: f"{thing!r:>40} {thing!s}",
    lambda thing: "%s %r" % (thing, thing),  # noqa: UP031 - logging formats like this
    lambda thing: pprint.pformat(thing),
    lambda thing: pprint.pformat(vars(thing)),
    lambda thing: pprint.pformat(dataclasses.asdict(thing)),
    lambda thing: pprint.pformat(dataclasses.astuple(thing)),
    lambda thing: json.dumps(thing, default=repr),
    lambda thing: json.dumps(thing, default=vars),
    lambda thing: repr(pickle.dumps(thing)),
    lambda thing: repr(pickle.dumps(thing, protocol=0)),
    lambda thing: repr([copy.deepcopy(thing), {thing.__class__: thing}]),
)


def exposed(error: BaseException) -> str:
    """An exception and all behind it: itself, its attributes, its causes, and the locals of every
    frame of ours.
    """
    parts = [shown(error), logged(error)]
    for link in chain(error):
        parts += [repr(link.args), pprint.pformat(vars(link)), *getattr(link, "__notes__", ())]
        parts += [f"{where}: {values}" for where, values in local_variables(link.__traceback__)]
    return "\n".join(parts)


def chain(error: BaseException) -> Iterator[BaseException]:
    """The exception, what caused it and what it was raised while handling, shown or not."""
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        link = waiting.pop()
        if id(link) not in seen:
            seen.add(id(link))
            yield link
            waiting += [
                behind for behind in (link.__cause__, link.__context__) if behind is not None
            ]


def local_variables(found: TracebackType | None) -> Iterator[tuple[str, str]]:
    """The local variables of each frame, as a debugger or an error tracker prints them; the tests'
    own left out.
    """
    for frame, line in traceback.walk_tb(found):
        where = f"{frame.f_code.co_filename}:{line} {frame.f_code.co_name}"
        if not frame.f_code.co_filename.startswith(TESTS):
            yield (
                where,
                "\n".join(
                    f"{name} = {_told(repr, value)}" for name, value in frame.f_locals.items()
                ),
            )


def logged(error: BaseException) -> str:
    """What logging.exception() writes."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    record = logging.LogRecord(
        "x", logging.ERROR, "", 0, "it failed: %s %r", (error, error), _info(error)
    )
    handler.emit(record)
    return stream.getvalue()


def _info(error: BaseException) -> tuple[type[BaseException], BaseException, TracebackType | None]:
    return type(error), error, error.__traceback__


def sides(
    places: Iterable[tuple[str, bytes]], port: int, secrets: Mapping[str, str]
) -> tuple[set[str], set[str]]:
    """Which secrets went to the server at this port of loopback, and which stand in any other
    place.
    """
    detector = Detector({name: value.encode() for name, value in secrets.items()})
    hosts = [f"ost: {name}:{port}\r\n".encode() for name in ("127.0.0.1", "localhost")]
    there, elsewhere = set[str](), set[str]()
    for name, data in places:
        side = (
            there if name.startswith("TCP") and any(host in data for host in hosts) else elsewhere
        )
        side |= {each.secret for each in detector.find(data, name)}
    return there, elsewhere
