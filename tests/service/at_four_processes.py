"""The tests of this folder at a service of one's own with four processes on one PostgreSQL, for
`pytest tests/service --store four`.

What only a rehearsal can do is not there, so a test that asks for it fails: `four_processes` has
those.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

import support.terminal
from sealpipe_rehearsal import server
from sealpipe_service.clock import system_clock
from service.on_postgresql import RehearsalOnPostgresql
from support.clusters import add_clock
from support.own_service import OwnRunning, OwnService, make_own_service
from support.parts import run_postgres


@contextmanager
def serve_with_four(place: Path) -> Iterator[None]:
    """Let the service of the tests be one with four processes, and no rehearsal start."""
    with run_postgres() as postgres, pytest.MonkeyPatch.context() as patch:
        with psycopg.connect(postgres.address, autocommit=True) as connection:
            connection.execute("CREATE DATABASE service")
        address = postgres.address.replace("/postgres?", "/service?")
        add_clock(address)
        own = make_own_service(place / "service", address)
        database = RehearsalOnPostgresql(address, system_clock)
        with own.running("--workers", "4"):
            running = _Running(own, database)

            @contextmanager
            def find(**_: Any) -> Iterator[OwnRunning]:
                yield running

            for module in list(sys.modules.values()):
                if getattr(module, "start", None) is server.start and module is not server:
                    patch.setattr(module, "start", _refuse)
            patch.setattr(support.terminal, "start", find)
            yield
            running.close()
        database.close()


class _Running(OwnRunning):
    """What the tests have in place of a rehearsal that runs."""

    def __init__(self, own: OwnService, database: RehearsalOnPostgresql) -> None:
        super().__init__(own)
        self._database = database
        self.service = SimpleNamespace(**vars(self.service), database=database)
        host, _, port = own.public_url.partition("://")[2].partition(":")
        self.address = (host, int(port))

    def advance(self, seconds: float) -> None:
        self._database.set_offset(self._database.offset() + seconds)

    def reset(self) -> None:
        self._database.clear()
        self._database.set_offset(0.0)


def _refuse(*_: Any, **__: Any) -> Any:
    raise NotImplementedError("a server has no other service")
