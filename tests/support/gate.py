"""A plugin whose sink, a drawer, stays in the middle of storing until a test lets it go on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from sealpipe.plugin import Locator, Mode, SinkField, SinkInfo, WriteResult, hookimpl
from support.drawer import Drawer

PATIENCE = 30


@hookimpl
def sealpipe_sinks(register: Callable[[SinkInfo], None]) -> None:
    register(SinkInfo("gate", "a drawer behind a gate", "support.gate:Gate"))


class Gate(Drawer):
    """`entered` once it is storing, `opened` lets it store; `stored` counts."""

    entered = threading.Event()
    opened = threading.Event()
    stored = 0

    def put(self, locator: Locator, fields: Sequence[SinkField], *, mode: Mode, marker: str) -> WriteResult:
        Gate.entered.set()
        assert Gate.opened.wait(PATIENCE)
        receipt = super().put(locator, fields, mode=mode, marker=marker)
        Gate.stored += not receipt.already
        return receipt

    @classmethod
    def shut(cls) -> None:
        """As at first."""
        cls.entered.clear()
        cls.opened.clear()
        cls.stored = 0
