"""The contract of sources."""

from __future__ import annotations

import os
import threading
from abc import abstractmethod
from base64 import b64decode
from collections.abc import Callable, Mapping
from typing import ClassVar

import pytest

from sealpipe.errors import (
    AccessDeniedError,
    NotConfiguredError,
    PluginError,
    SecretNotFoundError,
    UnavailableError,
)
from sealpipe.plugin import Document
from sealpipe.reference import Key, Reference, parse
from sealpipe.registry import Registry
from sealpipe.sources.select import select
from sealpipe.testing.contract import (
    CANARY,
    NO_ANSWER,
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
from sealpipe.wire.fields import revealed

Content = bytes | Mapping[str, bytes]
ODD_KEYS = ("dotted.key", "with space", "slash/key", "UPPER", "eq=al", "com,ma", "\u00fcml\u00e4ut")
ANY_BYTES = b"\xff\xfe\x00" + bytes(range(256))
LARGE = 64 * 1024


class SourceContract(Contract):
    """Subclass it with `name`, `put` and `missing`; `holds` says what the backend can hold."""

    kind = "source"

    holds: ClassVar[frozenset[str]] = frozenset({"text", "map"})
    """What the backend can hold: `text`, `binary` (any bytes), `map`, `empty` (an empty value).

    With `map`, `fetch` returns a mapping, or a map's text in the format that it gives to
    `Document`.
    """
    odd_keys: ClassVar[tuple[str, ...]] = ODD_KEYS
    """Keys of a map that the backend can hold."""
    largest: ClassVar[int] = LARGE
    """Maximum size in bytes of a value; lower it if the backend holds fewer than 64 KiB."""

    @abstractmethod
    def put(self, content: Content) -> str:
        """Store a value or a map in the backend, and return the body of a reference to it."""

    @abstractmethod
    def missing(self) -> str:
        """Return the body of a reference to something that does not exist."""

    def denied(self) -> str | None:
        """Return the body of a reference to something that may not be read, if there is any."""
        return None

    def at(self, url: str) -> Mapping[str, str] | None:
        """Return the environment in which the source uses another address, if it uses HTTP.

        If the source has a timeout of its own, set a short one: one of the addresses never
        responds.
        """
        del url
        return None

    def get(self, registry: Registry, body: str) -> Document | PluginError:
        """Fetch the document of a reference's body; return an error instead of raising it."""
        locator = registry.locate(parse(f"{self.name}:{body}"))
        return registry.fetch({self.name: [locator]})[locator]

    def value(self, registry: Registry, content: Content) -> bytes | Mapping[str, bytes]:
        """Store content, fetch it again, and return it as bytes."""
        body = self.put(content)
        document = self.get(registry, body)
        assert isinstance(document, Document), document
        if isinstance(document.content, Mapping):
            return {key: _bytes(value) for key, value in document.content.items()}
        return (
            self.read_map(registry, body)
            if isinstance(content, Mapping)
            else _bytes(document.content)
        )

    def read_map(self, registry: Registry, body: str) -> Mapping[str, bytes]:
        """Return all values of a map, as a reference that ends in `#*` gives them."""
        ref = parse(f"{self.name}:{body}#*")
        document = self.get(registry, body)
        assert isinstance(document, Document), document
        return {field.key: _bytes(revealed(field)) for field in select(document, ref)}

    @applies_if(lambda cls: "text" in cls.holds)
    def test_text_comes_back_exactly(self, registry: Registry) -> None:
        for text in ("plain", " blanks ", "line\n", "\r\ntwo\n\n", CANARY, "a" * self.largest):
            assert self.value(registry, text.encode()) == text.encode()

    @applies_if(lambda cls: "binary" in cls.holds)
    def test_bytes_come_back_exactly_up_to_64_kib(self, registry: Registry) -> None:
        for data in (bytes(range(256)), b"\xff\xfe\x00", b"\x00", os.urandom(self.largest)):
            assert self.value(registry, data) == data

    def test_what_is_fetched_is_handed_on_as_base64(self, registry: Registry) -> None:
        """Bytes that are no text, where the backend can hold them."""
        data = ANY_BYTES if "binary" in self.holds else b"some text"
        is_map = self.holds.isdisjoint({"text", "binary"})
        ref = parse(f"{self.name}:{self.put({'key': data} if is_map else data)}")
        selector = (Key("key"),) if is_map else None
        ref = Reference(ref.name, ref.body, (*ref.params, ("encode", "base64")), selector)
        locator = registry.locate(ref)
        document = registry.fetch({self.name: [locator]})[locator]
        assert isinstance(document, Document), document
        (field,) = select(document, ref)
        assert b64decode(revealed(field), validate=True) == data

    @applies_if(lambda cls: "map" in cls.holds)
    def test_a_map_comes_back_with_all_its_keys_however_odd(self, registry: Registry) -> None:
        content = {key: f"value of {number}".encode() for number, key in enumerate(self.odd_keys)}
        assert self.value(registry, content) == content

    @applies_if(lambda cls: "empty" in cls.holds)
    def test_an_empty_value_is_empty_and_not_missing(self, registry: Registry) -> None:
        assert self.value(registry, b"") == b""

    def test_what_is_not_there_is_not_found_and_named(self, registry: Registry) -> None:
        error = self.get(registry, self.missing())
        assert isinstance(error, SecretNotFoundError), error
        assert error.locator.startswith(f"{self.name}:")
        assert error.remedy

    @applies_if(lambda cls: cls.denied is not SourceContract.denied)
    def test_what_may_not_be_read_is_denied_and_not_missing(self, registry: Registry) -> None:
        body = self.denied()
        assert body is not None
        error = self.get(registry, body)
        assert isinstance(error, AccessDeniedError), error
        assert error.remedy

    def test_a_batch_answers_what_single_calls_answer(self, registry: Registry) -> None:
        bodies = [self.put(self._some(number)) for number in range(3)] + [self.missing()]
        locators = [registry.locate(parse(f"{self.name}:{body}")) for body in bodies]
        together = registry.fetch({self.name: locators})
        for locator in locators:
            single = registry.fetch({self.name: [locator]})[locator]
            assert _is_same(together[locator], single), locator

    def test_eight_threads_get_what_one_gets(self, registry: Registry) -> None:
        """They come first: whatever logs in or connects does so for all of them at once."""
        bodies = [self.put(self._some(number)) for number in range(8)]
        found: dict[int, Document | PluginError] = {}
        start = threading.Barrier(8)

        def read(number: int) -> None:
            start.wait()
            found[number] = self.get(registry, bodies[number])

        threads = [threading.Thread(target=read, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        expected = [self.get(registry, body) for body in bodies]
        different = {
            number: found[number]
            for number in range(8)
            if not _is_same(found[number], expected[number])
        }
        assert different == {}, different

    def test_a_value_shows_in_no_repr_error_or_log(
        self, registry: Registry, caplog: pytest.LogCaptureFixture
    ) -> None:
        body = self.put(CANARY.encode() if "text" in self.holds else {"key": CANARY.encode()})
        log_everything(caplog)  # only now: a test's own client may log what it puts
        document = self.get(registry, body)
        errors = [
            self.get(registry, body) for body in (self.missing(), self.denied()) if body is not None
        ]
        text = "\n".join(
            [
                repr(document),
                *(error_text(error) for error in errors if isinstance(error, PluginError)),
            ]
        )
        assert not find_leaks(text + log_text(caplog), self.secrets())

    @applies_if(lambda cls: cls.at is not SourceContract.at)
    @pytest.mark.parametrize("how", NO_ANSWER)
    def test_a_backend_that_does_not_answer_is_unavailable(
        self,
        trouble: Callable[..., FaultyServer],
        how: str,
        environ: Mapping[str, str],
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        log_everything(caplog)
        server = trouble(how)
        there = self._environ_at(server.url, environ, is_silent=how == "silent")
        error = self.get(self.registry_in(there), self.missing())
        assert isinstance(error, UnavailableError), error
        assert not find_leaks(error_text(error) + log_text(caplog), self.secrets())
        if how == "429":
            assert error.retry_after == server.retry_after

    @applies_if(lambda cls: cls.at is not SourceContract.at)
    @pytest.mark.parametrize("how", REDIRECTS)
    def test_a_redirect_to_another_host_is_an_error_and_not_followed(
        self,
        trouble: Callable[..., FaultyServer],
        how: str,
        environ: Mapping[str, str],
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        """Whoever it leads to would get the credential, or answer in the backend's place."""
        log_everything(caplog)
        stranger = trouble("404")
        server = trouble(how, stranger.url.replace("127.0.0.1", "localhost"))
        error = self.get(self.registry_in(self._environ_at(server.url, environ)), self.missing())
        assert (server.received, stranger.received) == (1, 0)
        assert isinstance(error, NotConfiguredError), error
        assert error.remedy
        assert not find_leaks(error_text(error) + log_text(caplog), self.secrets())

    def _environ_at(
        self, url: str, environ: Mapping[str, str], *, is_silent: bool = False
    ) -> Mapping[str, str]:
        """Return the environment with another address.

        Only for one that never responds with a short timeout: a busy machine takes its time.
        """
        there = self.at(url)
        assert there is not None
        variable = None if is_silent else find_address(environ, self.at(PROBE) or {})
        return there if variable is None else variable.replace_address(environ, url)

    def _some(self, number: int) -> Content:
        text = f"value {number}".encode()
        return text if "text" in self.holds else {"key": text}


def _bytes(value: object) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def _is_same(one: Document | PluginError, other: Document | PluginError) -> bool:
    if isinstance(one, Document) and isinstance(other, Document):
        return one.content == other.content and one.secret == other.secret
    return type(one) is type(other) and str(one) == str(other)
