"""From 1Password to a recipient, and from a submitter to 1Password; what fails there; what shows
anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from plugins.onepassword.fake_op_connect import FakeConnect, made_id
from sealpipe_plugins.onepassword.items import all_values, parse_item
from sealpipe_rehearsal.running_service import RunningService
from support.commands import SEALPIPE
from support.failures import Failure, assert_told_apart, network_failures, without
from support.job import Job
from support.leaks import Detector
from support.storing import another_machine, asked_at_once, job
from support.strace import watch
from support.terminal import Terminal, opened
from support.wires import Intercepting

__all__ = ["job"]

TOKEN = "Canary-token-90aa51d7"
VALUE = "canary-in-an-item-5f1e"
REFERENCE = "op:Prod/db/password"


@pytest.fixture
def fake() -> Iterator[FakeConnect]:
    with FakeConnect() as server:
        prod = server.vault("Prod", TOKEN)
        server.vault("Hidden", "another")
        server.item(prod, "db", fields=[{"id": "password", "label": "password", "value": VALUE}])
        yield server


def environ(fake: FakeConnect, token: str = TOKEN) -> dict[str, str]:
    return {"OP_CONNECT_HOST": fake.base_url, "OP_CONNECT_TOKEN": token}


def test_one_line_hands_a_secret_over(
    fake: FakeConnect, user: Terminal, service: RunningService
) -> None:
    done = user.sealpipe("share", "-f", f"Root={REFERENCE}", **environ(fake))
    assert done.code == 0, done
    assert opened(service, done.out) == {"Root": VALUE}


def test_a_submission_is_stored_once_on_every_machine(fake: FakeConnect, job: Job) -> None:
    request = asked_at_once(job)
    given = request.answer()
    target = "op://Prod/acme#password=staging_password,username=user"
    request.stores(target, **environ(fake))
    item = next(each for each in fake.items.values() if each["title"] == "acme")
    assert all_values(parse_item(item)) == {"password": given.password, "username": given.user}
    writes = len([asked for asked in fake.asked if asked.method != "GET"])
    request.stores(target, **environ(fake), **another_machine(job))
    assert writes == len([asked for asked in fake.asked if asked.method != "GET"]) == 1


def test_what_fails_is_told_apart(
    fake: FakeConnect, user: Terminal, service: RunningService, tmp_path: Path
) -> None:
    at = environ(fake)
    library = {
        "OP_SERVICE_ACCOUNT_TOKEN": "ops_Canary",
        **without(user, "onepassword-sdk", "onepassword"),
    }
    with ExitStack() as stack:
        failures = {
            "wrong path": Failure("op:Prod/none/password", at),
            "no such field": Failure("op:Prod/db/pin", at),
            "wrong account": Failure("op:Hidden/db/password", at),
            "denied": Failure(f"op:{made_id(1, 'v')}/db/password", at),
            "expired token": Failure(REFERENCE, environ(fake, "Canary-that-expired")),
            "missing library": Failure(REFERENCE, library),
            **network_failures(stack, tmp_path, REFERENCE, at, "OP_CONNECT_HOST", fake.port),
        }
        assert_told_apart(
            failures, user, service, secrets={TOKEN, VALUE, Intercepting.password, "ops_Canary"}
        )


def test_a_submission_shows_in_1password_only(fake: FakeConnect, job: Job) -> None:
    request = asked_at_once(job)
    given = request.answer()
    job.terminal.environ |= environ(fake)
    seen = watch(
        job.terminal, [*SEALPIPE, *request.words("op://Prod/acme#password=staging_password")]
    )
    assert seen.done.code == 0, seen.done
    detector = Detector({"value": given.password.encode(), "token": TOKEN.encode()})
    there = f"ost: localhost:{fake.port}\r\n".encode()
    places = [
        (name, data)
        for name, data in seen.places()
        if not (name.startswith("TCP") and there in data)
    ]
    assert {found for name, data in places for found in detector.find(data, name)} == set()
    assert seen.executed == []
