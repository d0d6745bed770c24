"""Deliberate rule breaks of the service, and of its rehearsal's control API, made in this process;
and the pytest plugin that runs tests on them.

A break is a change of one module's source text: it is compiled anew, and the module's functions get
the changed code in place, so that whoever holds one of them has the change.
tests/endurance/mutants.py starts the plugin.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from sealpipe_service.database import sqlite, sqlite_text

TESTS = Path(__file__).resolve().parents[1]
TABLE = TESTS / "service" / "mutants.toml"
PACKAGES = ("sealpipe_service", "sealpipe_rehearsal")

# What the script tells the plugin: names as JSON, a file for what was found, and "" for no.
CHOSEN, RESULTS = "SEALPIPE_MUTANTS", "SEALPIPE_MUTANTS_RESULTS"
CLIENT, DISCOVER = "SEALPIPE_MUTANTS_CLIENT", "SEALPIPE_MUTANTS_DISCOVER"


@dataclass(frozen=True)
class Mutant:
    """One broken rule: in `module` the text `old`, which stands there exactly once, becomes `new`.

    `noticed_by` are the tests that must fail then, as PATH::TEST below tests/; `client` those of
    our own client.
    """

    name: str
    module: str
    old: str
    new: str
    noticed_by: tuple[str, ...] = ()
    client: tuple[str, ...] = ()
    statement: str = ""
    """If it is the store's statements that become others: a regular expression of their names."""

    def tests(self, *, client: bool = False) -> tuple[str, ...]:
        """The tests that are to notice it: all of them, or the client's."""
        return self.client if client else (*self.noticed_by, *self.client)

    def source(self) -> str:
        """The module's text with its rule broken, or all of the statements'; ValueError where `old`
        does not occur exactly once.
        """
        if self.statement:
            return "\n".join(self._statements().values())
        return self._broken(inspect.getsource(self._original()))

    def _statements(self) -> dict[str, str]:
        return {
            name: self._broken(text)
            for name, text in sqlite_text.STATEMENTS.items()
            if re.fullmatch(self.statement, name)
        }

    def _broken(self, text: str) -> str:
        if text.count(self.old) != 1:
            raise ValueError(
                f"{self.name}: its text stands {text.count(self.old)} times in "
                f"{self.module}, not once"
            )
        return text.replace(self.old, self.new)

    def _original(self) -> ModuleType:
        for package in PACKAGES:
            with suppress(ModuleNotFoundError):
                return importlib.import_module(f"{package}.{self.module}")
        raise ValueError(f"{self.name}: there is no module {self.module}")

    @contextmanager
    def applied(self) -> Iterator[None]:
        """The rule is broken inside the block."""
        if self.statement:
            statements = sqlite_text.STATEMENTS
            sqlite.STATEMENTS = {**statements, **self._statements()}
            try:
                yield
            finally:
                sqlite.STATEMENTS = statements
            return
        original, text = self._original(), self.source()
        broken = ModuleType(original.__name__)
        broken.__package__ = original.__package__
        sys.modules[original.__name__] = broken  # where dataclass looks for the module it works in
        try:
            exec(compile(text, self.name, "exec"), vars(broken))  # noqa: S102
        finally:
            sys.modules[original.__name__] = original
        undo = list(_replaced(original, broken))
        try:
            yield
        finally:
            for target, name, value in reversed(undo):
                setattr(target, name, value)


def _replaced(original: ModuleType, broken: ModuleType) -> Iterator[tuple[object, str, object]]:
    """Give everything the broken module's code and values; yields what was there before."""
    for name, value in list(vars(original).items()):
        other = vars(broken).get(name)
        if (
            name.startswith("__")
            or getattr(value, "__module__", original.__name__) != original.__name__
        ):
            continue
        if isinstance(value, FunctionType):
            yield from _code(original, value, other)
        elif isinstance(value, type):
            for member, defined in list(vars(value).items()):
                yield from _code(original, defined, vars(other).get(member))
        elif not isinstance(value, ModuleType):
            for module in [each for key, each in sys.modules.items() if key.startswith(PACKAGES)]:
                if vars(module).get(name) is value:
                    yield module, name, value
                    setattr(module, name, other)


def _code(module: ModuleType, one: object, other: object) -> Iterator[tuple[object, str, object]]:
    own, changed = (
        inspect.unwrap(function) if isinstance(function, FunctionType) else function
        for function in (each.fget if isinstance(each, property) else each for each in (one, other))
    )
    if not isinstance(own, FunctionType) or not isinstance(changed, FunctionType):
        return
    if own.__code__.co_filename == module.__file__:  # else it is of dataclass's making
        yield own, "__code__", own.__code__
        own.__code__ = changed.__code__


def mutants() -> list[Mutant]:
    """The table."""
    rows: dict[str, dict[str, Any]] = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    return [
        Mutant(
            name,
            row["module"],
            row["old"],
            row["new"],
            tuple(row["noticed_by"]),
            tuple(row.get("client", ())),
            row.get("statement", ""),
        )
        for name, row in rows.items()
    ]


def pytest_runtestloop(session: pytest.Session) -> bool:
    """On each chosen mutant the tests that are to notice it; and with nothing broken, once, each
    that has failed.
    """
    if session.testsfailed:
        raise session.Interrupted(f"{session.testsfailed} errors while collecting")
    runs = list(_runs(session.items))
    failing: dict[str, set[str]] = {mutant.name: set() for mutant, _ in runs} | {"": set()}
    most = int(os.environ.get(DISCOVER) or len(runs))
    sound: set[str] = set()
    for number, (mutant, item) in enumerate(runs):
        following = runs[number + 1][1] if number + 1 < len(runs) else None
        found = failing[mutant.name]
        # Its parent, because the item itself would keep its own fixtures where it is run again.
        keep = following.parent if following else None
        if len(found) >= most or _name(item) in found:
            session._setupstate.teardown_exact(keep)
        elif not _passes(item, mutant, item.parent):
            found.add(_name(item))
            if item.nodeid in sound:
                session._setupstate.teardown_exact(keep)
            elif _passes(item, None, keep):
                sound.add(item.nodeid)
            else:
                failing[""].add(_name(item))
        else:
            session._setupstate.teardown_exact(keep)
        # Now and then, for who watches.
        if following is None or item.parent is not following.parent:
            Path(os.environ[RESULTS]).write_text(
                json.dumps({name: sorted(tests) for name, tests in failing.items()})
            )
    return True


def _runs(items: list[pytest.Item]) -> Iterator[tuple[Mutant, pytest.Item]]:
    names = json.loads(os.environ[CHOSEN])
    chosen = [mutant for mutant in mutants() if mutant.name in names]
    client, discover = bool(os.environ.get(CLIENT)), bool(os.environ.get(DISCOVER))
    for mutant in chosen:
        for item in items:
            if discover or _name(item) in mutant.tests(client=client):
                yield mutant, item


def _name(item: pytest.Item) -> str:
    """PATH::TEST, without what pytest adds for the parameters."""
    return f"{item.path.relative_to(TESTS)}::{getattr(item, 'originalname', None) or item.name}"


def _passes(item: pytest.Item, mutant: Mutant | None, keep: Any) -> bool:
    item._initrequest()  # type: ignore[attr-defined]  # as for a rerun: fresh fixtures
    if mutant is None:
        reports = runtestprotocol(item, log=False, nextitem=keep)
    else:
        with mutant.applied():
            reports = runtestprotocol(item, log=False, nextitem=keep)
    return all(report.outcome != "failed" for report in reports)


def run(
    chosen: Iterable[Mutant], *, client: bool = False, discover: int = 0, files: Sequence[str] = ()
) -> dict[str, set[str]]:
    """Which tests failed, by mutant; under "" those that fail with nothing broken, too.

    One pytest for all of them.
    """
    chosen = list(chosen)
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.json"
        environ = {
            **os.environ,
            "PYTHONPATH": str(TESTS),
            CHOSEN: json.dumps([mutant.name for mutant in chosen]),
            RESULTS: str(results),
            CLIENT: "1" if client else "",
            DISCOVER: str(discover or ""),
        }
        named = {
            test.partition("::")[0] for mutant in chosen for test in mutant.tests(client=client)
        }
        paths = list(files) or sorted(str(TESTS / path) for path in named)
        # Most of these tests fail, and nobody reads why: whole tracebacks take a fifth of the time.
        options = ["-n0", "-q", "--tb=line", "-p", "service.mutating", "-p", "no:cacheprovider"]
        words = [sys.executable, "-m", "pytest", *options, *paths]
        done = subprocess.run(
            words, cwd=TESTS.parent, env=environ, capture_output=True, text=True, check=False
        )
        if not results.exists():
            raise RuntimeError(
                f"pytest ended with {done.returncode}:\n{done.stdout[-3000:]}\n"
                f"{done.stderr[-3000:]}"
            )
        return {name: set(tests) for name, tests in json.loads(results.read_text()).items()}


def unnoticed(
    chosen: Iterable[Mutant], failing: dict[str, set[str]], *, client: bool = False
) -> dict[str, list[str]]:
    """By mutant, the tests that were to notice it and did not; and under "" those that failed on
    the sound service.
    """
    found = {
        m.name: [test for test in m.tests(client=client) if test not in failing[m.name]]
        for m in chosen
    }
    found = {name: tests for name, tests in found.items() if tests}
    return found | ({"": sorted(failing[""])} if failing[""] else {})
