"""Google Secret Manager by the command line: a share, a submission, and a job without a key."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from plugins.gcp.fake_secret_manager import EMAIL, PROJECT, PROVIDER, TOKEN, FakeSecretManager
from sealpipe_rehearsal.running_service import RunningService
from support.ci_jobs import job_token
from support.hand_over import VALUE, HandOver
from support.terminal import Terminal, opened
from support.wires import Intercepting


class TestGcp(HandOver):
    reference = "gcp-sm:db#password"
    missing = "gcp-sm:nothing#password"
    target = "gcp-sm:acme#password=staging_password,user=user"
    read_there = frozenset({"token"})
    stored_there = frozenset({"token"})  # and the value, within base64

    @pytest.fixture
    def login(self, google: FakeSecretManager, keyed: dict[str, str]) -> dict[str, str]:
        google.hold("db", json.dumps({"password": VALUE}).encode())
        self.google, self.port = google, google.port
        return keyed

    def secrets(self, login: Mapping[str, str]) -> Mapping[str, str]:
        key = json.loads(Path(login["GOOGLE_APPLICATION_CREDENTIALS"]).read_text())["private_key"]
        return {"token": f"{TOKEN}0", "key": key.splitlines()[1]}

    def held(self) -> tuple[Mapping[str, str], object]:
        return json.loads(self.google.newest("acme")), len(self.google.secrets["acme"].versions)

    def test_a_job_without_a_key_reads_a_named_store(
        self, login: dict[str, str], user: Terminal, service: RunningService, tmp_path: Path
    ) -> None:
        del login
        config = user.file(
            "config.toml",
            f'[stores.prod]\nplugin = "gcp-sm"\nproject = "{PROJECT}"\n'
            f'workload_identity_provider = "{PROVIDER}"\nservice_account = "{EMAIL}"\n',
        )
        hosts = [f"{name}.googleapis.com" for name in ("sts", "iamcredentials", "secretmanager")]
        token = job_token(f"https://iam.googleapis.com/{PROVIDER}")
        with Intercepting(tmp_path, dict.fromkeys(hosts, self.port)) as proxy:
            environ = {
                "GITLAB_CI": "true",
                "VAULT_ID_TOKEN": token,
                "HTTPS_PROXY": proxy.url(),
                "SEALPIPE_CA_FILE": str(proxy.ca_file),
                "SEALPIPE_CONFIG": str(config),
            }
            done = user.sealpipe("share", "-f", "P=prod:db#password", "--print", **environ)
            assert done.code == 0, done
            assert opened(service, done.out) == {"P": VALUE}
            assert list(dict.fromkeys(proxy.asked)) == hosts
