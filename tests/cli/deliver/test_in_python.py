"""Sending from Python, with an outbox and without."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from sealpipe import Client, DeliveryError, Outbox, StateError, UsageError
from sealpipe.state.entry import Entry
from sealpipe_rehearsal.running_service import RunningService
from support.fake_web import Receiver
from support.terminal import opened

Sharing = Callable[..., Any]


@pytest.fixture
def sharing(service: RunningService, monkeypatch: pytest.MonkeyPatch) -> Sharing:
    """Call a method of a client: `sharing("share", ...)`."""
    monkeypatch.setenv("SEALPIPE_PLUGIN_WEBHOOK__SECRET", "whsec-0123456789abcdef")
    monkeypatch.setenv("WHO", "kim")
    key = service.create_key()
    options = {"api_key": key, "base_url": service.base_url, "link_base_url": service.link_base_url}

    def call(method: str, *args: Any, **more: Any) -> Any:
        with Client(**options) as client:
            return getattr(client, method)(*args, **more)

    call.credential = Client(**options).session.credential  # type: ignore[attr-defined]
    return call


def test_a_share_is_sent_and_its_link_is_in_hand(
    sharing: Sharing, service: RunningService, receiver: Receiver
) -> None:
    made = sharing(
        "share", ["text:hello"], send=[receiver.target + "/{who}"], params={"who": "env:WHO"}
    )
    assert receiver.secrets == [made.link.reveal()]
    assert receiver.hooks[0].path.endswith("/kim")
    assert [each.state for each in made.deliveries.items] == ["sent"]
    assert opened(service, made.link.reveal()) == {"hello": "hello"}


def test_what_could_not_be_sent_leaves_the_share_on_the_error(
    sharing: Sharing, receiver: Receiver
) -> None:
    receiver.answers = lambda _: 403
    with pytest.raises(DeliveryError, match="did not reach") as caught:
        sharing("share", ["text:hello"], send=[receiver.target])
    assert caught.value.outbox_id is None
    assert caught.value.share.link.reveal() == receiver.secrets[0]
    assert receiver.secrets[0] not in f"{caught.value} {caught.value.remedy} {caught.value.share!r}"


def test_with_an_outbox_resume_sends_what_is_left(
    sharing: Sharing, receiver: Receiver, tmp_path: Path
) -> None:
    receiver.answers = lambda _: 500
    with pytest.raises(DeliveryError, match="may not have reached") as caught:
        sharing("share", ["text:hello"], send=[receiver.target], outbox=tmp_path)
    box = Outbox(tmp_path, sharing.credential)  # type: ignore[attr-defined]

    def entry() -> Entry:
        found = box.open(caught.value.outbox_id or "")
        assert isinstance(found, Entry)
        return found

    with pytest.raises(DeliveryError):
        sharing("resume", entry())
    assert len(receiver.hooks) == 1
    receiver.answers = lambda _: 204
    made = sharing("resume", entry(), resend=True)
    made.delivered()
    assert receiver.secrets == [made.link.reveal()] * 2
    assert box.list() == []


@pytest.mark.parametrize(("status", "state"), [(204, "sent"), (403, "failed")])
def test_a_message_that_was_answered_is_so_though_the_disk_is_full(
    sharing: Sharing,
    receiver: Receiver,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    state: str,
) -> None:
    """What became of it cannot be noted; after a kill it counts as possibly sent."""
    note = Entry.note_delivery

    def full(entry: Entry, number: int, noted: Any) -> None:
        if noted == state:
            raise StateError("the disk is full")
        note(entry, number, noted)

    monkeypatch.setattr(Entry, "note_delivery", full)
    receiver.answers = lambda _: status
    with nullcontext() if state == "sent" else pytest.raises(DeliveryError) as caught:
        made = sharing("share", ["text:hello"], send=[receiver.target], outbox=tmp_path)
    made = caught.value.share if caught else made
    assert receiver.secrets == [made.link.reveal()]
    assert [each.state for each in made.deliveries.items] == [state]
    assert made.warnings[-1] == "the disk is full"


def test_a_wrong_recipient_sends_nothing(sharing: Sharing, service: RunningService) -> None:
    with pytest.raises(UsageError, match="is missing"):
        sharing("share", ["text:hello"], send=["file:{who}"])
    with pytest.raises(UsageError, match="2 recipients, but can be opened only once"):
        sharing("share", ["text:hello"], send=["file:a", "file:b"])
    assert service.seen() == []
