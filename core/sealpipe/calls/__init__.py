"""What both clients can do, once: each a function of the session that gives a flow.

`Client` and `AsyncClient` make their methods of these; the docstrings are theirs, too. Their modules are
imported when they are first used: most programs need one of them, and the command line needs none to share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sealpipe.calls import account as account
    from sealpipe.calls import requests as requests
    from sealpipe.calls import shares as shares
    from sealpipe.calls import submissions as submissions
else:  # hidden from mypy: to it every other name would be a module, too

    def __getattr__(name):
        from importlib import import_module

        if name in ("account", "requests", "shares", "submissions"):
            return import_module(f"sealpipe.calls.{name}")
        raise AttributeError(f"module 'sealpipe.calls' has no attribute {name!r}")
