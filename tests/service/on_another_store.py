"""Runs files of this folder in a pytest of their own, at another store."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable

from support.parts import ROOT, find_postgres


def run_files(store: str, files: Iterable[str], *words: str) -> str:
    """Run files with `--store`; return what was said. Nothing fails."""
    find_postgres()
    given = ["-q", "-n0", "-pno:cacheprovider", f"--store={store}", *words]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *given, *(f"tests/service/{file}" for file in files)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
    return done.stdout
