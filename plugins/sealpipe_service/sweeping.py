"""What time does to stored data, done whether anybody calls or not."""

from __future__ import annotations

import logging
import threading

from .context import Service
from .listing import sweep

SECONDS = 30.0
"""How often a process sweeps. Each does: what one has done, the next does not find."""
_STOP_SECONDS = 5

_logger = logging.getLogger(__name__)


class Sweeper:
    """A thread that ends what has expired, drops what is not kept, and looks for due deliveries."""

    def __init__(self, service: Service, seconds: float = SECONDS) -> None:
        self._service = service
        self._seconds = seconds
        self._is_stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sealpipe-sweeper", daemon=True)

    def start(self) -> None:
        """Sweep at once, then every few seconds."""
        self._thread.start()

    def stop(self) -> None:
        """Return once it no longer uses the store."""
        self._is_stopped.set()
        self._thread.join(_STOP_SECONDS)

    def _run(self) -> None:
        while True:
            try:
                sweep(self._service)
                self._service.store.scrub()
                self._service.deliverer.wake()  # also those of a process that has ended
                self._service.log.count("sweeps", "done")
            except Exception:
                self._service.log.count("sweeps", "failed")
                _logger.exception("sweeping failed; it is tried again")
            if self._is_stopped.wait(self._seconds):
                return
