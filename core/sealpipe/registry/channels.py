"""Calls of channels."""

from __future__ import annotations

from sealpipe.errors import PluginError
from sealpipe.plugin import CONFIRMS, Delivery, Message
from sealpipe.registry import Registry
from sealpipe.registry.safe_calls import call_plugin


def check_recipient(registry: Registry, name: str, to: str) -> str:
    """Return the recipient in canonical spelling.

    Sends nothing. Raises PluginError, ReferenceSyntaxError.
    """
    channel = registry.channel(name)

    def canonicalize() -> str:
        channel.validate(to)
        return channel.canonical(to)

    recipient = call_plugin(f"the channel {name}", canonicalize)
    if not isinstance(recipient, str):
        raise PluginError(
            f"the channel {name} returned {type(recipient).__name__} as its recipient",
            locator=f"{name}:",
        )
    return recipient


def send_message(registry: Registry, name: str, message: Message, to: str) -> Delivery:
    """Send a message by a channel, once.

    Raises PluginError; only some of them mean that it was not sent.
    """
    channel = registry.channel(name)
    delivery = call_plugin(
        f"the channel {name}", lambda: channel.send(message, to), is_changing=True
    )
    return delivery if isinstance(delivery, Delivery) else Delivery()


def confirms_delivery(registry: Registry, name: str) -> bool:
    """Return whether the channel itself ensures that no message is sent twice."""
    return CONFIRMS in registry.channel_info(name).capabilities
