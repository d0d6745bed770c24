"""A value that may show up nowhere, and the ways in which it could."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

CANARY = "c4nary-5f1e-\u00e4\u20ac-pass'word\"<&>"
"""Not ASCII, and with characters that JSON, XML, a shell and a URL each treat as theirs."""


def spellings(secret: str) -> set[str]:
    """A secret as it is, and as base64 (at three shifts), base64url, hex, JSON and URL text."""
    data = secret.encode()
    found = {secret, data.hex(), quote(secret), json.dumps(secret)[1:-1], repr(secret)[1:-1]}
    for shift in range(3):
        coded = base64.b64encode(b"x" * shift + data)
        core = coded[4 if shift else 0 : -4].decode()
        found |= {core, core.replace("+", "-").replace("/", "_")}
    return {spelling for spelling in found if len(spelling) >= 6}
