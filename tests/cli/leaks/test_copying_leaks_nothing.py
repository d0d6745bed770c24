"""What is copied goes from its source to its targets, and shows nowhere else: one real process
under strace.
"""

from __future__ import annotations

import pytest

from cli.leaks.stored import found_in
from support.commands import SEALPIPE
from support.job import Job
from support.storing import MARK, NAMES, Given, Into
from support.strace import Watched, watch

VALUES = Given("", f"{MARK}0123456789abcdef01234567")


def copied(job: Job, *words: str) -> Watched:
    """A copy of both values, every byte of it."""
    environ = {"CANARY_PASSWORD": VALUES.password, "CANARY_USER": VALUES.user}
    job.terminal.environ |= environ
    fields = ("staging_password=env:CANARY_PASSWORD", "user=env:CANARY_USER")
    return watch(job.terminal, [*SEALPIPE, "copy", *fields, *words])


@pytest.mark.parametrize("name", NAMES)
def test_a_value_goes_to_its_target_and_nowhere_else(
    name: str, job: Job, into: Into, group: str
) -> None:
    place = into(name)
    to = [word for target in place.single(group) for word in ("--to", target)]
    seen = copied(job, *to)
    assert seen.done.code == 0, seen.done
    assert place.there(group) == VALUES.values()
    found = found_in(seen, place, VALUES)
    assert found["elsewhere"] == set()
    assert seen.executed == []


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--dry-run",), 0),
        (("--output", "json", "--to", "file:no/folder#staging_password"), 14),
        (("--debug", "--to", "file:no/folder#staging_password"), 14),
        (("--to", "dotenv:other#7=staging_password"), 2),
    ],
    ids=["dry run", "a target fails", "with debug", "a target is wrong"],
)
def test_where_a_copy_does_not_end_the_value_shows_nowhere_either(
    words: tuple[str, ...], code: int, job: Job, into: Into, group: str
) -> None:
    place = into("dotenv")
    to = [word for target in place.single(group) for word in ("--to", target)]
    seen = copied(job, *to, *words)
    assert seen.done.code == code, seen.done
    assert found_in(seen, place, VALUES)["elsewhere"] == set()


def test_the_record_of_an_unfinished_copy_has_no_value(job: Job, into: Into, group: str) -> None:
    place = into("dotenv")
    (target,) = place.single(group)
    words = ("copy", "staging_password=gen:password", "user=gen:hex", "--to", target)
    done = job.run(*words, "--to", "file:no/folder#user")
    assert done.code == 14, done
    (record,) = (job.state / "copies").glob("*.jsonl")
    text = record.read_text()
    assert record.stat().st_mode & 0o777 == 0o600
    assert "stored" in text
    assert not [value for value in place.there(group).values() if value.decode() in text]
