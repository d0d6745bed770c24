"""A database password that is rotated: new in OpenBao's KV2 and in the person's link, whatever is
killed or changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from sealpipe import Client, Field, Outbox, Secret, WriteConflictError
from sealpipe.api.operation import Credential
from sealpipe.share import post as sharing
from sealpipe.share.options import plan_share
from sealpipe.state.entry import Entry
from sealpipe_rehearsal.running_service import RunningService
from support.job import Caller, Job
from support.openbao import Bao, dev_server
from support.terminal import opened

FIELD = "Password=gen:password?symbols=0"
TARGET = "vault:secret/app/db?mode=merge#password=Password"


@pytest.fixture(scope="module")
def one_bao() -> Iterator[Bao]:
    with dev_server() as bao:
        yield bao


@pytest.fixture
def bao(one_bao: Bao, monkeypatch: pytest.MonkeyPatch) -> Bao:
    """With a password that is in use, and a token that is set for this process."""
    one_bao.call("DELETE", "secret/metadata/app/db")
    one_bao.call("POST", "secret/data/app/db", {"data": {"password": "old", "user": "app"}})
    monkeypatch.setenv("VAULT_ADDR", one_bao.addr)
    monkeypatch.setenv("VAULT_TOKEN", one_bao.root)
    return one_bao


def there(bao: Bao) -> tuple[dict[str, Any], int]:
    """What is stored, and which version that is."""
    found = bao.call("GET", "secret/data/app/db")
    return found["data"], found["metadata"]["version"]


def test_a_rotated_password_is_in_the_store_and_in_the_person_s_link(
    bao: Bao, job: Job, service: RunningService
) -> None:
    done = job.run(
        "share", "-f", FIELD, "--also-to", TARGET, VAULT_ADDR=bao.addr, VAULT_TOKEN=bao.root
    )
    assert done.code == 0, done
    data, version = there(bao)
    assert data == {"user": "app", "password": opened(service, done.out)["Password"]}
    assert version == 2
    assert "stored in vault:secret/app/db\n" in done.err


def test_from_python_too(bao: Bao, call: Caller, service: RunningService) -> None:
    share = call("share", [FIELD], also_to=[TARGET], expires_in=timedelta(hours=1))
    assert there(bao) == (
        {"user": "app", "password": opened(service, share.link.reveal())["Password"]},
        2,
    )
    assert share.remarks[-1] == "stored in vault:secret/app/db"


def test_where_something_else_is_there_nothing_is_shared(bao: Bao, call: Caller, job: Job) -> None:
    with pytest.raises(WriteConflictError) as caught:
        call(
            "share",
            [Field("Password", Secret("new"))],
            also_to=["vault:secret/app/db#password=Password"],
        )
    assert "nothing was shared" in caught.value.__notes__
    assert (job.shares(), there(bao)) == ([], ({"password": "old", "user": "app"}, 1))


# -- killed after it was stored, before that was noted ---------------------------------------------


class Killed(BaseException):
    """The process is dead."""


@pytest.fixture
def cut_off(bao: Bao, job: Job, tmp_path: Path) -> Path:
    """The outbox of a process that was killed at that very moment."""
    folder = tmp_path / "outbox"
    credential = Credential.parse(job.api_key)
    plan = plan_share([FIELD], also_to=[TARGET], passcode="of two words")
    with (
        client(job) as made,
        mock.patch.object(Entry, "note_stored", side_effect=Killed),
        mock.patch.object(
            type(made.session.transport),
            "send",
            side_effect=AssertionError("sent before it is stored"),
        ),
        pytest.raises(Killed),
    ):
        sharing.share(made.session, plan, Outbox(folder, credential))
    data, version = there(bao)
    assert (set(data), version) == ({"password", "user"}, 2)
    assert data["password"] != "old"
    return folder


def client(job: Job) -> Client:
    return Client(
        api_key=job.api_key, base_url=job.service.base_url, link_base_url=job.service.link_base_url
    )


def resumed(job: Job, folder: Path) -> Any:
    """What comes of the one entry."""
    box = Outbox(folder, Credential.parse(job.api_key))
    (listed,) = box.list(every_run=True)
    entry = box.open(listed.id)
    assert isinstance(entry, Entry)
    with client(job) as made:
        return made.resume(entry)


def test_resume_shares_what_is_stored_and_stores_it_no_second_time(
    cut_off: Path, bao: Bao, job: Job, service: RunningService
) -> None:
    before = there(bao)
    share = resumed(job, cut_off)
    assert opened(service, share.link.reveal(), "of two words") == {
        "Password": before[0]["password"]
    }
    assert there(bao) == before
    assert share.remarks == ("already in vault:secret/app/db",)
    assert len(job.shares()) == 1


def test_what_was_rotated_meanwhile_is_left_alone(cut_off: Path, bao: Bao, job: Job) -> None:
    bao.call(
        "POST",
        "secret/data/app/db",
        {"data": {"password": "rotated by another", "user": "app", "new": "key"}},
    )
    share = resumed(job, cut_off)
    assert there(bao) == ({"password": "rotated by another", "user": "app", "new": "key"}, 3)
    assert share.remarks == ("already in vault:secret/app/db",)


def test_what_was_taken_away_meanwhile_is_stored_again(
    cut_off: Path, bao: Bao, job: Job, service: RunningService
) -> None:
    bao.call("DELETE", "secret/metadata/app/db")
    share = resumed(job, cut_off)
    password = opened(service, share.link.reveal(), "of two words")["Password"]
    assert there(bao) == ({"password": password}, 1)


def test_the_command_line_finishes_what_a_library_call_has_left(
    cut_off: Path, bao: Bao, job: Job, service: RunningService
) -> None:
    job.outbox.parent.mkdir(mode=0o700)
    cut_off.rename(job.outbox)
    done = job.resume(VAULT_ADDR=bao.addr, VAULT_TOKEN=bao.root)
    assert done.code == 0, done
    assert opened(service, done.out, "of two words") == {"Password": there(bao)[0]["password"]}


def test_without_the_store_s_login_resume_keeps_the_entry_and_shares_nothing(
    cut_off: Path, job: Job
) -> None:
    job.outbox.parent.mkdir(mode=0o700)
    cut_off.rename(job.outbox)
    done = job.resume()
    assert (done.code, done.out, job.shares(), len(job.entries())) == (2, "", [], 1), done
    assert f"outbox entry {job.entries()[0]} is kept" in done.err
