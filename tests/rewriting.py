"""Workers share the rewriting of assertions, which takes most of the first run in a clone: each begins elsewhere.

pytest rewrites a test file when it imports it, and keeps the result in `__pycache__`. Workers import the same files at
the same moment, so each would rewrite all of them. What is kept already, even of an older text, is left to pytest.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from _pytest.assertion import rewrite

from tiers import is_left_out


def rewrite_in_turn(config: pytest.Config, tests: Path, worker: int, workers: int) -> None:
    """Rewrite every file of the run's tier that nobody has: those of this worker first, then those of the next."""
    rest = config.getoption("--rest")
    files = sorted(tests.rglob("test_*.py"))
    files = [file for file in files if not is_left_out(file.relative_to(tests.parent).as_posix(), rest=rest)]
    start = len(files) * worker // workers
    for file in files[start:] + files[:start]:
        kept = rewrite.get_cache_dir(file) / f"{file.stem}{rewrite.PYC_TAIL}"
        if kept.exists() or sys.dont_write_bytecode or not rewrite.try_makedirs(kept.parent):
            continue
        try:
            source, code = rewrite._rewrite_test(file, config)
        except (SyntaxError, UnicodeDecodeError):
            continue  # pytest reports it
        rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, source, kept)
