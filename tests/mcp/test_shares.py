"""An assistant sends a secret to a person: the link goes by mail only, once, and its call can be
repeated.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import re
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from threading import Event
from typing import Any

import anyio
import pytest

from sealpipe import async_client
from sealpipe.cancellation import Cancellation
from sealpipe.mcp import shares
from sealpipe.state.creations import REPEAT_SECONDS
from support.faults import holds, holds_before
from support.faulty import Faulty
from support.job import Job, Proxied
from support.leaks import Detector
from support.mailbox import PASSWORD, Mailbox
from support.terminal import opened

TO = "email:kim@acme.example"
PATIENCE = 60.0
ONE: dict[str, Any] = {
    "fields": [{"reference": "env:DB_PASSWORD", "label": "Password"}],
    "to": TO,
    "title": "For Kim",
}


@pytest.fixture
def mailbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, job: Job) -> Iterator[Mailbox]:
    with Mailbox(tmp_path) as running:
        for name, value in {**running.environ(), "DB_PASSWORD": job.secret}.items():
            monkeypatch.setenv(name, value)
        yield running


@pytest.fixture
def before(proxied: Proxied) -> Faulty:
    """Stands before the service."""
    return proxied()


@pytest.fixture
def client_options(mailbox: Mailbox, before: Faulty) -> dict[str, Any]:
    return {"ca_file": mailbox.ca_file, "base_url": before.base_url}


@pytest.fixture
def assistant(connect: Any) -> Any:
    return connect()


def links(mailbox: Mailbox) -> list[str]:
    """The links that were mailed."""
    texts = (each.body() for each in mailbox.received)
    return [found for text in texts for found in re.findall(r"http://\S+#\S+", text)]


def test_only_the_recipient_gets_the_link(
    assistant: Any, job: Job, mailbox: Mailbox, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.NOTSET)
    made = assistant.call("share_secret", **ONE, expires_in="2h")
    assert made == {
        "code": job.shares()[0],
        "expires_at": made["expires_at"],
        "sent_to": [TO],
        "repeated": False,
    }
    (link,) = links(mailbox)
    assert mailbox.received[0].recipients == ["kim@acme.example"]
    assert opened(job.service, link) == {"Password": job.secret}
    secrets = {
        "fragment": link.partition("#")[2],
        "value": job.secret,
        "mail": PASSWORD,
        "key": job.api_key,
    }
    detector = Detector({name: value.encode() for name, value in secrets.items()})
    assert detector.find("".join(assistant.received).encode()) == set()
    assert detector.find(caplog.text.encode()) == set()
    records = b"".join(path.read_bytes() for path in (job.state / "created").rglob("*.json"))
    assert detector.find(records) == set()
    assert job.entries() == []


def test_the_same_call_shares_and_sends_once(
    assistant: Any, job: Job, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = assistant.call("share_secret", **ONE)
    assert assistant.call("share_secret", **ONE) == {**made, "repeated": True}
    assert len(mailbox.received) == len(job.shares()) == 1
    another = assistant.call("share_secret", **{**ONE, "title": "For Kim, too"})
    assert another["code"] != made["code"]
    monkeypatch.setattr(shares, "_SAME", timedelta(0))
    later = assistant.call("share_secret", **ONE)
    assert not later["repeated"]
    assert len({made["code"], another["code"], later["code"]}) == len(links(mailbox)) == 3


def test_what_was_not_sent_is_sent_by_the_same_call(
    assistant: Any, job: Job, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shares, "_SAME", timedelta(0))  # however late it comes
    mailbox.answers.rcpt = "550 5.1.1 no such user"
    failed = assistant.fail("share_secret", **ONE)
    (code,), (entry,) = job.shares(), job.entries()
    assert failed["kind"] == "DeliveryError"
    assert all(
        word in str(failed)
        for word in (code, f"sealpipe resume {entry}", "repeat the call", "has no mailbox")
    )
    mailbox.answers.rcpt = ""
    (row,) = assistant.call("list")["made"]
    assert (row["code"], row["finished"], row["sent_to"]) == (code, False, [])
    assert assistant.call("share_secret", **ONE)["code"] == code
    assert assistant.call("status", code=code)["sent_to"] == [TO]
    assert [opened(job.service, link) for link in links(mailbox)] == [{"Password": job.secret}]
    assert job.shares() == [code]
    assert job.entries() == []


def test_what_was_not_sent_of_a_share_that_has_ended_is_dropped(
    assistant: Any, job: Job, mailbox: Mailbox
) -> None:
    mailbox.answers.rcpt = "550 5.1.1 no such user"
    assistant.fail("share_secret", **ONE)
    (code,) = job.shares()
    assert assistant.call("expire", code=code)["outcome"] == "expired"
    mailbox.answers.rcpt = ""
    made = assistant.call("share_secret", **ONE)
    assert (made["repeated"], made["code"] != code) == (False, True)
    assert [opened(job.service, link) for link in links(mailbox)] == [{"Password": job.secret}]
    assert job.entries() == []


def test_a_damaged_record_stops_every_share_for_as_long_as_it_may_be_of_the_same_call(
    assistant: Any, job: Job, mailbox: Mailbox
) -> None:
    assistant.call("share_secret", **ONE)
    (record,) = (job.state / "created").iterdir()
    record.write_bytes(b"{")
    for arguments in (ONE, {**ONE, "title": "Another"}, ONE):
        failed = str(assistant.fail("share_secret", **arguments))
        assert record.name in failed
        assert "nothing was sent" in failed
        assert (len(mailbox.received), job.entries()) == (1, [])
    earlier = time.time() - REPEAT_SECONDS - 60
    os.utime(record, (earlier, earlier))
    for _ in range(2):  # the second finds the first
        assistant.call("share_secret", **ONE)
    assert len(mailbox.received) == 2


@pytest.mark.parametrize("notes", [[], {}, ["client"], {"client": 5}, None])
def test_damaged_notes_stop_the_same_call_and_no_other(
    assistant: Any, job: Job, mailbox: Mailbox, notes: Any
) -> None:
    """Its name tells that the record is of this call; what it sent to whom is not known."""
    assistant.call("share_secret", **ONE)
    (record,) = (job.state / "created").iterdir()
    record.write_text(json.dumps({**json.loads(record.read_bytes()), "notes": notes}))
    failed = str(assistant.fail("share_secret", **ONE))
    assert "is damaged" in failed
    assert "nothing was sent" in failed
    assert (len(mailbox.received), job.entries()) == (1, [])
    assistant.call("share_secret", **{**ONE, "title": "Another"})
    assert len(mailbox.received) == 2


def test_a_share_that_meets_a_damaged_record_leaves_its_entry_unlocked(
    assistant: Any, job: Job, mailbox: Mailbox
) -> None:
    mailbox.answers.rcpt = "550 no such user"
    assistant.fail("share_secret", **ONE)
    mailbox.answers.rcpt = ""
    damaged = job.state / "created" / "0123.json"
    damaged.write_bytes(b"{")
    gc.collect()
    gc.disable()  # as rarely as in a command: nothing else may close the entry
    try:
        assert "is damaged" in str(assistant.fail("share_secret", **ONE))
        damaged.unlink()
        assert assistant.call("share_secret", **ONE)["code"] == job.shares()[0]
    finally:
        gc.enable()
    assert len(mailbox.received) == 1


def test_what_may_have_arrived_is_not_sent_again(
    assistant: Any, job: Job, mailbox: Mailbox
) -> None:
    mailbox.answers.breaks = {"data"}
    for _ in range(2):
        failed = assistant.fail("share_secret", **ONE)
        assert [
            word
            for word in (job.shares()[0], "may have arrived", "--resend")
            if word not in str(failed)
        ] == [], failed
        mailbox.answers.breaks = set()
    assert len(mailbox.received) == len(job.shares()) == 1


def test_the_address_of_links_hides_no_code_and_no_reason(
    connect: Any, client_options: dict[str, Any], job: Job, mailbox: Mailbox
) -> None:
    client_options["link_base_url"] = (
        "http://127.0.0.1:4283/s"  # so long that the code is a piece of the mail's text
    )
    mailbox.answers.breaks = {"data"}
    failed = connect().fail("share_secret", **ONE)
    assert job.shares()[0] in failed["detail"]["untrusted"]
    assert "--resend" in failed["remedy"]["untrusted"]


def test_a_missing_source_leaves_nothing(
    assistant: Any, job: Job, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DB_PASSWORD")
    assert assistant.fail("share_secret", **ONE)["kind"] == "SecretNotFoundError"
    assert (job.shares(), mailbox.received, job.entries()) == ([], [], [])
    assert assistant.call("list")["made"] == []
    monkeypatch.setenv("DB_PASSWORD", job.secret)
    assert not assistant.call("share_secret", **ONE)["repeated"]


@pytest.mark.parametrize(
    "change",
    [
        {"to": "email:{to}@acme.example"},
        {"title": "a\nb"},
        {"fields": [{"reference": "env:DB_PASSWORD", "label": "a\u202eb"}]},
        {"fields": []},
        {"views": 0},
        {"expires_in": "soon"},
        {"link": "yes"},
    ],
)
def test_arguments_are_checked_before_anything_happens(
    assistant: Any, job: Job, mailbox: Mailbox, change: dict[str, Any]
) -> None:
    assert assistant.fail("share_secret", **{**ONE, **change})["exit_code"] == 2
    assert (job.shares(), mailbox.received) == ([], [])
    assert not (job.state / "mcp").exists()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("fault", [holds, holds_before])
def test_a_cancelled_call_is_finished_by_the_same_one(
    connect: Any,
    job: Job,
    mailbox: Mailbox,
    before: Faulty,
    monkeypatch: pytest.MonkeyPatch,
    fault: Any,
    mode: str,
) -> None:
    monkeypatch.setattr(async_client, "GRACE", 0.2)
    heard, end = Event(), Cancellation.cancel

    def cancel_and_note(call: Cancellation) -> bool:
        try:
            return end(call)
        finally:
            heard.set()

    monkeypatch.setattr(Cancellation, "cancel", cancel_and_note)
    assistant = connect(mode)
    before.plan(fault)

    async def cancel() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(assistant.client.call_tool, "share_secret", ONE)
            await anyio.to_thread.run_sync(before.committed.wait)
            group.cancel_scope.cancel()

    assistant.portal.call(cancel)
    assert heard.wait(PATIENCE)  # the server may hear of it later than its client goes on
    before.mend()
    (row,) = assistant.call("list")["made"]
    assert (row["finished"], row["sent_to"]) == (False, [])
    assert mailbox.received == []  # to list is not to send
    made = assistant.call("share_secret", **ONE)
    assert made["repeated"]
    assert job.shares() == [made["code"]]
    assert len(links(mailbox)) == 1
    assert job.entries() == []


def test_two_same_calls_at_once_make_one_share(assistant: Any, job: Job, mailbox: Mailbox) -> None:
    async def both() -> list[Any]:
        results: list[Any] = []

        async def call() -> None:
            results.append(await assistant.client.call_tool("share_secret", ONE))

        async with anyio.create_task_group() as group:
            group.start_soon(call)
            group.start_soon(call)
        return [each.structured_content for each in results]

    first, second = assistant.portal.call(both)
    assert first["code"] == second["code"]
    assert {first["repeated"], second["repeated"]} == {True, False}
    assert len(mailbox.received) == len(job.shares()) == 1
