"""From Infisical to a recipient, and from a submitter to Infisical.

Infisical's own SDK, on the same fake, agrees; what it makes of the fake's answers is the proof that
the fake is one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest
from infisical_sdk import InfisicalSDKClient
from infisical_sdk.infisical_requests import APIError

from plugins.infisical.fake_infisical import (
    CLIENT_ID,
    CLIENT_SECRET,
    IDENTITY,
    PROJECT,
    SLUG,
    TOKEN,
    FakeInfisical,
)
from sealpipe_plugins.infisical.writing import ENTRY
from sealpipe_rehearsal.running_service import RunningService
from support.ci_jobs import job_token
from support.hand_over import VALUE, HandOver
from support.job import Job
from support.storing import another_machine, asked
from support.terminal import Terminal, opened

DEV = ("dev", "/app")
PASSWORD = "canary-Zk3Qx0Vn8Jw 'of' $HOME\nand more"
TARGET = f"infisical:{SLUG}/dev/app#STAGING_PW=staging_password,STAGING_USER=user"


@pytest.fixture
def sdk(fake: FakeInfisical) -> Iterator[InfisicalSDKClient]:
    fake.folder(*DEV)
    with InfisicalSDKClient(host=fake.base_url, token=TOKEN, cache_ttl=None) as client:
        yield client


@pytest.fixture
def environ(fake: FakeInfisical) -> dict[str, str]:
    return {"INFISICAL_API_URL": fake.base_url, "INFISICAL_TOKEN": TOKEN}


class TestInfisical(HandOver):
    reference = f"infisical:{PROJECT}/dev/app#PW"
    missing = f"infisical:{PROJECT}/dev/none#PW"
    target = f"infisical:{PROJECT}/dev/stored#PW=staging_password,USER=user"
    read_there = frozenset({"login", "token"})
    stored_there = frozenset({"value", "login", "token"})

    @pytest.fixture
    def login(self, fake: FakeInfisical) -> dict[str, str]:
        fake.folder(*DEV, PW=VALUE)
        fake.folder("dev", "/stored")
        self.fake, self.port = fake, fake.port
        return {
            "INFISICAL_API_URL": fake.base_url,
            "INFISICAL_UNIVERSAL_AUTH_CLIENT_ID": CLIENT_ID,
            "INFISICAL_UNIVERSAL_AUTH_CLIENT_SECRET": CLIENT_SECRET,
        }

    def secrets(self, login: Mapping[str, str]) -> Mapping[str, str]:
        return {
            "login": login["INFISICAL_UNIVERSAL_AUTH_CLIENT_SECRET"],
            "token": self.fake.revoked[-1],
        }

    def held(self) -> tuple[Mapping[str, str], object]:
        held = self.fake.folders["dev", "/stored"]
        versions = [each.version for each in held.values()]
        return {"password": held["PW"].value, "user": held["USER"].value}, versions


def secret_of(sdk: InfisicalSDKClient, name: str) -> str:
    return str(sdk.secrets.get_secret_by_name(name, *DEV, project_id=PROJECT).secretValue)


def test_what_their_sdk_set_opens_for_a_recipient(
    sdk: InfisicalSDKClient, environ: dict[str, str], user: Terminal, service: RunningService
) -> None:
    for name, value in {
        "DB_PASSWORD": PASSWORD,
        "HOST": "db.example",
        "URL": "https://${HOST}/",
    }.items():
        sdk.secrets.create_secret_by_name(
            name, "/app", "dev", project_id=PROJECT, secret_value=value
        )
    body = f"infisical:{PROJECT}/dev/app"
    done = user.sealpipe(
        "share", "-f", f"Password={body}#DB_PASSWORD", "-f", f"{body}#URL", **environ
    )
    assert done.code == 0, done
    assert opened(service, done.out) == {"Password": PASSWORD, "URL": "https://db.example/"}
    assert secret_of(sdk, "URL") == "https://db.example/"
    listed = sdk.secrets.list_secrets(*DEV, project_slug=SLUG, expand_secret_references=False)
    assert {each.secretKey: each.secretValue for each in listed.secrets}[
        "URL"
    ] == "https://${HOST}/"


def test_what_a_submitter_typed_is_there_for_their_sdk(
    sdk: InfisicalSDKClient, environ: dict[str, str], job: Job
) -> None:
    theirs = [{"key": "owner", "value": "ann"}]
    sdk.secrets.create_secret_by_name(
        "STAGING_USER",
        "/app",
        "dev",
        project_slug=SLUG,
        secret_value="x",
        secret_comment="Ann",
        secret_metadata=theirs,
    )
    job.terminal.environ |= environ
    request = asked(job)
    given = request.answer()
    request.stores(TARGET, code=14)
    request.stores(TARGET, more=("--mode", "replace"))
    assert {secret_of(sdk, "STAGING_PW"), secret_of(sdk, "STAGING_USER")} == {
        given.password,
        given.user,
    }
    stored = sdk.secrets.get_secret_by_name("STAGING_USER", *DEV, project_id=PROJECT)
    assert [each["key"] for each in stored.secretMetadata or []] == ["owner", ENTRY]
    assert (stored.secretComment, stored.version) == ("Ann", 2)

    sdk.secrets.update_secret_by_name(
        "STAGING_PW", "/app", "dev", project_id=PROJECT, secret_value="rotated-since"
    )
    request.stores(TARGET, more=("--mode", "replace"), **another_machine(job))
    assert secret_of(sdk, "STAGING_PW") == "rotated-since"


def test_their_sdk_knows_our_logins_and_refusals(
    fake: FakeInfisical, sdk: InfisicalSDKClient
) -> None:
    fake.folder(*DEV, PW="x")
    fake.identities[IDENTITY] = "a.job.token"
    assert sdk.auth.universal_auth.login(CLIENT_ID, CLIENT_SECRET).expiresIn == 7200
    assert secret_of(sdk, "PW") == "x"
    assert sdk.auth.oidc_auth.login(IDENTITY, "a.job.token").accessToken in fake.tokens
    assert secret_of(sdk, "PW") == "x"
    with pytest.raises(APIError, match=r"Invalid credentials .*401"):
        sdk.auth.universal_auth.login(CLIENT_ID, "another")
    with pytest.raises(APIError, match=r"Secret already exist .*400"):
        sdk.secrets.create_secret_by_name("PW", "/app", "dev", project_id=PROJECT, secret_value="y")
    with pytest.raises(APIError, match=r"Secret not found .*404"):
        sdk.secrets.update_secret_by_name(
            "NONE", "/app", "dev", project_id=PROJECT, secret_value="y"
        )
    fake.denied.add(DEV)
    with pytest.raises(APIError, match=r"not allowed .*403"):
        sdk.secrets.list_secrets(*DEV, project_id=PROJECT)


def test_a_job_without_any_secret_of_infisicals_reads_a_named_store(
    fake: FakeInfisical, user: Terminal, service: RunningService
) -> None:
    fake.folder(*DEV, PW=PASSWORD)
    fake.identities[IDENTITY] = job_token("infisical")
    config = user.file(
        "config.toml",
        f'[stores.prod]\nplugin = "infisical"\nidentity_id = "{IDENTITY}"\naudience = "infisical"\n'
        f'url = "{fake.base_url}"\n',
    )
    job = {
        "GITLAB_CI": "true",
        "VAULT_ID_TOKEN": job_token("infisical"),
        "SEALPIPE_CONFIG": str(config),
    }
    done = user.sealpipe("share", "-f", f"Password=prod:{SLUG}/dev/app#PW", "--print", **job)
    assert done.code == 0, done
    assert opened(service, done.out) == {"Password": PASSWORD}
    told = user.sealpipe("doctor", "prod", **job)
    assert (told.code, "logged in" in told.out) == (0, True), told
    assert len(fake.revoked) >= 2
    assert fake.tokens == {TOKEN}
