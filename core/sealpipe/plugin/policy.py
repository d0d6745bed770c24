"""What a policy sees before anything leaves, is stored or is ended. Never a value, never a fragment."""

from __future__ import annotations

from datetime import datetime
from typing import Final, NamedTuple

ACTIONS: Final = ("share", "request", "collect", "tool", "expire", "purge", "unseal")
"""What policies are asked about."""

LITERAL: Final = "literal/literal"
"""The source of a value that a program gave as it is, such as a `Field` in Python."""

CALLER: Final = "stdout/stdout"
"""The sink of what is collected and goes to whoever called, without a sink."""

UNKNOWN: Final = "unknown/unknown"
"""What an entry of the outbox does not tell."""


class Outgoing(NamedTuple):
    """What is about to be done. `views` and `expires_at` are None where there is no end.

    Sources, sinks and channels are `plugin/store`, such as `vault/prod`; a plugin's default store has its own name,
    as in `env/env`. Where a third party's plugin stands in a built-in one's place, both parts tell it:
    `vault@entry-point/vault@entry-point`.
    """

    kind: str
    """One of `ACTIONS`."""
    labels: tuple[tuple[str, str], ...] = ()
    """Label and type of each field of a share, or prompt of a request."""
    sources: tuple[str, ...] = ()
    """Where values come from: a share's fields, passcodes, parameters, a tool's arguments, a key to collect with."""
    recipients: tuple[str, ...] = ()
    """Every target of a channel, as `channel:to`."""
    expires_at: datetime | None = None
    views: int | None = None
    """How often a share may be opened, or a request answered."""
    title: str | None = None
    sinks: tuple[str, ...] = ()
    """Where values are stored."""
    channels: tuple[str, ...] = ()
    """Each recipient's channel, in the recipients' order."""
    tools: tuple[str, ...] = ()
    """The tool of the hosted MCP endpoint that is called."""
    short_codes: tuple[str, ...] = ()
    """What is collected, ended or unsealed; of a sealed link it is true once that has opened."""
    subject: str = ""
    """What is ended: `share` or `request`."""
    service: str | None = None
    """The service's base address."""
    link_address: str | None = None
    """What links begin with."""
    resumed: bool = False
    """An earlier process began it."""
    complete: bool = True
    """False where sources were not read yet: labels, recipients and the expiry are not known then."""


class VetoError(Exception):  # it is an answer, not an error of the program
    """Raised by a policy: the reason, for people, without anything secret."""
