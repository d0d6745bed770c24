"""What leaves: the messages that channels deliver, and what policies see before anything leaves, never a value."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import datetime
from typing import Any, Final, NamedTuple

from sealpipe.plugin.context import Context
from sealpipe.plugin.stores import Health
from sealpipe.secret import Secret


class Message(NamedTuple):
    """What is to reach a recipient: a link or a passcode, never both.

    `secret` is that link or passcode; `what` is `share`, `request` or `passcode`. `text` is the whole message as
    plain text, the secret in it: channels that have a form of their own may build it from the rest.
    """

    what: str
    secret: Secret
    text: Secret
    subject: str
    title: str | None = None
    short_code: str = ""
    expires_at: datetime | None = None


class Delivery(NamedTuple):
    """What a channel knows of a message that it took. `confirmed` where it was read back."""

    id: str = ""
    confirmed: bool = False


class Channel(ABC):
    """A way to somebody. Called in threads; errors as a source's.

    What comes after the channel's colon, `to`, is data: it names one recipient and nothing else.
    """

    def __init__(self, settings: Any, context: Context) -> None:
        self.settings = settings
        self.context = context

    @abstractmethod
    def validate(self, to: str) -> None:
        """ReferenceValueError where `to` is not exactly one recipient. Asks nobody, sends nothing."""

    @abstractmethod
    def send(self, message: Message, to: str) -> Delivery:
        """Send it, once. UnknownOutcomeError where it is not known whether it was taken; a bare PluginError counts as
        that, too.

        Every other kind says that it was certainly not taken: the message is sent again, after UnavailableError at
        once.
        """

    def canonical(self, to: str) -> str:
        """The same recipient in one spelling, which means the same in another process and another folder.

        Asked once `validate` let it pass; this is what `send` is given. By it a link and a passcode to one recipient
        are told from those to two.
        """
        return to

    def check(self) -> Health:
        """Whether it can be used now, found out without sending anything."""
        return Health(ok=True)


ACTIONS: Final = ("share", "request", "collect", "tool", "expire", "purge", "unseal")
"""What policies are asked about."""

LITERAL: Final = "literal/literal"
"""The source of a value that a program gave as it is, such as a `Field` in Python."""

CALLER: Final = "stdout/stdout"
"""The sink of what is collected and goes to whoever called, without a sink."""

UNKNOWN: Final = "unknown/unknown"
"""What an entry of the outbox does not tell."""


class OutgoingAction(NamedTuple):
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
