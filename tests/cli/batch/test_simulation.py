"""Some vendors over thirty days end as a model says; `tests/endurance/batch_simulation.py` has a
thousand.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from pathlib import Path

from cli.batch.simulation import draw_runs, draw_vendors, play, predict
from cli.batch.world import BatchWorld
from support.faked_time import find_faketime
from support.parts import ROOT, find_postgres


def test_vendors_over_thirty_days_end_as_the_model_says(tmp_path: Path) -> None:
    vendors, runs = draw_vendors(30, seed=1), draw_runs(seed=1, each=1.5)
    expected = {vendor.name: predict(vendor, runs) for vendor in vendors}
    assert {end.state for end in expected.values()} == {"done", "expired", "failed"}
    with closing(BatchWorld(tmp_path)) as world:
        assert play(world, vendors, runs) == expected


def test_vendors_end_so_where_postgresql_itself_lives_thirty_days() -> None:
    find_faketime()
    find_postgres()
    script = ROOT / "tests" / "endurance" / "batch_simulation.py"
    words = ["--database", "postgresql", "--vendors", "20", "--seed", "1", "--every", "3"]
    done = subprocess.run(
        [sys.executable, script, *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "20 vendors" in done.stdout
    assert "0 ended otherwise" in done.stdout
