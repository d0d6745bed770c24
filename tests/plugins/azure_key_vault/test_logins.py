"""By which login Azure is asked, and what is said of those that do not work."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from plugins.azure_key_vault.conftest import APPLICATION
from plugins.azure_key_vault.fake_key_vault import (
    AUDIENCE,
    CLIENT,
    SECRET,
    TENANT,
    FakeKeyVault,
)
from sealpipe.errors import (
    BackendAuthError,
    NotConfiguredError,
    SettingError,
)
from sealpipe_plugins.azure_key_vault import transport
from support.backends import refused, registry, values
from support.ci_jobs import job_token
from support.fake_web import Reply
from support.ports import silent_port

STORE = "SEALPIPE_STORE__OTHER__"
JOB = {"CIRCLECI": "true", "CIRCLE_OIDC_TOKEN_V2": job_token(AUDIENCE)}


@pytest.fixture(autouse=True)
def secret(azure: FakeKeyVault) -> None:
    azure.hold("db", "x")


@pytest.fixture
def named(azure: FakeKeyVault, environ: dict[str, str]) -> dict[str, str]:
    """A store of another name, beside the variables of the default store."""
    return {**environ, f"{STORE}PLUGIN": "azure-kv", f"{STORE}URL": azure.base_url}


@pytest.fixture
def machine(azure: FakeKeyVault, monkeypatch: pytest.MonkeyPatch) -> None:
    """The token service of a virtual machine is the fake, too."""
    monkeypatch.setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", azure.base_url)
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{silent_port()}")


def forms(azure: FakeKeyVault) -> list[dict[str, str]]:
    return [
        asked.members
        for asked in azure.asked
        if asked.path.endswith("/token") and asked.method == "POST"
    ]


class TestApplications:
    def test_log_in_by_their_secret(self, azure: FakeKeyVault, environ: dict[str, str]) -> None:
        assert values(environ, "azure-kv:db") == [b"x"]
        (form,) = forms(azure)
        assert (form["client_id"], form["client_secret"], form["scope"]) == (
            CLIENT,
            SECRET,
            "https://127.0.0.1/.default",
        )

    def test_log_in_by_the_token_of_the_job(
        self, azure: FakeKeyVault, environ: dict[str, str]
    ) -> None:
        del environ["AZURE_CLIENT_SECRET"]
        assert values({**environ, **JOB}, "azure-kv:db") == [b"x"]
        assert [form["client_assertion"] for form in forms(azure)] == [job_token(AUDIENCE)]

    def test_log_in_by_a_token_file(self, environ: dict[str, str], tmp_path: Path) -> None:
        del environ["AZURE_CLIENT_SECRET"]
        (tmp_path / "token").write_text(job_token(AUDIENCE) + "\n")
        assert values(
            {**environ, "AZURE_FEDERATED_TOKEN_FILE": str(tmp_path / "token")}, "azure-kv:db"
        ) == [b"x"]
        absent = {"AZURE_FEDERATED_TOKEN_FILE": str(tmp_path / "absent")}
        refused(
            {**environ, **absent}, "azure-kv:db", NotConfiguredError, "cannot be read: No such file"
        )

    def test_take_no_region_from_a_variable(
        self, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("MSAL_FORCE_REGION", "westeurope")
        assert values(environ, "azure-kv:db") == [b"x"]


class TestNamedStores:
    def test_never_take_what_serves_the_default_store(
        self, azure: FakeKeyVault, named: dict[str, str]
    ) -> None:
        refused(named, "other:db", NotConfiguredError, "apply to the default store only")
        assert azure.tokens == {}

    def test_take_their_own_application(self, azure: FakeKeyVault, named: dict[str, str]) -> None:
        own = {
            f"{STORE}{name.removeprefix('AZURE_')}": value for name, value in APPLICATION.items()
        }
        others = {**named, "AZURE_CLIENT_SECRET": "another", **own}
        assert values(others, "other:db") == [b"x"]
        assert [form["client_secret"] for form in forms(azure)] == [SECRET]

    def test_take_the_token_of_the_job(self, named: dict[str, str]) -> None:
        own = {f"{STORE}TENANT_ID": TENANT, f"{STORE}CLIENT_ID": CLIENT}
        assert values({**named, **JOB, **own}, "other:db") == [b"x"]

    @pytest.mark.usefixtures("machine")
    def test_take_the_identity_of_the_machine_that_they_name(
        self, azure: FakeKeyVault, named: dict[str, str]
    ) -> None:
        assert values({**named, f"{STORE}MANAGED_IDENTITY": "an-id"}, "other:db") == [b"x"]
        assert "client_id=an-id" in next(
            target for target in azure.targets if target.startswith("/metadata")
        )

    def test_have_no_secret_in_the_config_file(
        self, environ: dict[str, str], tmp_path: Path
    ) -> None:
        del environ  # what is in the file is refused before anything else
        from sealpipe.registry.filling import fill_settings
        from sealpipe.registry.stores import Store
        from sealpipe_plugins.azure_key_vault.settings import KeyVaultSettings

        store = Store("other", "azure-kv", {"client_secret": "x"})
        with pytest.raises(SettingError, match="in plain text"):
            fill_settings(KeyVaultSettings, store, {"HOME": str(tmp_path)})


class TestMachines:
    @pytest.fixture
    def bare(self, environ: dict[str, str]) -> dict[str, str]:
        return {name: value for name, value in environ.items() if name not in APPLICATION}

    @pytest.mark.usefixtures("machine")
    def test_have_an_identity_for_the_default_store(
        self, azure: FakeKeyVault, bare: dict[str, str]
    ) -> None:
        assert values(bare, "azure-kv:db") == [b"x"]
        assert forms(azure) == []
        health = registry(bare).check("source", "azure-kv")
        assert "managed identity system" in health.detail

    @pytest.mark.usefixtures("machine")
    def test_without_an_identity_say_so(self, azure: FakeKeyVault, bare: dict[str, str]) -> None:
        denied = Reply(400, {"error": "invalid_request", "error_description": "Canary"})
        azure.rule = lambda asked: denied if asked.path.startswith("/metadata") else None
        found = refused(bare, "azure-kv:db", BackendAuthError, "Microsoft refused the login (400)")
        assert "Canary" not in str(found) + found.remedy

    def test_that_do_not_answer_let_nothing_hang(
        self, bare: dict[str, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(transport, "_MACHINE_TIMEOUT", 0.1)
        with socket.create_server(("127.0.0.1", 0)) as silent:
            monkeypatch.setenv(
                "AZURE_POD_IDENTITY_AUTHORITY_HOST", f"http://127.0.0.1:{silent.getsockname()[1]}"
            )
            refused(bare, "azure-kv:db", NotConfiguredError, "this machine has no managed identity")
