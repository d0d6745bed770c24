"""Short codes as the specification allows them: any text."""

from __future__ import annotations

from typing import Literal

from sealpipe_rehearsal.running_service import RunningService

ODD = ("#x", "$(id)", "-x", "é", "a%2Fb", "a/b", "%41", "${{ github.token }}")
"""Codes that a shell, an expression, an option's parser or a percent-decoder would take for something else."""


def renamed(service: RunningService, what: Literal["shares", "requests"], code: str, other: str) -> str:
    """The service calls a share or a request otherwise from now on; `other`."""
    statement = {
        "shares": "UPDATE shares SET short_code = :other WHERE short_code = :code",
        "requests": "UPDATE requests SET short_code = :other WHERE short_code = :code",
    }
    with service.service.store.transaction():
        service.service.store.change(statement[what], {"code": code, "other": other})
    return other


def ended(service: RunningService) -> list[str]:
    """What DELETEs named, as it stood in their paths, oldest first."""
    return [seen.target.rpartition("/")[2] for seen in service.seen() if seen.method == "DELETE"]
