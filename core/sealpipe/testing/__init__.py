"""The conformance kit for authors of plugins: a pytest class a kind, to subclass in some fifteen lines.

    from sealpipe.testing import SourceContract

    class TestAttic(SourceContract):
        name = "attic"

        def put(self, content): ...        # store it in the backend; the body of a reference to it
        def missing(self): ...             # the body of a reference to nothing

It needs pytest, and the plugin installed (or `built_in` naming its module). What it holds plugins to is what the core
and its users lean on: no SDK at import, no value in any repr, error or log, missing and denied and empty told apart.
"""

from __future__ import annotations

from sealpipe.testing.channel import ChannelContract
from sealpipe.testing.contract import CIContract
from sealpipe.testing.sink import SinkContract
from sealpipe.testing.source import SourceContract

__all__ = ["CIContract", "ChannelContract", "SinkContract", "SourceContract"]
