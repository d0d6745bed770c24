"""What may go wrong with one reference to Infisical, as the command line tells it. It needs no library that could be
missing; in its place stands the rate limit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from plugins.infisical.fake_infisical import CLIENT_ID, CLIENT_SECRET, PROJECT, TOKEN, FakeInfisical
from sealpipe.http import plugin_network
from sealpipe.testing.contract import FaultyServer
from sealpipe_rehearsal.running_service import RunningService
from support.failures import Failure, assert_told_apart
from support.terminal import Terminal
from support.wires import Intercepting

HOST = "infisical.example"
EXPIRED = "eyGn2.expired.Kd7sWq1zXc5v"


@pytest.fixture
def failures(fake: FakeInfisical, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Failure]]:
    monkeypatch.setattr(plugin_network, "TIMEOUT", 0.5)
    fake.folder("dev", "/", PW="s3cret")
    fake.denied.add(("prod", "/"))
    fake.expired.add(EXPIRED)
    pw = f"infisical:{PROJECT}/dev#PW"
    at = {"INFISICAL_API_URL": fake.base_url, "INFISICAL_TOKEN": TOKEN}
    behind = {**at, "INFISICAL_API_URL": f"https://{HOST}"}
    wrong_login = {
        "INFISICAL_API_URL": fake.base_url,
        "INFISICAL_UNIVERSAL_AUTH_CLIENT_ID": f"{CLIENT_ID[:-1]}9",
        "INFISICAL_UNIVERSAL_AUTH_CLIENT_SECRET": CLIENT_SECRET,
    }
    with ExitStack() as stack:
        silent, busy, gone = (FaultyServer(how) for how in ("silent", "429", "closed"))
        stack.callback(silent.stop)
        stack.callback(busy.stop)
        gone.stop()
        busy.retry_after = 0
        proxy = stack.enter_context(Intercepting(tmp_path, {HOST: fake.port}))
        yield {
            "wrong path": Failure(f"infisical:{PROJECT}/dev/none#PW", at),
            "denied path": Failure(f"infisical:{PROJECT}/prod#PW", at),
            "expired token": Failure(pw, {**at, "INFISICAL_TOKEN": EXPIRED}),
            "unreachable": Failure(pw, {**at, "INFISICAL_API_URL": gone.url}),
            "timeout": Failure(pw, {**at, "INFISICAL_API_URL": silent.url}),
            "rate limit": Failure(pw, {**at, "INFISICAL_API_URL": busy.url}),
            "wrong account": Failure(pw, wrong_login),
            "a proxy's login": Failure(
                pw, {**behind, "HTTPS_PROXY": proxy.url(""), "SEALPIPE_CA_FILE": str(proxy.ca_file)}
            ),
            "unknown CA": Failure(pw, {**behind, "HTTPS_PROXY": proxy.url()}),
        }


def test_each_names_the_reference_the_reason_and_the_next_step_and_no_value(
    failures: dict[str, Failure], user: Terminal, service: RunningService
) -> None:
    secrets = {TOKEN, EXPIRED, CLIENT_SECRET, "s3cret", Intercepting.password}
    assert_told_apart(failures, user, service, secrets=secrets)
