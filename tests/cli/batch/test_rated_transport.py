"""The delay that the rate of all workers asks for ends when the call is cancelled."""

from __future__ import annotations

import threading
import time
from contextvars import copy_context

import pytest

from cli.batch.world import BatchWorld
from sealpipe.api import shares
from sealpipe.batch.engine.rated_transport import RatedTransport
from sealpipe.budget import call
from sealpipe.cancellation import Cancellation, CancelledCallError, make_current


def test_a_cancel_ends_the_delay_of_the_shared_rate_and_sends_nothing(world: BatchWorld) -> None:
    world.store.rate.slow_down(world.store.rate.acquire().at, retry_after=15.0)
    session, cancellation = world.session(), Cancellation()
    rated = session.with_transport(RatedTransport(session.transport, world.store.rate))

    def look() -> object:
        make_current(cancellation)
        return call(shares.list_page(1, 25), rated.start_budget())

    threading.Timer(0.1, cancellation.cancel).start()
    began = time.monotonic()
    with pytest.raises(CancelledCallError):
        copy_context().run(look)
    assert time.monotonic() - began < 12, "not the fifteen seconds"
    assert world.network.log == []
