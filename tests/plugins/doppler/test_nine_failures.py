"""What may go wrong with one reference to Doppler, as the command line tells it.

Doppler needs no library that could be missing; in its place stands the rate limit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from plugins.doppler.fake_doppler import ACCOUNT, SERVICE, FakeDoppler
from sealpipe_rehearsal.running_service import RunningService
from support.failures import Failure, assert_told_apart, network_failures
from support.terminal import Terminal
from support.wires import Intercepting

EXPIRED = ACCOUNT.replace("acco", "gone")


@pytest.fixture
def failures(fake: FakeDoppler, tmp_path: Path) -> Iterator[dict[str, Failure]]:
    fake.config("app", "dev", PW="s3cret")
    fake.config("hidden", "dev", PW="s3cret")
    pw = "doppler:app/dev#PW"
    at = {"DOPPLER_API_HOST": fake.base_url, "DOPPLER_TOKEN": ACCOUNT}
    with ExitStack() as stack:
        yield {
            "wrong path": Failure("doppler:app/none#PW", at),
            "denied path": Failure("doppler:hidden/dev#PW", at),
            "expired token": Failure(pw, {**at, "DOPPLER_TOKEN": EXPIRED}),
            "wrong account": Failure("doppler:app/prd#PW", {**at, "DOPPLER_TOKEN": SERVICE}),
            **network_failures(stack, tmp_path, pw, at, "DOPPLER_API_HOST", fake.port),
        }


def test_each_names_the_reference_the_reason_and_the_next_step_and_no_value(
    failures: dict[str, Failure], user: Terminal, service: RunningService
) -> None:
    secrets = {ACCOUNT, SERVICE, EXPIRED, "s3cret", Intercepting.password}
    assert_told_apart(failures, user, service, secrets=secrets)
