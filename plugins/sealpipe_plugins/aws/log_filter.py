"""AWS's SDK logs whole answers, secrets and tokens in them, where somebody has turned debugging on."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_LOGGERS = (
    *("botocore", "botocore.parsers", "botocore.endpoint", "botocore.auth", "botocore.hooks", "botocore.client"),
    *("botocore.credentials", "botocore.httpsession", "botocore.awsrequest", "botocore.regions", "botocore.utils"),
    *("botocore.session", "botocore.retryhandler", "botocore.retries.standard", "botocore.httpchecksum"),
    *("botocore.tokens", "botocore.signers", "botocore.handlers", "botocore.history"),
)
_ours = threading.local()


class _NotOurs(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno > logging.WARNING or not getattr(_ours, "calls", 0)


_FILTER = _NotOurs()


@contextmanager
def quiet() -> Iterator[None]:
    """Nothing below an error is logged by the SDK in this thread; what the program does with it elsewhere, is."""
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_FILTER)  # once: adding it again does nothing
    _ours.calls = getattr(_ours, "calls", 0) + 1
    try:
        yield
    finally:
        _ours.calls -= 1
