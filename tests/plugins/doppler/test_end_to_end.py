"""From Doppler to a recipient, and from a submitter to Doppler.

Doppler's own command line, on the same fake, agrees; what it makes of the fake's answers is the
proof that the fake is one."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from plugins.doppler.fake_doppler import ACCOUNT, IDENTITY, SERVICE, FakeDoppler
from sealpipe_rehearsal.running_service import RunningService
from support.ci_jobs import job_token
from support.hand_over import VALUE, HandOver
from support.job import Job
from support.parts import program
from support.storing import another_machine, asked
from support.terminal import Terminal, opened

APP = ("--project", "app", "--config", "dev")
PASSWORD = "canary-Zk3Qx0Vn8Jw 'of' $HOME\nand more"
TARGET = "doppler:app/dev#STAGING_PW=staging_password,STAGING_USER=user"


class CommandLine:
    """`doppler`, with a home of its own."""

    def __init__(self, fake: FakeDoppler, home: Path) -> None:
        self._start = [
            program("doppler"),
            "--api-host",
            fake.base_url,
            "--no-check-version",
            "--attempts",
            "1",
        ]
        self._environ = {"HOME": str(home), "PATH": os.environ["PATH"]}

    def run(self, *words: str, token: str = ACCOUNT, code: int = 0) -> str:
        command = [*self._start, *words, *(["--token", token] if token else [])]
        done = subprocess.run(
            command, env=self._environ, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == code, (done.stdout, done.stderr)
        return done.stdout if code == 0 else done.stderr


@pytest.fixture
def doppler(fake: FakeDoppler, tmp_path: Path) -> CommandLine:
    return CommandLine(fake, tmp_path)


class TestDoppler(HandOver):
    reference = "doppler:app/dev#PW"
    missing = "doppler:app/none#PW"
    target = "doppler:app/stored#PW=staging_password,USER=user"
    read_there = frozenset({"token"})
    stored_there = frozenset({"value", "token"})

    @pytest.fixture
    def login(self, fake: FakeDoppler, environ: dict[str, str]) -> dict[str, str]:
        fake.config("app", "dev", PW=VALUE)
        fake.config("app", "stored")
        self.fake, self.port = fake, fake.port
        return environ

    def secrets(self, login: Mapping[str, str]) -> Mapping[str, str]:
        del login
        return {"token": ACCOUNT}

    def held(self) -> tuple[Mapping[str, str], object]:
        held = self.fake.configs["app", "stored"]
        writes = [asked for asked in self.fake.asked if asked.method == "POST"]
        return {"password": held["PW"].raw, "user": held["USER"].raw}, len(writes)


@pytest.fixture
def environ(fake: FakeDoppler) -> dict[str, str]:
    return {"DOPPLER_API_HOST": fake.base_url, "DOPPLER_TOKEN": ACCOUNT}


def test_what_their_command_line_set_opens_for_a_recipient(
    doppler: CommandLine, environ: dict[str, str], user: Terminal, service: RunningService
) -> None:
    doppler.run(
        "secrets", "set", f"DB_PASSWORD={PASSWORD}", "HOST=db.example", "URL=https://${HOST}/", *APP
    )
    fields = [
        word
        for field in ("Password=doppler:app/dev#DB_PASSWORD", "doppler:app/dev#URL")
        for word in ("-f", field)
    ]
    done = user.sealpipe("share", *fields, **environ)
    assert done.code == 0, done
    assert opened(service, done.out) == {"Password": PASSWORD, "URL": "https://db.example/"}
    assert doppler.run("secrets", "get", "URL", "--plain", *APP) == "https://db.example/\n"
    assert doppler.run("secrets", "get", "URL", "--plain", "--raw", *APP) == "https://${HOST}/\n"


def test_what_a_submitter_typed_is_there_for_their_command_line(
    doppler: CommandLine, environ: dict[str, str], fake: FakeDoppler, job: Job
) -> None:
    doppler.run("secrets", "set", "STAGING_USER=theirs", *APP)
    doppler.run("secrets", "notes", "set", "STAGING_USER", "Ask Ann.", "--project", "app")
    job.terminal.environ |= environ
    request = asked(job)
    given = request.answer()
    request.stores(TARGET, code=14)
    request.stores(TARGET, more=("--mode", "replace"))
    downloaded = json.loads(
        doppler.run("secrets", "download", "--no-file", "--format", "json", *APP)
    )
    assert {downloaded["STAGING_PW"], downloaded["STAGING_USER"]} == {given.password, given.user}
    assert "Ask Ann. [sealpipe: dev/" in fake.notes["app", "STAGING_USER"]

    doppler.run("secrets", "set", "STAGING_PW=rotated-since", *APP)
    request.stores(TARGET, more=("--mode", "replace"), **another_machine(job))
    assert doppler.run("secrets", "get", "STAGING_PW", "--plain", *APP) == "rotated-since\n"


def test_their_command_line_knows_our_tokens_logins_and_refusals(
    doppler: CommandLine, fake: FakeDoppler
) -> None:
    fake.config("app", "dev", PW="x")
    fake.identities[IDENTITY] = "a.job.token"
    assert doppler.run("secrets", "get", "PW", "--plain", token=SERVICE) == "x\n"
    assert json.loads(doppler.run("me", "--json"))["type"] == "service_account"
    login = doppler.run("oidc", "login", "--identity", IDENTITY, "--token", "a.job.token", token="")
    assert "token expires at" in login
    assert doppler.run("secrets", "get", "PW", "--plain", *APP, token="") == "x\n"
    doppler.run("oidc", "logout", token="")
    assert len(fake.revoked) == 1
    assert "Could not find requested config" in doppler.run(
        "secrets", "-p", "app", "-c", "none", code=1
    )
    assert "Invalid Auth token" in doppler.run("secrets", *APP, token="dp.st.wrong", code=1)


def test_a_job_without_any_token_of_dopplers_reads_a_named_store(
    fake: FakeDoppler, user: Terminal, service: RunningService
) -> None:
    fake.config("app", "dev", PW=PASSWORD)
    fake.identities[IDENTITY] = job_token("doppler")
    config = user.file(
        "config.toml",
        f'[stores.prod]\nplugin = "doppler"\nidentity = "{IDENTITY}"\naudience = "doppler"\n'
        f'api_host = "{fake.base_url}"\n',
    )
    job = {
        "GITLAB_CI": "true",
        "VAULT_ID_TOKEN": job_token("doppler"),
        "SEALPIPE_CONFIG": str(config),
    }
    done = user.sealpipe("share", "-f", "Password=prod:app/dev#PW", "--print", **job)
    assert done.code == 0, done
    assert opened(service, done.out) == {"Password": PASSWORD}
    told = user.sealpipe("doctor", "prod", **job)
    assert (told.code, "a token of the type service_account_identity" in told.out) == (0, True), (
        told
    )
    assert len(fake.revoked) >= 2
