"""Channels: how a link, or a passcode, reaches its recipient."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import datetime
from typing import Any, NamedTuple

from sealpipe.plugin.context import Context
from sealpipe.plugin.source import Health
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
