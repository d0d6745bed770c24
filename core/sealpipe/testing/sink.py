"""The contract of sinks."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from typing import ClassVar, NamedTuple

import pytest

from sealpipe.errors import (
    PluginError,
    UnavailableError,
    UnknownOutcomeError,
    WriteConflictError,
)
from sealpipe.plugin import (
    BLIND,
    TEXT,
    TEXT_UNDER_KEYS,
    Locator,
    Mode,
    Secret,
    Sink,
    SinkField,
    WriteResult,
)
from sealpipe.reference import parse
from sealpipe.registry import Registry
from sealpipe.testing.contract import (
    CANARY,
    NO_ANSWER,
    PROBE,
    REDIRECTS,
    Contract,
    FaultyServer,
    Variable,
    applies_if,
    error_text,
    find_address,
    find_leaks,
    log_everything,
    log_text,
)
from sealpipe.testing.proxy import Action, Fault, FaultyProxy, Response

MODES: tuple[Mode, ...] = ("create", "replace", "merge")
TRIES = 4
"""Calls that the core makes as long as they are retryable."""

HARD: tuple[str, ...] = (
    " blanks ",
    "two\nlines\n",
    "'single' \"double\" `back` $HOME ${HOME} $(id) \\n \\ # =",
    "ünï©ode ✓ \u202e",
    "::add-mask::x\n<<EOF\nEOF\n",
    "\t\x1b[31mred\x07",
    "x" * 20_000,
)
"""Values that must be stored exactly, or refused before anything is stored."""

ANY_BYTES: tuple[bytes, ...] = (b"\xff", bytes(range(256)), b"0\x82\n\x1f\x00\r\n \xfe" * 1000)
"""Values that are not text: stored exactly by every sink that does not say TEXT."""


def _has_http(cls: type[SinkContract]) -> bool:
    return cls.at is not SinkContract.at


def _can_merge(cls: type[SinkContract]) -> bool:
    return not cls.single and "merge" in cls.modes


def _merges_atomically(cls: type[SinkContract]) -> bool:
    return _can_merge(cls) and "merge" in cls.atomic


class _CleanCall(NamedTuple):
    """A call through the proxy without a fault.

    Its responses, which of its requests changed what is stored, and how often the target was
    written in the end.
    """

    responses: list[Response | None]
    writes: list[int]
    versions: int | None


class SinkContract(Contract):
    """Subclass it with `name`, `target`, `stored`, and `rotate` if the backend keeps the marker.

    With `at`, a proxy between the sink and its backend loses, drops, refuses and holds requests.
    """

    kind = "sink"

    modes: ClassVar[tuple[Mode, ...]] = ("create", "replace", "merge")
    """The modes that the backend supports."""
    keys: ClassVar[tuple[str, str, str]] = ("a", "b", "c")
    """Three keys, spelled as in the backend."""
    single: ClassVar[bool] = False
    """Whether a target holds one value. `stored` returns it under the first of `keys`."""
    apart: ClassVar[bool] = False
    """Whether every key is an entry of its own: replacing one keeps the others."""
    marks: ClassVar[bool] = True
    """Whether the backend keeps the marker beside the value."""
    atomic: ClassVar[frozenset[Mode]] = frozenset(MODES)
    """What the backend refuses if another writer was faster.

    To `create` what exists by now; to `replace` a value that has changed since; to `merge` into
    keys that have changed since (it need not if every key is an entry of its own).
    """
    bytes_key: ClassVar[str | None] = None
    """The key under which any bytes can be stored, if it is none of `keys`."""
    hard: ClassVar[tuple[str, ...]] = HARD
    canary: ClassVar[str] = CANARY
    """A value that nothing may show. Override it if the backend refuses such characters."""

    _rehearsed: dict[Mode, _CleanCall]

    def __init_subclass__(cls) -> None:
        """Begin without rehearsed calls."""
        super().__init_subclass__()
        cls._rehearsed = {}

    @abstractmethod
    def target(self) -> str:
        """Return a body that refers to a target that does not exist yet, another at each call."""

    @abstractmethod
    def stored(self, body: str) -> Mapping[str, bytes]:
        """Return what is stored there, read with the backend's own tools.

        If nothing is, return nothing or raise.
        """

    def rotate(self, body: str, key: str, value: str) -> None:
        """Change a key's value with the backend's own tools, as people rotate a secret."""
        raise NotImplementedError

    def versions(self, body: str) -> int | None:
        """Return how often something was written there, as the backend counts; None if unknown."""
        del body
        return None

    def at(self, url: str) -> Mapping[str, str] | None:
        """Return the environment in which the sink uses another address, if it uses HTTP.

        It sets the variable that has the backend's address in `environ`. If the sink has a timeout
        of its own, set a short one: the address never responds.
        """
        del url
        return None

    @pytest.fixture
    def sink(self, registry: Registry) -> Sink:
        """The sink, as the core makes it."""
        return registry.sink(self.name)

    def locator(self, registry: Registry, body: str) -> Locator:
        """Return the locator of a reference's body."""
        return registry.locate(parse(f"{self.name}:{body}"), "sink")

    def put(
        self,
        registry: Registry,
        body: str,
        values: Mapping[str, str] | Mapping[str, bytes],
        mode: Mode,
        marker: str = "m1",
    ) -> WriteResult:
        """Store values by key."""
        fields = [SinkField(key, Secret(value)) for key, value in values.items()]
        return registry.sink(self.name).put(
            self.locator(registry, body), fields, mode=mode, marker=marker
        )

    def values(self, *values: str) -> dict[str, str]:
        """Values under the backend's keys; only the first if a target holds one value."""
        return dict(zip(self.keys[:1] if self.single else self.keys, values, strict=False))

    def test_what_is_stored_is_there_exactly(self, registry: Registry) -> None:
        body = self.target()
        values = self.values(self.canary + "1", self.canary + "2", self.canary)
        receipt = self.put(registry, body, values, "create")
        assert isinstance(receipt, WriteResult)
        assert not receipt.already
        assert dict(self.stored(body)) == _bytes(values)

    def test_a_hard_value_is_stored_exactly_or_refused_with_nothing_stored(
        self, registry: Registry
    ) -> None:
        for value in self.hard:
            body, values = self.target(), self.values(value)
            refused: PluginError | None = None
            try:
                self.put(registry, body, values, "create")
            except PluginError as error:
                refused = error
            if refused is None:
                assert dict(self.stored(body)) == _bytes(values)
            else:
                assert refused.remedy, "a refusal says what to do next"
                assert not self._read_target(body)

    def test_any_bytes_are_stored_exactly_or_refused_with_nothing_stored(
        self, registry: Registry
    ) -> None:
        """Refused by a sink that says TEXT, or TEXT_UNDER_KEYS where the value has a key."""
        key = self.keys[0] if self.bytes_key is None else self.bytes_key
        capabilities = registry.sink_info(self.name).capabilities
        is_text = TEXT in capabilities or (TEXT_UNDER_KEYS in capabilities and key != "")
        for data in ANY_BYTES:
            body = self.target()
            if is_text:
                with pytest.raises(PluginError) as refused:
                    self.put(registry, body, {key: data}, "create")
                assert refused.value.remedy, "a refusal says what to do next"
                assert not self._read_target(body)
                continue
            self.put(registry, body, {key: data}, "create")
            assert dict(self.stored(body)) == {key: data}
            if not self._is_write_only(registry):
                assert self.put(registry, body, {key: data}, "create").already
                assert self.put(registry, body, {key: data}, "replace", marker="m2").already

    def test_create_never_replaces(self, registry: Registry) -> None:
        body = self.target()
        self.put(registry, body, self.values("first-value"), "create")
        with pytest.raises(WriteConflictError):
            self.put(registry, body, self.values("second-value"), "create", marker="m2")
        assert dict(self.stored(body)) == _bytes(self.values("first-value"))

    def test_the_same_marker_again_stores_nothing_twice(self, registry: Registry) -> None:
        body, values = self.target(), self.values("some-value")
        first = self.put(registry, body, values, "create")
        if self._is_write_only(registry):
            with pytest.raises(WriteConflictError):
                self.put(registry, body, values, "create")
        else:
            repeated = self.put(registry, body, values, "create")
            assert repeated.already
            assert repeated.version == first.version
        assert dict(self.stored(body)) == _bytes(values)

    def test_what_is_there_already_is_not_written_again(self, registry: Registry) -> None:
        if self._is_write_only(registry):
            pytest.skip("nobody can see what is there")
        body, values = self.target(), self.values("some-value")
        first = self.put(registry, body, values, "create")
        for mode in self.modes:
            repeated = self.put(registry, body, values, mode, marker=f"m-{mode}")
            assert repeated.already
            assert repeated.version == first.version

    @applies_if(lambda cls: cls.marks)
    def test_what_was_rotated_since_is_left_alone(self, registry: Registry) -> None:
        for mode in self.modes:
            body = self.target()
            self.put(registry, body, self.values("first-value"), mode)
            self.rotate(body, self.keys[0], "rotated-value")
            assert self.put(registry, body, self.values("first-value"), mode).already
            assert dict(self.stored(body)) == _bytes(self.values("rotated-value"))

    @applies_if(_can_merge)
    def test_a_key_that_the_marked_place_lacks_is_added(self, registry: Registry) -> None:
        body = self.target()
        first, second, _ = self.keys
        self.put(registry, body, {first: "first-value"}, "merge")
        self.put(registry, body, {first: "first-value", second: "second-value"}, "merge")
        assert dict(self.stored(body)) == {first: b"first-value", second: b"second-value"}

    def test_replace_leaves_nothing_else_and_merge_leaves_everything_else(
        self, registry: Registry
    ) -> None:
        body = self.target()
        first, second, third = self.keys
        if self.single:
            self.put(registry, body, {first: "first-value"}, "create")
            self.put(registry, body, {first: "other-value"}, "replace", marker="m2")
            assert dict(self.stored(body)) == {first: b"other-value"}
            return
        self.put(registry, body, {first: "first-value", second: "second-value"}, "create")
        after = {first: b"first-value", second: b"second-value"}
        if "merge" in self.modes:
            self.put(registry, body, {second: "third-value"}, "merge", marker="m2")
            after[second] = b"third-value"
            assert dict(self.stored(body)) == after
        if "replace" in self.modes:
            self.put(registry, body, {third: "fourth-value"}, "replace", marker="m3")
            assert dict(self.stored(body)) == (
                {**after, third: b"fourth-value"} if self.apart else {third: b"fourth-value"}
            )

    def test_what_it_would_do_is_told_without_doing_it(self, registry: Registry) -> None:
        body = self.target()
        for mode in self.modes:
            assert registry.sink(self.name).describe(self.locator(registry, body), mode)
        assert not self._read_target(body)

    def test_a_value_shows_in_no_repr_error_or_log(
        self, registry: Registry, caplog: pytest.LogCaptureFixture
    ) -> None:
        log_everything(caplog)
        body = self.target()
        receipt = self.put(registry, body, self.values(self.canary), "create")
        with pytest.raises(WriteConflictError) as conflict:
            self.put(registry, body, self.values(self.canary + "2"), "create", marker="m2")
        assert not find_leaks(
            repr(receipt) + error_text(conflict.value) + log_text(caplog),
            [self.canary, *self.secrets()],
        )

    @applies_if(_has_http)
    @pytest.mark.parametrize("how", NO_ANSWER)
    def test_a_backend_that_does_not_answer_is_unavailable(
        self,
        trouble: Callable[..., FaultyServer],
        how: str,
        environ: Mapping[str, str],
        registry: Registry,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        """A sink reads before it writes: nothing can have been written."""
        server = trouble(how)
        there = self._find_address(environ).replace_address(environ, server.url)
        # Only for what never responds is a timeout short: a busy machine takes its time.
        error = self._store_in((how == "silent" and self.at(server.url)) or there, caplog)
        may_have_sent = self._is_write_only(registry) and how not in ("429", "refused")
        lost = (UnknownOutcomeError,) if may_have_sent else ()
        assert isinstance(error, (UnavailableError, *lost)), error
        if isinstance(error, UnavailableError) and how == "429":
            assert error.retry_after == server.retry_after

    @applies_if(_has_http)
    @pytest.mark.parametrize("how", REDIRECTS)
    def test_a_redirect_to_another_host_is_an_error_and_not_followed(
        self,
        trouble: Callable[..., FaultyServer],
        how: str,
        environ: Mapping[str, str],
        registry: Registry,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        """Whoever it leads to would get the credential and the values."""
        stranger = trouble("404")
        server = trouble(how, stranger.url.replace("127.0.0.1", "localhost"))
        there = self._find_address(environ).replace_address(environ, server.url)
        error = self._store_in(there, caplog)
        may_be_done = self._is_write_only(registry) and how == "302"
        again = UnavailableError if may_be_done else UnavailableError | UnknownOutcomeError
        assert not isinstance(error, again), error
        assert stranger.received == 0

    @pytest.fixture
    def proxy(self, environ: Mapping[str, str], registry: Registry) -> Iterator[FaultyProxy]:
        """What stands between the sink and its backend."""
        variable = self._find_address(environ)
        proxy = FaultyProxy(variable.address)
        self._is_blind = self._is_write_only(registry)
        self._through = variable.replace_address(environ, proxy.url)
        yield proxy
        proxy.stop()

    @pytest.fixture
    def no_delays(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Waiting helps nothing: the backend stays away."""
        monkeypatch.setattr("time.sleep", lambda _: None)

    @applies_if(_has_http)
    @pytest.mark.parametrize("mode", MODES)
    def test_a_write_whose_response_is_lost_is_found_or_unknown(
        self, mode: Mode, environ: Mapping[str, str], proxy: FaultyProxy
    ) -> None:
        """It is retryable only if the sink has looked, and something is missing."""
        for body, result in self._fail_each_write(
            environ, proxy, mode, lambda number, _: {number: Fault.LOST}.get
        ):
            if isinstance(result, WriteResult):
                assert not result.already, "this call wrote it"
                assert dict(self.stored(body)) == self._after(mode)
            elif isinstance(result, UnavailableError):
                is_missing = dict(self.stored(body)) != self._after(mode)
                assert is_missing or self._may_repeat(mode), f"retryable, and stored: {result!r}"
            else:
                assert isinstance(result, UnknownOutcomeError), result

    @applies_if(_has_http)
    @pytest.mark.parametrize("mode", MODES)
    def test_a_write_that_never_arrived_is_not_called_done(
        self, mode: Mode, environ: Mapping[str, str], proxy: FaultyProxy
    ) -> None:
        for body, result in self._fail_each_write(
            environ, proxy, mode, lambda number, _: {number: Fault.DROPPED}.get
        ):
            if isinstance(result, WriteResult):
                assert dict(self.stored(body)) == self._after(mode)
            else:
                assert isinstance(result, UnavailableError | UnknownOutcomeError), result

    @applies_if(_has_http)
    @pytest.mark.parametrize("then", [Fault.DROPPED, Fault.DENIED], ids=["dropped", "denied"])
    @pytest.mark.parametrize("mode", MODES)
    @pytest.mark.usefixtures("no_delays")
    def test_a_lost_write_that_cannot_be_looked_for_is_unknown(
        self,
        mode: Mode,
        then: Fault,
        environ: Mapping[str, str],
        proxy: FaultyProxy,
    ) -> None:
        for _, result in self._fail_each_write(
            environ, proxy, mode, lambda number, _: _from(number, Fault.LOST, then)
        ):
            assert isinstance(result, UnknownOutcomeError) or (
                self._may_repeat(mode) and isinstance(result, UnavailableError)
            ), result

    @applies_if(_has_http)
    @pytest.mark.parametrize("mode", MODES)
    def test_what_may_not_be_read_is_not_written(
        self, mode: Mode, environ: Mapping[str, str], proxy: FaultyProxy
    ) -> None:
        """No mode can be kept without a look at what is there."""
        clean = self._rehearse(environ, proxy, mode)
        for number in range(clean.writes[0]):
            body = self._prepare(environ, mode)
            before = self._read_target(body)
            proxy.start(_from(number, Fault.DENIED))
            result = self._call(self._through, body, self._wanted(), mode)
            assert isinstance(result, PluginError), "nothing is written"
            assert not isinstance(result, UnavailableError | UnknownOutcomeError), result
            assert self._read_target(body) == before

    @applies_if(_has_http)
    def test_a_refused_write_is_an_error_that_quotes_nothing(
        self, environ: Mapping[str, str], proxy: FaultyProxy, caplog: pytest.LogCaptureFixture
    ) -> None:
        """The response repeats the request, with all its values."""
        clean = self._rehearse(environ, proxy, "create")
        values = dict.fromkeys(self._wanted(), self.canary)
        log_everything(caplog)
        body = self.target()
        proxy.start(_from(clean.writes[0], Fault.REFUSED))
        error = self._call(self._through, body, values, "create")
        assert isinstance(error, PluginError), "nothing is written"
        assert self._read_target(body) == {}
        assert not find_leaks(error_text(error) + log_text(caplog), [self.canary, *self.secrets()])

    @applies_if(_has_http)
    @pytest.mark.parametrize("how", REDIRECTS)
    @pytest.mark.usefixtures("no_delays")
    def test_a_redirected_write_is_not_followed(
        self,
        environ: Mapping[str, str],
        proxy: FaultyProxy,
        trouble: Callable[..., FaultyServer],
        how: str,
    ) -> None:
        """What it reads before is answered by the backend."""
        clean = self._rehearse(environ, proxy, "create")
        stranger, body = trouble("404"), self.target()
        elsewhere = stranger.url.replace("127.0.0.1", "localhost")
        redirect = Response(int(how), {"location": f"{elsewhere}/new"}, b"")
        proxy.start({clean.writes[0]: redirect}.get)
        error = self._call(self._through, body, self._wanted(), "create")
        assert isinstance(error, PluginError), "nothing is written"
        assert stranger.received == 0, "the values, or the login, went where the redirect leads"

    @applies_if(_has_http)
    @pytest.mark.parametrize("mode", MODES)
    @pytest.mark.usefixtures("no_delays")
    def test_what_the_backend_only_says_it_wrote_is_not_called_stored(
        self, mode: Mode, environ: Mapping[str, str], proxy: FaultyProxy
    ) -> None:
        """The response to the write is repeated, and nothing is written: a sink reads back."""
        for body, result in self._fail_each_write(
            environ, proxy, mode, lambda number, clean: {number: clean.responses[number]}.get
        ):
            if isinstance(result, WriteResult) and result.known:
                assert dict(self.stored(body)) == self._after(mode), "it was not written"

    @applies_if(_has_http)
    @pytest.mark.parametrize("mode", MODES)
    @pytest.mark.usefixtures("no_delays")
    def test_killed_at_any_call_and_called_again_it_ends_as_one_call_does(
        self, mode: Mode, environ: Mapping[str, str], proxy: FaultyProxy
    ) -> None:
        """From each request on, none is answered: what a killed process has done until then."""
        clean = self._rehearse(environ, proxy, mode)
        for number in range(len(clean.responses)):
            body = self._prepare(environ, mode)
            proxy.start(_from(number, Fault.LOST, Fault.DROPPED))
            self._call(self._through, body, self._wanted(), mode)
            assert proxy.count > number
            self._finish(environ, body, mode, clean)
            if self.marks:
                self.rotate(body, self.keys[0], "rotated-value")
                assert self._settle(environ, body, self._wanted(), mode).already
                assert self.stored(body)[self.keys[0]] == b"rotated-value"

    @applies_if(lambda cls: _has_http(cls) and _merges_atomically(cls))
    def test_a_merge_keeps_what_another_writer_adds_meanwhile(
        self, environ: Mapping[str, str], proxy: FaultyProxy
    ) -> None:
        first, second, third = self.keys
        old, ours, theirs = {first: "older-value"}, {second: "our-value"}, {third: "their-value"}

        def begin() -> str:
            body = self.target()
            self._settle(environ, body, old, "create", "m0")
            return body

        responses, _ = self._watch(proxy, begin(), ours, "merge")
        for number in range(len(responses)):
            body = begin()

            def merge(body: str = body) -> None:
                self._settle(environ, body, theirs, "merge", "m2")

            proxy.start({number: merge}.get)
            self._settle(self._through, body, ours, "merge")
            assert dict(self.stored(body)) == _bytes({**old, **ours, **theirs})

    @applies_if(lambda cls: _has_http(cls) and "create" in cls.atomic)
    def test_of_two_creates_one_is_a_conflict(
        self, environ: Mapping[str, str], proxy: FaultyProxy
    ) -> None:
        clean = self._rehearse(environ, proxy, "create")
        body, theirs = self.target(), dict.fromkeys(self._wanted(), "their-value")

        def create() -> None:
            self._settle(environ, body, theirs, "create", "m2")

        proxy.start({clean.writes[0]: create}.get)
        with pytest.raises(WriteConflictError):
            self._settle(self._through, body, self._wanted(), "create")
        assert dict(self.stored(body)) == _bytes(theirs)

    @applies_if(_has_http)
    @pytest.mark.parametrize("mode", MODES)
    def test_the_same_submission_on_two_machines_is_stored_once(
        self, mode: Mode, environ: Mapping[str, str], proxy: FaultyProxy
    ) -> None:
        if not self.atomic.issuperset({mode, "create" if mode == "create" else "replace"}):
            pytest.skip("the backend does not refuse a write if another writer was faster")
        clean = self._rehearse(environ, proxy, mode)
        body = self._prepare(environ, mode)

        def the_same() -> None:
            self._settle(environ, body, self._wanted(), mode)

        proxy.start({clean.writes[0]: the_same}.get)
        self._settle(self._through, body, self._wanted(), mode)
        self._finish(environ, body, mode, clean)

    @applies_if(_merges_atomically)
    def test_merges_at_once_are_all_there(self, environ: Mapping[str, str]) -> None:
        body = self.target()
        self._settle(environ, body, {self.keys[0]: "older-value"}, "create", "m0")
        values = dict(zip(self.keys, ("value-one", "value-two", "value-three"), strict=True))
        start, ends = threading.Barrier(len(values)), list[object]()

        def merge(number: int, key: str) -> None:
            start.wait()
            try:
                self._settle(environ, body, {key: values[key]}, "merge", f"m{number + 1}")
            except Exception as error:  # noqa: BLE001 - shown below
                ends.append(error)

        threads = [threading.Thread(target=merge, args=each) for each in enumerate(values)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert ends == []
        assert dict(self.stored(body)) == _bytes(values)

    def _find_address(self, environ: Mapping[str, str]) -> Variable:
        """Return the variable of `environ` that has the backend's address: `at` sets it."""
        variable = find_address(environ, self.at(PROBE) or {})
        assert variable is not None, "at() sets no variable of environ to the address"
        return variable

    def _call(
        self,
        environ: Mapping[str, str],
        body: str,
        values: Mapping[str, str],
        mode: Mode,
        marker: str = "m1",
    ) -> WriteResult | PluginError:
        """Call it as a process of its own does; return an error of the contract."""
        with closing(self.registry_in(environ)) as registry:
            try:
                return self.put(registry, body, values, mode, marker)
            except PluginError as error:
                return error
            except Exception as error:
                kind = f"{type(error).__module__}.{type(error).__qualname__}"
                raise AssertionError(f"{kind} is none of the contract's errors") from error

    def _store_in(
        self, environ: Mapping[str, str], caplog: pytest.LogCaptureFixture
    ) -> PluginError:
        """Store in this environment; return the error, in which no value shows."""
        log_everything(caplog)
        error = self._call(environ, self.target(), self.values(self.canary), "create")
        assert isinstance(error, PluginError), "nothing is stored"
        assert not find_leaks(error_text(error) + log_text(caplog), [self.canary, *self.secrets()])
        return error

    def _settle(
        self,
        environ: Mapping[str, str],
        body: str,
        values: Mapping[str, str],
        mode: Mode,
        marker: str = "m1",
    ) -> WriteResult:
        """Call it again as long as it is retryable, as the core does."""
        for _ in range(TRIES):
            result = self._call(environ, body, values, mode, marker)
            if not isinstance(result, UnavailableError):
                break
        if isinstance(result, PluginError):
            raise result
        return result

    def _wanted(self) -> dict[str, str]:
        first, _, third = self.keys
        return {first: "newer-value"} | ({} if self.single else {third: "third-value"})

    def _before(self, mode: Mode) -> dict[str, str]:
        return {} if mode == "create" else self.values("older-value", "other-value")

    def _after(self, mode: Mode) -> dict[str, bytes]:
        stays = mode == "merge" or self.apart
        return _bytes({**(self._before(mode) if stays else {}), **self._wanted()})

    def _prepare(self, environ: Mapping[str, str], mode: Mode) -> str:
        body = self.target()
        if before := self._before(mode):
            self._settle(environ, body, before, self.modes[0], "m0")
        return body

    def _rehearse(self, environ: Mapping[str, str], proxy: FaultyProxy, mode: Mode) -> _CleanCall:
        """Return what a call does when nothing goes wrong: the same for all tests of a class."""
        if mode not in self.modes:
            pytest.skip(f"the backend has no mode {mode}")
        if mode not in self._rehearsed:
            body = self._prepare(environ, mode)
            responses, writes = self._watch(proxy, body, self._wanted(), mode)
            assert dict(self.stored(body)) == self._after(mode)
            self._rehearsed[mode] = _CleanCall(responses, writes, self.versions(body))
        return self._rehearsed[mode]

    def _fail_each_write(
        self,
        environ: Mapping[str, str],
        proxy: FaultyProxy,
        mode: Mode,
        plan: Callable[[int, _CleanCall], Callable[[int], Action]],
    ) -> Iterator[tuple[str, WriteResult | PluginError]]:
        """Yield target and result of a call for each write, which `plan` fails by its number.

        Afterwards, the same call has to store what is missing.
        """
        clean = self._rehearse(environ, proxy, mode)
        for number in clean.writes:
            body = self._prepare(environ, mode)
            proxy.start(plan(number, clean))
            yield body, self._call(self._through, body, self._wanted(), mode)
            self._finish(environ, body, mode, clean)

    def _watch(
        self, proxy: FaultyProxy, body: str, values: Mapping[str, str], mode: Mode
    ) -> tuple[list[Response | None], list[int]]:
        """Return the responses of the backend, and which requests changed what is stored."""
        proxy.start(state=lambda: self._read_target(body))
        self._settle(self._through, body, values, mode)
        assert proxy.changes, "no request changed what `stored` returns"
        return proxy.responses, proxy.changes

    def _finish(self, environ: Mapping[str, str], body: str, mode: Mode, clean: _CleanCall) -> None:
        """The same call again stores what is missing, once, and is then done."""
        if self._is_blind and mode == "create":
            self._finish_unseen(environ, body)
            return
        self._settle(environ, body, self._wanted(), mode)
        assert dict(self.stored(body)) == self._after(mode)
        if not self._is_blind:
            assert self._settle(environ, body, self._wanted(), mode).already
            assert self.versions(body) == clean.versions, "it was written twice"

    def _may_repeat(self, mode: Mode) -> bool:
        """Whether a lost write may be retryable: it can neither be seen nor be a conflict."""
        return self._is_blind and mode != "create"

    def _finish_unseen(self, environ: Mapping[str, str], body: str) -> None:
        """Nobody can see whose value is there: it stays, and is a conflict."""
        there = self._read_target(body)
        if there:
            with pytest.raises(WriteConflictError):
                self._settle(environ, body, self._wanted(), "create")
            assert self._read_target(body) == there
        else:
            self._settle(environ, body, self._wanted(), "create")
            assert dict(self.stored(body)) == self._after("create")

    def _read_target(self, body: str) -> dict[str, bytes]:
        try:
            return dict(self.stored(body))
        except (AssertionError, PluginError, LookupError, OSError):
            return {}

    def _is_write_only(self, registry: Registry) -> bool:
        return BLIND in registry.sink_info(self.name).capabilities


def _from(number: int, fault: Fault, then: Fault | None = None) -> Callable[[int], Action]:
    """What happens to the request of this number; to those after it, too, or what is `then`."""
    return lambda asked: None if asked < number else fault if asked == number else then or fault


def _bytes(values: Mapping[str, str]) -> dict[str, bytes]:
    return {key: value.encode() for key, value in values.items()}
