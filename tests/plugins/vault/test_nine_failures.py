"""What may go wrong with one reference to Vault, as the command line tells it: nine reasons, no two alike."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from sealpipe.testing.contract import FaultyServer
from sealpipe_rehearsal.running_service import RunningService
from support.openbao import Bao, server
from support.terminal import Terminal, created
from support.wires import Intercepting

HOST = "vault.example"
WITHOUT_HVAC = """
import importlib.metadata as metadata
real = metadata.version
def version(name):
    if name == "hvac":
        raise metadata.PackageNotFoundError(name)
    return real(name)
metadata.version = version
import sys
sys.modules["hvac"] = None
"""


@pytest.fixture
def failures(bao: Bao, user: Terminal, tmp_path: Path) -> Iterator[dict[str, tuple[str, dict[str, str]]]]:
    """Of each failure its reference and its environment."""
    token = bao.token("app")
    expired = bao.token("app")
    bao.call("POST", "auth/token/revoke", {"token": expired})
    user.file("without/sitecustomize.py", WITHOUT_HVAC)
    at = {"VAULT_ADDR": bao.addr, "VAULT_TOKEN": token}
    with ExitStack() as stack:
        sealed = stack.enter_context(server(tmp_path, unsealed=False))
        silent = FaultyServer("silent")
        stack.callback(silent.stop)
        proxy = stack.enter_context(Intercepting(tmp_path, {HOST: bao.port}))
        behind = {**at, "VAULT_ADDR": f"https://{HOST}"}
        yield {
            "wrong path": ("vault:secret/app/nothing#x", at),
            "denied path": ("vault:secret/other#x", at),
            "expired token": ("vault:secret/app/db#password", {**at, "VAULT_TOKEN": expired}),
            "sealed": ("vault:secret/app/db#password", {**at, "VAULT_ADDR": sealed.addr}),
            "timeout": (
                "vault:secret/app/db#password", {**at, "VAULT_ADDR": silent.url, "VAULT_CLIENT_TIMEOUT": "1"}
            ),
            "missing SDK": ("vault:secret/app/db#password", {**at, "PYTHONPATH": str(user.here / "without")}),
            "wrong namespace": ("vault:secret/app/db?namespace=nobody#password", at),
            "a proxy's login": (
                "vault:secret/app/db#password",
                {**behind, "HTTPS_PROXY": proxy.url(""), "SEALPIPE_CA_FILE": str(proxy.ca_file)},
            ),
            "unknown CA": ("vault:secret/app/db#password", {**behind, "HTTPS_PROXY": proxy.url()}),
        }  # fmt: skip


def test_each_names_the_reference_the_reason_and_the_next_step_and_no_value(
    failures: dict[str, tuple[str, dict[str, str]]], user: Terminal, service: RunningService
) -> None:
    reasons, remedies = set(), set()
    for name, (reference, environ) in failures.items():
        done = user.sealpipe("share", "-f", f"P={reference}", "--output", "json", **environ)
        assert (done.code, done.out) == (14, ""), (name, done)
        asked = reference.partition("#")[0].partition("?")[0]
        assert asked in done.err, (name, done.err)
        for value in (environ["VAULT_TOKEN"], "s3cret", Intercepting.password):
            assert value not in done.err, name
        reasons.add(done.error["message"].replace(asked, "").replace("?namespace=nobody", ""))
        remedies.add(done.error["remedy"])
    assert len(reasons) == len(remedies) == len(failures), (reasons, remedies)
    assert "" not in remedies
    assert created(service) == []
