"""A batch of shares: its file, the table that reminds, and a recipient who opens a link."""

from __future__ import annotations

import json

from cli.batch.world import BatchWorld, ask_control
from sealpipe.wire import link, tokens

FILE = """
name = "keys"
kind = "share"
rows = "rows.csv"
key = "name"

[share]
fields = ["Password=seeds:{name}"]
title = "For {name}"
expires-in = "7d"
send = ["pigeon:{to}"]
"""

REMIND = '\n[remind]\nunopened-after = ["2d"]\n'


def opened(world: BatchWorld, to: str) -> int:
    """The status that the recipient gets who opens the latest link."""
    message = world.messages(to)[-1]
    content_key = link.decode_fragment(message.secret.reveal().partition("#")[2])
    body = {"access_token": tokens.access_token(content_key)}
    done = ask_control(world.service, "POST", ("links", "shares", message.short_code, "open"), body)
    assert done.status != 200 or json.loads(done.body)["data"]
    return int(done.status)
