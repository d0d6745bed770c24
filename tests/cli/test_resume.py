"""`sealpipe resume`: what it tells, finishes and drops. (What a kill leaves behind is tested under faults.)"""

from __future__ import annotations

import pytest

from sealpipe_rehearsal.running_service import RunningService
from support.terminal import SEALPIPE, Terminal, created, opened

SECRET = {"DB_PASSWORD": "s3cret"}
CLOSED = ["sh", "-c", 'exec "$@" >&-', "sh"]
"""Runs a command with its stdout closed: the share is made, and its link cannot be delivered."""


@pytest.fixture
def entry(user: Terminal) -> str:
    """The id of an entry whose share exists and whose link nobody got."""
    done = user.run([*CLOSED, *SEALPIPE, "share", "-f", "env:DB_PASSWORD"], environ=SECRET)
    assert done.code == 11, done
    (file,) = user.outbox()
    assert f"sealpipe resume {file.stem}" in done.err
    return file.stem


def test_it_prints_the_link_of_the_share_that_is_there(user: Terminal, service: RunningService, entry: str) -> None:
    done = user.sealpipe("resume", entry)
    assert done.code == 0, done
    assert opened(service, done.out) == SECRET
    assert len(created(service)) == 1
    assert user.outbox() == []


def test_without_an_id_it_finishes_every_entry(user: Terminal, service: RunningService, entry: str) -> None:
    assert entry
    done = user.sealpipe("resume", "--output", "json")
    assert (done.code, done.json["outcome"]) == (0, "created")
    assert opened(service, done.json["link"]) == SECRET


def test_list_tells_id_time_and_key_and_neither_link_nor_value(
    user: Terminal, service: RunningService, entry: str
) -> None:
    key_id = user.environ["SEALPIPE_API_KEY"].partition("_sk_live_")[2].partition(".")[0]
    before = len(service.seen())
    done = user.sealpipe("resume", "--list")
    assert (done.code, done.out.split("\t")[0]) == (0, entry)
    assert key_id in done.out
    told = user.sealpipe("resume", "--list", "--output", "json").json
    assert list(told) == ["schema", "entries"]
    assert [(row["id"], row["key_id"], row["run"]) for row in told["entries"]] == [(entry, key_id, "")]
    assert len(service.seen()) == before


def test_list_needs_no_credential(user: Terminal, entry: str) -> None:
    assert user.sealpipe("resume", "--list", SEALPIPE_API_KEY=None).out.startswith(entry)


def test_discard_drops_one_entry(user: Terminal, entry: str) -> None:
    assert user.sealpipe("resume", "--discard").code == 2
    done = user.sealpipe("resume", entry, "--discard")
    assert (done.code, done.out, done.err) == (0, "", f"discarded {entry}\n")
    assert user.outbox() == []


def test_an_entry_of_another_ci_run_is_taken_only_with_all(user: Terminal, entry: str) -> None:
    run = {"JENKINS_URL": "https://ci.example/", "JOB_NAME": "deploy", "BUILD_NUMBER": "7"}
    assert entry
    done = user.sealpipe("resume", **run)
    assert (done.code, done.out, done.err) == (0, "", "nothing to resume\n")
    assert user.sealpipe("resume", "--all", **run).out.startswith("http")


def test_nothing_to_resume_is_told_and_fine(user: Terminal) -> None:
    done = user.sealpipe("resume")
    assert (done.code, done.out, done.err) == (0, "", "nothing to resume\n")


@pytest.mark.parametrize(
    ("environ", "says", "next_step"),
    [
        ({"SEALPIPE_BASE_URL": "http://127.0.0.1:9/v1"}, "not for http://127.0.0.1:9/v1", "set SEALPIPE_BASE_URL"),
        ({"SEALPIPE_API_KEY": "another"}, "was created with the API key", "set SEALPIPE_API_KEY"),
    ],
)
def test_another_address_or_key_is_refused_and_the_entry_kept(
    user: Terminal, service: RunningService, entry: str, environ: dict[str, str], says: str, next_step: str
) -> None:
    if environ.get("SEALPIPE_API_KEY"):
        environ = {"SEALPIPE_API_KEY": service.create_key().reveal()}
    done = user.sealpipe("resume", entry, **environ)
    assert (done.code, done.out) == (2, "")
    assert says in done.err
    assert next_step in done.err
    assert [file.stem for file in user.outbox()] == [entry]


@pytest.mark.parametrize("name", ["0123456789ab", "../../etc/passwd", "x", "0123456789AB"])
@pytest.mark.parametrize("how", [[], ["--discard"]])
def test_an_id_that_is_none_is_refused(user: Terminal, name: str, how: list[str]) -> None:
    done = user.sealpipe("resume", name, *how)
    assert (done.code, done.out) == (2, "")
    assert "list all entries: `sealpipe resume --list --all`" in done.err


def test_what_was_provably_never_sent_is_not_kept(user: Terminal) -> None:
    nowhere = {"SEALPIPE_BASE_URL": "http://127.0.0.1:9/v1", "SEALPIPE_DEADLINE": "1s"}
    done = user.sealpipe("share", "-f", "env:DB_PASSWORD", **SECRET, **nowhere)
    assert (done.code, done.out, user.outbox()) == (10, "", [])
    assert "resume" not in done.err
