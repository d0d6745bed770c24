"""Tasks of an `AsyncClient` that are cancelled while its service is at work."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from sealpipe import AsyncClient, Field
from support.faulty import Faulty
from support.job import Job

AT_ONCE, PATIENCE = 12.0, 60.0
"""Seconds: what a busy machine may need, and how long whoever does not end at once would wait."""


def arguments(job: Job, server: Faulty | None = None) -> dict[str, Any]:
    """The arguments of a client that talks to the service, or to a server before it."""
    base_url = job.service.base_url if server is None else server.base_url
    return {
        "api_key": job.api_key,
        "base_url": base_url,
        "link_base_url": job.service.link_base_url,
        "deadline": 90,
    }


async def reached(server: Faulty) -> None:
    """Wait until the service has what was sent to it through a server that keeps the answer."""
    assert await asyncio.to_thread(server.committed.wait, 20)


async def share_begun(
    client: AsyncClient, job: Job, server: Faulty, **options: Any
) -> asyncio.Future[Any]:
    """The task of a share that the service has."""
    field = Field("DB_PASSWORD", job.secret, type="password")
    task = asyncio.ensure_future(client.share([field], outbox=job.outbox, **options))
    await reached(server)
    return task


async def cancel(task: asyncio.Future[Any]) -> float:
    """Cancel a task; the seconds until it ended."""
    task.cancel()
    began = time.monotonic()
    with pytest.raises(asyncio.CancelledError):
        await task
    return time.monotonic() - began
