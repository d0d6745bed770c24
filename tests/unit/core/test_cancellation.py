"""Where a thread looks whether its caller is still there, and what it does all the same."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from contextvars import copy_context
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sealpipe import Outbox, Secret
from sealpipe.api import requests, shares
from sealpipe.api.operation import Credential, Operation, Response
from sealpipe.cancellation import Cancellation, CancelledCallError, current, make_current
from sealpipe.plugin import Document, Locator, Source
from sealpipe.registry import Registry
from sealpipe.registry.fetching import fetch_all
from sealpipe.registry.safe_calls import call_plugin, isolate_plugin
from sealpipe.session import Session, Transport
from sealpipe.state.entry import Entry
from sealpipe.state.ledger import Ledger, PendingDelete, open_ledger

CREDENTIAL = Credential.parse(
    "svc_sk_live_CImPemhu0OnFu67o.qJD_fXTkHteKGs_0yDkgq7OPMa88-U4n6FfN7wYWebI"
    ".NNY6bLKghJislAP-sRWdHiSlgw1UB3x7ui3diYhA2Z4"
)
META = {"idempotency_key": "one", "fragment": Secret("1c4nary"), "passcode": None, "title": "t"}
BODY = b'{"data":"ciphertext"}'
NOW = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)
ANSWER = {"short_code": "abc", "expires_at": None, "custody": "stored", "replayed": False}


def cancelled(work: Callable[[], object]) -> None:
    """Do work whose caller has cancelled."""

    def run() -> None:
        cancellation = Cancellation()
        cancellation.cancel()
        make_current(cancellation)
        work()

    copy_context().run(run)


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def entry(tmp_path: Path) -> Iterator[Entry]:
    made = Outbox(tmp_path / "outbox", CREDENTIAL).add(META, BODY)
    yield made
    made.close()


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    opened = open_ledger(tmp_path / "requests", "http://127.0.0.1:9/v1", "abc")
    assert opened is not None
    yield opened
    opened.close()


ANNOUNCED: dict[str, Callable[[Any], object]] = {
    "another key": lambda entry: entry.note_new_key("two"),
    "a message": lambda entry: entry.note_delivery(0, "sending"),
    "a write": lambda entry: entry.note_write("m", "target", "storing"),
}
NOTED: dict[str, Callable[[Any], object]] = {
    "a response": lambda entry: entry.note_response(ANSWER),
    "a message": lambda entry: entry.note_delivery(0, "sent"),
    "a message that was not taken": lambda entry: entry.note_delivery(0, "failed"),
    "a write": lambda entry: entry.note_write("m", "target", "stored"),
    "all writes": lambda entry: entry.note_stored(),
}


@pytest.mark.parametrize("what", ANNOUNCED)
def test_after_a_cancel_no_entry_announces(entry: Entry, tmp_path: Path, what: str) -> None:
    before = contents(tmp_path)
    with pytest.raises(CancelledCallError):
        cancelled(lambda: ANNOUNCED[what](entry))
    assert contents(tmp_path) == before
    assert (entry.key, entry.deliveries, entry.write_states) == ("one", {}, {})


@pytest.mark.parametrize("what", NOTED)
def test_after_a_cancel_an_entry_still_notes_what_has_happened(
    entry: Entry, tmp_path: Path, what: str
) -> None:
    before = contents(tmp_path)
    cancelled(lambda: NOTED[what](entry))
    assert contents(tmp_path) != before


def test_after_a_cancel_no_entry_is_added(tmp_path: Path) -> None:
    with pytest.raises(CancelledCallError):
        cancelled(lambda: Outbox(tmp_path / "outbox", CREDENTIAL).add(META, BODY))
    assert contents(tmp_path) == {}


@pytest.mark.parametrize(
    "announce",
    [
        lambda ledger: ledger.note_delete(PendingDelete(NOW)),
        lambda ledger: ledger.note_purge(),
        lambda ledger: ledger.note_write("m", "target", "storing"),
    ],
    ids=["a DELETE", "a purge", "a write"],
)
def test_after_a_cancel_no_ledger_announces(
    ledger: Ledger, tmp_path: Path, announce: Callable[[Ledger], None]
) -> None:
    before = contents(tmp_path)
    with pytest.raises(CancelledCallError):
        cancelled(lambda: announce(ledger))
    assert contents(tmp_path) == before
    assert (ledger.pending, ledger.is_purging, ledger.write_state("m", "target")) == (
        None,
        False,
        "",
    )


def test_after_a_cancel_a_ledger_still_notes_what_has_happened(ledger: Ledger) -> None:
    ledger.note_delete(PendingDelete(NOW))
    ledger.note_purge()
    ledger.note_write("m", "target", "storing")
    cancelled(lambda: ledger.settle("expired"))
    cancelled(ledger.note_purge_result)
    cancelled(lambda: ledger.note_write("m", "target", "stored"))
    assert (ledger.pending, ledger.is_expired, ledger.is_purging) == (None, True, False)
    assert ledger.write_state("m", "target") == "stored"


# -- steps -----------------------------------------------------------------------------------------


def test_after_a_cancel_no_plugin_is_called_but_closed() -> None:
    called: list[str] = []
    with pytest.raises(CancelledCallError):
        cancelled(lambda: call_plugin("a plugin", lambda: called.append("called")))
    assert called == []
    cancelled(lambda: isolate_plugin("a plugin", lambda: called.append("closed")))
    assert called == ["closed"]


class Counting(Source):
    """Counts what it is asked."""

    concurrency = 4

    def __init__(self) -> None:
        self.asked = 0

    def fetch(self, locator: Locator) -> Document:
        self.asked += 1
        current().cancel()
        return Document(locator.body)


def test_threads_that_read_stores_look_too() -> None:
    source = Counting()
    locators = {name: [Locator(name, "x"), Locator(name, "y")] for name in ("one", "two", "three")}

    def read() -> None:
        make_current(Cancellation())
        fetch_all(lambda _: source, locators)

    with pytest.raises(CancelledCallError):
        copy_context().run(read)
    assert source.asked < 6


class Answering(Transport):
    """Answers, and keeps whether a change was under way meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self.is_changing: list[bool] = []

    def send(self, _session: Session, _operation: Operation[Any], _timeout: float) -> Response:
        self.is_changing.append(current().cancel())
        return Response(200, {}, b"{}")


@pytest.fixture
def session() -> Session:
    registry = Registry()
    return Session(CREDENTIAL, "http://127.0.0.1:9/v1", "http://127.0.0.1:9", lambda: registry)


@pytest.mark.parametrize(
    ("operation", "is_changing"),
    [
        (shares.list_page(), False),
        (requests.get("abc"), False),
        (shares.create(b"{}", "key"), True),
        (shares.expire("abc"), True),
        (requests.delete("abc"), True),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_a_change_is_under_way_while_it_is_sent_and_no_longer(
    session: Session, operation: Operation[Any], *, is_changing: bool
) -> None:
    transport, cancellation = Answering(), Cancellation()
    session = session.with_transport(transport)

    def send() -> None:
        make_current(cancellation)
        session.send(operation, 1.0)

    copy_context().run(send)
    assert transport.is_changing == [is_changing]
    assert not cancellation.cancel()
    for again in (lambda: session.send(operation, 1.0), lambda: session.wait(0.0)):
        with pytest.raises(CancelledCallError):
            cancelled(again)
    assert len(transport.is_changing) == 1


def test_a_change_that_fails_is_over() -> None:
    cancellation = Cancellation()
    with pytest.raises(ZeroDivisionError), cancellation.step(is_changing=True):
        raise ZeroDivisionError
    assert not cancellation.cancel()


def test_a_change_of_one_thread_is_under_way_while_another_reads() -> None:
    cancellation, reading, read = Cancellation(), threading.Event(), threading.Event()

    def look_up() -> None:
        with cancellation.step():
            reading.set()
            read.wait(10)

    thread = threading.Thread(target=look_up)
    with ExitStack() as stack:
        stack.enter_context(cancellation.step(is_changing=True))
        thread.start()
        assert reading.wait(10)
        read.set()
        thread.join(10)
        assert cancellation.cancel()
