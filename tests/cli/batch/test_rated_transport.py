"""The rate of all workers is asked before each call, and no other; its delay ends when the call is
cancelled.
"""

from __future__ import annotations

import threading
from contextvars import copy_context

import pytest

from cli.batch.world import BatchWorld, fail_with
from sealpipe.api import shares
from sealpipe.api.operation import Response
from sealpipe.batch.engine.rated_transport import RatedTransport
from sealpipe.budget import call
from sealpipe.cancellation import Cancellation, CancelledCallError, make_current
from support.stopwatch import stopwatch


def test_a_429_slows_all_workers_and_the_client_does_not_limit_once_more(world: BatchWorld) -> None:
    refused = Response(429, {"retry-after": "2"}, b"")
    world.before = fail_with(refused)  # type: ignore[method-assign]
    session = world.session()
    rated = session.with_transport(RatedTransport(session.transport, world.store.rate))
    assert rated.send(shares.list_page(1, 25), 10.0) == refused
    assert world.store.rate.read().slowed_until > world.store.now()
    assert world.network.limiter.wait(10.0, lambda _: pytest.fail("it waits")) > 0


def test_a_cancel_ends_the_delay_of_the_shared_rate_and_sends_nothing(world: BatchWorld) -> None:
    world.store.rate.slow_down(world.store.rate.acquire().at, retry_after=15.0)
    session, cancellation = world.session(), Cancellation()
    rated = session.with_transport(RatedTransport(session.transport, world.store.rate))

    def look() -> object:
        make_current(cancellation)
        return call(shares.list_page(1, 25), rated.start_budget())

    threading.Timer(0.1, cancellation.cancel).start()
    with stopwatch() as seconds:
        with pytest.raises(CancelledCallError):
            copy_context().run(look)
        assert seconds() < 12, "not the fifteen seconds"
    assert world.network.log == []
