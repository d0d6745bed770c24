"""Short codes as commands take them: as they are, or in the encoded form in which CI steps hand them on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sealpipe.client import Client


def share(client: Client, word: str, keep: Path | None = None) -> str:
    """The share's code. UsageError where the word names two."""
    if "%" not in word:
        return word
    from sealpipe.flows.short_codes import share_code

    return client.run(share_code(client.session, word, keep))


def request(client: Client, word: str, keep: Path | None = None) -> str:
    """The request's code. UsageError where the word names two."""
    if "%" not in word:
        return word
    from sealpipe.flows.short_codes import request_code

    return client.run(request_code(client.session, word, keep))
