"""What may go wrong at a store, as the command line tells it: as many reasons and next steps as
there are failures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast
from unittest.mock import patch

import pytest

from sealpipe.errors import NotConfiguredError, PluginError
from sealpipe.network import plugin_network
from sealpipe.plugin import Mode
from sealpipe.reference import parse
from sealpipe.registry import Registry
from sealpipe.testing import SourceContract
from sealpipe.testing.contract import FaultyServer, error_text, find_leaks
from sealpipe_rehearsal.running_service import RunningService
from support.backends import Values, failed, put_by, registry
from support.fake_web import Asked, FakeWeb, Fault, Reply
from support.ports import silent_port
from support.terminal import Terminal, created
from support.wires import Intercepting


@dataclass(frozen=True)
class Row:
    """One thing that goes wrong, and how it is told: by a kind, which has the exit code, and words
    of message and `remedy` (None: it has none).

    `body` (else the table's own) is read, or a reference to the store `other`, with `environ` on
    top of the store's, where the server answers with `answer` to what is asked `at` a path that
    ends so (else the table's), by that `method`. With `put`, these values are stored there instead,
    in that `mode`. `calls` is how many requests arrive, `waits` the seconds that the error names.
    """

    kind: type[PluginError]
    words: str = ""
    body: str | None = None
    environ: Mapping[str, str] = field(default_factory=dict)
    answer: Reply | Fault | None = None
    at: str | None = None
    method: str = ""
    put: Values | None = None
    mode: Mode = "create"
    remedy: str | None = ""
    calls: int | None = None
    waits: float | None = None


@dataclass(frozen=True)
class Table:
    """Where rows fail: the plugin, the usual body of a reference, the store's environment, and the
    server with the end of the paths at which it answers otherwise.

    No error shows one of `secrets`, or the canary.
    """

    name: str
    body: str
    environ: Mapping[str, str]
    fake: FakeWeb | None = None
    at: str = ""
    secrets: Sequence[str] = ()

    def tell(self, row: Row) -> PluginError:
        """The error of a row, which reads as the row says."""
        body = self.body if row.body is None else row.body
        reference = body if body.startswith("other:") else f"{self.name}:{body}"
        found = registry({**self.environ, **row.environ})
        before = len(self.fake.asked) if self.fake else 0
        with self._answering(row):
            error = self._stored(found, reference, row) if row.put else failed(found, reference)
        found.close()
        assert type(error) is row.kind, error
        assert row.words in error.message, error.message
        assert bool(error.remedy) is (row.remedy is not None), error
        assert (row.remedy or "") in error.remedy, error.remedy
        assert row.put or error.locator == found.locate(parse(reference)).text
        assert row.waits is None or getattr(error, "retry_after", None) == row.waits
        assert row.calls is None or self.fake is None or len(self.fake.asked) == before + row.calls
        assert not find_leaks(f"{error_text(error)} {vars(error)!r}", self.secrets)
        return error

    def tell_apart(self, rows: Mapping[str, Row]) -> None:
        """Each has a reason and a next step of its own."""
        errors = {name: self.tell(row) for name, row in rows.items()}
        reasons = {error.message.replace(error.locator, "") for error in errors.values()}
        remedies = {error.remedy for error in errors.values()}
        assert len(reasons) == len(remedies) == len(rows), errors

    def _stored(self, found: Registry, reference: str, row: Row) -> PluginError:
        with pytest.raises(PluginError) as caught:
            put_by(found, reference, row.put or {}, row.mode)
        return caught.value

    @contextmanager
    def _answering(self, row: Row) -> Iterator[None]:
        if row.answer is None or self.fake is None:
            yield
            return
        end, before = self.at if row.at is None else row.at, self.fake.rule

        def rule(asked: Asked) -> Reply | Fault | None:
            fits = asked.path.endswith(end) and row.method in ("", asked.method)
            return row.answer if fits else before(asked)

        self.fake.rule = rule
        yield
        self.fake.rule = before


class OnTheWay:
    """For contract classes of sources: what stands between us and any server on HTTPS."""

    @pytest.mark.parametrize(
        ("login", "words", "remedy"),
        [
            ("ann:Canary-of-ann@", "requires a login", "HTTPS_PROXY"),
            ("", "from an authority that is not trusted here", "SEALPIPE_CA_FILE"),
        ],
    )
    def test_a_proxy_that_wants_a_login_and_an_unknown_authority_are_told_apart(
        self, login: str, words: str, remedy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        contract = cast("SourceContract", self)
        environ = contract.at("https://store.example")
        assert environ is not None
        with Intercepting(tmp_path, {"store.example": silent_port()}) as proxy:
            monkeypatch.setenv("HTTPS_PROXY", proxy.url(login) if login else proxy.url())
            error = contract.get(contract.registry_in(environ), contract.missing())
        assert isinstance(error, NotConfiguredError), error
        assert words in error.message
        assert remedy in error.remedy
        secrets = ("Canary-of-ann", Intercepting.password, *contract.secrets())
        assert not find_leaks(error_text(error), secrets)


WITHOUT = """
import importlib.metadata as metadata
import sys
real = metadata.version
def version(name):
    if name == {distribution!r}:
        raise metadata.PackageNotFoundError(name)
    return real(name)
metadata.version = version
sys.modules[{module!r}] = None
"""


@dataclass(frozen=True)
class Failure:
    """One thing that fails: the reference or the channel, and the environment in which it does.

    `timeout` is how many seconds a server may be silent: short only where it is.
    """

    reference: str
    environ: Mapping[str, str] = field(default_factory=dict)
    timeout: float = plugin_network.TIMEOUT


def without(user: Terminal, distribution: str, module: str) -> dict[str, str]:
    """The environment in which a package is not installed.

    A command in it is a process of its own.
    """
    user.file(
        f"without-{module}/sitecustomize.py",
        WITHOUT.format(distribution=distribution, module=module),
    )
    return {"PYTHONPATH": str(user.here / f"without-{module}")}


def share_words(reference: str) -> Sequence[str]:
    """The command that reads one reference."""
    return "share", "-f", f"P={reference}"


def network_failures(
    stack: ExitStack, folder: Path, reference: str, at: Mapping[str, str], address: str, port: int
) -> dict[str, Failure]:
    """Five on the way to an HTTP server on this port: `address` is the variable that names it."""
    silent, busy = FaultyServer("silent"), FaultyServer("429")
    stack.callback(silent.stop)
    stack.callback(busy.stop)
    busy.retry_after = 0
    host = "store.example"
    proxy = stack.enter_context(Intercepting(folder, {host: port}))
    behind = {**at, address: f"https://{host}"}
    return {
        "unreachable": Failure(reference, {**at, address: f"http://127.0.0.1:{silent_port()}"}),
        "timeout": Failure(reference, {**at, address: silent.url}, timeout=0.5),
        "rate limit": Failure(reference, {**at, address: busy.url}),
        "a proxy's login": Failure(
            reference,
            {**behind, "HTTPS_PROXY": proxy.url(""), "SEALPIPE_CA_FILE": str(proxy.ca_file)},
        ),
        "unknown CA": Failure(reference, {**behind, "HTTPS_PROXY": proxy.url()}),
    }


def assert_told_apart(
    failures: Mapping[str, Failure],
    user: Terminal,
    service: RunningService,
    *,
    secrets: Iterable[str],
    words: Callable[[str], Sequence[str]] = share_words,
) -> None:
    """Each ends with 14, names what failed and the next step, no two alike; no secret is shown,
    nothing is created.
    """
    told: dict[str, tuple[str, str]] = {}
    for name, failure in failures.items():
        with patch.object(plugin_network, "TIMEOUT", failure.timeout):
            done = user.sealpipe(*words(failure.reference), "--output", "json", **failure.environ)
        assert (done.code, done.out) == (14, ""), (name, done)
        locator = failure.reference.partition("#")[0]
        asked, _, params = locator.partition("?")
        assert asked in done.err, (name, done.err)
        assert [value for value in secrets if value in done.err] == [], (name, done.err)
        told[name] = (
            done.error["message"].replace(asked, "").replace(f"?{params}", ""),
            done.error["remedy"],
        )
    reasons, remedies = ({each[part] for each in told.values()} for part in (0, 1))
    assert len(reasons) == len(remedies) == len(failures), told
    assert "" not in remedies, told
    assert created(service) == []
