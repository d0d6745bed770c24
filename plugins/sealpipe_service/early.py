"""Answers that do not wait for a body: of whoever may not send it, or sends too much."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

from starlette.responses import Response
from starlette.types import Receive, Send

LINGER_SECONDS: Final = 30.0


async def answer_early(
    response: Response, receive: Receive, send: Send, *, more_body: bool = True
) -> None:
    """Answer while a body still comes, or is not read, and close the connection.

    What comes is read for a while and dropped: a connection that is closed before would be reset,
    and whoever reads the answer only after all is sent would not see it.
    """
    response.headers["connection"] = "close"
    start = {"type": "http.response.start", "status": response.status_code}
    await send({**start, "headers": response.raw_headers})
    await send({"type": "http.response.body", "body": response.body, "more_body": True})
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(LINGER_SECONDS):
            while more_body:
                more_body = (await receive()).get("more_body", False)
    await send({"type": "http.response.body", "body": b"", "more_body": False})
