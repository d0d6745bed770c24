"""What `tests/endurance/batch_figures.py` measures, with few rows: each figure is there."""

from __future__ import annotations

import subprocess
import sys

from support.parts import ROOT, find_postgres


def test_every_figure_of_a_batch_is_measured() -> None:
    """But how long a killed worker's row waits, which is half a minute:
    `tests/cli/batch/test_dead_workers.py` has it.
    """
    find_postgres()
    script = ROOT / "tests" / "endurance" / "batch_figures.py"
    sizes = ["--rounds", "1", "--rows", "5", "--many", "20", "--seconds", "3"]
    chosen = ["--only", "cpu", "--only", "memory", "--only", "rate"]
    done = subprocess.run(
        [sys.executable, script, *sizes, *chosen],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    header, _, *rows = done.stdout.splitlines()
    assert header == f"| figure | {ROOT.name} |"
    figures = {
        name.strip(): float(figure) for _, name, figure, _ in (row.split("|") for row in rows)
    }
    assert len(figures) == 10, figures
    assert figures["the same, calls in the fullest minute"] > 0
    assert min(figure for name, figure in figures.items() if "memory" in name) > 20
