"""What users want done, as generators: a flow yields steps to its driver and returns its result.

The driver answers `Send` with what came back (`Response` or `Failure`, see `sealpipe.api`), `Wait` with nothing, `Do`
with what the callable returned, and `Notify` with nothing; what a callable raises is raised in the flow.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, NamedTuple, TypeVar

from sealpipe.api import Operation

T = TypeVar("T")


class Send(NamedTuple):
    """Put one operation on the network, once, within `timeout` seconds.

    `is_cleared`: policies and observers were asked and told (`sealpipe.flows.policy`).
    """

    operation: Operation[Any]
    timeout: float
    is_cleared: bool = False


class Wait(NamedTuple):
    """Let `seconds` pass."""

    seconds: float


class Do(NamedTuple):
    """Work that may block: a plugin, an fsync, sealing a large value.

    `is_changing`: it changes something elsewhere, and whoever cancels it lets it end for a while.
    """

    work: Callable[[], Any]
    is_changing: bool = False


class Notify(NamedTuple):
    """A callback of the caller's, where the caller is: in its thread, in its event loop.

    What it returns is awaited where the driver can, and means nothing.
    """

    callback: Callable[[], object]


Step = Send | Wait | Do | Notify
Flow = Generator[Step, Any, T]
