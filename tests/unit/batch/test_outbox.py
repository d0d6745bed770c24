"""The second outbox: it serves as files do, and at most once, whoever is killed and whoever is
faster.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from sealpipe import Client
from sealpipe.api.requests import Submission
from sealpipe.batch.database.effects import EffectStore
from sealpipe.batch.database.records import SECOND, Batch, ConflictError, NewRow, Row
from sealpipe.batch.database.sealing import derive_request_key
from sealpipe.batch.database.store import BatchStore
from sealpipe.batch.steps.row_outbox import RowOutbox, make_ledger_opener
from sealpipe.collect.options import plan_collect
from sealpipe.collect.poll import collect
from sealpipe.errors import (
    DeliveryError,
    InvalidRequestError,
    Note,
    OutcomeUnknownError,
    StateError,
)
from sealpipe.expire.request import expire_request
from sealpipe.network.service_network import ServiceNetwork
from sealpipe.request.create import request
from sealpipe.request.options import plan_request
from sealpipe.resume import finish_entry, send_messages
from sealpipe.secret import Secret
from sealpipe.session import Session
from sealpipe.share.options import plan_share
from sealpipe.share.post import share
from sealpipe.state.entry import Entry, keep_entry_on_error
from sealpipe.state.ledger import PendingDelete
from sealpipe_plugins.webhook.channel import WebhookChannel
from sealpipe_rehearsal.running_service import RunningService
from sealpipe_rehearsal.server import start
from support.fake_web import Receiver
from unit.batch.stores import MINUTE, Place, add_rows, make_credential, take, take_many


def finish(session: Session, entry: Entry, *, resend: bool = False) -> Any:
    """What `Client.resume` does."""
    return send_messages(session, finish_entry(session, entry, resend=resend), resend=resend)


META: dict[str, Any] = {
    "idempotency_key": "one",
    "fragment": Secret("1canary"),
    "passcode": None,
    "title": "t",
}
HOUR = 60 * MINUTE


@pytest.fixture(scope="module")
def service() -> Iterator[RunningService]:
    with start() as running:
        yield running


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    monkeypatch.setenv("SEALPIPE_PLUGIN_WEBHOOK__SECRET", "whsec-0123456789abcdef")
    with Receiver() as running:
        yield running


class Worker:
    """One worker of a batch with one row, and a client whose credential is the batch's."""

    def __init__(self, place: Place, service: RunningService) -> None:
        self.place, self.service = place, service
        service.reset()
        api_key = service.create_key()
        self.client = Client(
            api_key=api_key,
            base_url=service.base_url,
            link_base_url=service.link_base_url,
            deadline=5.0,
        )
        self.session = self.client.session
        self.store: BatchStore = place.store(self.session.credential, self.session.base_url)
        self.batch: Batch = add_rows(self.store, 1)
        self.row: Row = take(self.store, self.batch)

    @property
    def outbox(self) -> RowOutbox:
        return RowOutbox(self.store, self.batch, self.row)

    def restart(self) -> None:
        """Be another process, after the first has ended."""
        self.store.close()
        self.store = self.place.store(self.session.credential, self.session.base_url)
        self.store.reconcile([self.batch])
        self.row = take(self.store, self.batch)

    def share(self, *targets: str) -> Any:
        job = plan_share(["text:hello"], send=targets)
        return send_messages(self.session, share(self.session, job, self.outbox))

    def request(self, *targets: str) -> Any:
        pair = derive_request_key(self.session.credential, "vendors", "row 0", 1)
        job = plan_request(["Password"], key=pair, send=targets)
        creating = request(self.session, job, self.outbox)
        return send_messages(self.session, creating)

    def go_on(self, kind: str, *targets: str) -> Any:
        """What a worker does with a row: finish what was begun, or begin."""
        entry = self.outbox.open()
        return getattr(self, kind)(*targets) if entry is None else finish(self.session, entry)

    def live(self, kind: str) -> list[str]:
        """The short codes of what there is at the service."""
        found = self.client.iter_shares() if kind == "share" else self.client.iter_requests()
        return [each.short_code for each in found]

    def states(self) -> dict[str, str]:
        return {effect.name: effect.state for effect in self.store.effects.list(self.row)}


@pytest.fixture
def worker(place: Place, service: RunningService) -> Iterator[Worker]:
    made = Worker(place, service)
    yield made
    made.client.close()


class Killed(BaseException):
    """The worker is dead."""


STEPS = (
    (ServiceNetwork, ("send",)),
    (WebhookChannel, ("send",)),
    (EffectStore, ("begin", "record", "repeat", "finish", "amend")),
)
"""What a worker does to the world."""


class Kill:
    """Kills a worker at one of its steps, which are before and after each of STEPS: nothing of it
    cleans up.
    """

    def __init__(self, at: int) -> None:
        self._at = at
        self._taken = 0

    @contextmanager
    def watching(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch, suppress(Killed):
            for kind, names in STEPS:
                for name in names:
                    patch.setattr(kind, name, self._between(getattr(kind, name)))
            yield

    @property
    def has_come(self) -> bool:
        return self._taken == self._at

    def _between(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def steps(*words: Any, **options: Any) -> Any:
            self._step()
            result = function(*words, **options)
            self._step()
            return result

        return steps

    def _step(self) -> None:
        if self.has_come:
            raise Killed
        self._taken += 1


@pytest.mark.parametrize("kind", ["share", "request"])
def test_a_row_is_created_and_delivered_and_leaves_no_secret(
    worker: Worker, receiver: Receiver, kind: str
) -> None:
    made = worker.go_on(kind, receiver.target)
    assert worker.states() == {"1/create": "done", "1/message/0": "done"}
    assert receiver.secrets == [made.link.reveal()]
    effect = worker.store.effects.find(worker.row, "1/create")
    assert effect is not None
    assert "body" not in effect.content
    reopened = worker.outbox.open()
    assert reopened is not None
    again = finish(worker.session, reopened)
    assert (again.link.reveal(), again.short_code) == (made.link.reveal(), made.short_code)
    assert len(receiver.hooks) == 1
    again.delivered()
    assert worker.outbox.open() is None
    (ended,) = [each for each in worker.store.effects.list(worker.row) if each.name == "1/create"]
    assert (ended.state, ended.content["response"]["short_code"]) == ("done", made.short_code)
    assert not {"fragment", "passcode"} & ended.content["meta"].keys()
    with pytest.raises(ConflictError):
        worker.share()
    assert worker.live(kind) == [made.short_code]


@pytest.mark.parametrize("kind", ["share", "request"])
def test_a_worker_killed_at_any_step_leaves_one_and_each_message_once(
    place: Place, service: RunningService, receiver: Receiver, kind: str
) -> None:
    unclear = 0
    for at in itertools.count():
        worker = Worker(place, service)
        receiver.asked.clear()
        kill = Kill(at)
        with kill.watching():
            worker.go_on(kind, receiver.target)
        worker.restart()
        if worker.states().get("1/message/0") == "sending":
            unclear += 1
            with pytest.raises(DeliveryError, match="may have arrived"):
                worker.go_on(kind, receiver.target)
            assert len(receiver.hooks) <= 1
        else:
            made = worker.go_on(kind, receiver.target)
            assert receiver.secrets == [made.link.reveal()]
        assert len(worker.live(kind)) == 1
        worker.store.purge_batch(worker.batch)
        worker.client.close()
        if not kill.has_come:
            break
    assert at > 8
    assert unclear == 4  # the message is noted before it is sent, and again when it was


def test_of_two_workers_one_sends_and_the_other_looks_again(
    worker: Worker, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    add, made = RowOutbox.add, []

    def add_second(outbox: RowOutbox, *words: Any) -> Any:
        monkeypatch.setattr(RowOutbox, "add", add)
        made.append(worker.share(receiver.target))
        return add(outbox, *words)

    monkeypatch.setattr(RowOutbox, "add", add_second)
    with pytest.raises(ConflictError):
        worker.share(receiver.target)
    assert (worker.live("share"), len(receiver.hooks)) == ([made[0].short_code], 1)


def test_a_message_that_another_worker_has_begun_is_not_sent(worker: Worker) -> None:
    made = worker.share()
    slow, fast = worker.outbox.open(), worker.outbox.open()
    assert slow is not None
    assert fast is not None
    fast.note_delivery(0, "sending")
    with pytest.raises(ConflictError):
        slow.note_delivery(0, "sending")
    fast.note_delivery(0, "failed")
    fast.note_delivery(0, "sending")
    fast.note_delivery(0, "sent")
    assert made.entry.deliveries == {}
    reopened = worker.outbox.open()
    assert reopened is not None
    assert reopened.deliveries == {0: "sent"}


def test_a_refused_create_can_be_begun_anew(worker: Worker) -> None:
    worker.service.set_faults({"fault": "error", "status": 400, "code": 44})
    with pytest.raises(InvalidRequestError):
        worker.share()
    assert worker.states() == {"1/create": "failed"}
    assert worker.outbox.open() is None
    made = worker.go_on("share")
    assert worker.live("share") == [made.short_code]


def test_an_unclear_message_is_not_sent_again(worker: Worker, receiver: Receiver) -> None:
    receiver.answers = lambda _: 500
    with pytest.raises(DeliveryError, match="may not have reached") as first:
        worker.share(receiver.target)
    worker.restart()
    with pytest.raises(DeliveryError, match="may have arrived") as second:
        worker.go_on("share")
    for told in (first, second):
        assert "`sealpipe batch remind vendors -- 'row 0'` sends it once more" in told.value.remedy
        assert "reissue" not in told.value.remedy
    assert (len(receiver.hooks), worker.states()["1/message/0"]) == (1, "sending")
    entry = worker.outbox.open()
    assert entry is not None
    receiver.answers = lambda _: 204
    finish(worker.session, entry, resend=True)
    assert (len(receiver.hooks), worker.states()["1/message/0"]) == (2, "done")


def test_what_is_older_than_23_hours_is_never_sent_again(worker: Worker) -> None:
    entry = worker.outbox.add({**META, **worker.session.make_entry_meta("share")}, b"{}")
    assert entry.response is None
    worker.store.clock_offset = 23 * HOUR + MINUTE
    reopened = worker.outbox.open()
    assert reopened is not None
    with pytest.raises(
        OutcomeUnknownError, match="the row row 0 is older than 23 hours"
    ) as refused:
        finish(worker.session, reopened)
    assert "sealpipe batch reissue vendors -- 'row 0'" in refused.value.remedy


def test_a_row_whose_key_reads_like_a_command_is_named_as_it_is(place: Place) -> None:
    store = place.store()
    batch = store.add_batch("vendors", {"digest": "abc"})
    store.add_rows(batch, [NewRow("`sealpipe resume ID`", "new", store.now(), {})])
    entry = RowOutbox(store, batch, take(store, batch)).add(META, b"{}")
    with pytest.raises(StateError) as told, keep_entry_on_error(entry):
        raise StateError("the disk is full")
    assert Note.on(told.value) == [
        "the row `sealpipe resume ID` is kept: `sealpipe batch run` finishes it"
    ]


def test_an_entry_keeps_what_files_keep_and_wraps_its_secrets(worker: Worker) -> None:
    entry = worker.outbox.add(META, '{"data":"ü"}'.encode())
    entry.note_write("one", "vault:secret", "storing")
    entry.note_new_key("two")
    entry.note_stored()
    found = worker.outbox.open()
    assert found is not None
    assert (found.key, found.is_stored, bytes(found.body)) == ("two", True, '{"data":"ü"}'.encode())
    assert found.meta["fragment"] == Secret("1canary")
    assert found.write_state("one", "vault:secret") == "storing"
    assert "canary" not in repr((entry, found))
    found.note_write("one", "vault:secret", "not stored")
    again = worker.outbox.open()
    assert again is not None
    assert again.write_state("one", "vault:secret") == ""


def test_what_was_on_its_way_under_the_old_key_is_never_sent_under_the_new(place: Place) -> None:
    old = place.store()
    batch = add_rows(old, 2)
    sending, answered = take_many(old, batch)
    RowOutbox(old, batch, sending).add(META, b"{}")
    RowOutbox(old, batch, answered).add(META, b"{}").note_response({"short_code": "AbC"})
    new = place.store(make_credential(), previous=place.credential)
    assert new.find_batch("vendors") is not None
    with pytest.raises(
        StateError, match=f"with the API key {place.credential.key_id}, which was rotated"
    ) as refused:
        RowOutbox(new, batch, sending).open()
    assert "sealpipe batch reissue vendors" in refused.value.remedy
    entry = RowOutbox(new, batch, answered).open()
    assert entry is not None
    assert entry.response == {"short_code": "AbC"}


def test_a_ledger_holds_what_one_in_a_file_holds(worker: Worker) -> None:
    opener = make_ledger_opener(worker.store, worker.row)
    ledger = opener("https://x/v1", "AbC")
    assert ledger is not None
    submissions = [Submission("a", "data a"), Submission("b", "data b")]
    ledger.keep(submissions)
    ledger.keep([*submissions, Submission("c", "data c")])
    moment = made_at(worker)
    ledger.note_delete(PendingDelete(moment, moment + timedelta(seconds=1)))
    ledger.note_write("m", "env:X", "storing")
    ledger.note_purge()
    found = opener("https://x/v1", "AbC")
    assert found is not None
    assert found.pending == PendingDelete(moment, moment + timedelta(seconds=1))
    assert (found.is_purging, found.is_expired, found.write_state("m", "env:X")) == (
        True,
        False,
        "storing",
    )
    found.keep(submissions)
    found.note_delete(PendingDelete(moment))
    with pytest.raises(ConflictError):  # two workers on one request, and one DELETE
        ledger.note_delete(PendingDelete(moment))
    found.settle("expired")
    found.note_purge_result()
    found.note_write("m", "env:X", "stored")
    last = opener("https://x/v1", "AbC")
    assert last is not None
    assert (last.pending, last.is_purging, last.is_expired, last.write_state("m", "env:X")) == (
        None,
        False,
        True,
        "stored",
    )
    assert sum("submission" in name for name in worker.states()) == 3


def made_at(worker: Worker) -> Any:
    return worker.outbox.add(META, b"{}").created_at


def test_a_submission_is_collected_once_and_its_request_expires(
    worker: Worker, tmp_path: Path
) -> None:
    made = worker.request()
    worker.service.submitter().submit(made.collect_link, {"Password": "pa55"})
    pair = derive_request_key(worker.session.credential, "vendors", "row 0", 1)
    opener = make_ledger_opener(worker.store, worker.row)
    target = tmp_path / "password"
    plan = plan_collect(
        [made.receipt], key=pair, to=[f"file:{target}"], after="expire", state=opener
    )
    (result,) = collect(worker.session, plan)
    assert (result.status, target.read_text()) == ("collected", "pa55")
    assert result.ended is not None
    assert result.ended.outcome == "expired"
    assert worker.states()["1/expire"] == "done"
    again = expire_request(worker.session, made.short_code, opener)
    assert (again.outcome, len(again.submissions)) == ("already-expired", 1)
    assert sum("submission" in name for name in worker.states()) == 1


def test_another_generation_begins_anew(worker: Worker) -> None:
    first = worker.share()
    worker.row = worker.store.save(
        worker.row,
        state="new",
        due_at=worker.store.now(),
        content=worker.row.content or {},
        generation=2,
        keep=True,
    )
    assert worker.outbox.open() is None
    second = worker.share()
    assert {first.short_code, second.short_code} == set(worker.live("share"))
    assert worker.states() == {"1/create": "done", "2/create": "done"}
    worker.row = replace(worker.row, generation=1)
    entry = worker.outbox.open()
    assert entry is not None
    assert entry.created_at.timestamp() * SECOND <= worker.store.now()
