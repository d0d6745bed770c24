"""Which tests of this folder run with a server's four processes, and which do not, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

WITH_FOUR: Final = (
    "test_answers.py",
    "test_gateway.py",
    "test_idempotency.py",
    "test_order.py",
    "test_owners.py",
    "test_plans.py",
    "test_reading_and_ending_shares.py",
    "test_recipients.py",
    "test_requests.py",
    "test_submitters.py",
)
"""Files that run, but for those of their tests that stand below."""

_CONTROL = "asks the rehearsal's control API, which a server does not have"
_MOMENT = "holds or breaks a call at a moment, which is a fault in one process"
_FAULT = "lets the store fail, which is a fault in one process"
_LOG = "reads the rehearsal's log, which is in one process"
_CLOCK = "its rehearsal's clock stands at noon; nobody moves a server's"
_OWN = "starts rehearsals of its own"
_PROCESS = "looks into the process that answers"
_FORM = "expects the errors of the app's form; the operator's commands have others"
_EXTENDED = "a server has what the specification omits, and a request id"
_NOBODY = "a submitter says who they are; a server believes nobody"
_ALONE = "needs no service that answers"
_SAME = "what is refused before the store is the same in each process"
_OTHERWISE = "test_own_service.py has its cases with four processes"
_RACES = "database/test_processes.py and cli/server/test_kills.py have its races"
_CONDITION = "test_submitters.py::test_a_condition_keeps_out_who_does_not_meet_it"

NOT_WITH_FOUR: Mapping[str, str] = {
    "test_control_door.py": _CONTROL,
    "test_coverage.py": _ALONE,
    "test_creating_requests.py": _SAME,
    "test_creating_shares.py": _SAME,
    "test_events.py": _LOG,
    "test_extended.py": _CLOCK,
    "test_faults.py": _FAULT,
    "test_forgeries.py": _ALONE,
    "test_hostile_callers.py": _CONTROL,
    "test_independent_client.py": _OTHERWISE,
    "test_keys.py": _FORM,
    "test_log_redaction.py": _LOG,
    "test_mail.py": _OWN,
    "test_mcp.py": _SAME,
    "test_mcp_clients.py": _SAME,
    "test_metrics.py": _ALONE,
    "test_mutants.py": "breaks the code of this process",
    "test_on_postgresql.py": "starts this folder's tests itself",
    "test_openapi.py": _ALONE,
    "test_our_client.py": _FAULT,
    "test_own_service.py": "has servers of its own, with four processes too",
    "test_rates.py": _CLOCK,
    "test_running_it.py": _OWN,
    "test_schemathesis.py": _OTHERWISE,
    "test_serving.py": _ALONE,
    "test_state_machine.py": _RACES,
    "test_stats.py": _CLOCK,
    "test_sweeping.py": _OWN,
    "test_watching.py": _LOG,
    "test_webhook_addresses.py": _ALONE,
    "test_with_four_processes.py": "starts this folder's tests itself",
    "test_answers.py::test_a_share_that_could_not_be_expired_is_500_with_42_and_is_as_it_was": (
        _FAULT
    ),
    "test_answers.py::test_a_success_is_a_bare_object_without_wrapper_meta_or_request_id": (
        _EXTENDED
    ),
    "test_answers.py::test_secrets_are_compared_in_constant_time_and_as_hashes": _PROCESS,
    "test_gateway.py::test_a_body_beyond_the_limit_is_413": _PROCESS,
    "test_gateway.py::test_the_key_list_tells_when_a_key_was_last_used": _CONTROL,
    "test_gateway.py::test_three_parts_are_recorded_as_a_compromise_and_kept_nowhere": _LOG,
    "test_gateway.py::test_three_parts_of_an_unknown_key_are_not_recorded": _LOG,
    "test_idempotency.py::test_a_call_that_breaks_in_flight_leaves_no_marker": _MOMENT,
    "test_idempotency.py::test_a_second_call_while_the_first_is_in_flight_is_106": _MOMENT,
    "test_owners.py::test_looking_changes_nothing": _CONTROL,
    "test_plans.py::test_a_plan_allows_so_many_keys": _FORM,
    "test_plans.py::test_a_limit_of_something_else_cannot_be_unlimited": _CONTROL,
    "test_plans.py::test_a_plan_has_its_row_of_limits": _CONTROL,
    "test_plans.py::test_a_team_key_has_the_organisations_access": _FORM,
    "test_plans.py::test_a_team_key_takes_a_slot_of_the_organisation": _FORM,
    "test_plans.py::test_revoking_frees_a_slot_at_once": _FORM,
    "test_plans.py::test_the_app_mints_by_the_plan_as_it_is_now": _FORM,
    "test_plans.py::test_the_default_account_has_no_allowance_until_its_plan_is_chosen": _FORM,
    "test_plans.py::test_the_operator_can_raise_the_key_allowance": _FORM,
    "test_plans.py::test_when_a_team_key_expires_a_share_its_owner_gets_the_event": _LOG,
    "test_plans.py::test_without_api_access_no_key_is_minted": _FORM,
    "test_reading_and_ending_shares.py::test_deleting_emits_share_deleted_for_the_owner": _LOG,
    "test_requests.py::test_a_list_query_that_fails_is_500_with_11": _FAULT,
    "test_requests.py::test_all_submissions_are_in_one_answer": (
        "more tries at one request than a server takes from one address"
    ),
    "test_requests.py::test_a_request_that_could_not_be_ended_is_500_with_11_and_is_as_it_was": (
        _FAULT
    ),
    f"{_CONDITION}[login]": _NOBODY,
    f"{_CONDITION}[mfa]": _NOBODY,
    f"{_CONDITION}[domain]": _NOBODY,
    f"{_CONDITION}[address]": _NOBODY,
}
"""Files, and tests of files that run. Those fail with four processes, and a run expects it."""

SAME_IN_EACH: Final = (
    "test_answers.py::test_a_body_says_that_it_is_json",
    "test_answers.py::test_nothing_but_the_specifications_routes_answers",
    "test_gateway.py::test_a_body_may_be_nested_but_not_without_an_end",
    "test_gateway.py::test_a_credential_that_is_not_usable_gets_the_one_answer",
    "test_gateway.py::test_every_route_wants_exactly_its_scope",
    "test_gateway.py::test_no_other_route_exists",
    "test_reading_and_ending_shares.py::test_a_short_code_that_is_not_there_is_404",
    "test_reading_and_ending_shares.py::test_paging_is_corrected_and_never_rejected",
    "test_recipients.py::test_there_is_nothing_else",
    "test_requests.py::test_a_short_code_that_is_not_there_is_404",
    "test_requests.py::test_paging_is_corrected_and_never_rejected",
)
"""Tests of many rows that are not run with four: each row differs in the call alone, and asks the
store what all calls ask, or nothing. The first tier runs them, on one process.
"""
