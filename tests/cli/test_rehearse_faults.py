"""`sealpipe rehearse --faults` and `rehearsal serve --faults`: real processes, and things that go
wrong on purpose.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from sealpipe_rehearsal import control_client
from support.ports import free_port
from support.terminal import PATIENCE, Done, Terminal

SHARE_AND_COUNT = (
    "link=$(sealpipe share -f env:DB_PASSWORD) && echo ${link%%#*} && sealpipe shares list"
)


def plan(*rows: str) -> str:
    """A plan's file. Each row is `key = value` parted by semicolons."""
    return (
        "\n".join(
            "[[fault]]\n" + "\n".join(part.strip() for part in row.split(";")) for row in rows
        )
        + "\n"
    )


TWO_RESETS = 'when = "POST /shares"; fault = "reset"; after_commit = true; times = 2'
LOST, REFUSED = 'fault = "reset"; after_commit = true', 'fault = "unauthorized"; times = "always"'
SURVIVED = {
    "two resets after the commit": (TWO_RESETS,),
    "lost, in flight, a proxy": (
        'fault = "half-body"',
        'fault = "error"; status = 409; code = 106',
        'fault = "html"; after_commit = true',
    ),
    "limited, spoilt, late": (
        'when = "POST *"; fault = "rate-limit"; retry_after = 1',
        'fault = "bad-json"',
        'fault = "delay"; seconds = 0.1',
    ),
    "nobody listens": ('fault = "refuse"; seconds = 0.3; after_commit = true',),
}
TOUR, SHARED = (), ("--", "sealpipe", "share", "-f", "text:x")
COUNTED = ("--", "sh", "-c", SHARE_AND_COUNT)
Run = tuple[tuple[str, ...], tuple[str, ...]]
RUNS: tuple[Run, ...] = (
    *((rows, COUNTED) for rows in SURVIVED.values()),
    *((rows, words) for rows in ((REFUSED,), (LOST, REFUSED)) for words in (TOUR, SHARED)),
    ((TWO_RESETS,), TOUR),
)
"""Rows of a plan, and the command that meets them."""
AT_ONCE = 4


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Run, Future[Done]]]:
    """All of them, some at a time: they mostly wait."""

    def rehearse(run: Run, place: Path) -> Done:
        bare = Terminal(place)
        bare.file("plan.toml", plan(*run[0]))
        return bare.sealpipe("rehearse", "--faults", "plan.toml", *run[1], DB_PASSWORD="s3cret")

    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {run: pool.submit(rehearse, run, tmp_path_factory.mktemp("user")) for run in RUNS}


@pytest.mark.parametrize("rows", SURVIVED.values(), ids=SURVIVED)
def test_a_share_survives_its_faults_as_exactly_one_with_one_link(
    done: dict[Run, Future[Done]], rows: tuple[str, ...]
) -> None:
    ended = done[rows, COUNTED].result()
    assert ended.code == 0, ended.err
    link, listed = ended.out.splitlines()
    assert link.rpartition("/")[2] == listed.partition("\t")[0]
    assert "never injected" not in ended.err


def test_the_tour_ends_right_under_faults(done: dict[Run, Future[Done]]) -> None:
    ended = done[(TWO_RESETS,), TOUR].result()
    assert ended.code == 0, ended.err
    assert ended.out.startswith("THE SERVICE")
    assert "never injected" not in ended.err
    assert "   Injected faults: reset after the commit (twice).\n" in ended.err
    assert (
        "   The service was asked 3 times to create the share and now holds 1 share.\n" in ended.err
    )


def test_the_tour_tells_what_came_of_a_share_that_failed(done: dict[Run, Future[Done]]) -> None:
    ended = done[(LOST, REFUSED), TOUR].result()
    assert ended.code == 9
    assert (
        "Injected faults: reset after the commit (once), unauthorized before the commit (once).\n"
        in ended.err
    )
    assert "asked twice to create the share and now holds 1 share.\n" in ended.err
    refused = done[(REFUSED,), TOUR].result()
    assert "asked once to create the share and now holds 0 shares.\n" in refused.err


def test_the_tour_tells_nothing_of_faults_where_there_are_none(bare: Terminal) -> None:
    done = bare.sealpipe("rehearse")
    assert done.code == 0
    assert "struck" not in done.err
    assert "The service was asked" not in done.err


@pytest.mark.parametrize(("rows", "code"), [((REFUSED,), 3), ((LOST, REFUSED), 9)])
def test_the_tour_and_a_command_pass_on_the_clients_honest_exit_code(
    done: dict[Run, Future[Done]], rows: tuple[str, ...], code: int
) -> None:
    for words in (TOUR, SHARED):
        ended = done[rows, words].result()
        assert (ended.code, ended.out) == (code, "")


def test_a_plan_in_the_working_directory_is_not_read_on_its_own(bare: Terminal) -> None:
    bare.file("plan.toml", plan('fault = "unauthorized"; times = "always"'))
    bare.file("faults.toml", plan('fault = "unauthorized"; times = "always"'))
    assert bare.sealpipe("rehearse", "--", "sealpipe", "shares", "list").code == 0


def test_serve_has_its_plan_from_the_start_and_the_door_can_end_it(bare: Terminal) -> None:
    bare.file("plan.toml", plan('fault = "answer"; status = 418; times = "always"'))
    process = bare.start("rehearsal", "serve", "--port", str(free_port()), "--faults", "plan.toml")
    try:
        assert process.stderr
        base = process.stderr.readline().split()[2]
        assert control_client.send_request(base, "GET", "/v1/shares")[0] == 418
        assert control_client.list_faults(base)[0]["applied"] == 1
        assert control_client.set_faults(base, []) == []
        assert control_client.send_request(base, "GET", "/v1/shares")[0] == 401
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE)
