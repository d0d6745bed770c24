"""What sealpipe is to know of Shelf. Imported for every list of plugins: nothing heavy is imported here."""

from collections.abc import Callable

from sealpipe.plugin import ChannelInfo, SourceInfo, hookimpl

SETTINGS = "sealpipe_shelf.shelf:ShelfSettings"


@hookimpl
def sealpipe_sources(register: Callable[[SourceInfo], None]) -> None:
    register(SourceInfo("shelf", "things on a shelf, by name", "sealpipe_shelf.source:ShelfSource", SETTINGS))


@hookimpl
def sealpipe_channels(register: Callable[[ChannelInfo], None]) -> None:
    about = "a note to somebody who has a shelf"
    register(ChannelInfo("shelf", about, "sealpipe_shelf.channel:ShelfChannel", SETTINGS, to="PERSON"))
