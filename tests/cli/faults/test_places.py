"""State folder, stdout and link file: full, read-only, missing, closed.

Nothing is sent, or nothing is lost.
"""

from __future__ import annotations

import os
import shlex
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cli.sweep import LINK_FILE
from support import faults
from support.commands import SEALPIPE
from support.faulty import Faulty
from support.job import Job, ended, full_pipe
from support.parts import fill, make_read_only, make_writable, tmpfs
from support.strace import Point, failing, first, injecting, only
from support.terminal import PATIENCE, Done


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def assert_nothing_sent(done: Done, job: Job) -> None:
    assert (done.code, done.out) == (2, ""), done
    assert "Traceback" not in done.err
    assert job.shares() == []
    assert not job.state.is_dir() or job.left() == []


def assert_kept(done: Done, job: Job) -> None:
    """The share is made, its link went nowhere, and the entry is there to finish it."""
    assert done.code == 11, done
    assert "Traceback" not in done.err
    (entry,) = job.entries()
    assert f"sealpipe resume {entry}" in done.err
    assert len(job.shares()) == 1


def assert_resumed(job: Job, done: Done | None = None) -> None:
    done = done or job.resume()
    assert done.code == 0, done
    assert done.out.count("\n") == 1
    assert len(job.shares()) == 1
    assert job.opens(done.out)
    assert job.left() == []


# -- the state folder -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("mkdir", "EROFS"),
        ("fsync", "ENOSPC"),
        ("linkat", "EIO"),
        ("fchmod", "EPERM"),
        ("flock", "ENOLCK"),
    ],
)
def test_nothing_is_sent_while_the_entry_cannot_be_put_away(
    call: str, error: str, job: Job, tmp_path: Path
) -> None:
    done = job.share(under=failing(call, error, tmp_path / "log"))
    assert_nothing_sent(done, job)
    assert "outbox" in done.err or "folder" in done.err
    assert "SEALPIPE_STATE_DIR" in done.err


def test_nothing_is_sent_whichever_write_of_the_entry_fails(
    job: Job, calls: list[Point], tmp_path: Path
) -> None:
    named = calls.index(first(calls, "linkat"))
    writes = only(calls[:named], ["write"])
    assert len(writes) >= 2
    for write in writes:
        assert_nothing_sent(job.share(under=failing(write, "EDQUOT", tmp_path / "log")), job)


def test_an_entry_is_put_away_where_there_are_no_hard_links(job: Job, tmp_path: Path) -> None:
    done = job.share(under=failing("linkat", "EPERM", tmp_path / "log"))
    assert done.code == 0, done
    assert job.opens(done.out)
    assert job.left() == []


@pytest.mark.parametrize("linking", ["possible", "EPERM"])
def test_an_entry_is_put_away_where_there_are_no_nameless_files(
    linking: str, job: Job, calls: list[Point], tmp_path: Path
) -> None:
    nameless: list[tuple[str | Point, str]] = [
        (first(calls, "openat", showing="O_TMPFILE"), "error=EOPNOTSUPP")
    ]
    if linking != "possible":
        nameless.append(("linkat", f"error={linking}"))
    done = job.share(under=injecting(nameless, tmp_path / "log"))
    assert "INJECTED" in (tmp_path / "log").read_text()
    assert done.code == 0, done
    assert job.opens(done.out)
    assert job.left() == []


@pytest.mark.parametrize("call", ["fchmod", "write", "fsync", "linkat", "unlink"])
def test_where_there_are_no_nameless_files_a_kill_still_leaves_one_share_or_nothing(
    call: str, job: Job, calls: list[Point], tmp_path: Path
) -> None:
    nameless = first(calls, "openat", showing="O_TMPFILE")
    # Unlike a nameless file this one is unlinked twice: before it is made, and when it has its
    # name.
    killed = Point("unlink", 2) if call == "unlink" else first(calls, call, after=nameless)
    under = injecting(
        [(nameless, "error=EOPNOTSUPP"), (killed, "signal=SIGKILL")], tmp_path / "log"
    )
    done = job.share(under=under)
    assert (done.code, done.out) == (-9, "")
    again = job.resume()
    assert again.code == 0
    assert len(job.shares()) == again.out.count("\n") == int(call == "unlink")
    assert not again.out or job.opens(again.out)
    assert job.entries() == []


@pytest.mark.parametrize("call", ["ftruncate", "write", "fsync"])
def test_a_disk_that_is_full_once_the_service_has_answered_loses_no_link(
    call: str, job: Job, calls: list[Point], tmp_path: Path
) -> None:
    noting = first(calls, call, after="recvfrom")
    done = job.share(under=failing(noting, "ENOSPC", tmp_path / "log"))
    assert done.code == 0, done
    assert len(job.shares()) == 1
    assert job.opens(done.out)
    assert job.left() == []


@pytest.mark.parametrize("call", ["unlink", "fsync"])
@pytest.mark.parametrize("error", ["EROFS", "EIO"])
def test_an_entry_that_cannot_be_ended_does_not_make_a_failure_of_a_link_that_is_out(
    call: str, error: str, job: Job, calls: list[Point], tmp_path: Path
) -> None:
    unlink = first(calls, "unlink", after="recvfrom")
    ending = unlink if call == "unlink" else first(calls, call, after=unlink)
    done = job.share(under=failing(ending, error, tmp_path / "log"))
    assert done.code == 0, done
    assert job.opens(done.out)
    assert "bug" not in done.err
    if call == "unlink":
        # It is told, and it stays: `resume` would tell the same link once more.
        (entry,) = job.entries()
        assert entry in done.err
        again = job.resume()
        assert (again.code, again.out) == (0, done.out)
        assert len(job.shares()) == 1


@pytest.mark.parametrize("error", ["EROFS", "EIO"])
def test_a_refusal_is_reported_even_if_its_entry_cannot_be_ended(
    error: str,
    proxied: Callable[..., Faulty],
    job_at: Callable[..., Job],
    calls: list[Point],
    tmp_path: Path,
) -> None:
    server = proxied(then=faults.envelope(403, 78))
    job = job_at(server)
    ending = first(calls, "unlink", after="recvfrom")
    done = job.share(under=failing(ending, error, tmp_path / "log"))
    assert "INJECTED" in (tmp_path / "log").read_text()
    assert (done.code, done.out) == (4, ""), done


def test_a_full_disk_fails_before_anything_is_sent(job: Job) -> None:
    with tmpfs(job.state, size="64k"):
        filler = fill(job.state)
        done = job.share()
        assert (done.code, done.out) == (2, "")
        assert "No space left" in done.err
        assert job.shares() == []
        filler.unlink()
        assert_resumed(job, job.share())


def test_a_disk_with_no_room_for_the_body_is_full(job: Job) -> None:
    with tmpfs(job.state, size="1m"):
        large = job.terminal.file("large.txt", "x" * (4 * 1024 * 1024))
        done = job.run("share", "-f", f"file:{large}")
        assert_nothing_sent(done, job)
        assert_resumed(job, job.share())


def test_a_disk_that_fills_up_while_the_answer_is_awaited_loses_no_link(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    server = proxied(faults.holds)
    job = job_at(server)
    with tmpfs(job.state, size="64k"):
        process = job.start()
        assert server.committed.wait(PATIENCE)
        filler = fill(job.state)
        server.released.set()
        done = ended(process)
        assert done.code == 0, done
        filler.unlink()
        assert job.left() == []
        assert len(job.shares()) == 1
        assert job.opens(done.out)


def test_a_read_only_state_folder_fails_before_anything_is_sent(job: Job) -> None:
    with tmpfs(job.state):
        job.outbox.mkdir(mode=0o700)
        make_read_only(job.state)
        assert_nothing_sent(job.share(), job)
        make_writable(job.state)
        assert_resumed(job, job.share())


def test_a_state_folder_that_becomes_read_only_while_the_answer_is_awaited_loses_no_link(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    server = proxied(faults.reset_after, then=faults.unauthorized)
    job = job_at(server)
    with tmpfs(job.state):
        assert job.share().code == 9
        server.mend()
        make_read_only(job.state)
        done = job.resume()
        assert "Traceback" not in done.err
        # Either it tells the link all the same or it asks for a place to write; never a bug of
        # ours.
        assert done.code in (0, 2)
        make_writable(job.state)
        again = job.resume()
        assert again.code == 0
        links = set((done.out + again.out).split())
        assert len(links) == len(job.shares()) == 1
        assert job.opens(links.pop())


def test_a_file_as_state_folder_fails_before_anything_is_sent(job: Job) -> None:
    job.state.write_text("not a folder")
    done = job.share()
    assert (done.code, done.out) == (2, "")
    assert str(job.outbox) in done.err
    assert job.shares() == []
    assert job.state.read_text() == "not a folder"


def test_a_symlink_in_place_of_the_outbox_is_refused(job: Job, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere"
    other.mkdir()
    job.state.mkdir()
    job.outbox.symlink_to(other)
    assert_nothing_sent(job.share(), job)
    assert list(other.iterdir()) == []


def test_a_missing_state_folder_is_made_for_its_owner_alone(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job], tmp_path: Path
) -> None:
    server = proxied(then=faults.holds)
    job = job_at(server)
    deep = tmp_path / "a" / "b" / "state"
    process = job.start(environ={"SEALPIPE_STATE_DIR": str(deep)}, umask=0)
    assert server.committed.wait(PATIENCE)
    (entry,) = (deep / "outbox").iterdir()
    assert {path.name: oct(mode(path)) for path in (deep, deep / "outbox", entry)} == {
        "state": "0o700",
        "outbox": "0o700",
        entry.name: "0o600",
    }
    # Whoever may write to a parent could put a folder of their own in the place of ours.
    for parent in (deep.parent, deep.parent.parent):
        assert mode(parent) & 0o022 == 0
    server.released.set()
    done = ended(process)
    assert done.code == 0
    assert list((deep / "outbox").iterdir()) == []


def test_an_outbox_that_others_may_read_is_closed_to_them(job: Job) -> None:
    job.outbox.mkdir(parents=True)
    job.outbox.chmod(0o777)
    assert job.share().code == 0
    assert mode(job.outbox) == 0o700


def test_without_a_home_the_missing_place_is_named(job: Job) -> None:
    done = job.share(SEALPIPE_STATE_DIR=None, HOME=None)
    assert (done.code, done.out) == (2, "")
    assert "HOME" in done.err
    assert job.shares() == []


# -- stdout -----------------------------------------------------------------------------------


def to_shell(job: Job, redirection: str, *words: str) -> Done:
    """Run `sealpipe share` in a shell with stdout as the redirection says."""
    command = shlex.join([*SEALPIPE, "share", "-f", "env:DB_PASSWORD", *words])
    return job.terminal.run(["/bin/sh", "-c", f"{command} {redirection}"])


@pytest.mark.parametrize(
    ("redirection", "words"),
    [
        (">&-", ()),
        (">/dev/full", ()),
        (">&- <&-", ()),
        (">&-", ("--output", "json")),
        (">/dev/full", ("--output", "json")),
    ],
)
def test_a_link_that_stdout_does_not_take_is_kept_for_resume(
    redirection: str, words: tuple[str, ...], job: Job
) -> None:
    done = to_shell(job, redirection, *words)
    assert_kept(done, job)
    assert_resumed(job)


def test_a_closed_stderr_changes_nothing(job: Job) -> None:
    done = to_shell(job, "2>&-")
    assert_resumed(job, done)


def test_all_streams_closed_is_still_kept_for_resume(job: Job) -> None:
    done = to_shell(job, "<&- >&- 2>&-")
    assert done.code == 11
    # No file that we opened has become somebody's stdout.
    assert len(job.left()) == 1
    assert_resumed(job)


def test_a_pipe_whose_reader_went_away_is_kept_for_resume(job: Job) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    process = job.start(stdout=writing)
    os.close(writing)
    done = ended(process)
    assert_kept(done, job)
    assert_resumed(job)


def test_a_pipe_that_is_full_and_does_not_wait_is_kept_for_resume(job: Job) -> None:
    reading, writing, _ = full_pipe()
    os.set_blocking(writing, False)
    process = job.start(stdout=writing)
    os.close(writing)
    done = ended(process)
    os.close(reading)
    assert_kept(done, job)
    assert_resumed(job)


def test_a_file_on_a_full_disk_as_stdout_is_kept_for_resume(job: Job, tmp_path: Path) -> None:
    with tmpfs(tmp_path / "full", size="64k") as full:
        fill(full)
        done = to_shell(job, f">>{full}/filler")
        assert_kept(done, job)
    assert_resumed(job)


def test_resume_to_a_stdout_that_is_full_keeps_the_entry_too(job: Job) -> None:
    assert to_shell(job, ">/dev/full").code == 11
    done = job.terminal.run(["/bin/sh", "-c", f"{shlex.join([*SEALPIPE, 'resume'])} >/dev/full"])
    assert_kept(done, job)
    assert_resumed(job)


# -- the link file ----------------------------------------------------------------------------


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    with tmpfs(tmp_path / "small", size="64k") as place:
        yield place


def test_a_link_file_on_a_full_disk_is_written_by_resume_once_there_is_room(
    job: Job, small: Path
) -> None:
    filler = fill(small)
    link_file = small / "link.txt"
    done = job.share("--link-file", str(link_file))
    assert done.out == ""
    assert_kept(done, job)
    assert not link_file.exists()
    again = job.resume()
    assert (again.code, again.out) == (11, "")
    filler.unlink()
    again = job.resume()
    assert (again.code, again.out) == (0, "")
    assert [path.name for path in small.iterdir()] == ["link.txt"]
    assert mode(link_file) == 0o600
    assert len(job.shares()) == 1
    assert job.opens(link_file.read_text())
    assert job.left() == []


@pytest.mark.parametrize("call", ["openat", "fchmod", "write", "fsync", "linkat"])
def test_a_link_file_that_cannot_be_written_is_written_by_resume(
    call: str, job: Job, calls_to_file: list[Point], tmp_path: Path
) -> None:
    opening = first(calls_to_file, "openat", after="recvfrom", showing="O_TMPFILE")
    failed = opening if call == "openat" else first(calls_to_file, call, after=opening)
    done = job.share("--link-file", LINK_FILE, under=failing(failed, "EIO", tmp_path / "log"))
    assert "INJECTED" in (tmp_path / "log").read_text()
    assert done.out == ""
    assert_kept(done, job)
    assert list(job.terminal.here.iterdir()) == []
    again = job.resume()
    assert (again.code, again.out) == (0, "")
    assert job.opens((job.terminal.here / LINK_FILE).read_text())


@pytest.mark.parametrize(
    ("option", "kind"),
    [
        ("--link-file", "file"),
        ("--link-file", "folder"),
        ("--link-file", "symlink"),
        ("--link-file", "dangling symlink"),
        ("--receipt", "file"),
        ("--receipt", "dangling symlink"),
    ],
)
def test_whatever_stands_in_a_files_place_is_refused_before_anything_is_sent(
    kind: str, option: str, job: Job
) -> None:
    path = job.terminal.here / "out"
    target = job.terminal.here / "target"
    if kind == "file":
        path.write_text("mine")
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(target)
        if kind == "symlink":
            target.write_text("mine")
    done = job.share(option, "out")
    assert_nothing_sent(done, job)
    assert option in done.err
    assert not target.exists() or target.read_text() == "mine"


def test_a_link_file_in_a_folder_that_is_not_there_is_refused_before_anything_is_sent(
    job: Job,
) -> None:
    assert_nothing_sent(job.share("--link-file", "missing/link.txt"), job)


def test_a_file_that_comes_into_the_link_files_place_meanwhile_is_not_written_over(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    server = proxied(faults.holds)
    job = job_at(server)
    path = job.terminal.here / "link.txt"
    process = job.start("share", "-f", "env:DB_PASSWORD", "--link-file", "link.txt")
    assert server.committed.wait(PATIENCE)
    path.write_text("somebody else's")
    server.released.set()
    done = ended(process)
    assert done.out == ""
    assert_kept(done, job)
    assert path.read_text() == "somebody else's"
    path.unlink()
    assert job.resume().code == 0
    assert job.opens(path.read_text())


def test_a_symlink_that_comes_into_the_link_files_place_meanwhile_is_not_followed(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    server = proxied(faults.holds)
    job = job_at(server)
    target = job.terminal.here / "target"
    path = job.terminal.here / "link.txt"
    process = job.start("share", "-f", "env:DB_PASSWORD", "--link-file", "link.txt")
    assert server.committed.wait(PATIENCE)
    path.symlink_to(target)
    server.released.set()
    done = ended(process)
    assert_kept(done, job)
    assert not target.exists()


def test_link_file_and_receipt_are_for_their_owner_alone_whatever_the_umask(job: Job) -> None:
    process = job.start(
        "share",
        "-f",
        "env:DB_PASSWORD",
        "--link-file",
        "link.txt",
        "--receipt",
        "receipt.json",
        umask=0,
    )
    assert ended(process).code == 0
    here = job.terminal.here
    assert {path.name: oct(mode(path)) for path in here.iterdir()} == {
        "link.txt": "0o600",
        "receipt.json": "0o600",
    }
    assert "#" not in (here / "receipt.json").read_text()
    assert job.opens((here / "link.txt").read_text())


def test_a_receipt_that_cannot_be_written_keeps_the_link_for_resume(job: Job, small: Path) -> None:
    filler = fill(small)
    done = job.share("--receipt", str(small / "receipt.json"))
    assert done.out == ""
    assert_kept(done, job)
    filler.unlink()
    assert_resumed(job)
    assert (small / "receipt.json").exists()


def test_missing_permissions_fail_before_anything_is_sent(job: Job) -> None:
    """Modes, as they are for everybody but root."""
    if os.geteuid() == 0:
        pytest.skip(
            "root may write anywhere; the tests above mount a read-only file system instead"
        )
    job.state.mkdir(mode=0o500)
    try:
        assert_nothing_sent(job.share(), job)
    finally:
        job.state.chmod(0o700)


def test_python_itself_may_be_run_with_closed_streams() -> None:
    """What the tests above stand on: a descriptor that is closed stays closed in the child."""
    command = f'"{sys.executable}" -c "import sys; sys.exit(sys.stdout is None)" >&-'
    assert subprocess.run(["/bin/sh", "-c", command], check=False).returncode == 1
