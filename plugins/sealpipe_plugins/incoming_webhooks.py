"""Incoming webhooks, each with a name: their addresses are secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from sealpipe.plugin import Secret

NAME_PATTERN: Final = r"[a-z][a-z0-9_.-]{0,63}"
"""What the name of a webhook is made of."""


def parse_webhooks(given: object) -> dict[str, Secret]:
    """Read webhooks by name from a setting: NAME=URL, several separated by white space."""
    if isinstance(given, dict):
        return given
    found: dict[str, Secret] = {}
    for each in str(given).split():
        name, equals, url = each.partition("=")
        if not equals or not url or not re.fullmatch(NAME_PATTERN, name) or name in found:
            raise ValueError("not NAME=URL, or a name twice")
        found[name] = Secret(url)
    return found


def first_name(name: str, unnamed: Secret | None, webhooks: Mapping[str, Secret]) -> str:
    """Return the first name of this webhook's address; the one without a name comes before all others."""
    known = {**({} if unnamed is None else {"": unnamed}), **dict(sorted(webhooks.items()))}
    return next((each for each, url in known.items() if url == known.get(name)), name)
