"""The contract of channels."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import pytest

from sealpipe.errors import (
    PluginError,
    ReferenceValueError,
    UnavailableError,
    UnknownOutcomeError,
)
from sealpipe.plugin import Channel, Delivery, Message, Secret
from sealpipe.registry import Registry
from sealpipe.registry.safe_calls import call_plugin
from sealpipe.testing.contract import (
    PATIENCE,
    Contract,
    FaultyServer,
    error_text,
    find_leaks,
    log_everything,
    log_text,
)

LINK = "https://links.example/s/AbC#1c4nary-5f1e-fragment"


class ChannelContract(Contract):
    """Subclass it with `name`, `recipient`, `strangers` and `received`."""

    kind = "channel"

    @abstractmethod
    def recipient(self) -> str:
        """A target that takes messages."""

    @abstractmethod
    def strangers(self) -> Sequence[str]:
        """Targets that are not one recipient: two of them, injected options, a line break."""

    @abstractmethod
    def received(self) -> Sequence[str]:
        """The text of every message that arrived there so far."""

    def at(self, url: str) -> Mapping[str, str] | None:
        """The environment in which the channel uses another address, or None without HTTP."""
        del url
        return None

    def message(self, title: str | None = "Staging <b>&amp; database") -> Message:
        """A share's link, with a title that looks like markup but is not."""
        text = Secret(f"A secret was shared with you: {title}\n{LINK}\n")
        return Message(
            "share",
            Secret(LINK),
            text,
            "A secret for you",
            title,
            "AbC",
            datetime(2030, 1, 1, tzinfo=UTC),
        )

    @pytest.fixture
    def channel(self, registry: Registry) -> Channel:
        """The channel, as the core makes it."""
        return registry.channel(self.name)

    def test_a_recipient_is_valid_and_asks_nobody(self, channel: Channel) -> None:
        before = len(self.received())
        channel.validate(self.recipient())
        assert len(self.received()) == before

    def test_what_is_not_exactly_one_recipient_is_refused(self, channel: Channel) -> None:
        odd = ("", " ", "\n", "a\nb", "a\x00b", "a\x1b[2Jb")
        for stranger in (*odd, *self.strangers()):
            with pytest.raises(ReferenceValueError) as refused:
                channel.validate(stranger)
            assert refused.value.remedy

    def test_a_message_arrives_once_with_its_link_whole(self, channel: Channel) -> None:
        before = len(self.received())
        delivery = call_plugin(self.name, lambda: channel.send(self.message(), self.recipient()))
        assert isinstance(delivery, Delivery)
        arrived = self.received()[before:]
        assert len(arrived) == 1
        assert LINK in arrived[0]

    def test_the_link_shows_in_no_repr_or_log(
        self, channel: Channel, caplog: pytest.LogCaptureFixture
    ) -> None:
        log_everything(caplog)
        delivery = channel.send(self.message(), self.recipient())
        assert not find_leaks(
            repr(delivery) + repr(channel) + log_text(caplog),
            [LINK.partition("#")[2], *self.secrets()],
        )

    @pytest.mark.parametrize("how", ["429", "503", "dripping"])
    def test_a_backend_that_turns_it_away_is_unavailable(
        self, how: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        log_everything(caplog)
        if how == "dripping":
            monkeypatch.setattr("sealpipe.network.plugin_network.DEADLINE", PATIENCE)
        server = FaultyServer(how)
        try:
            environ = self.at(server.url)
            if environ is None:
                pytest.skip(f"{self.name} does not talk HTTP")
            channel = self.registry_in(environ).channel(self.name)
            with pytest.raises(PluginError) as failed:
                call_plugin(self.name, lambda: channel.send(self.message(), self.recipient()))
        finally:
            server.stop()
        # The server may have accepted the message.
        wanted = (UnavailableError, UnknownOutcomeError) if how == "dripping" else UnavailableError
        assert isinstance(failed.value, wanted), failed.value
        assert not find_leaks(
            error_text(failed.value) + log_text(caplog), [LINK.partition("#")[2], *self.secrets()]
        )
