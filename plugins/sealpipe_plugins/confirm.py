"""What sinks of stores behind a network do alike: look, write what is missing, and look again where that is unsure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from sealpipe.plugin import (
    Locator,
    Mode,
    PluginError,
    ReferenceValueError,
    Stored,
    UnavailableError,
    UnknownOutcomeError,
    UnsupportedError,
    missing,
)

TRIES: Final = 12
"""How often others may get in between before we ask the core to try again later."""


class Place(NamedTuple):
    """What is there. `there` is None where nothing is, `markers` the list that is kept beside it, `raw` the sink's."""

    there: Mapping[str, bytes] | None
    version: str = ""
    markers: str = ""
    raw: Any = None


class Settled(NamedTuple):
    """The place as it was seen last, the version that holds the values, and whether we have written it."""

    place: Place
    version: str
    wrote: bool


Look = Callable[[], Place]
Write = Callable[[Place, Mapping[str, bytes], int], str | None]
"""Writes what the place must hold: the place as seen, the values, how often it was tried before.

Returns the version; None where somebody got in between, so that one has to look again. Raises UnknownOutcomeError where
nobody knows whether it was written.
"""


def settle(look: Look, write: Write, wanted: Mapping[str, bytes], locator: Locator, mode: Mode, marker: str) -> Settled:
    """Bring a place to hold the values, whoever else writes there meanwhile. Raises PluginError."""
    lost: UnknownOutcomeError | None = None
    for number in range(TRIES):
        place = _seen(look, lost)
        after = missing(place.there, wanted, mode=mode, marked=marked(place.markers, marker))
        if after is None:
            return Settled(place, place.version, wrote=lost is not None)
        if lost is not None:
            raise UnavailableError(
                f"{locator} is not written: the store failed when it was to be", remedy="run it again"
            )
        try:
            version = write(place, after, number)
        except UnknownOutcomeError as error:
            lost = error
            continue
        if version is not None:
            return Settled(place, version, wrote=True)
    raise UnavailableError(f"{locator} cannot be written now: others keep writing there", remedy="run it again later")


def given(fields: Sequence[Stored], locator: Locator) -> dict[str, bytes]:
    """The values by key. Raises ReferenceValueError for a key twice, UnsupportedError for what is no text of
    Unicode."""
    found: dict[str, bytes] = {}
    for key, value in fields:
        if key in found:
            raise ReferenceValueError(f"{locator}: a key is named twice", remedy="name each key once")
        try:
            found[key] = value.reveal_bytes()
        except UnicodeEncodeError:
            break
    if len(found) < len(fields):
        raise UnsupportedError(f"{locator}: a value is no text of Unicode", remedy="ask for it anew")
    return found


def text(value: bytes, locator: Locator) -> str:
    """A value for a store of text. Raises UnsupportedError."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        pass
    raise UnsupportedError(
        f"{locator} holds text only, and a value is not UTF-8", remedy="store it as base64: no decode="
    )


def same(read: object, sent: object, locator: Locator) -> None:
    """Raise where what was read back differs from what was sent."""
    if read != sent:
        raise PluginError(f"{locator} did not read back as it was written", remedy="look there who else writes to it")


def marked(markers: str, marker: str) -> bool:
    """Whether a list of markers, parted by blanks, has this one."""
    return marker in markers.split()


def with_marker(markers: str, marker: str, limit: int) -> str:
    """The list with a marker at its end, the oldest dropped until `limit` characters hold it."""
    found = [*(each for each in markers.split() if each != marker), marker]
    while len(" ".join(found)) > limit and len(found) > 1:
        found.pop(0)
    return " ".join(found)


def _seen(look: Look, lost: UnknownOutcomeError | None) -> Place:
    failure: PluginError
    try:
        return look()
    except PluginError as error:
        failure = lost or error
    raise failure
