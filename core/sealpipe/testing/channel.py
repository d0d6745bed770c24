"""The contract of channels."""

from __future__ import annotations

import re
import socket
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import NamedTuple

import pytest

from sealpipe.errors import (
    PluginError,
    ReferenceValueError,
    UnavailableError,
    UnknownOutcomeError,
    UnsupportedError,
)
from sealpipe.plugin import CONFIRMS, Channel, Delivery, Message, Secret
from sealpipe.registry import Registry
from sealpipe.testing.contract import (
    PATIENCE,
    PROBE,
    REDIRECTS,
    Contract,
    FaultyServer,
    applies_if,
    error_text,
    find_address,
    find_leaks,
    log_everything,
    log_text,
)
from sealpipe.testing.hostile import COMMANDS, MAIL, MARKUP

LINK = "https://links.example/s/AbC#1c4nary-5f1e-fragment"
TITLE = "Staging <b>&amp; database"
"""A title that looks like markup but is not."""
HARMLESS = "Staging database"
TITLES = tuple(
    title for title in (*MAIL, *MARKUP, *COMMANDS) if not re.search("[\ud800-\udfff]", title)
)
"""Titles that must stay text. The core refuses lone surrogates."""
PASSCODES = ("1234", "a*b_c~d <e>&", "with ` a tick", "``x``", "@ann", "/close", "&lt;")
"""Passcodes that must arrive exactly."""

NOT_ACCEPTED = ("refused", "429", "503")
"""Failures after which the message is certainly not out."""
UNKNOWN = ("500", "closed", "cut", "lost", "silent", "dripping")
"""Failures after which it may be out."""


class Shown(NamedTuple):
    """A message as a reader's program shows it: `text`, and what is more than text.

    `links` are addresses that the reader can open, `others` is everything else: tags, styles,
    mentions, pictures, commands, headers or members that the channel does not write itself. A
    passcode may be in a style for code.
    """

    text: str
    links: Sequence[str] = ()
    others: Sequence[str] = ()


class Failing(NamedTuple):
    """A backend that fails in one way: the environment in which the channel uses it."""

    environ: Mapping[str, str]
    sent: Callable[[], int]
    """Returns how many times the backend was asked to accept a message."""
    retry_after: float | None = None
    """The seconds that the backend asks to wait."""


Fail = Callable[[str], tuple[Failing, PluginError | Delivery]]


def _has_failures(cls: type[ChannelContract]) -> bool:
    return cls.at is not ChannelContract.at or cls.failing is not ChannelContract.failing


class ChannelContract(Contract):
    """Subclass it with `name`, `recipient`, `strangers` and `received`.

    `at` adds the tests of failures, and `shown` those of hostile titles.
    """

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

    def shown(self) -> Sequence[Shown]:
        """Return the last message that arrived, in each form in which readers may see it.

        A mail has two, plain text and a page. Without it there are no tests of hostile titles.
        """
        return ()

    def at(self, url: str) -> Mapping[str, str] | None:
        """Return the environment in which the channel uses another address, if it uses HTTP.

        It sets the variable that has the backend's address in `environ`: only sending fails, and
        what a channel reads before or after is answered.
        """
        del url
        return None

    @contextmanager
    def failing(self, how: str, environ: Mapping[str, str]) -> Iterator[Failing | None]:
        """Run a backend that fails in one way, from the block's begin to its end.

        `how` is `refused` or one of `FaultyServer`, which stands before the backend of
        `environ`. None: this backend does not fail so. Override it for a channel without HTTP.
        """
        if how == "refused":
            with socket.socket() as nobody:  # bound, so that nobody else gets the port
                nobody.bind(("127.0.0.1", 0))
                there = self.at(f"http://127.0.0.1:{nobody.getsockname()[1]}")
                yield None if there is None else Failing(there, lambda: 0)
            return
        variable = find_address(environ, self.at(PROBE) or {})
        if how == "lost" and variable is None:
            yield None  # without the backend it is the same as `closed`
            return
        server = FaultyServer(how, variable and variable.address)
        try:
            there = self.at(server.url)
            wait = server.retry_after if how == "429" else None
            yield None if there is None else Failing(there, lambda: server.changes, wait)
        finally:
            server.stop()

    def message(self, title: str | None = TITLE) -> Message:
        """A share's link among a title, which is also at the begin of a line."""
        return Message(
            "share",
            Secret(LINK),
            Secret(f"A secret was shared with you: {title}\n{title} {LINK} {title}\n"),
            f"A secret for you: {title}",
            title,
            "AbC",
            datetime(2030, 1, 1, tzinfo=UTC),
        )

    def passcode(self, code: str, title: str = TITLE) -> Message:
        """A passcode, which is no link."""
        text = Secret(f"The passcode for {title} is\n{code}\n")
        return Message("passcode", Secret(code), text, "A passcode for you", title, "AbC")

    @pytest.fixture
    def channel(self, registry: Registry) -> Channel:
        """The channel, as the core makes it."""
        return registry.channel(self.name)

    def confirms(self, registry: Registry) -> bool:
        """Return whether the channel itself ensures that no message is sent twice."""
        return CONFIRMS in registry.channel_info(self.name).capabilities

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

    def test_a_message_arrives_once_with_its_link_whole(
        self, channel: Channel, registry: Registry
    ) -> None:
        before, to = len(self.received()), self.recipient()
        delivery = channel.send(self.message(), to)
        assert isinstance(delivery, Delivery)
        if self.confirms(registry):
            assert channel.send(self.message(), to) == delivery
        arrived = self.received()[before:]
        assert len(arrived) == 1
        assert LINK in arrived[0]

    @applies_if(lambda cls: cls.shown is not ChannelContract.shown)
    def test_no_title_becomes_more_than_text(self, channel: Channel) -> None:
        channel.send(self.message(HARMLESS), self.recipient())
        assert self.shown(), "`shown` does not say what readers see"
        has_title = [HARMLESS in shown.text for shown in self.shown()]
        for title in TITLES:
            self.send_title(channel, title, has_title)

    def send_title(
        self, channel: Channel, title: str, has_title: Sequence[bool] | None = None
    ) -> None:
        """Send a message with a title; fail if anything but its link is more than text.

        With `has_title`, the forms that show titles must show this one whole.
        """
        try:
            channel.send(self.message(title), self.recipient())
        except UnsupportedError:
            return  # too long for this product
        for number, shown in enumerate(self.shown()):
            assert not shown.others, f"{title!r} becomes {shown.others}"
            assert set(shown.links) <= {LINK}, f"{title!r} becomes a link: {shown.links}"
            assert LINK in shown.text, f"{title!r} hides the link"
            if has_title is not None and has_title[number]:
                assert _legible(title) in _legible(shown.text), f"{title!r} is not shown whole"

    def test_a_passcode_arrives_exactly_and_is_no_link(self, channel: Channel) -> None:
        for code in PASSCODES:
            channel.send(self.passcode(code), self.recipient())
            for shown in self.shown():
                assert code in shown.text
                assert not shown.links

    def test_the_link_shows_in_no_repr_log_or_output(
        self,
        channel: Channel,
        caplog: pytest.LogCaptureFixture,
        capfd: pytest.CaptureFixture[str],
    ) -> None:
        log_everything(caplog)
        delivery = channel.send(self.message(), self.recipient())
        printed = "".join(capfd.readouterr())
        self.check_leaks(repr(delivery) + repr(channel) + printed + log_text(caplog))

    def check_leaks(self, text: str) -> None:
        """Fail if a text shows the link's fragment or one of `secrets`."""
        assert not find_leaks(text, [LINK.partition("#")[2], *self.secrets()])

    @pytest.fixture
    def fail(
        self,
        environ: Mapping[str, str],
        caplog: pytest.LogCaptureFixture,
        monkeypatch: pytest.MonkeyPatch,
    ) -> Fail:
        """Return a function that sends a message to a backend that fails in one way.

        It returns the backend and the channel's error, or what `send` returned.
        """
        log_everything(caplog)

        def fail(how: str) -> tuple[Failing, PluginError | Delivery]:
            if limit := {"silent": "TIMEOUT", "dripping": "DEADLINE"}.get(how):
                monkeypatch.setattr(f"sealpipe.network.plugin_network.{limit}", PATIENCE)
            with self.failing(how, environ) as failing:
                if failing is None:
                    pytest.skip(f"{self.name} has no such failure")
                result = self.send_to(self.registry_in(failing.environ).channel(self.name))
            if isinstance(result, PluginError):
                self.check_leaks(error_text(result))
            self.check_leaks(log_text(caplog))
            return failing, result

        return fail

    def send_to(self, channel: Channel) -> PluginError | Delivery:
        """Send a message; return what `send` returns, or its error, which is of the contract."""
        try:
            return channel.send(self.message(), self.recipient())
        except PluginError as error:
            return error
        except Exception as error:  # noqa: BLE001 - whichever library it is of
            kind = f"{type(error).__module__}.{type(error).__qualname__}"
        return pytest.fail(f"{kind} is none of the errors of sealpipe.plugin", pytrace=False)

    @applies_if(_has_failures)
    @pytest.mark.parametrize("how", NOT_ACCEPTED)
    def test_a_message_that_was_not_accepted_may_be_sent_again(self, fail: Fail, how: str) -> None:
        before = len(self.received())
        failing, error = fail(how)
        assert isinstance(error, UnavailableError), error
        if failing.retry_after is not None:
            assert error.retry_after == failing.retry_after
        assert len(self.received()) == before

    @applies_if(_has_failures)
    @pytest.mark.parametrize("how", UNKNOWN)
    def test_a_message_that_may_be_out_is_not_sent_again(
        self, fail: Fail, registry: Registry, how: str
    ) -> None:
        before = len(self.received())
        failing, result = fail(how)
        if not failing.sent():
            pytest.skip("it reads before it sends: `at` has to set a variable of `environ`")
        assert failing.sent() == 1, "the channel itself sent it again"
        assert not isinstance(result, UnavailableError), f"the core would send it again: {result}"
        if isinstance(result, Delivery):
            is_known = how == "lost" and self.confirms(registry)
            assert is_known, f"nothing says that it arrived, but the channel returned {result}"
        elif how != "500":
            assert isinstance(result, UnknownOutcomeError), repr(result)
        if how == "lost":
            assert len(self.received()) == before + 1
            if self.confirms(registry):
                registry.channel(self.name).send(self.message(), self.recipient())
                assert len(self.received()) == before + 1

    @applies_if(_has_failures)
    @pytest.mark.parametrize("how", REDIRECTS)
    def test_a_redirect_is_not_followed(self, fail: Fail, how: str) -> None:
        failing, error = fail(how)
        assert isinstance(error, PluginError), error
        assert failing.sent() <= 1, "the token, if not the message, went where the redirect leads"

    @applies_if(_has_failures)
    def test_a_refusal_is_an_error_that_quotes_nothing(self, fail: Fail) -> None:
        _, error = fail("400")
        assert isinstance(error, PluginError), error
        assert not isinstance(error, UnavailableError), f"the core would send it again: {error}"


def _legible(text: str) -> str:
    """Return the signs that a reader sees: channels leave out others, and add some."""
    return "".join(sign for sign in text if sign.isprintable() and not sign.isspace())
