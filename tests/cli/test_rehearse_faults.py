"""`sealpipe rehearse --faults` and `rehearsal serve --faults`: real processes, and things that go wrong on purpose."""

from __future__ import annotations

import socket

import pytest

from sealpipe_rehearsal import control_client
from support.terminal import PATIENCE, Terminal

SHARE_AND_COUNT = "link=$(sealpipe share -f env:DB_PASSWORD) && echo ${link%%#*} && sealpipe shares list"


def plan(*rows: str) -> str:
    """A plan's file. Each row is `key = value` parted by semicolons."""
    return "\n".join("[[fault]]\n" + "\n".join(part.strip() for part in row.split(";")) for row in rows) + "\n"


def rehearsed(bare: Terminal, text: str, *words: str, **environ: str) -> tuple[int, str, str]:
    bare.file("plan.toml", text)
    done = bare.sealpipe("rehearse", "--faults", "plan.toml", *words, **environ)
    return done.code, done.out, done.err


TWO_RESETS = 'when = "POST /shares"; fault = "reset"; after_commit = true; times = 2'


@pytest.mark.parametrize(
    "rows",
    [
        [TWO_RESETS],
        ['fault = "half-body"', 'fault = "error"; status = 409; code = 106', 'fault = "html"; after_commit = true'],
        [
            'when = "POST *"; fault = "rate-limit"; retry_after = 1',
            'fault = "bad-json"',
            'fault = "delay"; seconds = 0.1',
        ],
        ['fault = "refuse"; seconds = 0.3; after_commit = true'],
    ],
    ids=["two resets after the commit", "lost, in flight, a proxy", "limited, spoilt, late", "nobody listens"],
)
def test_a_share_survives_its_faults_as_exactly_one_with_one_link(bare: Terminal, rows: list[str]) -> None:
    code, out, err = rehearsed(bare, plan(*rows), "--", "sh", "-c", SHARE_AND_COUNT, DB_PASSWORD="s3cret")
    assert code == 0, err
    link, listed = out.splitlines()
    assert link.rpartition("/")[2] == listed.partition("\t")[0]
    assert "never injected" not in err


def test_the_tour_ends_right_under_faults(bare: Terminal) -> None:
    code, out, err = rehearsed(bare, plan(TWO_RESETS))
    assert code == 0, err
    assert out.startswith("THE SERVICE")
    assert "never injected" not in err
    assert "   Injected faults: reset after the commit (twice).\n" in err
    assert "   The service was asked 3 times to create the share and now holds 1 share.\n" in err


def test_the_tour_tells_what_came_of_a_share_that_failed(bare: Terminal) -> None:
    rows = ['fault = "reset"; after_commit = true', 'fault = "unauthorized"; times = "always"']
    code, _, err = rehearsed(bare, plan(*rows))
    assert code == 9
    assert "Injected faults: reset after the commit (once), unauthorized before the commit (once).\n" in err
    assert "asked twice to create the share and now holds 1 share.\n" in err
    assert "asked once to create the share and now holds 0 shares.\n" in rehearsed(bare, plan(rows[1]))[2]


def test_the_tour_tells_nothing_of_faults_where_there_are_none(bare: Terminal) -> None:
    done = bare.sealpipe("rehearse")
    assert done.code == 0
    assert "struck" not in done.err
    assert "The service was asked" not in done.err


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        (['fault = "unauthorized"; times = "always"'], 3),
        (['fault = "reset"; after_commit = true', 'fault = "unauthorized"; times = "always"'], 9),
    ],
)
def test_the_tour_and_a_command_pass_on_the_clients_honest_exit_code(
    bare: Terminal, rows: list[str], code: int
) -> None:
    assert rehearsed(bare, plan(*rows))[:2] == (code, "")
    assert rehearsed(bare, plan(*rows), "--", "sealpipe", "share", "-f", "text:x")[:2] == (code, "")


def test_a_plan_in_the_working_directory_is_not_read_on_its_own(bare: Terminal) -> None:
    bare.file("plan.toml", plan('fault = "unauthorized"; times = "always"'))
    bare.file("faults.toml", plan('fault = "unauthorized"; times = "always"'))
    assert bare.sealpipe("rehearse", "--", "sealpipe", "shares", "list").code == 0


def test_serve_has_its_plan_from_the_start_and_the_door_can_end_it(bare: Terminal) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    bare.file("plan.toml", plan('fault = "answer"; status = 418; times = "always"'))
    process = bare.start("rehearsal", "serve", "--port", port, "--faults", "plan.toml")
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
