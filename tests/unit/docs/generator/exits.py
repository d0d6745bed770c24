"""The exit codes that each command can end with.

A test compares them with all that the scenarios end with.
"""

from __future__ import annotations

from collections.abc import Mapping

from unit.docs.generator.tree import Node

EVERY = (0, 1, 2, 130, 143)
"""Those of every command."""

CALLING = (3, 4, 5, 7, 9, 10, 12)
"""Those of a command that calls the service."""

PLUGINS = (14,)
"""That of a command that uses a source, a sink, a channel or a database."""

READING = (3, 4, 7, 10, 12)
"""Those of a command that only reads from the service."""

OWN: Mapping[str, tuple[int, ...]] = {
    "audit send": PLUGINS,
    "audit verify": (13, 14),
    "batch adopt": (*READING, 14),
    "batch cancel": (*READING, 14, 18),
    "batch collect": (*READING, 14, 15, 18),
    "batch database init": PLUGINS,
    "batch database upgrade": PLUGINS,
    "batch link": PLUGINS,
    "batch list": PLUGINS,
    "batch plan": PLUGINS,
    "batch purge": PLUGINS,
    "batch reissue": (*READING, 14, 18),
    "batch rekey": PLUGINS,
    "batch remind": (*READING, 14, 18),
    "batch report": PLUGINS,
    "batch run": (*READING, 14, 15, 18),
    "batch status": PLUGINS,
    "batch worker": PLUGINS,
    "collect": (*CALLING, 6, 11, 13, 14, 15, 16, 17),
    "completion": (),
    "copy": PLUGINS,
    "custody new": (),
    "custody public-key": (),
    "doctor": (*CALLING, 13, 14),
    "mcp": PLUGINS,
    "mcp policy init": (),
    "mcp policy test": (),
    "plugins": (),
    "read": PLUGINS,
    "rehearsal account": (),
    "rehearsal answer": (6, 14),
    "rehearsal key create": (),
    "rehearsal key grant": (),
    "rehearsal key list": (),
    "rehearsal key revoke": (),
    "rehearsal open": (6, 13, 14),
    "rehearsal serve": (),
    "rehearsal webhook add": (),
    "rehearsal webhook list": (),
    "rehearsal webhook remove": (),
    "rehearsal webhook rotate": (),
    "rehearse": (),
    "request": (*CALLING, 8, 11, 14),
    "requests expire": (*CALLING, 6, 14),
    "requests link": (),
    "requests list": (*READING, 15),
    "requests purge": (*CALLING, 6, 14),
    "requests remind": (*READING, 6, 11, 14, 16),
    "requests show": (*READING, 6),
    "requests submissions": (*READING, 6),
    "resume": (*CALLING, 8, 11, 14),
    "run": PLUGINS,
    "server account add": PLUGINS,
    "server account list": PLUGINS,
    "server account plan": PLUGINS,
    "server custody approve": PLUGINS,
    "server database backup": PLUGINS,
    "server database check": PLUGINS,
    "server database upgrade": PLUGINS,
    "server init": PLUGINS,
    "server key create": (4, 14),
    "server key list": PLUGINS,
    "server key revoke": PLUGINS,
    "server purge": PLUGINS,
    "server run": PLUGINS,
    "server mail add": PLUGINS,
    "server mail list": PLUGINS,
    "server mail remove": PLUGINS,
    "server webhook add": (4, 14),
    "server webhook list": PLUGINS,
    "server webhook remove": PLUGINS,
    "server webhook rotate": PLUGINS,
    "share": (*CALLING, 8, 11, 14),
    "shares expire": (*CALLING, 6, 14),
    "shares list": READING,
    "shares log": (*READING, 6),
    "shares show": (*READING, 6),
    "shares wait": (*READING, 6, 15, 16),
    "stats": READING,
    "tools call": (*CALLING, 14),
    "tools list": (*READING, 5),
    "unseal": (11, 13),
    "webhooks verify": (13, 14),
}
"""Those of each command, besides `EVERY`."""


def list_exit_codes(node: Node) -> list[int]:
    """Return the exit codes of a command, in order."""
    return sorted({*EVERY, *OWN[node.name.removeprefix("sealpipe ")]})
