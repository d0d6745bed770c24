"""Which tests a bare `pytest` leaves out, and why: `pytest --all` runs them too, `pytest --rest`
runs only them.

A bare run is for a contributor between two thoughts. A file, a folder or a test that the command
line names is run whole, whatever stands here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_STRACE = "whole commands under strace"
_KEYS = "each fault for each key; a bare run has them for one"
_KILLS = "a sweep of kills"
_PYTEST = "runs pytest, many times"
_PROCESSES = "a process for each case"
_SERVERS = "a server or a foreign program for each case"

REST: Final[Mapping[str, str]] = {
    "tests/e2e/actions/": "sets up and runs the actions",
    "tests/benchmarks/": "the short form of the benchmarks",
    "tests/e2e/browser/": "Chromium",
    "tests/cli/test_conformance.py::test_each_primitive_that_breaks_is_noticed": (
        "broken copies of the wire format"
    ),
    "tests/cli/batch/test_at_once.py": "processes beside each other, and PostgreSQL",
    "tests/cli/batch/test_dead_workers.py": "waits until a worker counts as dead",
    "tests/cli/batch/test_killed_processes.py": _KILLS,
    "tests/cli/batch/test_killed_sealing.py": _KILLS,
    "tests/cli/batch/test_kills.py": _KILLS,
    "tests/cli/batch/test_refusals.py": "waits for a real rate limit, a quarter of a minute each",
    "tests/cli/batch/test_standing_still.py": "stands still at every step, half a minute each",
    "tests/cli/batch/test_through_a_pooler.py": "workers, each a process, and PostgreSQL",
    "tests/cli/batch/test_upgrades.py::test_a_batch_in_postgresql_goes_on": "starts PostgreSQL",
    "tests/cli/batch/test_worker.py": "workers that wait for PostgreSQL, some seconds each",
    "tests/cli/batch/test_scene.py": (
        "four weeks on two machines, with PostgreSQL, mail and OpenBao"
    ),
    "tests/cli/batch/test_figures.py": _PROCESSES,
    "tests/cli/batch/test_simulation.py": "a model's random walks",
    "tests/cli/collect/test_any_bytes.py::test_the_largest_file_arrives": "a share of 16 MiB",
    "tests/cli/collect/test_hostile_submissions.py": "hundreds of commands",
    "tests/cli/collect/test_model.py": "a model's random walks",
    "tests/cli/collect/test_second_machine.py": "hundreds of commands",
    "tests/service/test_own_service.py": _SERVERS,
    "tests/service/test_with_four_processes.py::test_what": (
        "a part of the service's suite once more, at a server"
    ),
    "tests/cli/server/test_first_share.py::test_a_clients_day_is_the_same_script": _PROCESSES,
    "tests/cli/server/test_first_share.py::test_a_killed_process_is_replaced": _PROCESSES,
    "tests/cli/server/test_operating.py": _SERVERS,
    "tests/cli/server/test_proxies.py": _SERVERS,
    "tests/cli/server/test_stopping.py": _SERVERS,
    "tests/cli/copy/test_each_store.py": _SERVERS,
    "tests/cli/deliver/test_foreign_channels.py": "installs third-party plugins",
    "tests/cli/faults/test_kills.py": "signals that are sent at the right moment",
    "tests/mcp/test_ending.py": "servers that are ended, each a process",
    "tests/mcp/test_kills.py::test_a_killed_share_is_finished_by_the_same_call": _KILLS,
    "tests/mcp/test_policy_command.py::test_a_server_that_is_started_again_remembers_the_hour": (
        "starts two servers"
    ),
    "tests/mcp/test_page.py": "starts servers, and imports the SDK for each",
    "tests/mcp/test_vault.py": "starts OpenBao",
    "tests/service/database/test_killed_notices.py": _KILLS,
    "tests/service/pytest_plugin/test_example_project.py": _PYTEST,
    "tests/service/pytest_plugin/test_failing_tests.py": _PYTEST,
    "tests/service/pytest_plugin/test_fixture.py": _PYTEST,
    "tests/e2e/tutorials/test_tutorials.py": "follows whole tutorials, with all that they install",
    "tests/e2e/jobs/": "whole jobs, with OpenBao, mail, nginx and PostgreSQL",
    "tests/e2e/recipes/": "runs whole pipelines, and OpenBao",
    "tests/e2e/gitlab/": "gitlab-ci-local and a container engine",
    "tests/mcp/test_stdio.py": "starts servers",
    "tests/plugins/precommit/test_scanners.py::test_a_scanner_finds": _SERVERS,
    "tests/plugins/precommit/test_in_git.py": "pre-commit, with environments of its own",
    "tests/unit/copy/test_pairs_of_failures.py::test_a_rerun_that_fails_too": (
        "every pair of failures of every pair of stores"
    ),
    "tests/unit/spellings/test_programs.py": _SERVERS,
    "tests/cli/scenarios/test_recordings.py": "commands at a real terminal",
    "tests/cli/scenarios/test_scenarios.py::test_scenario[smoke]": "a process for each command",
    "tests/cli/server/test_kills.py": _KILLS,
    "tests/cli/server/test_load.py": _SERVERS,
    "tests/cli/server/test_namespace.py": _SERVERS,
    "tests/cli/kills/test_cancelled_steps.py": _KILLS,
    "tests/cli/kills/test_commands.py": _KILLS,
    "tests/cli/kills/test_every_step.py": _KILLS,
    "tests/cli/kills/test_planted_breaks.py": _KILLS,
    "tests/mcp/test_every_tool.py::test_every_tool[stdio-": "a server for each client",
    "tests/mcp/test_every_tool.py::test_every_tool[http-auto-alone": "the others show the same",
    "tests/mcp/test_every_tool.py::test_every_tool[http-legacy-asking": "the others show the same",
    "tests/mcp/test_every_tool.py::test_who_started": "a server on a terminal for each client",
    "tests/mcp/test_leaks.py": _STRACE,
    "tests/mcp/test_starting.py::test_a_start_takes": (
        "starts servers, and imports the SDK for each"
    ),
    "tests/cli/leaks/test_a_share_leaks_nothing.py": _STRACE,
    "tests/cli/leaks/test_asking_leaks_nothing.py": _STRACE,
    "tests/cli/leaks/test_assistants_leak_nothing.py": _STRACE,
    "tests/cli/leaks/test_batches_leak_nothing.py": _STRACE,
    "tests/cli/leaks/test_collecting_leaks_nothing.py": _STRACE,
    "tests/cli/leaks/test_copying_leaks_nothing.py": _STRACE,
    "tests/cli/leaks/test_debug_leaks_nothing.py::test_no_command_tells_a_secret": (
        "each command, with all it names"
    ),
    "tests/cli/leaks/test_operators_leak_nothing.py": _STRACE,
    "tests/cli/leaks/test_other_commands_leak_nothing.py": _STRACE,
    "tests/cli/leaks/test_running_leaks_nothing.py": _STRACE,
    "tests/cli/leaks/test_sending_leaks_nothing.py": _STRACE,
    "tests/cli/leaks/test_storing_leaks_nothing.py": _STRACE,
    "tests/cli/leaks/test_typing_leaks_nothing.py": _STRACE,
    "tests/e2e/live/test_at_a_stand_in.py": _PYTEST,
    "tests/plugins/age/test_end_to_end.py::test_killed_at_any_step": _KILLS,
    "tests/plugins/age/test_end_to_end.py::test_neither_key_nor_value_shows": _STRACE,
    "tests/plugins/age/test_end_to_end.py::test_no_file_has_what_is_collected_in_clear": _STRACE,
    "tests/plugins/azure_key_vault/test_end_to_end.py::TestAzure::test_reading_shows": _STRACE,
    "tests/plugins/azure_key_vault/test_end_to_end.py::TestAzure::test_storing_shows": _STRACE,
    "tests/plugins/azure_key_vault/test_official_client.py": (
        "Microsoft's own client, whose import takes a second"
    ),
    "tests/contracts/test_aws.py::TestAwsSmSink::test_killed": _KILLS,
    "tests/contracts/test_aws.py::TestAwsSmSinkWithoutAValue": "the contract once more",
    "tests/contracts/test_k8s.py::TestK8sSink::test_killed": _KILLS,
    "tests/plugins/azure_key_vault/test_contract.py::TestAzureKvSink::test_killed": _KILLS,
    "tests/plugins/gcp/test_contract.py::TestGcpSmSink::test_killed": _KILLS,
    "tests/plugins/vault/test_contract.py::TestStoringKeysWithoutVersions::test_killed": _KILLS,
    "tests/plugins/vault/test_contract.py::TestStoringVersionedKeys::test_killed": _KILLS,
    "tests/contracts/test_aws.py::TestAwsSsmSink::test_killed": _KILLS,
    "tests/contracts/test_aws.py::TestAwsSsmSinkPath::test_killed": _KILLS,
    "tests/contracts/test_aws.py::TestAwsSsmSinkPath::test_a_lost_write": _KEYS,
    "tests/contracts/test_aws.py::TestAwsSsmSinkPath::test_a_write": _KEYS,
    "tests/contracts/test_aws.py::TestAwsSsmSinkPath::test_what_may_not": _KEYS,
    "tests/contracts/test_aws.py::TestAwsSsmSinkPath::test_what_the_backend": _KEYS,
    "tests/plugins/gcp/test_end_to_end.py::TestGcp::test_reading_shows": _STRACE,
    "tests/plugins/gcp/test_end_to_end.py::TestGcp::test_storing_shows": _STRACE,
    "tests/plugins/gcp/test_official_client.py": "Google's own client, whose import takes a second",
    "tests/plugins/keepass/test_end_to_end.py::test_killed_at_any_step": _KILLS,
    "tests/plugins/keepass/test_end_to_end.py::TestKeepass::test_reading_shows": _STRACE,
    "tests/plugins/keepass/test_end_to_end.py::TestKeepass::test_storing_shows": _STRACE,
    "tests/plugins/channels/test_chats_end_to_end.py::test_link_and_address_show_nowhere_else": (
        _STRACE
    ),
    "tests/plugins/doppler/test_end_to_end.py::TestDoppler::test_reading_shows": _STRACE,
    "tests/plugins/doppler/test_end_to_end.py::TestDoppler::test_storing_shows": _STRACE,
    "tests/plugins/infisical/test_end_to_end.py::TestInfisical::test_reading_shows": _STRACE,
    "tests/plugins/infisical/test_end_to_end.py::TestInfisical::test_storing_shows": _STRACE,
    "tests/plugins/local/test_dotenv_encoder.py::test_beyond_ascii": (
        "14,000 characters for each reader of .env files"
    ),
    "tests/plugins/local/test_failing_calls.py": _STRACE,
    "tests/plugins/postgres_role/": "starts PostgreSQL",
    "tests/unit/batch/test_races.py": "kills workers and servers",
    "tests/unit/core/test_installation.py::test_a_real_tool_of_uv": "runs uv",
    "tests/unit/core/test_installation.py::test_a_real_venv_of_uv": "runs uv",
    "tests/unit/core/test_packaging.py::test_the_wheel_works_by_itself": "installs the wheel",
    "tests/unit/core/test_state_kills.py": _KILLS,
    "tests/unit/core/test_types.py": "runs mypy on users' scripts",
    "tests/unit/docs/test_readme_runs.py": "starts the service and three commands",
    "tests/unit/registry/test_example_plugin.py": "installs the example plugin",
    "tests/unit/registry/test_pluggy_versions.py": "installs other versions of pluggy",
    "tests/plugins/onepassword/test_end_to_end.py::TestOp::test_reading_shows": _STRACE,
    "tests/plugins/onepassword/test_end_to_end.py::TestOp::test_storing_shows": _STRACE,
    "tests/plugins/vault/test_end_to_end.py::test_no_login_and_no_value_shows": _STRACE,
    "tests/cli/server/test_durability.py": _STRACE,
    "tests/service/database/test_killed_upgrades.py": _KILLS,
    "tests/service/test_mutants.py": "broken copies of the service",
    "tests/service/test_on_postgresql.py": "what the service stores once more, on PostgreSQL",
    "tests/service/test_schemathesis.py": "500 cases drawn from the service's own document",
    "tests/service/test_state_machine.py": "a model's random walks",
    "tests/unit/wire/test_public_vectors.py::test_nist_gcm_decryption": (
        "the vectors are 125 MB for this test alone"
    ),
    "tests/cli/expire_request/test_rule_d.py": "random schedules of whole requests",
    "tests/e2e/workflows/": "runs whole workflows",
    "tests/cli/faults/test_clients.py": (
        "every fault by both clients; a bare run has them by the commands"
    ),
    "tests/cli/faults/test_places.py": _PROCESSES,
    "tests/cli/leaks/test_detector.py": _PROCESSES,
    "tests/cli/run/test_processes.py": _PROCESSES,
    "tests/unit/run/test_refused_names.py::test_a_value_under_this_name_would_run_code": _SERVERS,
    "tests/cli/run/test_terminal.py": _PROCESSES,
    "tests/cli/test_completion.py": "bash, zsh and fish",
    "tests/cli/test_printing.py": _PROCESSES,
    "tests/cli/test_rehearse.py": _PROCESSES,
    "tests/cli/test_rehearse_job.py": _PROCESSES,
    "tests/cli/test_signals.py": _PROCESSES,
    "tests/cli/test_starting.py": _PROCESSES,
    "tests/plugins/ci/test_outputs.py": _PROCESSES,
    "tests/plugins/keyring/test_keyring.py": _SERVERS,
    "tests/plugins/keyring/test_keyring_storing.py": _SERVERS,
    "tests/plugins/prompt/test_prompt.py": "a terminal for each case",
    "tests/plugins/sops/": _SERVERS,
    "tests/unit/batch/test_postgres_address.py": _SERVERS,
    "tests/unit/batch/test_rate.py::test_processes": _PROCESSES,
    "tests/unit/docs/test_examples.py": _PROCESSES,
    "tests/unit/docs/test_walk_throughs.py": _PROCESSES,
    "tests/unit/http/test_the_process.py": _PROCESSES,
    "tests/unit/registry/test_commands.py": _PROCESSES,
    "tests/unit/registry/test_third_party_ci.py": _PROCESSES,
}
"""How ids of tests begin: folders, files or single tests; with the reason."""

ON_POSTGRESQL: Final = ("tests/service/", "[postgresql")
"""Where tests run on both stores, and what the ids of those have in them that start PostgreSQL."""

FIRST: Final = (
    "tests/unit/http/test_drips.py",
    "tests/benchmarks/",
    "tests/e2e/gitlab/test_image.py",
    "tests/e2e/tutorials/test_tutorials.py",
    "tests/plugins/pass_store/test_contract.py",
    "tests/service/test_mutants.py",
    "tests/service/test_on_postgresql.py",
    "tests/service/test_own_service.py",
    "tests/service/test_state_machine.py",
    "tests/service/test_with_four_processes.py",
    "tests/unit/batch/test_races.py",
    "tests/unit/core/test_state_kills.py",
    "tests/unit/registry/test_example_plugin.py",
    "tests/unit/run/test_refused_names.py",
)
"""What takes a quarter of a minute and more whatever runs beside it: begun last, it would keep one
worker busy and all others waiting. A file is one worker's.
"""


def is_in_rest(test: str) -> bool:
    """Whether a bare `pytest` leaves this test (its id) out."""
    folder, store = ON_POSTGRESQL
    return test.startswith(_REST) or (test.startswith(folder) and store in test)


def is_left_out(path: str, *, rest: bool) -> bool:
    """Whether a run of the one tier, or of the other, needs nothing of a file or a folder (ends in
    `/`): no import.
    """
    if rest:
        folder, _ = ON_POSTGRESQL
        names_some = any(each.startswith(path) for each in (*REST, folder))
        return not path.startswith((*_REST, folder)) and not names_some
    return path.startswith(_REST)


def is_first(test: str) -> bool:
    """Whether a test (its id) is begun before the others."""
    return test.startswith(FIRST)


_REST = tuple(REST)
