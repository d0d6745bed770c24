"""The connections of batches: before each call to the service they ask the rate that all workers
share.
"""

from __future__ import annotations

import threading
from typing import Any

from sealpipe.api.operation import Failure, Operation, Response
from sealpipe.batch.database.rate import SharedRate
from sealpipe.session import Session, Transport


class RatedTransport(Transport):
    """The connections of another, which ask the rate of all workers before each call, and nobody
    else.
    """

    def __init__(self, inner: Transport, rate: SharedRate) -> None:
        super().__init__()
        self._inner = inner
        self._rate = rate
        self.calls = 0
        """How many calls were sent."""
        self._counting = threading.Lock()

    def get_limiter(self, _session: Session) -> SharedRate:
        """Return the rate of all workers."""
        return self._rate

    def send(
        self, session: Session, operation: Operation[Any], timeout: float
    ) -> Response | Failure:
        """Send one operation once."""
        with self._counting:
            self.calls += 1
        return self._inner.send(session, operation, timeout)

    def close(self) -> None:
        """Close the connections."""
        self._inner.close()
