"""Plugins in memory: a channel whose messages a test reads, and a sink that keeps markers.

Both fail where told to.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
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
    """What the plugins of one test hold: messages by recipient, values by place.

    `down` names those that fail.
    """

    messages: list[tuple[str, Message]] = field(default_factory=list)
    values: dict[str, dict[str, str]] = field(default_factory=dict)
    markers: dict[str, str] = field(default_factory=dict)
    puts: list[str] = field(default_factory=list)
    down: dict[str, PluginError] = field(default_factory=dict)
    before: Callable[[str], object] = lambda _: None
    """Called with a recipient or a place, before anything happens there; `after` when it has
    happened.
    """
    after: Callable[[str], object] = lambda _: None

    def keep_message(self, to: str, message: Message) -> None:
        self.messages.append((to, message))

    def read_marker(self, place: str) -> str | None:
        """What marks the value there; None if there is none."""
        return self.markers.get(place)

    def keep_values(self, place: str, marker: str, values: dict[str, str]) -> None:
        self.values[place], self.markers[place] = values, marker
        self.puts.append(place)

    def make_error(self, place: str) -> PluginError | None:
        """A new one each time: whoever handles an error may add to its text."""
        error = self.down.get(place) or self.down.get("*")
        return None if error is None else type(error)(error.message)

    def sent_to(self, name: str) -> list[Message]:
        return [message for to, message in self.messages if to == name]


class FolderLoft(Loft):
    """A loft in a folder, for machines that are processes of their own: each write is one call, and
    never half done.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def keep_message(self, to: str, message: Message) -> None:
        line = json.dumps([to, message.what, message.short_code, message.subject]) + "\n"
        descriptor = os.open(
            self._folder / "messages", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600
        )
        os.write(descriptor, line.encode())
        os.close(descriptor)

    def read_marker(self, place: str) -> str | None:
        path = self._folder / place.replace("/", "-")
        return path.read_text().partition("\n")[0] if path.exists() else None

    def keep_values(self, place: str, marker: str, values: dict[str, str]) -> None:
        path = self._folder / place.replace("/", "-")
        descriptor = os.open(self._folder / "puts", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        path.with_suffix(".new").write_text(f"{marker}\n{json.dumps(values)}\n")
        path.with_suffix(".new").rename(path)
        os.write(descriptor, f"{place}\n".encode())
        os.close(descriptor)


LOFTS: dict[str, Loft] = {}
"""By the variable LOFT of the registry's environment; a path that is none of them is a folder."""


def find_loft(environ: Mapping[str, str]) -> Loft:
    name = environ["LOFT"]
    return LOFTS[name] if name in LOFTS else FolderLoft(Path(name))


class Pigeon(Channel):
    """Carries a message. With UnknownOutcomeError it leaves, and nobody knows whether it
    arrives.
    """

    def __init__(self, settings: Any, context: Any) -> None:
        super().__init__(settings, context)
        self._loft = find_loft(context.environ)

    def validate(self, to: str) -> None:
        if " " in to:
            raise PluginError("a pigeon knows no such place")

    def send(self, message: Message, to: str) -> Delivery:
        self._loft.before(to)
        error = self._loft.make_error(to)
        if error is not None and not isinstance(error, UnknownOutcomeError):
            raise error
        self._loft.keep_message(to, message)
        self._loft.after(to)
        if error is not None:
            raise error
        return Delivery(to)


class Nest(Sink):
    """One value a key; what is there with the same marker is stored already."""

    def __init__(self, settings: Any, context: Any) -> None:
        super().__init__(settings, context)
        self._loft = find_loft(context.environ)

    def describe(self, locator: Locator, mode: Mode) -> str:
        return f"{mode} {locator.body}"

    def put(
        self, locator: Locator, fields: Sequence[SinkField], *, mode: Mode, marker: str
    ) -> WriteResult:
        loft, place = self._loft, locator.body
        loft.before(place)
        error = loft.make_error(place)
        if error is not None:
            raise error
        found = loft.read_marker(place)
        if found == marker:
            return WriteResult(locator, already=True)
        if found is not None and mode == "create":
            raise WriteConflictError("something is there", locator=locator.text)
        loft.keep_values(place, marker, {each.key: each.value.reveal() for each in fields})
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
