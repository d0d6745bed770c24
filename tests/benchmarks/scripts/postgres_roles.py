"""New passwords for roles, each confirmed by a login: by sealpipe's sink, and by psycopg in a loop;
by turns, in ms.

    python postgres_roles.py COUNT RUNS

The environment says where PostgreSQL is. The first run of each imports everything, and is not
counted.
"""

import json
import os
import sys
import time

import psycopg

from sealpipe.plugin import Secret, SinkField
from sealpipe.reference import parse
from sealpipe.registry import Registry
from sealpipe.registry.sinks import write_fields


def ours(names: list[str], password: str) -> None:
    registry = Registry(environ=os.environ)
    for name in names:
        locator = registry.locate(parse(f"postgres-role:{name}"), "sink")
        fields = [SinkField("", Secret(password))]
        assert write_fields(registry, "postgres-role", locator, fields, "replace", password).known
    registry.close()


def theirs(names: list[str], password: str) -> None:
    with psycopg.connect() as admin:
        for name in names:
            admin.pgconn.change_password(name.encode(), password.encode())
            psycopg.connect(user=name, password=password).close()


def main() -> None:
    count, runs = int(sys.argv[1]), int(sys.argv[2])
    names = [f"role-{number}" for number in range(count)]
    with psycopg.connect(autocommit=True) as admin:
        admin.execute("SELECT pg_reload_conf()")
        for name in names:
            admin.execute(f'CREATE ROLE "{name}" LOGIN')
    spent: list[list[float]] = [[], []]
    for run in range(runs + 1):
        for side, change in enumerate((ours, theirs)):
            began = time.perf_counter()
            change(names, f"password-{run}-{side}")
            spent[side].append(1000 * (time.perf_counter() - began))
    print(json.dumps([each[1:] for each in spent]))


main()
