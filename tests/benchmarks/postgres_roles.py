"""What the passwords of 50 roles of PostgreSQL cost, beside psycopg's own call in a loop, confirmed
by a login each.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from bench import Bench
from measuring import Command, Pair
from table import Row

sys.path.append(str(Path(__file__).resolve().parents[1]))

from support.parts import run_postgres

COUNT, SHORT_COUNT = 50, 2
HBA = "local all tests trust\nlocal all all scram-sha-256\n"


def rows(bench: Bench) -> Iterator[Row]:
    """The row of this group."""
    count = SHORT_COUNT if bench.short else COUNT
    with run_postgres() as server:
        (server.folder / "data/pg_hba.conf").write_text(HBA)
        environ = {"PGHOST": str(server.folder), "PGUSER": "tests", "PGDATABASE": "postgres"}
        words = bench.python("postgres_roles.py", str(count), str(bench.runs))
        found = json.loads(bench.meter.run(Command(words, environ)).out)
    what = (
        f"passwords of {count} roles of PostgreSQL, each confirmed by a login; psycopg's "
        "change_password in a loop"
    )
    yield Row("postgres-role-wall", what, "ms", Pair.of(*found))
