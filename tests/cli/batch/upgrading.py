"""A database in the middle of two batches, as a released version wrote it, for every later version
to go on with.

Run as a program, it plays the batches with today's code and writes `schema-N/` for today's schema:
both databases as SQL, and the world around them as JSON. Never write one again that was released:
today's code would read what today's code wrote. All clocks are in the year 2090, so that no link
has expired for the machine that runs the test.

    python -P tests/cli/batch/upgrading.py
"""

from __future__ import annotations

import base64
import json
import random
import re
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from cli.batch.killing import KillSwitch
from cli.batch.pigeons import DOWN
from cli.batch.world import DAY, BatchWorld
from sealpipe.api.operation import Failure, Operation, Response
from sealpipe.batch.database.opening import open_database, prepare_tables
from sealpipe.batch.database.sqlite import FILE_NAME
from sealpipe.batch.database.statements import SCHEMA_VERSION
from sealpipe.minting import mint
from sealpipe.secret import Secret
from support.parts import Postgres, run_postgres

HERE = Path(__file__).parent
REQUESTS = """
name = "vendors"
kind = "request"
rows = "vendors.csv"
key = "name"

[request]
ask = ["Password"]
title = "Access of {name}"
expires-in = "30d"
max-submissions = 1
send = ["pigeon:{name}.example"]

[remind]
after = ["3d"]

[collect]
to = ["nest:{name}#password=Password"]
after = "expire"
"""
SHARES = """
name = "keys"
kind = "share"
rows = "keys.csv"
key = "name"

[share]
fields = ["Password=seeds:{name}"]
title = "For {name}"
expires-in = "30d"
send = ["pigeon:{name}.example"]
"""
VENDORS = (
    "collected",
    "cancelled",
    "waiting",
    "submitted",
    "lost",
    "begun",
    "unclear",
    "refused",
    "new",
)
KEYS = ("delivered", "posted", "next")
_SERVICE_TABLES = ("requests", "shares", "submissions", "idempotency")
_BEGINNING = datetime(2090, 1, 1, tzinfo=UTC)


class UpgradeWorld(BatchWorld):
    """A world whose credential and time are those of every `schema-N`."""

    def __init__(self, folder: Path, database: Secret | None = None) -> None:
        super().__init__(folder, database=database)
        self.vendors = self._write("vendors.toml", REQUESTS, VENDORS)
        self.keys = self._write("keys.toml", SHARES, KEYS)

    def make_key(self, **options: Any) -> str:
        # It is in no service but this one.
        minted = mint("svc", token_bytes=random.Random(16).randbytes)  # noqa: S311
        hidden = {"key_id": minted.key_id, "auth_sha256": minted.auth_sha256}
        super().make_key(**hidden, custody_public_key=minted.custody_public_key, **options)
        return minted.credential.reveal()

    def _write(self, name: str, text: str, keys: tuple[str, ...]) -> Path:
        (self.folder / name).with_suffix(".csv").write_text(
            "".join(f"{key}\n" for key in ("name", *keys))
        )
        return self.write(text, name=name)

    def wait_until(self, moment: float) -> None:
        """Set all clocks, in seconds since 1970."""
        self.wait(moment - self.clock.timestamp())

    def count_messages(self) -> Counter[str]:
        return Counter(to.removesuffix(".example") for to, _ in self.loft.messages)


def play(world: UpgradeWorld) -> None:
    """Bring every row to where its name says."""
    world.wait_until(_BEGINNING.timestamp())
    world.run(world.vendors, only=["collected", "cancelled", "waiting", "submitted"])
    for name in ("collected", "submitted"):
        world.submit(world.code_of(f"{name}.example"), {"Password": f"canary of {name}"})
        if name == "collected":
            world.wait(DAY)
            world.run(world.vendors, only=["collected", "waiting"])
    world.act(world.vendors, "cancel", "cancelled")
    _lose_answer(world, lambda: world.run(world.vendors, only=["lost"]))
    _kill(world, world.vendors, "begun", "before a write", after="after POST /requests")
    _kill(world, world.vendors, "unclear", "after the plugin unclear.example")
    world.loft.down["refused.example"] = DOWN
    world.run(world.vendors, only=["refused"])
    world.run(world.keys, only=["delivered"])
    _kill(world, world.keys, "posted", "after POST /shares")


def _lose_answer(world: UpgradeWorld, run: Callable[[], object]) -> None:
    def lose(operation: Operation[Any], response: Response) -> Response | Failure:
        return (
            Failure(sent=True, detail="connection reset")
            if operation.method == "POST"
            else response
        )

    world.after = lose  # type: ignore[method-assign]
    run()
    del world.after


class _NamedSwitch(KillSwitch):
    """Kills at the first step of a name that comes after another."""

    def __init__(self, name: str, after: str) -> None:
        super().__init__()
        self._name, self._after = name, after

    def step(self, name: str) -> None:
        if name == self._name and (not self._after or self._after in self.steps):
            self.at = self.at or len(self.steps) + 1
        super().step(name)


def _kill(world: UpgradeWorld, path: Path, key: str, name: str, *, after: str = "") -> None:
    """Run one row, and kill the run at a step."""
    switch = _NamedSwitch(name, after)
    with switch.watching(world):
        world.run(path, only=[key])
    assert switch.at, switch.steps


# -- as text --------------------------------------------------------------------------------------


def write_world(world: UpgradeWorld, file: Path) -> None:
    """Write what is not in the batches' database: the time, the service's rows, the messages so
    far, and the sink.
    """
    store = world.service.database
    tables = {
        name: [{column: _dump_value(row[column]) for column in tuple(row.keys())} for row in rows]
        for name in _SERVICE_TABLES
        for rows in (store.rows(f"SELECT * FROM {name}", {}),)  # noqa: S608 - a name from above
    }
    members = {
        "now": world.clock.timestamp(),
        "service": tables,
        "messages": world.count_messages(),
        "puts": world.loft.puts,
        "markers": world.loft.markers,
    }
    file.write_text(json.dumps(members, indent=1) + "\n")


def read_world(world: UpgradeWorld, file: Path) -> Counter[str]:
    """Bring a new world to where another was.

    Returns how many messages each recipient got there.
    """
    members = json.loads(file.read_text())
    database = world.service.database
    received = Counter(row["request"] for row in members["service"]["submissions"])
    for name, rows in members["service"].items():
        for row in rows:
            values = {column: _load_value(value) for column, value in row.items()}
            if name == "requests":
                values["received"] = received[values["number"]]
            names = ", ".join(values), ", ".join(f":{column}" for column in values)
            statement = f"INSERT INTO {name} ({names[0]}) VALUES ({names[1]})"  # noqa: S608
            database.rows(statement, values)
    for name in ("requests", "shares"):
        database.run_text(
            "INSERT INTO counts (what, space, live, ended) "  # noqa: S608
            f"SELECT '{name}', space, SUM(ended_at IS NULL), SUM(ended_at IS NOT NULL) "
            f"FROM {name} GROUP BY space"
        )
    world.wait_until(members["now"])
    world.loft.puts += members["puts"]
    world.loft.markers |= members["markers"]
    return Counter(members["messages"])


def _dump_value(value: Any) -> Any:
    return {"base64": base64.b64encode(value).decode()} if isinstance(value, bytes) else value


def _load_value(value: Any) -> Any:
    return base64.b64decode(value["base64"]) if isinstance(value, dict) else value


def dump_sqlite(file: Path) -> str:
    """Return a database as SQL."""
    with closing(sqlite3.connect(file)) as connection:
        return "".join(f"{line}\n" for line in connection.iterdump())


def load_sqlite(script: str, folder: Path) -> None:
    """Make a database file of SQL."""
    folder.mkdir(mode=0o700)
    with closing(sqlite3.connect(folder / FILE_NAME)) as connection:
        connection.executescript(script)


def dump_postgres(server: Postgres) -> str:
    """Return the tables of batches as SQL: what any PostgreSQL understands of what `pg_dump`
    prints.
    """
    words = [
        "pg_dump",
        "--inserts",
        "--no-owner",
        "--no-privileges",
        "--table=sealpipe_*",
        server.address,
    ]
    text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^(?:CREATE|ALTER|INSERT) .*?;\n", text, re.MULTILINE | re.DOTALL)
    return "".join(found)


def load_postgres(script: str, server: Postgres) -> None:
    """Make the tables of batches of SQL."""
    import psycopg  # the tests of SQLite need none

    with psycopg.connect(server.address) as connection:
        connection.execute(script.encode())


def main() -> None:
    folder = HERE / f"schema-{SCHEMA_VERSION}"
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as place, run_postgres() as server:
        address = Secret(server.address)
        database = open_database(Path(place), address)
        prepare_tables(database)
        database.close()
        for name, where in (("sqlite", None), ("postgres", address)):
            (Path(place) / name).mkdir()
            world = UpgradeWorld(Path(place) / name, where)
            play(world)
            write_world(world, folder / f"{name}.json")
            world.close()
        (folder / "sqlite.sql").write_text(dump_sqlite(Path(place) / "sqlite/state" / FILE_NAME))
        (folder / "postgres.sql").write_text(dump_postgres(server))


if __name__ == "__main__":
    main()
