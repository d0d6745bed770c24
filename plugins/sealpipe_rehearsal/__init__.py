"""The rehearsal: a faithful local copy of the service, and the people at the other end of its links.

    service/   the service itself: the specification read a second time, importing nothing of ours
    server     start() in a thread, serve() as a command      running    what start() returns
    listening  uvicorn on a loopback socket                   door       the control door, from outside
    connection uvicorn's, with a way past HTTP for faults     fault_file a plan of faults in a file
    keys       minting credentials                            people     who has a link, and nothing else
    fixture    pytest's fixture `sealpipe_rehearsal`          for_tests  what it hands to a user's test

Importing this package loads nothing else; `LinkRefusedError` and `Rehearsal` are loaded when they are first used.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as typing's own
if TYPE_CHECKING:
    from typing import Any

    from sealpipe_rehearsal.for_tests import Rehearsal as Rehearsal
    from sealpipe_rehearsal.people import LinkRefusedError as LinkRefusedError

_PLACES = {"LinkRefusedError": "sealpipe_rehearsal.people", "Rehearsal": "sealpipe_rehearsal.for_tests"}

__all__ = ["LinkRefusedError", "Rehearsal"]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _PLACES:
        return getattr(import_module(_PLACES[name]), name)
    raise AttributeError(f"module 'sealpipe_rehearsal' has no attribute {name!r}")
