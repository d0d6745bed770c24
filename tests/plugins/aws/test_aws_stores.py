"""By which credentials AWS is called, and by which way it is reached."""

from __future__ import annotations

import base64
import json
import logging
import os
import signal
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from sealpipe.errors import (
    NotConfiguredError,
    PluginError,
    SettingError,
)
from sealpipe.plugin import Document, Locator
from sealpipe.testing.contract import CANARY
from sealpipe_plugins.aws.batches import fetch_in_batches, split
from support.aws import DEFAULT, ENVIRON, STORE, Front, Moto
from support.backends import answers, failed, refused, registry, values
from support.ports import silent_port
from support.stopwatch import stopwatch

ROLE = "arn:aws:iam::123456789012:role/sealpipe"
WORD = CANARY[:11]
"""Of the canary: the rest of it is spelled in many ways."""

NAMED = {f"{STORE}PLUGIN": "aws-sm", f"{STORE}REGION": "eu-west-1"}
KEYS = {f"{STORE}ACCESS_KEY_ID": "AKIANAMED", f"{STORE}SECRET_ACCESS_KEY": "made-up"}


@pytest.fixture(autouse=True)
def secret(aws: Moto) -> None:
    aws.client("secretsmanager").create_secret(Name="db", SecretString="x")


@pytest.fixture
def ambient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variables of some account, as a job has them."""
    for name, value in ENVIRON.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def named(front: Front) -> dict[str, str]:
    """A store of another name, at the front."""
    return {**NAMED, f"{STORE}ENDPOINT_URL": front.base_url}


def config(text: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "aws-config").write_text(text)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "aws-config"))


def job_token(audience: str) -> str:
    claims = base64.urlsafe_b64encode(json.dumps({"aud": audience}).encode()).decode().rstrip("=")
    return f"e30.{claims}.{CANARY.encode().hex()}"


@pytest.mark.usefixtures("ambient")
class TestANamedStore:
    def test_takes_its_own_keys(self, named: dict[str, str], front: Front) -> None:
        assert values({**named, **KEYS}, "other:db") == [b"x"]
        assert [asked.signer for asked in front.asked] == ["AKIANAMED"]

    def test_takes_the_variables_where_it_says_so(
        self, named: dict[str, str], front: Front
    ) -> None:
        assert values({**named, f"{STORE}CREDENTIAL_SOURCE": "Environment"}, "other:db") == [b"x"]
        assert [asked.signer for asked in front.asked] == ["AKIAMADEUP"]

    def test_takes_its_profile_with_the_profiles_region(
        self, front: Front, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        keys = "aws_access_key_id = AKIAPROFILE\naws_secret_access_key = made-up\n"
        config(f"[profile prod]\n{keys}region = us-east-2\n", monkeypatch, tmp_path)
        monkeypatch.setenv("AWS_DEFAULT_REGION", "ap-south-1")
        environ = {
            f"{STORE}PLUGIN": "aws-sm",
            f"{STORE}PROFILE": "prod",
            f"{STORE}ENDPOINT_URL": front.base_url,
        }
        assert "us-east-2" in registry(environ).check("source", "other").detail
        assert [asked.signer for asked in front.asked] == ["AKIAPROFILE"]

    def test_needs_no_profile_that_a_variable_names(
        self, named: dict[str, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("AWS_PROFILE", "not-there")
        assert values({**named, **KEYS}, "other:db") == [b"x"]

    def test_is_not_sent_to_the_address_of_the_default_store(
        self, front: Front, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("AWS_ENDPOINT_URL", front.base_url)
        # Nothing leaves this machine.
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{silent_port()}")
        failed(registry({**NAMED, **KEYS}), "other:db")
        assert front.asked == []

    def test_takes_no_secret_from_the_config_file(self) -> None:
        from sealpipe.registry import Registry

        table = {"stores": {"other": {"plugin": "aws-sm", "secret_access_key": CANARY}}}
        with pytest.raises(SettingError, match="in plain text") as caught:
            Registry(environ={}, config=lambda: table).source("other")
        assert CANARY not in f"{caught.value} {caught.value.remedy}"


class TestTheDefaultStore:
    @pytest.mark.usefixtures("ambient")
    def test_takes_what_the_sdk_finds_and_where_it_finds_it(
        self, front: Front, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", front.base_url)
        assert values({"AWS_REGION": "eu-west-1"}, "aws-sm:db") == [b"x"]
        assert [asked.signer for asked in front.asked] == ["AKIAMADEUP"]

    def test_without_any_credentials_says_so(self, front: Front) -> None:
        environ = {f"{DEFAULT}ENDPOINT_URL": front.base_url, "AWS_REGION": "eu-west-1"}
        refused(environ, "aws-sm:db", NotConfiguredError, "no AWS credentials were found")

    def test_without_a_region_says_so(self, front: Front) -> None:
        refused(
            {f"{DEFAULT}ENDPOINT_URL": front.base_url},
            "aws-sm:db",
            NotConfiguredError,
            "no AWS region is set",
        )

    @pytest.mark.usefixtures("ambient")
    def test_is_one_for_both_sources(self, aws: Moto, front: Front) -> None:
        aws.client("ssm").put_parameter(Name="/p", Value="y", Type="SecureString")
        environ = {f"{DEFAULT}ENDPOINT_URL": front.base_url, f"{DEFAULT}REGION": "eu-west-1"}
        assert values(environ, "aws-sm:db", "aws-ssm:/p") == [b"x", b"y"]


class TestARole:
    def test_is_assumed_once_by_the_stores_keys(self, named: dict[str, str], front: Front) -> None:
        environ = {**named, **KEYS, f"{STORE}ROLE_ARN": ROLE, f"{STORE}EXTERNAL_ID": "shared word"}
        found = registry(environ)
        assert all(
            isinstance(each, Document)
            for each in answers(found, "other:db") + answers(found, "other:db")
        )
        assert front.operations == ["AssumeRole", "GetSecretValue", "GetSecretValue"]
        assert front.asked[0].signer == "AKIANAMED"
        assert b"ExternalId=shared+word" in front.asked[0].body
        assert front.asked[1].signer.startswith("ASIA")

    def test_is_assumed_by_the_jobs_own_token(self, named: dict[str, str], front: Front) -> None:
        token = job_token("sts.amazonaws.com")
        role = {f"{STORE}ROLE_ARN": ROLE, f"{STORE}AUDIENCE": "sts.amazonaws.com"}
        environ = {**named, **role, "GITLAB_CI": "true", "VAULT_ID_TOKEN": token}
        assert values(environ, "other:db") == [b"x"]
        assert front.operations == ["AssumeRoleWithWebIdentity", "GetSecretValue"]
        assert (front.asked[0].signer, token.encode() in front.asked[0].body) == ("", True)
        assert front.asked[1].signer.startswith("ASIA")

    @pytest.mark.parametrize(
        ("sign", "variable", "audience"),
        [
            (
                "BITBUCKET_BUILD_NUMBER",
                "BITBUCKET_STEP_OIDC_TOKEN",
                "ari:cloud:bitbucket::workspace/1",
            ),
            ("CIRCLECI", "CIRCLE_OIDC_TOKEN_V2", "the-id-of-the-organization"),
            ("JENKINS_URL", "ID_TOKEN", "sts.amazonaws.com"),
        ],
    )
    def test_is_assumed_by_the_token_of_any_job(
        self, sign: str, variable: str, audience: str, named: dict[str, str], front: Front
    ) -> None:
        role = {f"{STORE}ROLE_ARN": ROLE, f"{STORE}AUDIENCE": audience}
        assert values({**named, **role, sign: "7", variable: job_token(audience)}, "other:db") == [
            b"x"
        ]
        assert front.operations == ["AssumeRoleWithWebIdentity", "GetSecretValue"]
        assert job_token(audience).encode() in front.asked[0].body


class TestTheWay:
    @pytest.fixture
    def authority(self) -> trustme.CA:
        return trustme.CA()

    @pytest.fixture
    def secure(self, aws: Moto, authority: trustme.CA) -> Iterator[Front]:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1").configure_cert(context)
        with Front(aws.url, tls=context) as front:
            yield front

    def test_a_ca_that_was_given_once_is_trusted(
        self, secure: Front, authority: trustme.CA, tmp_path: Path
    ) -> None:
        authority.cert_pem.write_to_path(tmp_path / "ca.pem")
        environ = {
            **NAMED,
            **KEYS,
            f"{STORE}ENDPOINT_URL": secure.base_url,
            f"{STORE}ROLE_ARN": ROLE,
        }
        (answer,) = answers(registry(environ, ca_file=tmp_path / "ca.pem"), "other:db")
        assert isinstance(answer, Document), answer
        assert secure.operations == ["AssumeRole", "GetSecretValue"]

    def test_a_ca_file_that_is_none_is_named_as_that(self, tmp_path: Path) -> None:
        error = failed(registry({**NAMED, **KEYS}, ca_file=tmp_path / "none.pem"), "other:db")
        assert isinstance(error, NotConfiguredError)
        assert error.message == "the certificates to trust cannot be read"


def test_no_log_shows_a_secret_or_token_however_much_is_logged(
    aws: Moto, named: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    aws.client("secretsmanager").create_secret(Name="canary", SecretString=CANARY)
    aws.client("secretsmanager").create_secret(Name="canary2", SecretString=CANARY)
    caplog.set_level(logging.DEBUG)
    token = job_token("sts.amazonaws.com")
    role = {f"{STORE}ROLE_ARN": ROLE, f"{STORE}AUDIENCE": "sts.amazonaws.com"}
    environ = {**named, **role, "GITLAB_CI": "true", "VAULT_ID_TOKEN": token}
    found = answers(registry(environ), "other:canary", "other:canary2")
    assert all(isinstance(each, Document) for each in found)
    assert not any(part in caplog.text for part in (WORD, token))
    caplog.clear()
    aws.client("secretsmanager").get_secret_value(SecretId="canary")
    assert WORD in caplog.text, "what others do with the SDK is logged as ever"


def test_the_sdk_alone_is_imported_where_it_is_used() -> None:
    import subprocess
    import sys

    code = (
        "import sys; from sealpipe.registry import Registry; "
        "Registry().source_info('aws-sm');"
        "sys.exit('botocore' in sys.modules)"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], env={**os.environ}, check=False).returncode
        == 0
    )


def test_calls_that_hang_do_not_hold_an_interrupted_command() -> None:
    released = threading.Event()
    locators = [Locator("aws-sm", name, (), f"aws-sm:{name}") for name in ("a", "b", "c")]

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    def hang(_: object) -> dict[Locator, Document | PluginError]:
        released.wait(30)
        return {}

    previous = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with stopwatch() as seconds:
            with pytest.raises(KeyboardInterrupt):
                fetch_in_batches(locators, split(locators, 1), hang, lambda _: Document(b""), 2)
            assert seconds() < 10
    finally:
        signal.signal(signal.SIGALRM, previous)
        released.set()
