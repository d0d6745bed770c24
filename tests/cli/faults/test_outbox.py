"""The outbox: an entry alone tells nothing, and `resume` takes only what is its own, whole, and not
too old.
"""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cli.faults.conftest import Lost
from cli.faults.resuming import assert_finished_by_resume
from sealpipe import Client, Field, errors
from sealpipe.api.operation import Credential
from sealpipe.share import post as sharing
from sealpipe.share.options import plan_share
from sealpipe.state.entry import MAX_RESEND_AGE, Entry
from sealpipe.state.outbox import Outbox
from sealpipe.wire import link as links
from support import faults
from support.damage import flipped
from support.faulty import Faulty
from support.job import Job, ended
from support.terminal import ABROAD, PATIENCE, Done


def entry_file(job: Job) -> Path:
    (entry,) = job.entries()
    return job.outbox / f"{entry}.sealed"


def assert_untouched(job: Job, server: Faulty, done: Done, before: int) -> None:
    """Nothing was sent, nothing was told, the entry stays, and resuming properly still works."""
    assert done.out == ""
    assert "Traceback" not in done.err
    assert len(server.received()) == before
    assert len(job.entries()) == 1
    again = job.resume("--all")
    assert again.code == 0, again
    assert len(job.shares()) == 1
    assert job.opens(again.out)


def disguises(value: bytes) -> set[bytes]:
    """The ways that bytes show up in a file: as they are, in hex, in base64 and base64url at three
    shifts.
    """
    found = {value, value.hex().encode(), value.hex().upper().encode()}
    for shift in range(3):
        whole = base64.b64encode(b"\0" * shift + value)
        # The first and last characters also hold neighbouring bits.
        inner = whole[-(-shift * 8 // 6) : len(whole) - 4]
        found |= {inner, inner.replace(b"+", b"-").replace(b"/", b"_")}
    return found


def test_an_entry_alone_holds_neither_fragment_nor_secret_nor_passcode_nor_credential(
    lost: Lost,
) -> None:
    passcode = "correct horse battery"
    job, _ = lost("--passcode-from", "env:CODE", environ={"CODE": passcode})
    content = b"".join(path.read_bytes() for path in job.state.rglob("*") if path.is_file())
    done = job.resume()
    assert done.code == 0
    fragment = done.out.strip().partition("#")[2]
    _, _, secrets = job.api_key.partition("_sk_live_")
    key_id, auth_secret, custody_secret = secrets.split(".")
    hidden = {
        "fragment": fragment.encode(),
        "content key": links.decode_fragment(fragment),
        "secret": job.secret.encode(),
        "passcode": passcode.encode(),
        "auth secret": auth_secret.encode(),
        "custody secret": custody_secret.encode(),
        "title": b"DB_PASSWORD",
    }
    for name, value in hidden.items():
        assert not [form for form in disguises(value) if form in content], name
    # What the test stands on: it does find what is there.
    assert [form for form in disguises(key_id.encode()) if form in content]


def test_an_entry_does_not_open_without_the_custody_secret_that_sealed_it(lost: Lost) -> None:
    job, server = lost()
    before = len(server.received())
    done = job.resume(SEALPIPE_API_KEY=job.api_key.rpartition(".")[0])
    assert done.code == 2
    assert_untouched(job, server, done, before)


def test_another_key_of_the_same_account_is_refused(lost: Lost) -> None:
    job, server = lost()
    before = len(server.received())
    other = job.service.create_key(account=job.account).reveal()
    done = job.resume(SEALPIPE_API_KEY=other)
    assert done.code == 2
    assert Credential.parse(job.api_key).key_id in done.err
    assert_untouched(job, server, done, before)


def test_another_base_address_is_refused(lost: Lost, proxied: Callable[..., Faulty]) -> None:
    job, server = lost()
    other = proxied()
    before = len(server.received())
    done = job.resume(SEALPIPE_BASE_URL=other.base_url)
    assert done.code == 2
    assert server.base_url in done.err
    assert other.connections == 0
    assert_untouched(job, server, done, before)


def test_the_link_starts_with_the_address_that_was_set_when_it_was_shared(lost: Lost) -> None:
    job, _ = lost()
    done = job.resume(SEALPIPE_LINK_BASE_URL="https://elsewhere.example/s")
    assert done.code in (0, 2)
    if done.code == 2:
        done = job.resume()
    assert done.out.startswith(job.service.link_base_url)
    assert job.opens(done.out)


@pytest.mark.parametrize("where", ["the header", "the body", "the key id", "the time", "no salt"])
def test_an_entry_that_was_changed_is_refused_and_kept(where: str, lost: Lost) -> None:
    job, server = lost()
    file = entry_file(job)
    whole = file.read_bytes()
    line, _, records = whole.partition(b"\n")
    header = json.loads(line)
    if where == "the body":
        records = flipped(records, 100)
    elif where == "the time":
        header["created_at"] = "2020-01-01T00:00:00Z"
    elif where == "the header":
        header["run"] = "other"
    elif where == "no salt":
        del header["salt"]
    else:
        header["key_id"] = "A" * 16
    changed = line if where == "the body" else json.dumps(header, separators=(",", ":")).encode()
    file.write_bytes(changed + b"\n" + records)
    before = len(server.received())
    done = job.resume("--all")
    assert (done.code, done.out) == (2, "")
    assert "Traceback" not in done.err
    assert len(server.received()) == before
    file.write_bytes(whole)
    assert_untouched(job, server, done, before)


def test_a_copy_under_another_id_is_never_sent(lost: Lost) -> None:
    job, server = lost()
    file = entry_file(job)
    copy = file.with_name("aaaaaaaaaaaa.sealed")
    copy.write_bytes(file.read_bytes())
    before = len(server.received())
    done = job.resume("aaaaaaaaaaaa")
    assert (done.code, done.out) == (2, "")
    assert "is a copy of entry" in done.err
    assert len(server.received()) == before
    assert "unreadable: it is a copy of entry" in job.resume("--list", "--all").out
    done = job.resume()
    assert done.code == 2
    assert job.opens(done.out)
    assert len(job.shares()) == 1
    assert copy.exists()


@pytest.mark.parametrize("size", [0, 10, 200, -1])
def test_an_entry_that_is_not_whole_is_never_sent(size: int, lost: Lost) -> None:
    """What no kill leaves behind, but a broken disk may."""
    job, server = lost()
    file = entry_file(job)
    whole = file.read_bytes()
    before = len(server.received())
    file.write_bytes(whole[:size])
    done = job.resume()
    assert done.out == ""
    assert "bug" not in done.err
    assert len(server.received()) == before
    # Without its first line whole it is none of ours, and passed over.
    assert done.code == (2 if b"\n" in whole[:size] else 0)
    file.write_bytes(whole)
    assert_untouched(job, server, done, before)


def test_a_foreign_file_in_the_outbox_is_ignored(lost: Lost) -> None:
    job, _ = lost()
    (job.outbox / "notes.txt").write_text("not ours")
    (job.outbox / "0123456789ab.sealed").mkdir()
    (job.outbox / "ba9876543210.sealed").write_bytes(b"\xff\xfe not JSON\n")
    done = job.resume()
    assert job.opens(done.out)
    assert len(job.shares()) == 1


def test_discarding_drops_the_entry_and_sends_nothing(lost: Lost) -> None:
    job, server = lost()
    before = len(server.received())
    (entry,) = job.entries()
    done = job.resume(entry, "--discard", SEALPIPE_API_KEY=None)
    assert (done.code, done.out) == (0, "")
    assert job.left() == []
    assert len(server.received()) == before


# -- two at once ------------------------------------------------------------------------------


def test_an_entry_that_another_process_resumes_is_left_to_it(lost: Lost) -> None:
    job, server = lost()
    (entry,) = job.entries()
    server.plan(faults.holds)
    before = len(server.received())
    first = job.start("resume")
    assert server.committed.wait(PATIENCE)
    every = job.resume()
    assert (every.code, every.out) == (0, "")
    named = job.resume(entry)
    assert (named.code, named.out) == (2, "")
    assert "another process" in named.err
    dropped = job.resume(entry, "--discard")
    assert dropped.code == 2
    server.released.set()
    done = ended(first)
    assert done.code == 0
    assert len(server.received()) == before + 1
    assert len(job.shares()) == 1
    assert job.opens(done.out)
    assert job.left() == []


def test_resume_leaves_a_share_that_is_still_running_to_itself(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    server = proxied(faults.holds)
    job = job_at(server)
    process = job.start()
    assert server.committed.wait(PATIENCE)
    meanwhile = job.resume()
    assert (meanwhile.code, meanwhile.out) == (0, "")
    server.released.set()
    done = ended(process)
    assert done.code == 0
    assert len(server.received()) == len(job.shares()) == 1
    assert job.opens(done.out)
    assert job.left() == []


def test_of_many_that_resume_at_once_exactly_one_tells_the_link(lost: Lost) -> None:
    job, _ = lost()
    processes = [job.start("resume") for _ in range(6)]
    with ThreadPoolExecutor(6) as pool:
        dones = list(pool.map(ended, processes))
    assert [done.code for done in dones] == [0] * 6
    (told,) = [done.out for done in dones if done.out]
    assert len(job.shares()) == 1
    assert job.opens(told)
    assert job.left() == []


def test_shares_that_run_at_once_do_not_disturb_each_other(job: Job) -> None:
    processes: list[subprocess.Popen[bytes]] = [job.start() for _ in range(6)]
    with ThreadPoolExecutor(6) as pool:
        dones = list(pool.map(ended, processes))
    assert [done.code for done in dones] == [0] * 6
    assert len({done.out for done in dones}) == len(job.shares()) == 6
    assert job.left() == []


# -- whose entries ----------------------------------------------------------------------------

GITHUB = {
    "GITHUB_ACTIONS": "true",
    "GITHUB_REPOSITORY": "acme/app",
    "GITHUB_RUN_ID": "1",
    "GITHUB_RUN_ATTEMPT": "1",
    "GITHUB_JOB": "deploy",
}
GITLAB = {"GITLAB_CI": "true", "CI_PROJECT_PATH": "acme/app", "CI_JOB_ID": "7"}


@pytest.mark.parametrize(
    ("made_in", "changed"),
    [
        (GITHUB, {"GITHUB_RUN_ID": "2"}),
        (GITHUB, {"GITHUB_JOB": "test"}),
        (GITHUB, {"GITHUB_REPOSITORY": "acme/other"}),
        (GITHUB, dict.fromkeys(GITHUB)),
        ({}, GITHUB),
        (GITHUB, {**dict.fromkeys(GITHUB), **GITLAB}),
    ],
    ids=["run", "job", "repository", "outside CI", "made outside CI", "another CI"],
)
def test_another_runs_entries_are_taken_only_with_all(
    made_in: Mapping[str, str | None], changed: Mapping[str, str | None], lost: Lost
) -> None:
    job, server = lost(environ=made_in)
    before = len(server.received())
    environ: dict[str, Any] = {**made_in, **changed}
    done = job.resume(**environ)
    assert (done.code, done.out) == (0, "")
    assert "nothing to resume" in done.err
    assert len(server.received()) == before
    assert len(job.entries()) == 1
    done = job.resume("--all", **environ)
    assert done.code == 0
    assert len(job.shares()) == 1
    assert job.opens(done.out)


def test_a_runs_own_entries_are_taken_without_a_word(lost: Lost) -> None:
    job, _ = lost(environ=GITHUB)
    done = job.resume(**GITHUB)
    assert done.code == 0
    assert job.opens(done.out)


def test_in_gitlab_a_link_comes_out_of_resume_through_its_file_alone(lost: Lost) -> None:
    job, _ = lost("--link-file", "link.txt", environ=GITLAB)
    done = job.resume(**GITLAB)
    assert (done.code, done.out) == (0, "")
    assert "#" not in done.err
    assert job.opens((job.terminal.here / "link.txt").read_text())


def test_gitlab_resume_skips_entries_made_elsewhere(lost: Lost) -> None:
    job, server = lost(environ=ABROAD)
    before = len(server.received())
    (entry,) = job.entries()
    done = job.resume(entry, **GITLAB)
    assert (done.code, done.out) == (2, "")
    assert_untouched(job, server, done, before)


# -- too old ----------------------------------------------------------------------------------


class Dated(Outbox):
    """An outbox whose entries were made at another time."""

    age = timedelta()

    def add(
        self, meta: Mapping[str, Any], body: bytes | bytearray, now: datetime | None = None
    ) -> Entry:
        assert now is None
        return super().add(meta, body, datetime.now(UTC) - self.age)


def left_behind(job: Job, server: Faulty, age: timedelta) -> None:
    """A share whose answer was lost some time ago."""
    outbox = Dated(job.outbox, Credential.parse(job.api_key))
    outbox.age = age
    arguments: dict[str, Any] = {
        "base_url": server.base_url,
        "link_base_url": job.service.link_base_url,
    }
    with Client(api_key=job.api_key, **arguments) as client:
        plan = plan_share([Field("DB_PASSWORD", job.secret, type="password")])
        with pytest.raises(errors.OutcomeUnknownError):
            sharing.share(client.session, plan, outbox)
    server.mend()


@pytest.mark.parametrize(
    "age", [timedelta(hours=23, minutes=1), timedelta(days=400), timedelta(minutes=-30)], ids=str
)
def test_an_entry_older_than_23_hours_or_from_the_future_is_never_sent_again(
    age: timedelta, proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    assert timedelta(hours=23) == MAX_RESEND_AGE
    server = proxied(faults.reset_after, then=faults.unauthorized)
    job = job_at(server)
    left_behind(job, server, age)
    before = len(server.received())
    done = job.resume()
    assert (done.code, done.out) == (9, "")
    assert len(server.received()) == before
    (entry,) = job.entries()
    assert f"sealpipe resume {entry} --discard" in done.err
    assert "shares list" in done.err


def test_an_entry_just_under_23_hours_old_is_sent_again(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    server = proxied(faults.reset_after, then=faults.unauthorized)
    job = job_at(server)
    left_behind(job, server, timedelta(hours=22, minutes=59))
    assert_finished_by_resume(job)


def test_an_old_entry_whose_answer_is_known_is_delivered_without_sending(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    server = proxied()
    job = job_at(server)
    outbox = Dated(job.outbox, Credential.parse(job.api_key))
    outbox.age = timedelta(days=3)
    arguments: dict[str, Any] = {
        "base_url": server.base_url,
        "link_base_url": job.service.link_base_url,
    }
    with Client(api_key=job.api_key, **arguments) as client:
        plan = plan_share([Field("DB_PASSWORD", job.secret, type="password")])
        share = sharing.share(client.session, plan, outbox)
    assert share.entry is not None
    share.entry.close()
    done = job.resume()
    assert (done.code, done.out) == (0, share.link.reveal() + "\n")
    assert len(server.received()) == 1
    assert job.opens(done.out)


def test_one_entry_that_fails_does_not_stop_the_others(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    server = proxied(faults.reset_after, then=faults.unauthorized)
    job = job_at(server)
    left_behind(job, server, timedelta(days=2))
    server.plan(faults.reset_after, then=faults.unauthorized)
    assert job.share().code == 9
    server.mend()
    done = job.resume()
    assert done.code == 9
    assert done.out.count("\n") == 1
    assert job.opens(done.out)
    assert len(job.entries()) == 1


def test_the_state_folder_of_a_ci_job_is_where_its_runner_clears_up(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job], tmp_path: Path
) -> None:
    server = proxied(faults.reset_after, then=faults.unauthorized)
    job = job_at(server)
    temp = tmp_path / "runner-temp"
    temp.mkdir()
    environ: dict[str, Any] = {**GITHUB, "RUNNER_TEMP": str(temp), "SEALPIPE_STATE_DIR": None}
    assert job.share(**environ).code == 9
    assert len(list((temp / "sealpipe" / "outbox").iterdir())) == 1
    server.mend()
    done = job.resume(**environ)
    assert done.code == 0
    assert job.opens(done.out)
    assert list((temp / "sealpipe" / "outbox").iterdir()) == []
