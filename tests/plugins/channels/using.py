"""Channels as the core uses them: by name, with settings from an environment, through the door for
plugins.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import pytest

from sealpipe.client_base import create_file
from sealpipe.errors import PluginError
from sealpipe.network.plugin_network import PluginNetwork
from sealpipe.plugin import Delivery, Health, Message, Secret
from sealpipe.registry import Registry
from sealpipe.registry.channels import check_recipient, send_message

FRAGMENT = "1Canary-6b1f_Zk3Qx0Vn8Jw"
LINK = f"https://share.example/s/aB3#{FRAGMENT}"
TITLE = 'Title <b>& "quotes" *stars* @everyone [x](https://evil.example)'
TEXT = f"""Hello,

somebody shares "{TITLE}" with you:
/close
{LINK}

It opens once, until 2026-12-01."""

E = TypeVar("E", bound=PluginError)


class Using:
    """A channel by its settings in the environment and the config; `ca_file` is what sealpipe is
    told to trust.
    """

    open: ClassVar[list[PluginNetwork]] = []
    """The ways out that were made, to be closed after the test."""

    def __init__(
        self,
        name: str,
        environ: Mapping[str, str],
        ca_file: Path | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = name
        network = PluginNetwork(ca_file)
        self.open.append(network)
        self.registry = Registry(
            environ=environ,
            config=lambda: config or {},
            network=lambda: network,
            new_file=create_file,
        )

    def send(self, to: str, message: Message | None = None) -> Delivery:
        return send_message(
            self.registry,
            self.name,
            message or share(),
            check_recipient(self.registry, self.name, to),
        )

    def canonical(self, to: str) -> str:
        return check_recipient(self.registry, self.name, to)

    def check(self) -> Health:
        return self.registry.check("channel", self.name)

    def fails(self, kind: type[E], to: str, message: Message | None = None) -> E:
        """The error that sending ends with: it holds nothing of the message."""
        with pytest.raises(kind) as caught:
            self.send(to, message)
        assert type(caught.value) is kind
        assert FRAGMENT not in told(caught.value)
        return caught.value


def share(
    text: str = TEXT, *, link: str = LINK, subject: str = "A secret for you", title: str = TITLE
) -> Message:
    return Message(
        "share",
        Secret(link),
        Secret(text),
        subject,
        title,
        "aB3",
        datetime(2026, 12, 1, tzinfo=UTC),
    )


def passcode(code: str) -> Message:
    return Message(
        "passcode", Secret(code), Secret(f"The passcode is\n{code}\n"), "A passcode", "T", "aB3"
    )


def told(error: BaseException) -> str:
    """All that any handler could print of an error, its causes and its frames' variables
    included.
    """
    shown = traceback.TracebackException.from_exception(error, capture_locals=True)
    here = Path(__file__).parent  # the tests themselves know what is secret
    shown.stack = traceback.StackSummary(
        [frame for frame in shown.stack if Path(frame.filename).parent != here]
    )
    attributes = [
        vars(each) for each in (error, error.__cause__, error.__context__) if each is not None
    ]
    return "".join(shown.format()) + repr(attributes)
