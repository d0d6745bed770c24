"""What may go wrong at a store, and how it is told: a table of rows, and what drives it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from sealpipe.errors import NotConfiguredError, PluginError
from sealpipe.plugin import Mode
from sealpipe.reference import parse
from sealpipe.registry import Registry
from sealpipe.testing import SourceContract
from sealpipe.testing.contract import error_text, find_leaks
from support.backends import Values, failed, put_by, registry
from support.fake_web import Asked, FakeWeb, Fault, Reply
from support.ports import silent_port
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
