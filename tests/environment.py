"""The environment of the tests: nothing that a user has set reaches them, and their home is an
empty folder.

Each process that runs tests begins with it (tests/conftest.py).
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from unittest import mock

MACHINE: Final[Mapping[str, str]] = dict(os.environ)
"""What pytest was started with: for programs that fetch packages, which need the machine's index,
proxies and certificates, and for nothing else."""
KEPT: Final = re.compile(
    r"PATH|NODE_PATH|TMPDIR"  # where programs and room are
    r"|(PYTHON|PYTEST_|COV_|COVERAGE_|SEALPIPE_(TESTS|MUTANTS|LIVE)).*"  # how this run is to be
)


def cleared(environ: Mapping[str, str], home: Path) -> dict[str, str]:
    """What of an environment the tests see."""
    return {name: value for name, value in environ.items() if KEPT.fullmatch(name)} | {
        "HOME": str(home),
        "LANG": "C.UTF-8",
        # A file of certificates is read whole for every client, 25 ms. In a folder only the one
        # that is needed is looked up, and no test needs one.
        "SSL_CERT_DIR": str(home),
    }


@contextmanager
def own_environment(home: Path) -> Iterator[None]:
    """Have it, and the usual umask, in this process."""
    umask = os.umask(0o022)
    with mock.patch.dict(os.environ, cleared(os.environ, home), clear=True):
        time.tzset()
        yield
    time.tzset()
    os.umask(umask)
