"""The base class of all contracts, the canary value and a faulty server.

The contract of CI systems.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, NamedTuple, TypeVar

import pytest

from sealpipe.client_base import create_file, replace_file
from sealpipe.errors import NotConfiguredError, PluginError
from sealpipe.network.plugin_network import PluginNetwork
from sealpipe.plugin import CI, CIInfo, Health, Info, Run
from sealpipe.registry import Registry
from sealpipe.registry.catalog import BUILT_IN
from sealpipe.spellings import Finder
from sealpipe.testing.proxy import Response, forward, quote

CANARY = "c4nary-5f1e-\u00e4\u20ac-pass'word\"<&>"
"""Not ASCII, with characters that are special in JSON, XML, shells and URLs."""


PATIENCE = 0.3
"""Seconds that `context.network` waits for a silent server, and its deadline for one that drips."""
DRIP = 0.1
"""Seconds between two bytes: far below any timeout of a single read."""


class FaultyServer:
    """A server that fails in one way, and counts requests in `received`.

    `how` is a status such as `503`, `closed` (the connection ends without a response), `cut` (it
    ends within one), `silent` (the connection stays open without a response) or `dripping` (a
    response arrives byte by byte and never ends). The body of a status is JSON with the request as
    the message: an error that quotes a response shows a secret. One such as `307` redirects to the
    same path at the address `elsewhere`.

    With `behind`, the address of a backend, only requests that change something fail, and reads are
    passed on to it. `lost` passes on a change, too, and then closes the connection.
    """

    retry_after = 7.0

    def __init__(self, how: str, behind: str | None = None, elsewhere: str = "/elsewhere") -> None:
        self.received = 0
        self.changes = 0
        """How many of the requests change something, or were led `elsewhere` on this server.

        The former are those whose method is neither GET nor HEAD.
        """
        self._stopping = threading.Event()
        faulty_server = self

        class Handler(BaseHTTPRequestHandler):
            def handle_one_request(self) -> None:
                self.raw_requestline = self.rfile.readline(65537)
                if not self.raw_requestline or not self.parse_request():
                    self.close_connection = True
                    return
                self.body = self.rfile.read(int(self.headers.get("content-length") or 0))
                is_read = self.command in ("GET", "HEAD")
                is_change = not is_read or self.path.startswith(elsewhere)
                faulty_server.received += 1
                faulty_server.changes += is_change
                self.close_connection = True
                if behind is not None and not is_change:
                    if response := self.pass_on(behind):
                        self.respond(*response)
                elif how == "lost" and behind is not None:
                    self.pass_on(behind)
                elif how == "silent":
                    faulty_server._stopping.wait()
                elif how == "dripping":
                    self.drip()
                elif how == "cut":
                    self.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{")
                elif how.isdigit():
                    head = f"{self.requestline}\n{self.headers}"
                    status, headers, content = quote(int(how), head, self.body)
                    more = {
                        "retry-after": str(int(faulty_server.retry_after)),
                        "location": elsewhere + self.path,
                    }
                    self.respond(status, {**headers, **more}, content)

            def pass_on(self, url: str) -> Response | None:
                """Send the request to the backend, and return its response."""
                return forward(url, self.command, self.path, dict(self.headers), self.body)

            def respond(self, status: int, headers: Mapping[str, str], content: bytes) -> None:
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def drip(self) -> None:
                self.wfile.write(b"HTTP/1.1 200 OK\r\nx-drip: ")
                with suppress(OSError):
                    while not faulty_server._stopping.wait(DRIP):
                        self.wfile.write(b"a")

            def log_message(self, *_: object) -> None:
                """Log nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        """The server's address, without a path."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def stop(self) -> None:
        """Stop the server."""
        self._stopping.set()
        self._server.shutdown()
        self._server.server_close()


REDIRECTS = ("302", "307")
"""Redirects after which a client that follows them reads there, or sends the same there."""

NO_ANSWER = ("429", "503", "closed", "cut", "refused", "silent", "dripping")
"""How a backend fails to answer: as `FaultyServer`, or `refused` (nobody listens there)."""

PROBE = "http://127.0.0.1:9"
"""What `at` is asked for to see where it writes an address."""


class Variable(NamedTuple):
    """A variable of an environment with a backend's address; `text` has {} in its place."""

    name: str
    address: str
    text: str

    def replace_address(self, environ: Mapping[str, str], url: str) -> Mapping[str, str]:
        """Return the environment with another address."""
        return {**environ, self.name: self.text.format(url)}


def find_address(environ: Mapping[str, str], there: Mapping[str, str]) -> Variable | None:
    """Return the variable of `environ` that has the backend's address.

    `there` is what `at` returns for `PROBE`. None if it sets no variable of `environ` to that.
    """
    for name, value in there.items():
        before, found, after = value.partition(PROBE)
        if found and name in environ:
            address = environ[name].removeprefix(before).removesuffix(after)
            return Variable(name, address, f"{before}{{}}{after}")
    return None


Test = TypeVar("Test", bound=Callable[..., object])


def applies_if(fits: Callable[[Any], bool]) -> Callable[[Test], Test]:
    """Mark a test of a contract that is left out of classes which do not fit."""

    def mark(test: Test) -> Test:
        test.fits = fits  # type: ignore[attr-defined]
        return test

    return mark


# The last: Python 3.15's own.
LIGHT: frozenset[str] = frozenset({"sealpipe", "pluggy", "_missing_stdlib_info"})


class Contract:
    """Tests of the descriptor, of imports and of secrets that must not show.

    `name` is the plugin's.
    """

    kind: ClassVar[str]
    name: ClassVar[str]
    built_in: ClassVar[Sequence[str]] = BUILT_IN
    """Modules with hooks that the registry loads first; others are found by their entry points."""

    def __init_subclass__(cls) -> None:
        """Leave out the tests that do not apply to a class of a plugin."""
        super().__init_subclass__()
        is_of_all_plugins = Contract in cls.__bases__
        for name in () if is_of_all_plugins else dir(cls):
            ways = (each.__dict__.get(name) for each in cls.__mro__)
            test = next(filter(None, ways), None)
            if fits := getattr(test, "fits", None):
                setattr(cls, name, test if fits(cls) else None)

    @pytest.fixture(autouse=True)
    def _close_registries(self) -> Iterator[None]:
        self._open: list[Registry] = []
        yield
        for registry in self._open:
            registry.close()

    @pytest.fixture
    def environ(self) -> Mapping[str, str]:
        """The environment that configures the plugin for its backend.

        Override it if the plugin needs one.
        """
        return {}

    @pytest.fixture
    def registry(self, environ: Mapping[str, str]) -> Registry:
        """A registry as the core makes it, in the environment of `environ`."""
        return self.registry_in(environ)

    def registry_in(self, environ: Mapping[str, str]) -> Registry:
        """Return a registry in another environment."""
        registry = Registry(
            environ=environ,
            network=cache(lambda: PluginNetwork(None)),
            new_file=create_file,
            replace_file=replace_file,
            built_in=self.built_in,
        )
        self._open.append(registry)
        return registry

    @pytest.fixture
    def trouble(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., FaultyServer]]:
        """Return a function that starts a server which fails in one way."""
        started: list[FaultyServer] = []

        def start(how: str, elsewhere: str = "") -> FaultyServer:
            if limit := {"silent": "TIMEOUT", "dripping": "DEADLINE"}.get(how):
                monkeypatch.setattr(f"sealpipe.network.plugin_network.{limit}", PATIENCE)
            started.append(FaultyServer(how, elsewhere=elsewhere))
            if how == "refused":
                started[-1].stop()
            return started[-1]

        yield start
        for each in started:
            each.stop()

    def info(self, registry: Registry) -> Info:
        """Return the plugin's descriptor."""
        return registry.catalog.get_info(self.kind, self.name)

    def test_the_descriptor_tells_what_users_need(self, registry: Registry) -> None:
        info = self.info(registry)
        assert info.name == self.name
        assert info.summary
        assert info.summary == info.summary.strip()
        assert len(info.summary) <= 100
        assert not info.extra or info.needs, "an extra installs something"
        for spec in filter(None, (info.factory, info.settings)):
            module, _, attribute = spec.partition(":")
            assert module, spec
            assert attribute, spec

    def test_the_module_with_the_hook_imports_no_sdk(self, registry: Registry) -> None:
        hooks = registry.catalog.get_module_name(self.kind, self.name)
        loaded = _imported_by(hooks) - LIGHT - {hooks.partition(".")[0]}
        assert not loaded, f"importing the hooks imports {', '.join(sorted(loaded))}"

    def test_it_says_of_itself_whether_it_can_be_used(self, registry: Registry) -> None:
        health = registry.check(self.kind, self.name)
        assert isinstance(health, Health)
        assert health.ok, health.detail

    def test_its_settings_show_nothing_in_their_repr(self, registry: Registry) -> None:
        instance = getattr(registry, self.kind)(self.name)
        assert not find_leaks(repr(instance), self.secrets())
        assert not find_leaks(repr(instance.settings), self.secrets())

    def secrets(self) -> Sequence[str]:
        """The plugin's own secrets, such as its token, which nothing may show.

        Override it if there are any.
        """
        return ()


KINDS_NEEDED = ("sealpipe.registry", "sealpipe.plugin")


@cache
def _imported_by(hooks: str) -> frozenset[str]:
    """Return the packages that a module with hooks imports beside the standard library's.

    In a process of its own, once for all plugins that share the module.
    """
    code = (
        "import sys, json, importlib\n"
        f"for name in {KINDS_NEEDED!r}: importlib.import_module(name)\n"
        "before = set(sys.modules)\n"
        f"importlib.import_module({hooks!r})\n"
        "print(json.dumps(sorted({name.partition('.')[0] for name in set(sys.modules) - before})))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return frozenset(json.loads(done.stdout)) - sys.stdlib_module_names


def find_leaks(text: str, secrets: Sequence[str] = ()) -> list[str]:
    """Return the secrets (and the canary) that a text shows, in any spelling that `run` finds."""
    data = text.encode(errors="surrogatepass")
    return [secret for secret in (CANARY, *secrets) if Finder([secret.encode()]).holds(data)]


def error_text(error: PluginError) -> str:
    """Return everything that the command line and a log would show of an error."""
    causes = [repr(error.__cause__), repr(error.__context__)]
    return "\n".join([str(error), repr(error), error.message, error.remedy, error.locator, *causes])


def log_text(caplog: pytest.LogCaptureFixture) -> str:
    """Return everything that was logged, at every level."""
    return "\n".join(
        f"{record.getMessage()} {record.args!r} {record.exc_text}" for record in caplog.records
    )


def log_everything(caplog: pytest.LogCaptureFixture) -> None:
    """Log at every level from now on, whatever levels a program has set."""
    for name in ("", "httpx", "httpcore", "sealpipe"):
        caplog.set_level(logging.DEBUG, logger=name or None)


class CIContract(Contract):
    """Subclass it with `name` and the `environ` of a job."""

    kind = "ci"

    @pytest.fixture
    def environ(self) -> Mapping[str, str]:
        """The variables of a job on the CI system."""
        raise NotImplementedError

    def test_it_is_found_by_its_sign_and_not_without(self, environ: Mapping[str, str]) -> None:
        found = self.registry_in(environ).ci()
        assert isinstance(found, CI)
        info = self.info(self.registry_in(environ))
        assert isinstance(info, CIInfo)
        sign = info.sign.partition("=")[0]
        bare = {name: value for name, value in environ.items() if name != sign}
        assert self.registry_in(bare).ci() is None

    def test_a_run_has_a_name_that_tells_it_from_others(self, registry: Registry) -> None:
        ci = registry.ci()
        assert ci is not None
        run = ci.run()
        assert isinstance(run, Run)
        assert run.ci == self.name
        assert run.id.strip("/")

    def test_without_a_token_it_says_what_the_job_lacks(self, registry: Registry) -> None:
        ci = registry.ci()
        assert ci is not None
        with pytest.raises(PluginError) as lacking:
            ci.oidc_token("an-audience")
        assert isinstance(lacking.value, NotConfiguredError)
        assert lacking.value.remedy

    def test_it_says_of_itself_whether_it_can_be_used(self, registry: Registry) -> None:
        """A CI plugin has no `check`; test only that it is found."""
        assert registry.ci() is not None

    def test_its_settings_show_nothing_in_their_repr(self, registry: Registry) -> None:
        assert "Secret(" not in repr(registry.ci())
