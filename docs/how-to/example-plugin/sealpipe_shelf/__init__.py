"""Register the plugins. Every list of plugins imports this module, so it imports nothing heavy."""

from collections.abc import Callable

from sealpipe.plugin import TEXT, ChannelInfo, SinkInfo, SourceInfo, hookimpl

SETTINGS = "sealpipe_shelf.shelf:ShelfSettings"


@hookimpl
def sealpipe_sources(register: Callable[[SourceInfo], None]) -> None:
    register(
        SourceInfo(
            "shelf", "an item on a shelf: shelf:NAME", "sealpipe_shelf.source:ShelfSource", SETTINGS
        )
    )


@hookimpl
def sealpipe_sinks(register: Callable[[SinkInfo], None]) -> None:
    about = "an item on a shelf: shelf:NAME#KEY=PROMPT"
    factory = "sealpipe_shelf.sink:ShelfSink"
    register(SinkInfo("shelf", about, factory, SETTINGS, capabilities=(TEXT,)))


@hookimpl
def sealpipe_channels(register: Callable[[ChannelInfo], None]) -> None:
    about = "a note to the owner of a shelf"
    register(
        ChannelInfo("shelf", about, "sealpipe_shelf.channel:ShelfChannel", SETTINGS, to="PERSON")
    )
