"""A place that nobody can read back, such as GitHub's secrets: what may be there is stored again
only when asked to.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from sealpipe_rehearsal.running_service import RunningService
from support.distributions import Site
from support.job import Job
from support.terminal import Done, opened

HOOKS = """
from sealpipe.plugin import BLIND, SinkInfo, hookimpl

@hookimpl
def sealpipe_sinks(register):
    register(SinkInfo("slot", "takes, and shows nothing", "MODULE_it:It", capabilities=(BLIND,)))
"""
SLOT = """
import os, signal
from pathlib import Path
from sealpipe.plugin import Sink, WriteConflictError, WriteResult

class It(Sink):
    def describe(self, locator, mode):
        return "drop it into the slot"

    def put(self, locator, fields, *, mode, marker):
        place = Path(os.environ["SLOTS"]) / locator.body
        if mode == "create" and place.exists():
            raise WriteConflictError("there is something")
        place.write_text(fields[0].value.reveal())
        if os.environ.get("CUT_OFF_AT") == locator.body:
            os.kill(os.getpid(), signal.SIGKILL)
        return WriteResult(locator, known=False)
"""
WORDS = (
    "share",
    "-f",
    "Password=gen:password?symbols=0",
    "--also-to",
    "slot:a#k=Password",
    "--also-to",
    "slot:b#k=Password",
)


@pytest.fixture
def slots(job: Job, tmp_path: Path) -> Path:
    """Where the slots' contents are."""
    site = Site(tmp_path / "site")
    site.install("slot", HOOKS, SLOT)
    folder = tmp_path / "slots"
    folder.mkdir()
    job.terminal.environ |= {"PYTHONPATH": str(site.folder), "SLOTS": str(folder)}
    return folder


def test_it_takes_what_is_shared(job: Job, slots: Path, service: RunningService) -> None:
    done = job.run(*WORDS)
    assert done.code == 0, done
    new = opened(service, done.out)["Password"]
    assert {path.name: path.read_text() for path in slots.iterdir()} == {"a": new, "b": new}


def cut_off(job: Job, slots: Path) -> Done:
    """Killed between the second slot and anybody's knowing that it has taken it; then resumed."""
    assert job.run(*WORDS, CUT_OFF_AT="b").code == -9
    assert len(job.entries()) == 1
    (slots / "a").write_text("rotated since")
    done = job.resume()
    assert (done.code, done.out, job.shares(), len(job.entries())) == (14, "", [], 1), done
    return done


def test_what_it_may_have_is_not_stored_again_unasked(job: Job, slots: Path) -> None:
    done = cut_off(job, slots)
    assert "an earlier run was interrupted while it stored slot:b#k" in done.err
    assert (
        f"`sealpipe resume {job.entries()[0]} --resend` stores it again, whatever is there"
        in done.err
    )
    assert "nothing was shared" in done.err


def test_when_asked_to_it_is_and_what_is_known_to_be_there_is_left_alone(
    job: Job, slots: Path, service: RunningService
) -> None:
    cut_off(job, slots)
    done = job.resume("--resend")
    assert done.code == 0, done
    assert {path.name: path.read_text() for path in slots.iterdir()} == {
        "a": "rotated since",
        "b": opened(service, done.out)["Password"],
    }
    assert job.left() == []


def test_what_was_refused_is_tried_again_by_the_next_share(job: Job, slots: Path) -> None:
    (slots / "b").write_text("somebody else's")
    done = job.run(*WORDS)
    assert (done.code, job.shares(), job.left()) == (14, [], [])
    assert "nothing was shared; stored in slot:a" in done.err
