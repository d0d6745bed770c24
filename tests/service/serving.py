"""The service as a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SERVE = """
import sys
from pathlib import Path
from sealpipe_rehearsal.server import serve
show = lambda address: print(address.base_url, flush=True)
print("ended by", serve(0, Path(sys.argv[1]), "svc", show))
"""

DEAF = """
import signal, threading, time
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
"""
"""Another thread gets the signal, which does not wake the server's."""


@contextmanager
def serving(state: Path, before: str = "") -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The service as a process of its own, and its base URL."""
    with subprocess.Popen(
        [sys.executable, "-c", before + SERVE, state], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()
