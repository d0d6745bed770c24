"""What the service's suite asks of the store once more, on PostgreSQL.

A test comes here for what it has the database do. Those that never reach it, or are refused before
it in each of their rows, show the same on SQLite; and what runs at four processes on one PostgreSQL
(`four_processes`) is not run on another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from service.four_processes import NOT_WITH_FOUR, WITH_FOUR
from service.on_another_store import run_files

HERE = Path(__file__).parent
_IN_FLIGHT = "test_idempotency.py::test_a_second_call_while_the_first_is_in_flight_is_106"
_REHEARSAL = "a rehearsal's alone, which is on SQLite"
_LOGGED = "what is logged is the same text, whatever stores it"
_SQLITE = "breaks the text for SQLite"
_FILES = "asks for the state file of a rehearsal"
_BEFORE = "each row is refused before the store, after the same statements as any call"
LEFT_OUT: Mapping[str, str] = {
    "test_on_postgresql.py": "is this",
    "test_own_service.py": "has servers of its own, on both stores",
    "test_with_four_processes.py": "starts a server of its own, on PostgreSQL",
    "test_schemathesis.py": "test_own_service.py has it on both stores",
    "test_independent_client.py": "test_own_service.py has its cases on both stores",
    "test_mutants.py": _SQLITE,
    "test_control_door.py": _REHEARSAL,
    "test_faults.py": _REHEARSAL,
    "test_running_it.py": _REHEARSAL,
    "test_coverage.py": "reads the specification",
    "test_forgeries.py": "checks signatures",
    "test_hostile_callers.py": "asks the rehearsal's door and its clients",
    "test_log_redaction.py": _LOGGED,
    "test_watching.py": _LOGGED,
    "test_mcp_clients.py": "the tools are called in test_mcp.py; this is how clients ask for them",
    "test_openapi.py": "reads the document",
    "test_serving.py": "starts processes that serve nothing",
    "test_webhook_addresses.py": "checks addresses before anything is stored",
    "test_creating_requests.py::test_a_member_that_breaks_its_rule_is_named": _BEFORE,
    "test_creating_shares.py::test_a_member_that_breaks_its_rule_is_named": _BEFORE,
    "test_creating_shares.py::test_what_is_not_a_json_object_is_a_validation_failure": _BEFORE,
    "test_events.py::test_an_endpoint_is_https_or_http_on_this_machine": _BEFORE,
    "test_events.py::test_and_nothing_else": _BEFORE,
    "test_gateway.py::test_a_body_may_be_nested_but_not_without_an_end": _BEFORE,
    "test_gateway.py::test_no_other_route_exists": _BEFORE,
    "test_mcp.py::test_errors_are_those_of_json_rpc": _BEFORE,
    "test_mcp.py::test_headers_are_what_the_transport_wants": _BEFORE,
    "test_recipients.py::test_there_is_nothing_else": _BEFORE,
    "test_our_client.py::test_a_share_meets_each_fault_of_the_plan_once": _REHEARSAL,
    "test_state_machine.py::test_a_service_that_is_wrong_is_found_out": _SQLITE,
    f"{_IN_FLIGHT}[shares.committed]": (
        "PostgreSQL's locks end with the commit: from then on the call is replayed"
    ),
    "test_keys.py::test_of_every_secret_that_arrives_the_files_hold_only_hashes": _FILES,
    "test_sweeping.py::test_what_expires_ends_without_a_call": _FILES,
    "test_sweeping.py::test_a_rehearsal_sweeps_what_expired_while_it_was_stopped": _FILES,
}
"""Which tests, with the reason. Those of `database/` run on both stores anyhow; what is in
`pytest_plugin/` starts rehearsals of its own.
"""


FILES = sorted(
    file.name for file in HERE.glob("test_*.py") if file.name not in {*LEFT_OUT, *WITH_FOUR}
)
TESTS = sorted(
    name
    for name in NOT_WITH_FOUR
    if "::" in name and not {name, name.partition("[")[0]} & set(LEFT_OUT)
)
"""What four processes cannot run, of the files that they run."""


def test_what_is_left_out_is_there() -> None:
    for name in LEFT_OUT:
        file, _, test = name.partition("[")[0].partition("::")
        assert not test or f"def {test}(" in (HERE / file).read_text(), name
        assert (HERE / file).is_file(), name


@pytest.mark.timeout(600)
def test_the_suite() -> None:
    left_out = [f"--deselect=tests/service/{name}" for name in LEFT_OUT if "::" in name]
    run_files("postgresql", [*FILES, *TESTS], *left_out)
