"""Functions of PostgreSQL that statements are called by: which of them are called, and what happens
when they go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import psycopg
import pytest

from sealpipe_service.database import migrating
from sealpipe_service.database.access import UnavailableError
from sealpipe_service.database.planned import KNOWN, make_functions
from service.database.stores import World, run_text
from support.clusters import Cluster

OPEN = make_functions()["open_share"].name
DROP = f"DROP FUNCTION {OPEN}"
INTEGER, MORE = "share INTEGER", "share BIGINT, more TEXT DEFAULT ''"
"""Of these the first fits a small number better than ours, and the second as well as ours."""


@pytest.fixture(params=["postgresql"])
def address(cluster: Cluster) -> str:
    """A database with the tables and the functions."""
    return cluster.address()


@pytest.fixture
def other(address: str) -> Iterator[Callable[[str], None]]:
    """Makes a function of the name of ours as a role that may make some, and owns no table."""
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("CREATE ROLE other")
        connection.execute("GRANT CREATE ON SCHEMA public TO other")

        def make(arguments: str) -> None:
            connection.execute("SET ROLE other")
            connection.execute(
                f"CREATE FUNCTION {OPEN}({arguments}) RETURNS TABLE (number BIGINT) "
                "LANGUAGE plpgsql AS $$ BEGIN RAISE 'another role''s'; END $$".encode()
            )
            connection.execute("RESET ROLE")

        yield make
        connection.execute("DROP OWNED BY other")
        connection.execute("DROP ROLE other")


def known(address: str) -> set[str]:
    with psycopg.connect(address) as connection:
        return {name for name, _ in connection.execute(KNOWN.encode()).fetchall()}


@pytest.mark.parametrize("arguments", [INTEGER, MORE, "share BIGINT"])
def test_what_another_role_has_made_under_a_name_of_ours_is_not_called(
    address: str, other: Callable[[str], None], arguments: str
) -> None:
    if arguments == "share BIGINT":
        run_text(address, DROP)
    other(arguments)
    assert known(address) == {each.name for each in make_functions().values()} - {OPEN}
    with closing((world := World(address)).store):
        assert world.open(world.share()).reason is None


def test_what_another_role_makes_later_is_not_called_either(
    shared: World, other: Callable[[str], None]
) -> None:
    code = shared.share()
    other(INTEGER)
    assert shared.open(code).reason is None


def test_a_call_that_has_become_ambiguous_fails_once(
    shared: World, other: Callable[[str], None]
) -> None:
    code = shared.share()
    other(MORE)
    with pytest.raises(UnavailableError, match=r"other functions than before \(42725\)"):
        shared.open(code)
    assert [shared.open(code).reason for _ in range(3)] == [None] * 3


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("open_share", lambda world, code: world.open(code)),
        ("share", lambda world, code: world.store.share("acme", code)),
    ],
    ids=["in a transaction", "alone"],
)
def test_a_function_that_goes_while_a_server_runs_costs_one_call(
    address: str, shared: World, name: str, call: Callable[[World, str], object]
) -> None:
    code = shared.share()
    run_text(address, f"DROP FUNCTION {make_functions()[name].name}")
    with pytest.raises(UnavailableError, match=r"other functions than before \(42883\)"):
        call(shared, code)
    assert shared.open(code).reason is None
    assert all(call(shared, code) for _ in range(3))


def test_an_upgrade_makes_the_functions_that_are_missing(address: str) -> None:
    run_text(address, DROP)
    migrating.upgrade(address)
    assert known(address) == {each.name for each in make_functions().values()}
