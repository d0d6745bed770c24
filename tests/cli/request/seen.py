"""Asking for secrets in tests: what the service has, what a request's key opens, and what somebody
typed.
"""

from __future__ import annotations

import json
from typing import Any

from sealpipe.api.operation import Credential
from sealpipe.wire import fields, keys, sealed_box
from sealpipe.wire.encoding import encode_base64url
from support.faults import message
from support.faulty import Exchange, Fault
from support.job import Job, client_of
from support.terminal import Done

ASK = ("request", "-a", "Staging password", "-a", "user=User name:text")
ANSWERS = {"Staging password": "h\u00fcnter2", "User name": "bob"}


def codes(job: Job) -> list[str]:
    """The active requests of the job's account, newest first."""
    with client_of(job) as client:
        return [row.short_code for row in client.iter_requests()]


def answer(job: Job, link: str, **who: Any) -> str:
    """Somebody fills the form in; the submission's code."""
    return job.service.submitter().submit(link.rstrip("\n"), ANSWERS, **who)


def read(job: Job, code: str, pair: keys.KeyPair) -> list[dict[str, Any]]:
    """What was typed, each submission opened with that key pair."""
    with client_of(job) as client:
        sealed = client.list_submissions(code).items
    opened = [fields.load(sealed_box.open(pair, each.data)) for each in sealed]
    return [{field.key: field.value for field in each} for each in opened]


def custody_pair(api_key: str) -> keys.KeyPair:
    """The key pair of a credential's custody secret."""
    secret = Credential.parse(api_key).custody_secret
    assert secret is not None
    return keys.from_custody_secret(secret.reveal())


def custody_seeds(api_key: str) -> list[str]:
    """All the ways to write what must never be shown of a credential's key."""
    pair = custody_pair(api_key)
    custody = api_key.rpartition(".")[2]
    return [
        custody,
        *(
            form
            for raw in (pair.seed, pair.scalar)
            for form in (encode_base64url(bytes(raw)), raw.hex())
        ),
    ]


def creates(received: list[Any]) -> list[dict[str, Any]]:
    """The bodies of every create among what a `Faulty` received, or `service.seen()`."""
    return [
        json.loads(each.body)
        for each in received
        if (each.method, each.target) == ("POST", "/v1/requests")
    ]


def swaps(**members: object) -> Fault:
    """A service that answers a create with other members, and everything else as it is."""

    def fault(exchange: Exchange) -> None:
        told = exchange.forward()
        if exchange.received.method != "POST":
            exchange.send(told.head + told.body)
            return
        body = json.dumps({**json.loads(told.body), **members}).encode()
        exchange.send(message(told.status, body, {"Content-Type": "application/json"}))

    return fault


def lost() -> Fault:
    """Creates are carried out, and their answers lost; everything else gets through."""

    def fault(exchange: Exchange) -> None:
        told = exchange.forward()
        if exchange.received.method == "POST":
            exchange.reset()
            return
        exchange.send(told.head + told.body)

    return fault


def nothing_shown(done: Done, *secrets: str) -> None:
    """No output of a command holds any of these."""
    for secret in secrets:
        assert secret not in done.out + done.err
