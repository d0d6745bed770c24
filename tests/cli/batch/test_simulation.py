"""Some vendors over thirty days end as a model says; `tests/endurance/batch_simulation.py` has a
thousand.
"""

from __future__ import annotations

from pathlib import Path

from cli.batch.simulation import draw_runs, draw_vendors, play, predict


def test_vendors_over_thirty_days_end_as_the_model_says(tmp_path: Path) -> None:
    vendors, runs = draw_vendors(30, seed=1), draw_runs(seed=1, each=1.5)
    expected = {vendor.name: predict(vendor, runs) for vendor in vendors}
    assert {end.state for end in expected.values()} == {"done", "expired", "failed"}
    assert play(tmp_path, vendors, runs) == expected
