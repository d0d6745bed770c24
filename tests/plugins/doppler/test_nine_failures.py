"""What may go wrong with one reference to Doppler, as the command line tells it. Doppler needs no library that could be
missing; in its place stands the rate limit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from plugins.doppler.fake_doppler import ACCOUNT, SERVICE, FakeDoppler
from sealpipe.http import plugin_network
from sealpipe.testing.contract import FaultyServer
from sealpipe_rehearsal.running_service import RunningService
from support.failures import Failure, assert_told_apart
from support.terminal import Terminal
from support.wires import Intercepting

HOST = "doppler.example"
EXPIRED = ACCOUNT.replace("acco", "gone")


@pytest.fixture
def failures(fake: FakeDoppler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Failure]]:
    monkeypatch.setattr(plugin_network, "TIMEOUT", 0.5)
    fake.config("app", "dev", PW="s3cret")
    fake.config("hidden", "dev", PW="s3cret")
    pw = "doppler:app/dev#PW"
    at = {"DOPPLER_API_HOST": fake.base_url, "DOPPLER_TOKEN": ACCOUNT}
    behind = {**at, "DOPPLER_API_HOST": f"https://{HOST}"}
    with ExitStack() as stack:
        silent, busy, gone = (FaultyServer(how) for how in ("silent", "429", "closed"))
        stack.callback(silent.stop)
        stack.callback(busy.stop)
        gone.stop()
        busy.retry_after = 0
        proxy = stack.enter_context(Intercepting(tmp_path, {HOST: fake.port}))
        yield {
            "wrong path": Failure("doppler:app/none#PW", at),
            "denied path": Failure("doppler:hidden/dev#PW", at),
            "expired token": Failure(pw, {**at, "DOPPLER_TOKEN": EXPIRED}),
            "unreachable": Failure(pw, {**at, "DOPPLER_API_HOST": gone.url}),
            "timeout": Failure(pw, {**at, "DOPPLER_API_HOST": silent.url}),
            "rate limit": Failure(pw, {**at, "DOPPLER_API_HOST": busy.url}),
            "wrong account": Failure("doppler:app/prd#PW", {**at, "DOPPLER_TOKEN": SERVICE}),
            "a proxy's login": Failure(
                pw, {**behind, "HTTPS_PROXY": proxy.url(""), "SEALPIPE_CA_FILE": str(proxy.ca_file)}
            ),
            "unknown CA": Failure(pw, {**behind, "HTTPS_PROXY": proxy.url()}),
        }


def test_each_names_the_reference_the_reason_and_the_next_step_and_no_value(
    failures: dict[str, Failure], user: Terminal, service: RunningService
) -> None:
    secrets = {ACCOUNT, SERVICE, EXPIRED, "s3cret", Intercepting.password}
    assert_told_apart(failures, user, service, secrets=secrets)
