"""Channels in use: a recipient checked, a message sent, whatever the plugin does."""

from __future__ import annotations

from sealpipe.errors import PluginError
from sealpipe.plugin import CONFIRMS, Delivery, Message
from sealpipe.registry import Registry
from sealpipe.registry.guard import guarded


def checked(registry: Registry, name: str, to: str) -> str:
    """The recipient, as the channel spells it. Sends nothing. Raises PluginError, ReferenceSyntaxError,
    SettingError."""
    channel = registry.channel(name)

    def ask() -> str:
        channel.validate(to)
        return channel.canonical(to)

    spelled = guarded(f"the channel {name}", ask)
    if not isinstance(spelled, str):
        raise PluginError(f"the channel {name} names its recipient with {type(spelled).__name__}", locator=f"{name}:")
    return spelled


def send(registry: Registry, name: str, message: Message, to: str) -> Delivery:
    """Hand a message to a channel, once. Blocks. Raises PluginError; only some of them mean that it is not sent."""
    channel = registry.channel(name)
    delivery = guarded(f"the channel {name}", lambda: channel.send(message, to))
    return delivery if isinstance(delivery, Delivery) else Delivery()


def confirms(registry: Registry, name: str) -> bool:
    """Whether the channel itself sees to it that no message is sent twice."""
    return CONFIRMS in registry.channel_info(name).capabilities
