"""A batch of shares: its file, and the table that reminds."""

from __future__ import annotations

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
