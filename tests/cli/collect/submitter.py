"""Collecting in tests: a request and who answers it, a service that tells something else, time that
a test moves.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from sealpipe.collect import poll
from sealpipe.collect.options import CollectPlan
from sealpipe.collect.results import CollectResult, OnProgress
from sealpipe.state.receipt import Receipt
from sealpipe.wire import fields, sealed_box
from sealpipe.wire.encoding import decode_base64url
from sealpipe.wire.fields import Field
from support.faults import rewrites
from support.faulty import Exchange, Fault, passes
from support.hours import Hours, open_session
from support.job import Job, client_of

T = TypeVar("T")

PROMPTS = "Staging password", "user=User name:text"


@dataclass(frozen=True)
class Asked:
    """A request of a job's account, and what its collect link is good for."""

    job: Job
    link: str
    receipt: Receipt

    @property
    def code(self) -> str:
        return self.receipt.short_code

    def answer(self, password: str = "hunter2", user: str = "bob") -> str:
        """Somebody fills in the form; the submission's code."""
        form = {"Staging password": password, "User name": user}
        return self.job.service.submitter().submit(self.link, form)

    def send(self, data: str) -> str:
        """Somebody sends what may be anything."""
        return self.job.service.submitter().send(self.link, data)

    def sealed(self, plaintext: bytes) -> str:
        """Ciphertext to the request's key."""
        return sealed_box.seal(decode_base64url(self.receipt.public_key), plaintext)

    def send_fields(self, *found: tuple[str, str]) -> str:
        """Somebody sends fields that are not those that were asked for."""
        return self.send(self.sealed(fields.dump([Field(key, value) for key, value in found])))

    def end(self) -> None:
        """It expires."""
        with client_of(self.job) as client:
            client.expire_request(self.code)

    def active(self) -> bool:
        with client_of(self.job) as client:
            return client.get_request(self.code).expires_at is not None

    def file(self, name: str = "r.json") -> str:
        """Its receipt, in the working directory."""
        self.job.terminal.file(name, self.receipt.dump())
        return name


def ask(job: Job, *prompts: str, **options: Any) -> Asked:
    """A new request, sealed to the credential's key unless `options` say otherwise."""
    with client_of(job) as client:
        made = client.request(prompts or PROMPTS, **options)
    return Asked(job, made.collect_link, made.receipt)


def values(collected: CollectResult) -> list[list[str]]:
    """What was typed, submission by submission."""
    return [[_open(each) for each in row.fields] for row in collected.submissions]


def _open(each: Field) -> str:
    assert not isinstance(each.value, str)
    return each.value.reveal()


# -- a service that tells something else --------------------------------------------------------


def on(ending: str, fault: Fault, method: str = "GET") -> Fault:
    """The fault for what is asked at paths that end so; everything else passes."""

    def only(exchange: Exchange) -> None:
        mine = exchange.received.method == method and exchange.received.target.endswith(ending)
        (fault if mine else passes)(exchange)

    return only


def hands_out(
    change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]], **members: object
) -> Fault:
    """Other submissions than there are: what `change` makes of them, anew at each read."""

    def fault(exchange: Exchange) -> None:
        rows = json.loads(exchange.forward().body)["submissions"]
        changed = change(rows)
        rewrites(**{"submissions": changed, "count": len(changed), **members})(exchange)

    return on("/submissions", fault)


# -- time that a test moves ---------------------------------------------------------------------


@dataclass
class CollectHours(Hours):
    """The same, for collecting."""

    def collect(
        self, options: CollectPlan, on_progress: OnProgress | None = None, **run: Any
    ) -> list[CollectResult]:
        asked = replace(options, on_progress=on_progress)
        return self.run(lambda session: poll.collect(session, asked, clock=lambda: self.now, **run))


def hours(job: Job, base_url: str | None = None) -> CollectHours:
    """Time for a job's client, at the service or at what stands before it."""
    return CollectHours(open_session(job, base_url))


def kept(folder: Path) -> list[dict[str, Any]]:
    """The submissions that are kept."""
    lines = [
        json.loads(line)
        for path in folder.glob("*.jsonl")
        for line in path.read_text().splitlines()
    ]
    return [line["submission"] for line in lines if "submission" in line]
