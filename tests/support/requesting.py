"""Requests in tests: one method of either client, a request with its submissions, the DELETEs that arrived."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

from sealpipe import AsyncClient, Client
from sealpipe.wire import keys, link
from support.faulty import Faulty
from support.job import Job

PAIR = keys.from_seed(bytes(range(32)))
FIELDS = (("Password", "password"), ("Note", "multiline"))


@dataclass
class Caller:
    """Calls one method of `Client` or of `AsyncClient`; an iterator comes back as a list."""

    api_key: str
    base_url: str
    link_base_url: str
    asynchronous: bool
    deadline: float = 20.0

    def __call__(self, name: str, *words: Any, **options: Any) -> Any:
        arguments = {"api_key": self.api_key, "base_url": self.base_url, "link_base_url": self.link_base_url}
        if self.asynchronous:
            return asyncio.run(self._await(arguments, name, words, options))
        with Client(**arguments, deadline=self.deadline) as client:
            found = getattr(client, name)(*words, **options)
            return list(found) if isinstance(found, Iterator) else found

    async def _await(self, arguments: dict[str, str], name: str, words: Any, options: Any) -> Any:
        async with AsyncClient(**arguments, deadline=self.deadline) as client:
            found = getattr(client, name)(*words, **options)
            return [row async for row in found] if isinstance(found, AsyncIterator) else await found


def made(job: Job, **options: Any) -> str:
    """The short code of a new request of the job's account."""
    arguments: dict[str, Any] = {"title": "t", "public_key": PAIR.public_key, "fields": FIELDS} | options
    with client_of(job) as client:
        code: str = client.create_request(**arguments).short_code
        return code


def submitted(job: Job, code: str, *values: str) -> list[str]:
    """Somebody fills in the form, once for each value; the submissions' codes."""
    collect = link.collect_link(job.service.link_base_url, code)
    return [job.service.submitter().submit(collect, {"Password": value}) for value in values]


def client_of(job: Job) -> Client:
    """A client that talks to the service directly."""
    return Client(api_key=job.api_key, base_url=job.service.base_url, link_base_url=job.service.link_base_url)


def deletes(server: Faulty) -> int:
    """How many DELETEs arrived."""
    return sum(request.method == "DELETE" for request in server.received())
