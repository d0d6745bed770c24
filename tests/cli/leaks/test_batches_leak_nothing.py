"""Batches: a row's secrets stand in its message and nowhere else, neither in the database nor in
what commands print.

As in `test_a_share_leaks_nothing`: one real process under strace, and every byte that leaves it.
The database is PostgreSQL: all that it gets is written to a socket, where SQLite maps a file into
memory.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pytest

from cli.leaks.canaries import LINK_FILE, Canaries, canary, leaks
from sealpipe_rehearsal.running_service import RunningService
from support.faults import reset_after, says
from support.faulty import Fault, Faulty, passes
from support.parts import Postgres, run_postgres
from support.terminal import Terminal

KEYS = """
kind = "share"
key = "name"
row = [{name = "ann"}]

[share]
fields = ["Password=env:CANARY_ENV", "file:secret.pem", "dotenv:prod.env#TOKEN"]
passcode-from = "file:passcode"
send = ["file:out/link"]

[remind]
unopened-after = ["2d"]
"""
RUN = ("batch", "run", "keys.toml", "--deadline", "1s")
VENDORS = """
kind = "request"
key = "name"
row = [{name = "acme"}]

[request]
ask = ["Password"]
send = ["file:link"]

[collect]
to = ["file:out/stored#Password"]
"""


class Case(NamedTuple):
    """What is run, how it ends, and what the service does; `requests` are those that it gets."""

    code: int
    words: Sequence[str] = ()
    then: Fault = passes
    delivers: bool = False


CASES = {
    "delivered": Case(0, delivers=True),
    "delivered, as JSON": Case(0, ["--output", "json"], delivers=True),
    "500 for ever": Case(18, then=says(500)),
    "no answer": Case(18, ["--output", "json"], then=reset_after),
}


@pytest.fixture
def faulty(service: RunningService) -> Iterator[Faulty]:
    with Faulty(service.address) as server:
        yield server


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with run_postgres() as server:
        yield server


@pytest.mark.parametrize("name", CASES)
def test_a_batch_of_shares_leaks_nothing(
    user: Terminal, service: RunningService, faulty: Faulty, postgres: Postgres, name: str
) -> None:
    case = CASES[name]
    canaries = Canaries(user, service, faulty.base_url)
    user.file("out/.keep", "")
    batch = f"keys-{secrets.token_hex(4)}"  # a name belongs to one credential
    user.file("keys.toml", f'name = "{batch}"{KEYS}')
    user.environ |= {
        "DATABASE_URL": postgres.address,
        "SEALPIPE_BATCH_DATABASE": "env:DATABASE_URL",
    }
    user.sealpipe("batch", "database", "init")  # its salt is drawn like a key, and is none
    faulty.plan(then=case.then)
    watched = canaries.watch(*RUN, *case.words)
    assert watched.done.code == case.code, watched.done
    file = user.here / "out/link"
    assert file.exists() == case.delivers
    link = file.read_text().rstrip("\n") if case.delivers else None
    found = leaks(canaries, watched, len(faulty.received()), link, LINK_FILE, may_be_cut=True)
    assert found == []
    assert watched.executed == []
    assert any(b"sealpipe_rows" in data for _, data in watched.places()), (
        "what the database gets is seen"
    )
    faulty.mend()
    for words in (
        ["status", batch],
        ["report", batch, "--html", "r.html", "--csv", "r.csv", "--json", "r.json"],
    ):
        shown = canaries.watch("batch", *words)
        assert leaks(canaries, shown, 0, None, None) == []
    rekeyed = canaries.watch("batch", "rekey", batch)
    assert rekeyed.done.code == 0, rekeyed.done
    assert [len(each) for each in rekeyed.drawn].count(32) == 1, "the new data key is seen"
    assert any(b"sealpipe_data_keys" in data for _, data in rekeyed.places())
    assert leaks(canaries, rekeyed, 0, None, None) == []


def test_what_is_collected_by_hand_is_in_its_place_and_nowhere_else(
    user: Terminal, service: RunningService, faulty: Faulty, postgres: Postgres
) -> None:
    canaries = Canaries(user, service, faulty.base_url)
    user.file("out/.keep", "")
    batch = f"vendors-{secrets.token_hex(4)}"
    user.file("vendors.toml", f'name = "{batch}"{VENDORS}')
    user.environ |= {
        "DATABASE_URL": postgres.address,
        "SEALPIPE_BATCH_DATABASE": "env:DATABASE_URL",
    }
    user.sealpipe("batch", "database", "init")
    made = user.sealpipe("batch", "run", "vendors.toml")
    assert made.code == 0, made
    typed = canaries.values["typed"] = canary("typed")
    link = next(word for word in (user.here / "link").read_text().split() if "://" in word)
    service.submitter().submit(link, {"Password": typed})
    before = len(faulty.received())
    watched = canaries.watch("batch", "collect", batch, "--output", "json")
    assert watched.done.code == 0, watched.done
    assert (user.here / "out/stored").read_text() == typed
    for places in (watched.streams, watched.left):
        for place in [each for each in places if each.startswith("work/out/")]:
            places[place] = type(places[place])(places[place].replace(typed.encode(), b""))
    assert leaks(canaries, watched, len(faulty.received()) - before, None, None) == []
    assert watched.executed == []
    assert any(b"sealpipe_rows" in data for _, data in watched.places())
