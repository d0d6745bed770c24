"""A batch file of vendors for commands, its rows, and how many requests were created."""

from __future__ import annotations

from sealpipe_rehearsal.running_service import RunningService

VENDORS = """
name = "vendors"
kind = "request"
rows = "vendors.csv"
key = "name"

[request]
ask = ["Password"]
send = ["file:{name}.link"]

[collect]
to = ["file:{to}"]
"""

ROWS = "name,to\nacme,acme.secret\nbolt,bolt.secret\n"


def count_creates(service: RunningService) -> int:
    return sum((seen.method, seen.target) == ("POST", "/v1/requests") for seen in service.seen())
