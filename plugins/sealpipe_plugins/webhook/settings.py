"""Incoming webhooks, each with a name: their addresses are secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from sealpipe.plugin import Secret

WEBHOOK: Final = r"[a-z][a-z0-9_.-]{0,63}"
"""What the name of a webhook is made of."""


def named(given: object) -> dict[str, Secret]:
    """Webhooks by name, as a setting holds them: NAME=URL, several parted by white space."""
    if isinstance(given, dict):
        return given
    found: dict[str, Secret] = {}
    for each in str(given).split():
        name, equals, url = each.partition("=")
        if not equals or not url or not re.fullmatch(WEBHOOK, name) or name in found:
            raise ValueError("not NAME=URL, or a name twice")
        found[name] = Secret(url)
    return found


def same(name: str, unnamed: Secret | None, webhooks: Mapping[str, Secret]) -> str:
    """The first name of the webhook that this one is; the one without a name is the very first."""
    known = {**({} if unnamed is None else {"": unnamed}), **dict(sorted(webhooks.items()))}
    return next((each for each, url in known.items() if url == known.get(name)), name)
