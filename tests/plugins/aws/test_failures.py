"""What goes wrong at AWS, and how each is told."""

from __future__ import annotations

import pytest

from sealpipe.errors import (
    AccessDeniedError,
    BackendAuthError,
    NotConfiguredError,
    PluginError,
    ReferenceValueError,
    SecretNotFoundError,
    UnavailableError,
)
from sealpipe.testing.contract import CANARY
from support.aws import DEFAULT, STORE, Front, Moto, Refusal
from support.ci_jobs import job_token
from support.failures import Row, Table

ROLE = "arn:aws:iam::123456789012:role/sealpipe"
NAMED = {f"{STORE}PLUGIN": "aws-sm", f"{STORE}REGION": "eu-west-1"}
KEYS = {"ACCESS_KEY_ID": "AKIANAMED", "SECRET_ACCESS_KEY": "Canary-made-up"}
BY_JOB = {"ROLE_ARN": ROLE, "AUDIENCE": "sts.amazonaws.com"}


def refused(
    kind: type[PluginError], words: str, code: str, message: str = "", status: int = 400
) -> Row:
    """AWS answers with a code; the SDK repeats nothing."""
    return Row(kind, words, answer=Refusal(status, code, message + CANARY), calls=1)


def named(words: str, remedy: str = "", **settings: str) -> Row:
    """A store of another name with these settings alone."""
    environ = {STORE + name: value for name, value in settings.items()}
    return Row(NotConfiguredError, words, "other:db", {**NAMED, **environ}, remedy=remedy)


def job(audience: str) -> dict[str, str]:
    role = {STORE + name: value for name, value in BY_JOB.items()}
    return {**NAMED, **role, "GITLAB_CI": "true", "VAULT_ID_TOKEN": job_token(audience)}


APART = {
    "nothing": Row(SecretNotFoundError, "does not exist", "nothing"),
    "deleted": Row(SecretNotFoundError, "is marked for deletion", "gone"),
    "denied": refused(
        AccessDeniedError,
        "does not allow secretsmanager:GetSecretValue",
        "AccessDeniedException",
        "User: arn:aws:iam::1:user/ci is not authorized",
    ),
    "the key": refused(
        AccessDeniedError,
        "its KMS key does not exist or may not be used",
        "AccessDeniedException",
        "Access to KMS is not allowed",
    ),
    "expired": refused(BackendAuthError, "the AWS session has expired", "ExpiredTokenException"),
    "no such key": refused(
        BackendAuthError, "does not know the access key", "UnrecognizedClientException"
    ),
    "a wrong secret": refused(
        BackendAuthError, "does not accept the signature", "InvalidSignatureException"
    ),
    "another account's variables": named(
        "AWS_* variables apply to the default store only", "credential_source"
    ),
    "a job that is not trusted": Row(
        BackendAuthError,
        f"AWS does not let the CI's token assume the role {ROLE} (AccessDenied)",
        "other:db",
        job("sts.amazonaws.com"),
        answer=Refusal(403, "AccessDenied"),
        remedy="trust policy",
    ),
    "a job's token for another": Row(
        NotConfiguredError,
        "is not a token for the audience sts.amazonaws.com",
        "other:db",
        job("vault"),
        calls=0,
    ),
    "half a key": named("only half of an AWS access key", ACCESS_KEY_ID="AKIA"),
    "no region": named("no AWS region is set", REGION="", **KEYS),
}
MORE = {
    "a key that does not decrypt": refused(
        AccessDeniedError, "its KMS key does not exist or may not be used", "DecryptionFailure"
    ),
    "a job whose token is odd": Row(
        BackendAuthError,
        "(InvalidIdentityToken)",
        "other:db",
        job("sts.amazonaws.com"),
        answer=Refusal(403, "InvalidIdentityToken"),
    ),
    "no such profile": named("there is no AWS profile nope", PROFILE="nope"),
    "an audience alone": named("an audience but no role_arn", AUDIENCE="sts.amazonaws.com", **KEYS),
    "no container": named(
        "EcsContainer provides no credentials here", CREDENTIAL_SOURCE="EcsContainer"
    ),
    "unencrypted": named(
        "endpoint_url is not an https address", ENDPOINT_URL="http://aws.example", **KEYS
    ),
    "a name": refused(ReferenceValueError, "is not valid for AWS", "ValidationException"),
    "no body": Row(ReferenceValueError, body=""),
    "raw": Row(ReferenceValueError, body="db?raw=yes"),
    **{
        f"{status} {code}": refused(
            UnavailableError, "asks to try again later", code, status=status
        )
        for status, code in (
            (400, "ThrottlingException"),
            (503, "ServiceUnavailable"),
            (500, "SomethingNew"),
        )
    },
    "a new code": refused(PluginError, "AWS responded with SomethingNew", "SomethingNew"),
    "an odd code": refused(PluginError, "AWS responded with an unknown code", "<b>\x1b[2J"),
}
ROWS = {**APART, **MORE}


@pytest.fixture
def table(aws: Moto, front: Front, environ: dict[str, str]) -> Table:
    client = aws.client("secretsmanager")
    for name in ("db", "gone"):
        client.create_secret(Name=name, SecretString="x")
    client.delete_secret(SecretId="gone")
    environ = {**environ, **NAMED, f"{STORE}ENDPOINT_URL": front.base_url, f"{DEFAULT}TIMEOUT": "5"}
    return Table("aws-sm", "db", environ, front, secrets=("Canary-made-up",))


@pytest.mark.parametrize("name", ROWS)
def test_a_failure_reads_as_what_it_is(name: str, table: Table) -> None:
    table.tell(ROWS[name])


def test_what_needs_another_next_step_is_told_apart(table: Table) -> None:
    table.tell_apart(APART)
