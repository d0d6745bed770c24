"""A secret of a vault's in a recipient's hands, and a submitter's in a vault, each by one command
and Azure's names.
"""

from __future__ import annotations

import json
import secrets
from pathlib import Path

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
from support.commands import SEALPIPE
from support.job import Job
from support.leaks import sides
from support.storing import asked_at_once
from support.strace import watch
from support.terminal import Terminal, opened

PASSWORD = f"canary-{secrets.token_hex(12)}"
FIELD = f"Password=azure-kv:{VAULT}/db#password"


@pytest.fixture(autouse=True)
def _stored(azure: FakeKeyVault) -> None:
    azure.hold("db", json.dumps({"password": PASSWORD}))


def test_one_command_hands_a_secret_over(
    behind: dict[str, str], user: Terminal, service: RunningService
) -> None:
    done = user.sealpipe("share", "-f", FIELD, **behind)
    assert done.code == 0, done
    assert opened(service, done.out) == {"Password": PASSWORD}


def test_what_somebody_submits_is_stored_once(
    behind: dict[str, str], azure: FakeKeyVault, service: RunningService, tmp_path: Path
) -> None:
    request = asked_at_once(Job(tmp_path / "job", service))
    given = request.answer()
    for _ in range(2):
        request.stores(
            f"azure-kv:{VAULT}/vendor#password=Staging password,user=User name", **behind
        )
    assert json.loads(azure.newest("vendor")) == {"password": given.password, "user": given.user}
    assert len(azure.secrets["vendor"].versions) == 1


def test_a_job_without_a_secret_reads_a_named_store(
    behind: dict[str, str], user: Terminal, service: RunningService
) -> None:
    config = user.file(
        "config.toml",
        (
            f'[stores.prod]\nplugin = "azure-kv"\ntenant_id = "{TENANT}"\nclient_id = '
            f'"{CLIENT}"\nurl = "https://{HOST}"\n'
        ),
    )
    job = {
        "GITLAB_CI": "true",
        "VAULT_ID_TOKEN": job_token(AUDIENCE),
        "SEALPIPE_CONFIG": str(config),
    }
    way = {name: value for name, value in behind.items() if not name.startswith("AZURE_")}
    done = user.sealpipe("share", "-f", "Password=prod:db#password", "--print", **job, **way)
    assert done.code == 0, done
    assert opened(service, done.out) == {"Password": PASSWORD}
    told = user.sealpipe("doctor", "prod", **job, **way)
    assert (told.code, f"application {CLIENT}" in told.out) == (0, True), told


# Everything goes over TLS here: a value or a login that is seen at all is seen in a wrong place.


@pytest.mark.parametrize("name", ["db", "nothing"])
def test_reading_shows_no_login_and_no_value(
    name: str, behind: dict[str, str], user: Terminal
) -> None:
    words = [
        "share",
        "-f",
        f"Password=azure-kv:{VAULT}/{name}#password",
        "--output",
        "json",
        "--debug",
    ]
    seen = watch(user, [*SEALPIPE, *words], environ=behind)
    assert seen.done.code == (0 if name == "db" else 14), seen.done
    assert sides(seen.places(), 0, {"value": PASSWORD, "token": TOKEN, "secret": SECRET}) == (
        set(),
        set(),
    )


def test_storing_shows_no_login_and_no_value(
    behind: dict[str, str], service: RunningService, tmp_path: Path
) -> None:
    job = Job(tmp_path / "job", service)
    job.terminal.environ |= behind
    request = asked_at_once(job)
    given = request.answer()
    words = request.words(f"azure-kv:{VAULT}/vendor#password=Staging password,user=User name")
    seen = watch(job.terminal, [*SEALPIPE, *words, "--debug"])
    assert seen.done.code == 0, seen.done
    assert sides(seen.places(), 0, {"value": given.password, "token": TOKEN, "secret": SECRET}) == (
        set(),
        set(),
    )
