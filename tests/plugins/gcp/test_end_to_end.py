"""A secret of Google's in a recipient's hands, and a submitter's in Google's, each by one
command.
"""

from __future__ import annotations

import json
import secrets
from pathlib import Path

import pytest

from plugins.gcp.fake_secret_manager import EMAIL, PROJECT, PROVIDER, TOKEN, FakeSecretManager
from sealpipe_rehearsal.running_service import RunningService
from support.ci_jobs import job_token
from support.commands import SEALPIPE
from support.job import Job
from support.leaks import sides
from support.storing import asked_at_once
from support.strace import watch
from support.terminal import Terminal, opened
from support.wires import Intercepting

PASSWORD = f"canary-{secrets.token_hex(12)}"
FIELD = "Password=gcp-sm:db#password"


@pytest.fixture(autouse=True)
def _stored(google: FakeSecretManager) -> None:
    google.hold("db", json.dumps({"password": PASSWORD}).encode())


def test_one_command_hands_a_secret_over(
    keyed: dict[str, str], user: Terminal, service: RunningService
) -> None:
    done = user.sealpipe("share", "-f", FIELD, **keyed)
    assert done.code == 0, done
    assert opened(service, done.out) == {"Password": PASSWORD}


def test_what_somebody_submits_is_stored_once(
    keyed: dict[str, str], google: FakeSecretManager, service: RunningService, tmp_path: Path
) -> None:
    request = asked_at_once(Job(tmp_path / "job", service))
    given = request.answer()
    request.stores("gcp-sm:acme#password=Staging password,user=User name", **keyed)
    request.stores("gcp-sm:acme#password=Staging password,user=User name", **keyed)
    assert json.loads(google.newest("acme")) == {"password": given.password, "user": given.user}
    assert len(google.secrets["acme"].versions) == 1


def test_a_job_without_a_key_reads_a_named_store(
    google: FakeSecretManager, user: Terminal, service: RunningService, tmp_path: Path
) -> None:
    config = user.file(
        "config.toml",
        f'[stores.prod]\nplugin = "gcp-sm"\nproject = "{PROJECT}"\n'
        f'workload_identity_provider = "{PROVIDER}"\n'
        f'service_account = "{EMAIL}"\n',
    )
    hosts = [f"{name}.googleapis.com" for name in ("sts", "iamcredentials", "secretmanager")]
    job = {
        "GITLAB_CI": "true",
        "VAULT_ID_TOKEN": job_token(f"https://iam.googleapis.com/{PROVIDER}"),
    }
    with Intercepting(tmp_path, dict.fromkeys(hosts, google.port)) as proxy:
        way = {
            "HTTPS_PROXY": proxy.url(),
            "SEALPIPE_CA_FILE": str(proxy.ca_file),
            "SEALPIPE_CONFIG": str(config),
        }
        done = user.sealpipe("share", "-f", "Password=prod:db#password", "--print", **job, **way)
        assert done.code == 0, done
        assert opened(service, done.out) == {"Password": PASSWORD}
        assert list(dict.fromkeys(proxy.asked)) == hosts


@pytest.mark.parametrize("name", ["db", "nothing"])
def test_reading_shows_value_and_login_to_google_alone(
    name: str, keyed: dict[str, str], google: FakeSecretManager, user: Terminal
) -> None:
    words = ["share", "-f", f"Password=gcp-sm:{name}#password", "--output", "json", "--debug"]
    seen = watch(user, [*SEALPIPE, *words], environ=keyed)
    assert seen.done.code == (0 if name == "db" else 14), seen.done
    assert sides(seen.places(), google.port, {"value": PASSWORD, **_login(keyed)}) == (
        {"token"},
        set(),
    )


def test_storing_shows_value_and_login_to_google_alone(
    keyed: dict[str, str], google: FakeSecretManager, service: RunningService, tmp_path: Path
) -> None:
    job = Job(tmp_path / "job", service)
    job.terminal.environ |= keyed
    request = asked_at_once(job)
    given = request.answer()
    words = request.words("gcp-sm:acme#password=Staging password,user=User name")
    seen = watch(job.terminal, [*SEALPIPE, *words, "--debug"])
    assert seen.done.code == 0, seen.done
    there, elsewhere = sides(seen.places(), google.port, {"value": given.password, **_login(keyed)})
    assert (there >= {"token"}, elsewhere) == (True, set())


def _login(keyed: dict[str, str]) -> dict[str, str]:
    key = json.loads(Path(keyed["GOOGLE_APPLICATION_CREDENTIALS"]).read_text())["private_key"]
    return {"token": f"{TOKEN}0", "key": key.splitlines()[1]}
