"""A batch of requests: its file, its rows, many rows, and who is told."""

from __future__ import annotations

FILE = """
name = "vendors"
kind = "request"
rows = "rows.csv"
key = "name"

[request]
ask = ["Staging password", "user=User name:text"]
title = "Access to {system}"
expires-in = "30d"
max-submissions = 1
send = ["pigeon:{to}"]

[remind]
after = ["3d", "7d"]
before-expiry = "1d"

[collect]
to = ["nest:vendors/{name}#password=Staging password,user"]
after = "expire"
"""

ROWS = [
    {"name": name, "system": "CRM", "to": f"{name}.example"} for name in ("acme", "bolt", "core")
]


MANY = [{"name": f"v{each:02}", "system": "CRM", "to": f"v{each:02}.example"} for each in range(20)]

NOTIFY = '\n[notify]\nsend = ["pigeon:team"]\n'
