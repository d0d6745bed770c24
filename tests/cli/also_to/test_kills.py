"""A share that was killed while its fields were being stored: what is left is listed, and `resume`
stores it first.

Killed at every step: tests/cli/kills.
"""

from __future__ import annotations

from pathlib import Path

from cli.rotating import FILE, Rotating
from sealpipe_rehearsal.running_service import RunningService
from support.killing import KILLED, InProcess, Killer
from support.strace import Point

RENAMED = Point("rename", 1)
"""Killed before the new file is in its place."""


class Killed(InProcess, Rotating):
    """In the process of the tests."""


def test_what_is_not_stored_yet_is_listed_and_resume_tells_of_it(
    service: RunningService, tmp_path: Path
) -> None:
    job = Killed(tmp_path / "job", service)
    assert job.share(under=Killer(RENAMED)).code == KILLED
    left = job.resume("--list", "--output", "json").json["entries"][0]["left"]
    assert {
        "what": "fields",
        "to": f"dotenv:{FILE}?mode=merge#PW=Password",
        "state": "not stored",
    } in left
    done = job.resume()
    assert (done.code, job.opens(done.out)) == (0, True)
    assert f"stored in dotenv:{FILE}\n" in done.err


def test_a_place_that_fails_meanwhile_keeps_the_entry_and_nothing_is_shared(
    service: RunningService, tmp_path: Path
) -> None:
    job = Killed(tmp_path / "job", service)
    assert job.share(under=Killer(RENAMED)).code == KILLED
    for path in job.terminal.here.iterdir():
        path.unlink()
    (job.terminal.here / FILE).mkdir()
    done = job.resume()
    assert (done.code, done.out, job.shares(), len(job.entries())) == (14, "", [], 1), done
    assert "nothing was shared" in done.err
    assert f"sealpipe resume {job.entries()[0]}" in done.err
    (job.terminal.here / FILE).rmdir()
    job.terminal.file(FILE, "OTHER=kept\n")
    done = job.resume()
    assert (done.code, job.opens(done.out), job.left()) == (0, True, [])
