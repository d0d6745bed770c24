"""What may go wrong with one reference to Azure Key Vault, as the command line tells it."""

from __future__ import annotations

from contextlib import ExitStack

from plugins.azure_key_vault.conftest import DEFAULT
from plugins.azure_key_vault.fake_key_vault import (
    EXPIRED,
    FORBIDDEN,
    SECRET,
    TOKEN,
    VAULT,
    FakeKeyVault,
)
from sealpipe.testing.contract import FaultyServer
from sealpipe_rehearsal.running_service import RunningService
from support.failures import Failure, assert_told_apart, without
from support.terminal import Terminal
from support.wires import Intercepting


def test_nine_are_told_apart(
    azure: FakeKeyVault,
    behind: dict[str, str],
    proxy: Intercepting,
    user: Terminal,
    service: RunningService,
) -> None:
    azure.hold("db", "x")
    db = f"azure-kv:{VAULT}/db"
    with ExitStack() as stack:
        silent = FaultyServer("silent")
        stack.callback(silent.stop)
        failures = {
            "wrong path": Failure(f"azure-kv:{VAULT}/nothing", behind),
            "denied path": Failure(f"azure-kv:{VAULT}/{FORBIDDEN}", behind),
            "expired login": Failure(db, {**behind, "AZURE_CLIENT_SECRET": EXPIRED}),
            "unreachable": Failure(
                "azure-kv:db",
                {**behind, f"{DEFAULT}URL": "https://nowhere.invalid", "NO_PROXY": "*"},
            ),
            "timeout": Failure(
                "azure-kv:db", {**behind, f"{DEFAULT}URL": silent.url, f"{DEFAULT}TIMEOUT": "1"}
            ),
            "missing library": Failure(db, {**behind, **without(user, "msal", "msal")}),
            "wrong account": Failure(db, {**behind, "AZURE_CLIENT_ID": "another"}),
            "a proxy's login": Failure(db, {**behind, "HTTPS_PROXY": proxy.url("")}),
            "unknown CA": Failure(db, {**behind, "SEALPIPE_CA_FILE": ""}),
        }
        assert_told_apart(
            failures, user, service, secrets=(TOKEN, SECRET, EXPIRED, Intercepting.password)
        )
