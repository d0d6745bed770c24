"""Plugins in memory: a channel whose messages a test reads, and a sink that keeps markers. Both fail where told to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sealpipe.errors import PluginError, UnknownOutcomeError
from sealpipe.plugin import (
    Channel,
    ChannelInfo,
    Delivery,
    Document,
    Locator,
    Message,
    Mode,
    Sink,
    SinkField,
    SinkInfo,
    Source,
    SourceInfo,
    UnavailableError,
    WriteConflictError,
    WriteResult,
    hookimpl,
)


@dataclass
class Loft:
    """What the plugins of one test hold: messages by recipient, values by place. `down` names those that fail."""

    messages: list[tuple[str, Message]] = field(default_factory=list)
    values: dict[str, dict[str, str]] = field(default_factory=dict)
    markers: dict[str, str] = field(default_factory=dict)
    puts: list[str] = field(default_factory=list)
    down: dict[str, PluginError] = field(default_factory=dict)
    before: Callable[[str], object] = lambda _: None
    """Called with a recipient or a place, before anything happens there; `after` when it has happened."""
    after: Callable[[str], object] = lambda _: None

    def sent_to(self, name: str) -> list[Message]:
        return [message for to, message in self.messages if to == name]


LOFTS: dict[str, Loft] = {}
"""By the variable LOFT of the registry's environment."""


class Pigeon(Channel):
    """Carries a message. With UnknownOutcomeError it leaves, and nobody knows whether it arrives."""

    def __init__(self, settings: Any, context: Any) -> None:
        super().__init__(settings, context)
        self._loft = LOFTS[context.environ["LOFT"]]

    def validate(self, to: str) -> None:
        if " " in to:
            raise PluginError("a pigeon knows no such place")

    def send(self, message: Message, to: str) -> Delivery:
        self._loft.before(to)
        error = self._loft.down.get(to) or self._loft.down.get("*")
        if error is not None and not isinstance(error, UnknownOutcomeError):
            raise error
        self._loft.messages.append((to, message))
        self._loft.after(to)
        if error is not None:
            raise error
        return Delivery(str(len(self._loft.messages)))


class Nest(Sink):
    """One value a key; what is there with the same marker is stored already."""

    def __init__(self, settings: Any, context: Any) -> None:
        super().__init__(settings, context)
        self._loft = LOFTS[context.environ["LOFT"]]

    def describe(self, locator: Locator, mode: Mode) -> str:
        return f"{mode} {locator.body}"

    def put(self, locator: Locator, fields: Sequence[SinkField], *, mode: Mode, marker: str) -> WriteResult:
        loft, place = self._loft, locator.body
        loft.before(place)
        if place in loft.down:
            raise loft.down[place]
        if loft.markers.get(place) == marker:
            return WriteResult(locator, already=True)
        if place in loft.values and mode == "create":
            raise WriteConflictError("something is there", locator=locator.text)
        loft.values[place] = {each.key: each.value.reveal() for each in fields}
        loft.markers[place] = marker
        loft.puts.append(place)
        loft.after(place)
        return WriteResult(locator)


class Seeds(Source):
    """Gives a value for each name."""

    def fetch(self, locator: Locator) -> Document:
        return Document(f"canary-of-{locator.body}")


@hookimpl
def sealpipe_channels(register: Callable[[ChannelInfo], None]) -> None:
    register(ChannelInfo("pigeon", "a pigeon", "cli.batch.pigeons:Pigeon"))


@hookimpl
def sealpipe_sinks(register: Callable[[SinkInfo], None]) -> None:
    register(SinkInfo("nest", "a nest", "cli.batch.pigeons:Nest"))


@hookimpl
def sealpipe_sources(register: Callable[[SourceInfo], None]) -> None:
    register(SourceInfo("seeds", "seeds", "cli.batch.pigeons:Seeds"))


DOWN = UnavailableError("the loft is closed")
LOST = UnknownOutcomeError("a hawk was seen")
