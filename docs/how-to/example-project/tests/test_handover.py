"""`sealpipe_rehearsal` is the whole service on this machine: no account, no network, no mocks."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import timedelta

import pytest
from sealpipe import MissingScopeError
from sealpipe_rehearsal import LinkRefusedError, Rehearsal

import handover

PASSWORD = "correct horse battery staple"


def test_the_colleague_sees_who_they_are_and_the_password(sealpipe_rehearsal: Rehearsal) -> None:
    link = handover.hand_over(sealpipe_rehearsal.client(), "ada", PASSWORD)
    fields = sealpipe_rehearsal.recipient.open_link(link)
    assert {field.key: field.value for field in fields} == {"User": "ada", "Password": PASSWORD}


def test_the_link_opens_once(sealpipe_rehearsal: Rehearsal) -> None:
    link = handover.hand_over(sealpipe_rehearsal.client(), "ada", PASSWORD)
    sealpipe_rehearsal.recipient.open_link(link)
    with pytest.raises(LinkRefusedError) as caught:
        sealpipe_rehearsal.recipient.open_link(link)
    assert caught.value.reason == "views"


def test_after_a_day_the_link_is_dead(sealpipe_rehearsal: Rehearsal) -> None:
    link = handover.hand_over(sealpipe_rehearsal.client(), "ada", PASSWORD)
    sealpipe_rehearsal.advance(timedelta(days=1))
    with pytest.raises(LinkRefusedError) as caught:
        sealpipe_rehearsal.recipient.open_link(link)
    assert caught.value.reason == "time"


def test_the_service_never_sees_the_password(sealpipe_rehearsal: Rehearsal) -> None:
    handover.hand_over(sealpipe_rehearsal.client(), "ada", PASSWORD)
    assert sealpipe_rehearsal.seen()
    assert all(PASSWORD.encode() not in bytes(request) for request in sealpipe_rehearsal.seen())


def test_a_key_that_may_only_read_hands_nothing_over(sealpipe_rehearsal: Rehearsal) -> None:
    client = sealpipe_rehearsal.client(sealpipe_rehearsal.credential(scopes=["shares:read"]))
    with pytest.raises(MissingScopeError):
        handover.hand_over(client, "ada", PASSWORD)
    assert list(client.iter_shares()) == []


def test_the_program_prints_the_link(sealpipe_rehearsal: Rehearsal) -> None:
    environ = {**os.environ, **sealpipe_rehearsal.environ(), "DB_PASSWORD": PASSWORD}
    command = [sys.executable, handover.__file__, "ada"]
    link = subprocess.run(command, env=environ, stdout=subprocess.PIPE, text=True, check=True).stdout
    fields = sealpipe_rehearsal.recipient.open_link(link.rstrip("\n"))
    assert [field.value for field in fields] == ["ada", PASSWORD]
