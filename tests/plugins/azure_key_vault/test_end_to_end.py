"""Azure Key Vault by the command line, under Azure's own names: a share, a submission, and a job
without a secret.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from plugins.azure_key_vault.fake_key_vault import (
    AUDIENCE,
    CLIENT,
    HOST,
    SECRET,
    TENANT,
    TOKEN,
    VAULT,
    FakeKeyVault,
)
from sealpipe_rehearsal.running_service import RunningService
from support.ci_jobs import job_token
from support.hand_over import VALUE, HandOver
from support.terminal import Terminal, opened


class TestAzure(HandOver):
    """Everything goes over TLS here: what is seen at all is seen in a wrong place."""

    reference = f"azure-kv:{VAULT}/db#password"
    missing = f"azure-kv:{VAULT}/nothing#password"
    target = f"azure-kv:{VAULT}/vendor#password=staging_password,user=user"

    @pytest.fixture
    def login(self, azure: FakeKeyVault, behind: dict[str, str]) -> dict[str, str]:
        azure.hold("db", json.dumps({"password": VALUE}))
        self.azure = azure
        return behind

    def secrets(self, login: Mapping[str, str]) -> Mapping[str, str]:
        del login
        return {"token": TOKEN, "secret": SECRET}

    def held(self) -> tuple[Mapping[str, str], object]:
        return json.loads(self.azure.newest("vendor")), len(self.azure.secrets["vendor"].versions)

    def test_a_job_without_a_secret_reads_a_named_store(
        self, login: dict[str, str], user: Terminal, service: RunningService
    ) -> None:
        config = user.file(
            "config.toml",
            f'[stores.prod]\nplugin = "azure-kv"\ntenant_id = "{TENANT}"\n'
            f'client_id = "{CLIENT}"\nurl = "https://{HOST}"\n',
        )
        environ = {
            **{name: value for name, value in login.items() if not name.startswith("AZURE_")},
            "GITLAB_CI": "true",
            "VAULT_ID_TOKEN": job_token(AUDIENCE),
            "SEALPIPE_CONFIG": str(config),
        }
        done = user.sealpipe("share", "-f", "P=prod:db#password", "--print", **environ)
        assert done.code == 0, done
        assert opened(service, done.out) == {"P": VALUE}
        told = user.sealpipe("doctor", "prod", **environ)
        assert (told.code, f"application {CLIENT}" in told.out) == (0, True), told
