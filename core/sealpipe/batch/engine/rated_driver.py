"""The driver of batches: before each call to the service it asks the rate that all workers share."""

from __future__ import annotations

import threading
import time
from typing import Any

from sealpipe.api import Failure, Operation, Response
from sealpipe.api.responses import parse_retry_after
from sealpipe.batch.database.store import BatchStore
from sealpipe.cancellation import Cancellation
from sealpipe.client_base import Driver
from sealpipe.flows.session import Session
from sealpipe.http.rate_limiter import refuse_delay


class RatedDriver(Driver):
    """A driver that asks the rate of all workers before each call."""

    def __init__(self, session: Session, store: BatchStore) -> None:
        super().__init__(session)
        self._rate = store.rate
        self.calls = 0
        """How many calls were sent."""
        self._counting = threading.Lock()

    def _send(self, operation: Operation[Any], timeout: float, cancellation: Cancellation) -> Response | Failure:
        end = time.monotonic() + timeout
        slot = self._rate.acquire()
        refusal = refuse_delay(slot.delay, timeout) if slot.delay > 0 else None
        if refusal is not None:
            return refusal
        if slot.delay > 0:
            cancellation.sleep(slot.delay)
        with self._counting:
            self.calls += 1
        result = super()._send(operation, end - time.monotonic(), cancellation)
        if isinstance(result, Response) and result.status == 429:
            self._rate.slow_down(slot, parse_retry_after(result.headers.get("retry-after")))
        return result
