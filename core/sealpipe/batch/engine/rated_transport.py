"""The connections of batches: before each call to the service they ask the rate that all workers
share.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from sealpipe.api.operation import Failure, Operation, Response
from sealpipe.api.responses import parse_retry_after
from sealpipe.batch.database.rate import SharedRate
from sealpipe.cancellation import current
from sealpipe.network.rate import refuse_delay
from sealpipe.session import Session, Transport


class RatedTransport(Transport):
    """The connections of another, which ask the rate of all workers before each call."""

    def __init__(self, inner: Transport, rate: SharedRate) -> None:
        super().__init__()
        self._inner = inner
        self._rate = rate
        self.calls = 0
        """How many calls were sent."""
        self._counting = threading.Lock()

    def send(
        self, session: Session, operation: Operation[Any], timeout: float
    ) -> Response | Failure:
        """Send one operation once its turn has come."""
        end = time.monotonic() + timeout
        slot = self._rate.acquire()
        refusal = refuse_delay(slot.delay, timeout) if slot.delay > 0 else None
        if refusal is not None:
            return refusal
        if slot.delay > 0:
            current().sleep(slot.delay)
        with self._counting:
            self.calls += 1
        result = self._inner.send(session, operation, end - time.monotonic())
        if isinstance(result, Response) and result.status == 429:
            self._rate.slow_down(slot, parse_retry_after(result.headers.get("retry-after")))
        return result

    def close(self) -> None:
        """Close the connections."""
        self._inner.close()
