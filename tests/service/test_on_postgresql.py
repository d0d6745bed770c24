"""The whole suite of the service once more, on PostgreSQL, in one process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from support.parts import ROOT, find_postgres

HERE = Path(__file__).parent
_IN_FLIGHT = "test_idempotency.py::test_a_second_call_while_the_first_is_in_flight_is_106"
_FILES = "asks for the state file of a rehearsal"
LEFT_OUT: Mapping[str, str] = {
    "test_on_postgresql.py": "is this",
    "test_own_service.py": "has servers of its own, on both stores",
    "test_mutants.py": "breaks the text for SQLite",
    "test_state_machine.py::test_a_service_that_is_wrong_is_found_out": "the same",
    f"{_IN_FLIGHT}[shares.committed]": (
        "PostgreSQL's locks end with the commit: from then on the call is replayed"
    ),
    "test_keys.py::test_of_every_secret_that_arrives_the_files_hold_only_hashes": _FILES,
    "test_running_it.py::test_a_killed_service_comes_back_with_what_it_had_answered": _FILES,
    "test_running_it.py::test_the_state_file_is_for_its_owner_alone": _FILES,
    "test_running_it.py::test_no_secret_is_in_the_state_file": _FILES,
    "test_running_it.py::test_two_services_do_not_share_a_state_file": _FILES,
    "test_running_it.py::test_a_state_file_that_is_not_ours_is_refused": _FILES,
    "test_running_it.py::test_stopping_closes_the_port_and_stopping_again_does_nothing": _FILES,
    "test_running_it.py::test_another_programs_database_is_left_unchanged": _FILES,
    "test_sweeping.py::test_what_expires_ends_without_a_call": _FILES,
    "test_sweeping.py::test_a_rehearsal_sweeps_what_expired_while_it_was_stopped": _FILES,
}
"""Which tests, with the reason. Those of `database/` run on both stores anyhow; what is in
`pytest_plugin/` starts rehearsals of its own.
"""


FILES = sorted(file.name for file in HERE.glob("test_*.py") if file.name not in LEFT_OUT)
PARTS = 4
"""Each has a PostgreSQL of its own: files that share one do not make one each."""


@pytest.mark.timeout(600)
@pytest.mark.parametrize("part", range(PARTS))
def test_the_suite(part: int) -> None:
    find_postgres()
    left_out = [f"--deselect=tests/service/{name}" for name in LEFT_OUT if "::" in name]
    words = ["-q", "-n0", "-pno:cacheprovider", "--store=postgresql", *left_out]
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", *words),
            *(f"tests/service/{file}" for file in FILES[part::PARTS]),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
