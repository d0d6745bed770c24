"""Requests that schemathesis makes up from the service's OpenAPI document, and what every answer
has to be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis import APIOperation, Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from sealpipe_rehearsal.running_service import RunningService
from service.callers import two_parts
from service.side_by_side import POINT

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]

MODES = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
BEYOND_A_SCHEMA = {
    "access_counts_left",
    "cursor",
    "expired_at",
    "from",
    "max_submission",
    "public_key",
    "timed_view",
}
"""What a valid call may be rejected for: calendars, curves, 1.0, which JSON Schema takes for an
integer, a time after another one, and a cursor that nobody gave out.
"""

Counts = Counter[tuple[str, GenerationMode, int]]


class Run:
    """Cases against a service, and how often each status was the answer.

    Half of the cases are valid, and half of those are made to hit something: a code that there is,
    a key that is a point, an idempotency key that is new.
    """

    def __init__(
        self,
        running: RunningService,
        first_seed: int = 1,
        document: Mapping[str, Any] | None = None,
    ) -> None:
        """`document` is for a service that does not serve it."""
        self.counts: Counts = Counter()
        self._document = document
        self._running = running
        self._seed = first_seed
        self._known: dict[str, list[str]] = {"shares": [], "requests": []}

    def all(self, cases: int) -> Counts:
        """At least so many cases over all operations, and then a few of each at a rate that is used
        up.
        """
        running = self._running
        with requests.Session() as session:
            session.trust_env = False
            session.headers["Authorization"] = f"Bearer {two_parts(running.create_key())}"
            schema = schemathesis.openapi.from_dict(
                self._document or session.get(f"{running.origin}/rehearsal/openapi.json").json()
            )
            schema.config.update(base_url=running.base_url)
            # Creates first, so that the others find something.
            operations = sorted(
                (each.ok() for each in schema.get_all_operations()),
                key=lambda operation: operation.method != "post",
            )
            for rate, number in ((10**6, -(-cases // (len(operations) * len(MODES)))), (1, 3)):
                running.set_account(requests_per_minute=rate)
                for operation in operations:
                    for mode in MODES:
                        self._seed += 1
                        self._some(operation, mode, number, session)
        return self.counts

    def _some(
        self,
        operation: APIOperation[Any, Any, Any],
        mode: GenerationMode,
        cases: int,
        session: requests.Session,
    ) -> None:
        @seed(self._seed)
        @settings(
            max_examples=cases,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(
            case=operation.as_strategy(generation_mode=mode),
            hit=st.booleans(),
            which=st.integers(0, 9),
        )
        def one(case: Case, hit: bool, which: int) -> None:  # noqa: FBT001
            if mode is GenerationMode.POSITIVE and hit:
                self._aim(case, which)
            answer = case.call(session=session)
            self.counts[operation.label, mode, answer.status_code] += 1
            if answer.status_code == 201:
                self._known[_kind(case)].append(answer.json()["short_code"])
            if mode is GenerationMode.POSITIVE and answer.status_code == 400:
                assert answer.json().get("additional_data", {}).keys() <= BEYOND_A_SCHEMA
            case.validate_response(answer, checks=CHECKS)

        one()

    def _aim(self, case: Case, which: int) -> None:
        if case.path_parameters and (known := self._known[_kind(case)]):
            case.path_parameters["shortCode"] = known[-1 - which % len(known)]
        if isinstance(case.body, dict):
            case.headers["Idempotency-Key"] = f"case-{self.counts.total()}"
            if "public_key" in case.body:
                case.body["public_key"] = POINT


def _kind(case: Case) -> str:
    return case.path.split("/")[1]
