"""Rules broken on purpose, each by one change in memory, at the edges of the code: the network,
files, sinks, messages.

So each stays what it is however the code within is arranged. A process that is killed takes nothing
with it: what a break holds back is lost with it.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sealpipe.api.operation import Failure, Operation, Response
from sealpipe.cli import main
from sealpipe.network.service_network import ServiceNetwork
from sealpipe.plugin import WriteResult
from sealpipe.state.entry import Entry
from sealpipe.state.ledger import Ledger
from sealpipe.state.outbox import FileEntry, Outbox
from sealpipe.wire import envelope, link
from sealpipe_plugins.local.file_sinks import DirSink, FileSink

Break = Callable[[pytest.MonkeyPatch], None]
Sent = Response | Failure
Sends = Callable[[Operation[Any]], Sent]


def _sending(patch: pytest.MonkeyPatch, change: Callable[[Operation[Any], Sends], Sent]) -> None:
    """Change how an operation is sent. `change` gets it, and what sends one."""
    send = ServiceNetwork.send

    def sending(network: ServiceNetwork, operation: Operation[Any], *more: Any) -> Sent:
        return change(operation, lambda each: send(network, each, *more))

    patch.setattr(ServiceNetwork, "send", sending)


def writes_the_entry_after_the_send(patch: pytest.MonkeyPatch) -> None:
    add, note, held = Outbox.add, FileEntry.note_response, dict[Path, bytes]()

    def adds(outbox: Outbox, *words: Any) -> Entry:
        entry = add(outbox, *words)
        assert isinstance(entry, FileEntry)
        held[entry.path] = entry.path.read_bytes()
        entry.path.unlink()
        return entry

    def notes(entry: FileEntry, response: Any) -> None:
        entry.path.write_bytes(held[entry.path])
        note(entry, response)

    patch.setattr(Outbox, "add", adds)
    patch.setattr(FileEntry, "note_response", notes)


def sends_each_try_under_a_fresh_key(patch: pytest.MonkeyPatch) -> None:
    def fresh(operation: Operation[Any], send: Sends) -> Sent:
        if "idempotency-key" not in operation.headers:
            return send(operation)
        return send(
            replace(operation, headers={**operation.headers, "idempotency-key": str(uuid.uuid4())})
        )

    _sending(patch, fresh)


def encrypts_again_when_it_resumes(patch: pytest.MonkeyPatch) -> None:
    opens = Outbox.open

    def again(outbox: Outbox, entry_id: str) -> Any:
        entry = opens(outbox, entry_id)
        if isinstance(entry, FileEntry):
            members, key = (
                json.loads(entry.body),
                link.decode_fragment(entry.meta["fragment"].reveal()),
            )
            members["data"] = envelope.seal(key, envelope.open(key, members["data"]))
            entry.body = json.dumps(members, separators=(",", ":")).encode()
        return entry

    patch.setattr(Outbox, "open", again)


def ends_the_entry_before_the_link_is_out(patch: pytest.MonkeyPatch) -> None:
    note = FileEntry.note_response

    def notes(entry: FileEntry, response: Any) -> None:
        note(entry, response)
        entry.end()

    patch.setattr(FileEntry, "note_response", notes)


def forgets_the_key_of_the_one_re_creation(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Entry, "note_new_key", lambda entry, key: setattr(entry, "key", key))


def notes_a_message_only_when_it_is_sent(patch: pytest.MonkeyPatch) -> None:
    note = Entry.note_delivery
    patch.setattr(
        Entry,
        "note_delivery",
        lambda entry, number, state: None if state == "sending" else note(entry, number, state),
    )


def finds_no_request_by_its_public_key(patch: pytest.MonkeyPatch) -> None:
    def blind(operation: Operation[Any], send: Sends) -> Sent:
        result = send(operation)
        if (operation.method, operation.path) == ("GET", "/requests") and isinstance(
            result, Response
        ):
            members = json.loads(result.body)
            return replace(result, body=json.dumps({**members, "requests": []}).encode())
        return result

    _sending(patch, blind)


def writes_sinks_after_the_next_change_at_the_service(patch: pytest.MonkeyPatch) -> None:
    held: list[Callable[[], object]] = []

    def put(sink: Any, locator: Any, fields: Any, **how: Any) -> WriteResult:
        held.append(lambda: puts[type(sink)](sink, locator, fields, **how))
        return WriteResult(locator)

    def then(operation: Operation[Any], send: Sends) -> Sent:
        result = send(operation)
        while held and operation.method != "GET":
            held.pop(0)()
        return result

    def runs(words: Any) -> int:
        try:
            return run(words)
        finally:
            # a later request of the test's own process would write it, where the tests run
            held.clear()

    puts: dict[type, Callable[..., Any]] = {each: each.put for each in (FileSink, DirSink)}
    for each in puts:
        patch.setattr(each, "put", put)
    run = main.run
    patch.setattr(main, "run", runs)
    _sending(patch, then)


def sends_every_delete_twice(patch: pytest.MonkeyPatch) -> None:
    def twice(operation: Operation[Any], send: Sends) -> Sent:
        result = send(operation)
        if operation.method == "DELETE":
            send(operation)
        return result

    _sending(patch, twice)


def takes_an_ended_request_for_an_active_one(patch: pytest.MonkeyPatch) -> None:
    first = dict[str, Sent]()

    def stale(operation: Operation[Any], send: Sends) -> Sent:
        is_look = operation.method == "GET" and operation.path.count("/") == 2
        return first.setdefault(operation.path, send(operation)) if is_look else send(operation)

    _sending(patch, stale)


def notes_no_delete_before_it_is_sent(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Ledger, "note_delete", lambda *_: None)


def keeps_no_submission(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Ledger, "keep", lambda *_: None)


def notes_no_write_that_nobody_can_read_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Ledger, "note_write", lambda *_: None)
