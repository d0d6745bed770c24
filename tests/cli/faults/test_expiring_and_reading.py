"""Expiring a share and reading over a real socket at which something goes wrong."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

import pytest

from cli.faults.ahead import WAITS_FOR_ALL
from cli.faults.table import HTML, LASTING, LATE, LIMIT, PAGE, SILENT
from sealpipe import AsyncClient, Client, errors
from sealpipe_rehearsal.running_service import RunningService
from support import faults
from support.faults import envelope, replaces, rewrites, says
from support.faulty import Fault, Faulty, Received, passes, same_bytes
from support.job import Job
from support.terminal import Done

SLOW = (faults.holds, faults.drips_head, faults.drips_body)


@dataclass(frozen=True)
class Row:
    """`words` are the command; CODE stands for a share's short code.

    `live`: that share can still be opened.
    """

    name: str
    words: str
    faults: tuple[Fault, ...]
    then: Fault
    ends: type[errors.SealpipeError] | None
    sent: tuple[int, int]
    live: bool = True
    listens: bool = True

    def __str__(self) -> str:
        return f"{self.words}: {self.name}"

    @property
    def code(self) -> int:
        return 0 if self.ends is None else self.ends.exit_code

    @property
    def deadline(self) -> float:
        return SILENT if self.then in SLOW else LASTING

    @property
    def waits(self) -> bool:
        return self.then in SLOW or "429" in self.name


def expire(
    name: str,
    *faults: Fault,
    then: Fault = passes,
    ends: type[errors.SealpipeError] | None,
    sent: int,
    live: bool,
) -> Row:
    return Row(name, "shares expire CODE", faults, then, ends, (sent, sent), live)


NOT_FOUND = envelope(404, 1)

EXPIRING = (
    expire("500/42 once", envelope(500, 42), ends=None, sent=2, live=False),
    expire(
        "500/42 for ever",
        then=envelope(500, 42),
        ends=errors.OutcomeUnknownError,
        sent=5,
        live=True,
    ),
    expire(
        "500/42 though it was expired, then 404/1",
        envelope(500, 42, commits=True),
        ends=None,
        sent=2,
        live=False,
    ),
    expire(
        "a reset after the commit, then 404/1", faults.reset_after, ends=None, sent=2, live=False
    ),
    expire("a reset before the commit", faults.reset_before, ends=None, sent=2, live=False),
    expire("half a body, then 404/1", faults.half_body, ends=None, sent=2, live=False),
    expire("bad JSON, then 404/1", replaces("{"), ends=None, sent=2, live=False),
    expire(
        "success that is not said, then 404/1",
        rewrites(success=False),
        ends=None,
        sent=2,
        live=False,
    ),
    # After a 404/1, two looks for what would prove that there was such a share.
    expire("404/1 at once", then=NOT_FOUND, ends=errors.NotFoundError, sent=3, live=True),
    expire(
        "429, then 404/1",
        envelope(429, 107),
        then=NOT_FOUND,
        ends=errors.NotFoundError,
        sent=4,
        live=True,
    ),
    expire("429 once", envelope(429, 107, {"Retry-After": "1"}), ends=None, sent=2, live=False),
    expire("429 for ever", then=envelope(429, 107), ends=errors.RateLimitError, sent=5, live=True),
    expire("401", then=faults.unauthorized, ends=errors.AuthenticationError, sent=1, live=True),
    expire("403/78", then=envelope(403, 78), ends=errors.MissingScopeError, sent=1, live=True),
    expire(
        "a reset after the commit for ever",
        then=faults.reset_after,
        ends=errors.OutcomeUnknownError,
        sent=5,
        live=False,
    ),
    expire(
        "a reset after the commit, then 401",
        faults.reset_after,
        then=faults.unauthorized,
        ends=errors.OutcomeUnknownError,
        sent=2,
        live=False,
    ),
    expire(
        "a reset after the commit, then 404 in HTML",
        faults.reset_after,
        then=says(404, PAGE, HTML),
        ends=errors.ProtocolError,
        sent=2,
        live=False,
    ),
    expire(
        "a redirect",
        then=says(307, "", {"Location": "/v2"}),
        ends=errors.ProtocolError,
        sent=1,
        live=True,
    ),
    Row("refused", "shares expire CODE", (), passes, errors.ConnectError, (0, 0), listens=False),
    Row(
        "no answer",
        "shares expire CODE",
        (),
        faults.holds,
        errors.OutcomeUnknownError,
        (1, 1),
        live=False,
    ),
)


Ending = tuple[str, Fault, type[errors.SealpipeError]]

TO_THE_END: tuple[Ending, ...] = (
    ("500 to the end", says(500), errors.RetriesExhaustedError),
    ("HTML 502 to the end", says(502, PAGE, HTML), errors.RetriesExhaustedError),
    ("a reset to the end", faults.reset_after, errors.RetriesExhaustedError),
    ("half a body to the end", faults.half_body, errors.RetriesExhaustedError),
    ("429 to the end", envelope(429, 107), errors.RateLimitError),
    ("bad JSON", replaces("{"), errors.ProtocolError),
    ("an empty body", replaces(""), errors.ProtocolError),
    ("a gzip answer", faults.gzipped, errors.ProtocolError),
    ("more than 1 MiB", replaces(b"[" + b" " * LIMIT + b"]"), errors.ProtocolError),
)

AT_ONCE_OVER: tuple[Ending, ...] = (
    ("401", faults.unauthorized, errors.AuthenticationError),
    ("403/78", envelope(403, 78), errors.MissingScopeError),
    ("404/1", NOT_FOUND, errors.NotFoundError),
    ("a redirect", says(302, "", {"Location": "/v2"}), errors.ProtocolError),
    ("a drip-fed head", faults.drips_head, errors.RetriesExhaustedError),
    ("a drip-fed body", faults.drips_body, errors.RetriesExhaustedError),
)


def _reading() -> Iterator[Row]:
    for words in ("shares list", "shares show CODE"):
        for name, fault in (
            ("500 once", says(500)),
            ("a reset once", faults.reset_after),
            ("half a body once", faults.half_body),
        ):
            yield Row(name, words, (fault,), passes, None, (2, 2))
        for name, fault, ends in TO_THE_END:
            yield Row(name, words, (), fault, ends, (5, 5))
        for name, fault, ends in AT_ONCE_OVER:
            yield Row(name, words, (), fault, ends, (1, 1))
        yield Row("refused", words, (), passes, errors.ConnectError, (0, 0), listens=False)
    for name, fault in (
        ("shares that are no array", rewrites(shares={})),
        ("rows that are no objects", rewrites(shares=["abc"])),
        ("a row without a short code", rewrites(shares=[{"expired_at": None}])),
        (
            "a row with the short code ..",
            rewrites(shares=[{"short_code": "..", "expired_at": None}]),
        ),
        ("figures that are text", rewrites(pagination={"page": "1"})),
        ("pagination that is an array", rewrites(pagination=[1])),
    ):
        yield Row(name, "shares list", (), fault, errors.ProtocolError, (5, 5))


ROWS = (*EXPIRING, *_reading())


@dataclass(frozen=True)
class Outcome:
    done: Done
    seconds: float
    sent: list[Received]
    live: bool
    code: str
    left: list[str]


def carry_out(row: Row, place: Path, service: RunningService) -> Outcome:
    with Faulty(service.address, *row.faults, then=row.then) as server:
        if not row.listens:
            server.refuse()
        job = Job(place, service, server.base_url)
        code = shared_directly(job)
        began = time.monotonic()
        words = row.words.replace("CODE", f"-- {code}").split()  # a code may begin with dashes
        done = job.run(*words[:2], "--deadline", f"{row.deadline:.0f}s", *words[2:])
        seconds = time.monotonic() - began
        return Outcome(
            done, seconds, server.received(), job.live_shares() == [code], code, job.left()
        )


def shared_directly(job: Job) -> str:
    """The short code of a share that was made without any fault."""
    with Client(
        api_key=job.api_key, base_url=job.service.base_url, link_base_url=job.service.link_base_url
    ) as client:
        return client.share(["text:nothing"]).short_code


@WAITS_FOR_ALL
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_fault_ends_as_promised(row: Row, outcomes: dict[str, Future[Outcome]]) -> None:
    outcome = outcomes[str(row)].result()
    assert outcome.done.code == row.code, outcome.done
    assert outcome.live is row.live
    assert row.sent[0] <= len(outcome.sent) <= row.sent[1]
    first = outcome.sent[0].method if outcome.sent else ""
    tries = [each for each in outcome.sent if each.method == first]
    assert same_bytes(tries)
    assert row.words != "shares expire CODE" or {
        each.method for each in outcome.sent[len(tries) :]
    } <= {"GET"}
    assert outcome.seconds < row.deadline + LATE
    noted = [path for path in outcome.left if path.startswith("shares/")]
    assert len(noted) == (row.words == "shares expire CODE" and row.ends is None)
    assert outcome.left == noted
    assert "Traceback" not in outcome.done.err
    if row.ends is None and row.words != "shares expire CODE":
        assert outcome.code in outcome.done.out
    else:
        assert outcome.done.out == ""
    if row.ends is errors.OutcomeUnknownError:
        assert f"sealpipe shares expire -- {outcome.code}" in outcome.done.err


def test_walking_every_page_survives_a_fault_between_two_pages(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    server = proxied()
    job = job_at(server)
    codes = {shared_directly(job) for _ in range(5)}
    server.plan(passes, faults.reset_after, says(503), passes, faults.half_body)
    with Client(
        api_key=job.api_key, base_url=server.base_url, link_base_url=job.service.link_base_url
    ) as client:
        assert {row.short_code for row in client.iter_shares(limit=2)} == codes


async def _expired_by_async_client(job: Job, server: Faulty, code: str) -> None:
    async with AsyncClient(
        api_key=job.api_key, base_url=server.base_url, link_base_url=job.service.link_base_url
    ) as client:
        await client.expire_share(code)


@pytest.mark.parametrize(
    "fault", [faults.reset_after, envelope(500, 42, commits=True)], ids=["reset", "500/42"]
)
def test_both_clients_take_404_after_their_own_unclear_delete_for_success(
    fault: Fault, proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    server = proxied()
    job = job_at(server)
    codes = shared_directly(job), shared_directly(job)
    server.plan(fault)
    with Client(
        api_key=job.api_key, base_url=server.base_url, link_base_url=job.service.link_base_url
    ) as client:
        client.expire_share(codes[0])
    server.plan(fault)
    asyncio.run(_expired_by_async_client(job, server, codes[1]))
    assert job.live_shares() == []
    assert [request.method for request in server.received()] == ["DELETE"] * 4
