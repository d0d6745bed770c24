"""What may go wrong with one reference to Infisical, as the command line tells it.

It needs no library that could be missing; in its place stands the rate limit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from plugins.infisical.fake_infisical import CLIENT_ID, CLIENT_SECRET, PROJECT, TOKEN, FakeInfisical
from sealpipe_rehearsal.running_service import RunningService
from support.failures import Failure, assert_told_apart, network_failures
from support.terminal import Terminal
from support.wires import Intercepting

EXPIRED = "eyGn2.expired.Kd7sWq1zXc5v"


@pytest.fixture
def failures(fake: FakeInfisical, tmp_path: Path) -> Iterator[dict[str, Failure]]:
    fake.folder("dev", "/", PW="s3cret")
    fake.denied.add(("prod", "/"))
    fake.expired.add(EXPIRED)
    pw = f"infisical:{PROJECT}/dev#PW"
    at = {"INFISICAL_API_URL": fake.base_url, "INFISICAL_TOKEN": TOKEN}
    wrong_login = {
        "INFISICAL_API_URL": fake.base_url,
        "INFISICAL_UNIVERSAL_AUTH_CLIENT_ID": f"{CLIENT_ID[:-1]}9",
        "INFISICAL_UNIVERSAL_AUTH_CLIENT_SECRET": CLIENT_SECRET,
    }
    with ExitStack() as stack:
        yield {
            "wrong path": Failure(f"infisical:{PROJECT}/dev/none#PW", at),
            "denied path": Failure(f"infisical:{PROJECT}/prod#PW", at),
            "expired token": Failure(pw, {**at, "INFISICAL_TOKEN": EXPIRED}),
            "wrong account": Failure(pw, wrong_login),
            **network_failures(stack, tmp_path, pw, at, "INFISICAL_API_URL", fake.port),
        }


def test_each_names_the_reference_the_reason_and_the_next_step_and_no_value(
    failures: dict[str, Failure], user: Terminal, service: RunningService
) -> None:
    secrets = {TOKEN, EXPIRED, CLIENT_SECRET, "s3cret", Intercepting.password}
    assert_told_apart(failures, user, service, secrets=secrets)
