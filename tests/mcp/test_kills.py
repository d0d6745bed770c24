"""A server that is killed while it asks for a secret leaves one request or none, and its next call
finds which.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest

from sealpipe import Client
from sealpipe.client_base import connect
from sealpipe.errors import DeliveryError
from sealpipe.mcp import records, shares
from sealpipe.network.service_network import ServiceNetwork
from sealpipe.request.create import request
from sealpipe.request.options import plan_request
from sealpipe.session import Session
from support.fake_web import Receiver
from support.job import Job, client_of
from support.killing import CHANGING

DIED = -signal.SIGKILL


def die_at(moment: int) -> None:
    """Have this process killed before its step of that number: a request, its response, or a change
    of a file.
    """
    steps = count(1)

    def step() -> None:
        if next(steps) == moment:
            os.kill(os.getpid(), signal.SIGKILL)

    def stepping(call: Callable[..., Any], *, answers: bool = False) -> Callable[..., Any]:
        def done(*words: Any, **options: Any) -> Any:
            step()
            result = call(*words, **options)
            if answers:
                step()
            return result

        return done

    for name in CHANGING:
        setattr(os, name, stepping(getattr(os, name)))
    ServiceNetwork.send = stepping(ServiceNetwork.send, answers=True)  # type: ignore[method-assign]
    httpx.Client.send = stepping(httpx.Client.send, answers=True)  # type: ignore[method-assign]


def run_in_child(session: Session, work: Callable[[Session], object], moment: int) -> int:
    """Do work in a process of its own that is killed at that moment; its exit code, or minus its
    signal.
    """
    child = os.fork()
    if child == 0:
        code = 1
        try:
            die_at(moment)
            work(connect(session))  # with connections of its own
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


NOTES = {
    "client": "helper",
    "sent_to": [],
    "sink": "file:/nowhere",
    "prompts": [["a", "A", "text"]],
}


def ask(session: Session, state: Path, work: Callable[..., Any] = request) -> records.Record:
    """What `request_secret` does."""
    made_id = records.make_id()
    options = plan_request(["A:text"], name=records.make_name(made_id))
    return records.create(
        session, state, made_id, lambda outbox: work(session, options, outbox, notes=NOTES)
    )


@pytest.fixture
def client(job: Job) -> Iterator[Client]:
    """A client of the job's account."""
    with client_of(job) as opened:
        yield opened


def test_a_kill_at_any_step_leaves_one_request_or_none(client: Client, tmp_path: Path) -> None:
    session, before, found = client.session, 0, set()
    for moment in count(1):
        state = tmp_path / str(moment) / "mcp"
        code = run_in_child(session, lambda there, state=state: ask(there, state), moment)
        records.settle(session, state)
        listed = records.list_records(session, state)
        codes = {each.short_code for each in client.iter_requests()}
        assert len(codes) - before == len(listed) <= 1
        assert {each.known.short_code for each in listed} <= codes
        assert all(each.is_finished for each in listed)
        assert list(state.parent.glob("outbox/*")) == []
        before = len(codes)
        found.add(len(listed))
        if code == 0:
            break
        assert code == DIED
    assert found == {0, 1}


def test_what_is_at_work_is_left_alone(client: Client, tmp_path: Path) -> None:
    session, state, found = client.session, tmp_path / "mcp", list[Any]()

    def look_meanwhile(*words: Any, **options: Any) -> Any:
        created = request(*words, **options)
        records.settle(session, state)
        found.extend(records.list_records(session, state))
        return created

    made = ask(session, state, look_meanwhile)
    assert [(each.known.short_code, each.known.name, each.is_finished) for each in found] == [
        ("", made.known.name, False)
    ]
    assert records.list_records(session, state) == [made]


def test_what_the_command_line_finished_is_found(job: Job, client: Client) -> None:
    session, state = client.session, job.state / "mcp"
    for moment in count(1):  # until the service has the request, and this machine does not know
        assert run_in_child(session, lambda there, state=state: ask(there, state), moment) == DIED
        if list(client.iter_requests()):
            break
    assert job.resume().code == 0
    records.settle(session, state)
    listed = records.list_records(session, state)
    assert {each.known.short_code for each in listed} == {
        each.short_code for each in client.iter_requests()
    }
    assert all(
        each.known.link is not None and each.receipt.prompts[0].text == "A" for each in listed
    )


def test_a_killed_share_is_finished_by_the_same_call(
    client: Client, job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEALPIPE_PLUGIN_WEBHOOK__SECRET", "whsec-0123456789abcdef")
    session, ends = client.session, set[str]()
    with Receiver() as receiver:
        wanted = shares.SHARE_SECRET.read(
            {"fields": [{"reference": "text:hello"}], "to": receiver.target}
        )
        for moment in count(1):
            state, sent = tmp_path / str(moment) / "mcp", len(receiver.secrets)
            code = run_in_child(
                session,
                lambda there, state=state: shares.share_once(there, state, "helper", wanted),
                moment,
            )
            try:
                _, is_new = shares.share_once(session, state, "helper", wanted)
                ends.add("new" if is_new else "repeated")
                assert len(receiver.secrets) == sent + 1
            except (
                DeliveryError
            ):  # killed while the message was on its way: nobody knows, and it is not sent again
                ends.add("unclear")
                assert len(receiver.secrets) - sent in (0, 1)
            assert len(job.shares()) == moment
            if code == 0:
                break
            assert code == DIED
    assert ends == {"new", "repeated", "unclear"}
