"""A server that is killed while it asks for a secret leaves one request or none, and its next call finds which."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from sealpipe import Client
from sealpipe.client_base import get_service, run
from sealpipe.flows import Flow
from sealpipe.flows.request import RequestOptions
from sealpipe.flows.request.create import request
from sealpipe.flows.session import Session
from sealpipe.http import ServiceNetwork
from sealpipe.mcp import made, shares, unfinished
from support.fake_web import Receiver
from support.job import Job, client_of

DIED = -signal.SIGKILL


def dying(flow: Flow[Any], moment: int) -> Flow[Any]:
    """The flow in a process that is killed at this moment: before or after one of its steps."""
    moments = count(1)
    result: Any = None
    error: BaseException | None = None
    while True:
        try:
            step = flow.send(result) if error is None else flow.throw(error)
        except StopIteration as end:
            return end.value
        result = error = None
        if next(moments) == moment:
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            result = yield step
        except BaseException as raised:  # noqa: BLE001 - the flow's
            error = raised
        if next(moments) == moment:
            os.kill(os.getpid(), signal.SIGKILL)


def ask(session: Session, state: Path) -> Flow[made.Made]:
    """What `request_secret` does."""
    planned = made.plan(session, "request", "helper", sink="file:/nowhere", prompts=(("a", "A", "text"),))
    options = RequestOptions(["A:text"], name=planned.name)
    work = request(session, options, made.open_outbox(session, state))
    return (yield from made.create(session, state, planned, work))


def run_in_child(session: Session, flow: Flow[Any]) -> int:
    """Run a flow in a process of its own; its exit code, or minus its signal."""
    child = os.fork()
    if child == 0:
        try:
            run(flow, ServiceNetwork(get_service(session)).send)
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.fixture
def client(job: Job) -> Iterator[Client]:
    """A client of the job's account."""
    with client_of(job) as opened:
        yield opened


def test_a_kill_at_any_step_leaves_one_request_or_none(client: Client, tmp_path: Path) -> None:
    session, before, found = client.session, 0, set()
    for moment in count(1):
        state = tmp_path / str(moment) / "mcp"
        code = run_in_child(session, dying(ask(session, state), moment))
        client.run(unfinished.settle(session, state))
        records = made.list_made(state, session.base_url)
        codes = {each.short_code for each in client.iter_requests()}
        assert len(codes) - before == len(records) <= 1
        assert {each.short_code for each in records} <= codes
        assert list(state.parent.glob("outbox/*")) == []
        assert len(list(state.glob("made/*"))) == len(records)
        before = len(codes)
        found.add(len(records))
        if code == 0:
            break
        assert code == DIED
    assert found == {0, 1}


def test_a_record_at_work_is_left_alone(client: Client, tmp_path: Path) -> None:
    session, state = client.session, tmp_path / "mcp"
    flow = ask(session, state)
    lock = next(flow).work()  # type: ignore[union-attr]  # the record is written, and locked
    client.run(unfinished.settle(session, state))
    assert len(list(state.glob("made/*"))) == 1
    flow.close()  # cancelled before the flow got the lock
    del lock
    client.run(unfinished.settle(session, state))
    assert list(state.glob("made/*")) == []


def test_what_the_command_line_finished_is_found(job: Job, client: Client) -> None:
    session, state = client.session, job.state / "mcp"
    for moment in count(1):  # until the service has the request, and this machine does not know
        assert run_in_child(session, dying(ask(session, state), moment)) == DIED
        if list(client.iter_requests()):
            break
    assert job.resume().code == 0
    client.run(unfinished.settle(session, state))
    records = made.list_made(state, session.base_url)
    assert {each.short_code for each in records} == {each.short_code for each in client.iter_requests()}
    assert all(each.link is not None and each.receipt.prompts[0].text == "A" for each in records)


def test_a_killed_share_is_finished_by_the_same_call(
    client: Client, job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEALPIPE_PLUGIN_WEBHOOK__SECRET", "whsec-0123456789abcdef")
    session, codes, ends = client.session, set[str | None](), set[str]()
    with Receiver() as receiver:
        wanted = shares.SHARE_SECRET.parse({"fields": [{"reference": "text:hello"}], "to": receiver.target})
        for moment in count(1):
            state, sent = tmp_path / str(moment) / "mcp", len(receiver.secrets)
            code = run_in_child(session, dying(shares.share_once(session, state, "helper", wanted), moment))
            known, is_new = client.run(shares.share_once(session, state, "helper", wanted))
            assert len(receiver.secrets) == sent + 1
            ends.add("new" if is_new else "repeated")
            codes.add(known.short_code)
            assert len(codes) == moment
            assert set(job.shares()) == codes
            if code == 0:
                break
            assert code == DIED
    assert ends == {"new", "repeated"}
