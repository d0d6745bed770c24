"""The contract tests for authors of plugins.

A pytest class for each kind, to subclass in about fifteen lines.

    from sealpipe.testing import SourceContract

    class TestAttic(SourceContract):
        name = "attic"

        def put(self, content): ...    # store it in the backend; return the body of a reference
        def missing(self): ...         # return the body of a reference to nothing

They need pytest, and the plugin installed (or `built_in` naming its module). They test what the
core and its users rely on: no SDK at import, no value in any repr, error or log, and different
results for missing, denied and empty.
"""

from __future__ import annotations

from sealpipe.testing.channel import ChannelContract, Shown
from sealpipe.testing.contract import CIContract
from sealpipe.testing.sink import SinkContract
from sealpipe.testing.source import SourceContract

__all__ = ["CIContract", "ChannelContract", "Shown", "SinkContract", "SourceContract"]
