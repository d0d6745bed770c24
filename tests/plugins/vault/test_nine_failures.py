"""What may go wrong with one reference to Vault, as the command line tells it: nine reasons, no two
alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from sealpipe.testing.contract import FaultyServer
from sealpipe_rehearsal.running_service import RunningService
from support.failures import Failure, assert_told_apart, without
from support.openbao import Bao, server
from support.terminal import Terminal
from support.wires import Intercepting

HOST = "vault.example"


@pytest.fixture
def failures(bao: Bao, user: Terminal, tmp_path: Path) -> Iterator[dict[str, Failure]]:
    token = bao.token("app")
    expired = bao.token("app")
    bao.call("POST", "auth/token/revoke", {"token": expired})
    app = "vault:secret/app/db#password"
    at = {"VAULT_ADDR": bao.addr, "VAULT_TOKEN": token}
    with ExitStack() as stack:
        sealed = stack.enter_context(server(tmp_path, unsealed=False))
        silent = FaultyServer("silent")
        stack.callback(silent.stop)
        proxy = stack.enter_context(Intercepting(tmp_path, {HOST: bao.port}))
        behind = {**at, "VAULT_ADDR": f"https://{HOST}"}
        yield {
            "wrong path": Failure("vault:secret/app/nothing#x", at),
            "denied path": Failure("vault:secret/other#x", at),
            "expired token": Failure(app, {**at, "VAULT_TOKEN": expired}),
            "sealed": Failure(app, {**at, "VAULT_ADDR": sealed.addr}),
            "timeout": Failure(app, {**at, "VAULT_ADDR": silent.url, "VAULT_CLIENT_TIMEOUT": "1"}),
            "missing SDK": Failure(app, {**at, **without(user, "hvac", "hvac")}),
            "wrong namespace": Failure("vault:secret/app/db?namespace=nobody#password", at),
            "a proxy's login": Failure(
                app,
                {**behind, "HTTPS_PROXY": proxy.url(""), "SEALPIPE_CA_FILE": str(proxy.ca_file)},
            ),
            "unknown CA": Failure(app, {**behind, "HTTPS_PROXY": proxy.url()}),
        }


def test_each_names_the_reference_the_reason_and_the_next_step_and_no_value(
    failures: dict[str, Failure], user: Terminal, service: RunningService
) -> None:
    tokens = {failure.environ["VAULT_TOKEN"] for failure in failures.values()}
    assert_told_apart(failures, user, service, secrets={*tokens, "s3cret", Intercepting.password})
