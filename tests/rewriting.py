"""Workers share the rewriting of assertions, which takes most of the first run in a clone: each
begins elsewhere.

pytest rewrites a test file when it imports it, and keeps the result in `__pycache__`. Workers that
import the same files at the same moment each rewrite all of them; each of these imports its own
part first, and then what the others have kept by then. Their tests have to be put back into one
order: `sort_key`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tiers import is_left_out


def collect_in_turn(config: pytest.Config, tests: Path, worker: int, workers: int) -> None:
    """Collect every file of the run's tier by its name: those of this worker first, then those of
    the next.
    """
    rest = config.getoption("--rest")
    files = sorted(tests.rglob("test_*.py"))
    files = [
        file
        for file in files
        if not is_left_out(file.relative_to(tests.parent).as_posix(), rest=rest)
    ]
    start = len(files) * worker // workers
    config.args = [str(file) for file in files[start:] + files[:start]]


def sort_key(item: pytest.Item) -> tuple[str, ...]:
    """Where the file of a test stands among all files: the same for all workers."""
    return item.path.parts
