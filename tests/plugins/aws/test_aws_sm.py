"""The source aws-sm on moto's server."""

from __future__ import annotations

import pytest

from sealpipe.errors import (
    PluginError,
    ReferenceValueError,
    SecretNotFoundError,
    UnavailableError,
)
from sealpipe.plugin import Document
from support.aws import REGION, Call, Front, Moto, Refusal
from support.backends import answers, registry, values

ODD = "app/db_/+=.@-1"


def test_text_is_kept_exactly(aws: Moto, environ: dict[str, str]) -> None:
    text = ' é\n{"half": '
    aws.client("secretsmanager").create_secret(Name=ODD, SecretString=text)
    assert values(environ, f"aws-sm:{ODD}") == [text.encode()]


def test_bytes_are_kept_exactly(aws: Moto, environ: dict[str, str]) -> None:
    data = bytes(range(256)) * 256
    aws.client("secretsmanager").create_secret(Name="raw", SecretBinary=data)
    (answer,) = answers(registry(environ), "aws-sm:raw")
    assert isinstance(answer, Document)
    assert answer.content == data


def test_a_json_object_is_a_map_and_its_numbers_keep_their_spelling(
    aws: Moto, environ: dict[str, str]
) -> None:
    text = '{"user": "app", "port": 1.10, "conn": [{"pw": "deep"}], "a.b/c": "odd"}'
    aws.client("secretsmanager").create_secret(Name="app/db", SecretString=text)
    assert values(environ, "aws-sm:app/db#user,port,a.b/c,/conn/0/pw") == [
        b"app",
        b"1.10",
        b"odd",
        b"deep",
    ]
    assert values(environ, "aws-sm:app/db?format=json#user", "aws-sm:app/db?raw=1") == [
        b"app",
        text.encode(),
    ]
    with pytest.raises(ReferenceValueError, match="is a map, and no key is selected") as caught:
        values(environ, "aws-sm:app/db")
    assert 'its keys: "user", "port", "conn", "a.b/c"' in caught.value.remedy


@pytest.mark.parametrize("text", ['"text"', "[1]", "12", "{not json}", "null", ""])
def test_other_text_is_a_value_even_where_it_is_json(
    text: str, aws: Moto, environ: dict[str, str]
) -> None:
    aws.client("secretsmanager").create_secret(Name="plain", SecretString=text or " ")
    assert values(environ, "aws-sm:plain") == [(text or " ").encode()]


def test_an_object_with_a_key_twice_is_refused_and_can_be_had_whole(
    aws: Moto, environ: dict[str, str]
) -> None:
    aws.client("secretsmanager").create_secret(Name="twice", SecretString='{"a": 1, "a": 2}')
    with pytest.raises(PluginError, match="two members of one name"):
        values(environ, "aws-sm:twice#a")
    assert values(environ, "aws-sm:twice?raw=1") == [b'{"a": 1, "a": 2}']


def test_a_version_is_named_by_its_id_or_its_stage(aws: Moto, environ: dict[str, str]) -> None:
    client = aws.client("secretsmanager")
    first = client.create_secret(Name="key", SecretString="old")["VersionId"]
    client.put_secret_value(SecretId="key", SecretString="new")
    references = ["aws-sm:key", f"aws-sm:key?version={first}", "aws-sm:key?stage=AWSPREVIOUS"]
    assert values(environ, *references) == [b"new", b"old", b"old"]


def test_an_arn_names_its_region(aws: Moto, environ: dict[str, str]) -> None:
    arn = aws.client("secretsmanager", "us-east-2").create_secret(Name="far", SecretString="away")[
        "ARN"
    ]
    aws.client("secretsmanager").create_secret(Name="near", SecretString="here")
    assert REGION not in arn
    assert values(environ, f"aws-sm:{arn}", "aws-sm:near") == [b"away", b"here"]


def test_forty_five_references_are_three_calls(
    aws: Moto, environ: dict[str, str], front: Front
) -> None:
    client = aws.client("secretsmanager")
    for number in range(45):
        client.create_secret(
            Name=f"many/{number}", SecretString=f'{{"pw": "v{number}", "user": "u"}}'
        )
    front.asked.clear()
    found = values(
        environ, *[f"aws-sm:many/{number}#{key}" for number in range(45) for key in ("pw", "user")]
    )
    assert found == [value for number in range(45) for value in (f"v{number}".encode(), b"u")]
    assert front.operations == ["BatchGetSecretValue"] * 3


def test_one_alone_needs_no_permission_for_batches(
    aws: Moto, environ: dict[str, str], front: Front
) -> None:
    aws.client("secretsmanager").create_secret(Name="one", SecretString="x")
    values(environ, "aws-sm:one")
    assert front.operations == ["GetSecretValue"]


@pytest.mark.parametrize("code", ["AccessDeniedException", "UnknownOperationException"])
def test_where_batches_are_not_allowed_each_is_asked_for(
    code: str, aws: Moto, environ: dict[str, str], front: Front
) -> None:
    for name in "abc":
        aws.client("secretsmanager").create_secret(Name=name, SecretString=name)
    front.rule = lambda asked: Refusal(400, code) if asked.operation.startswith("Batch") else None
    assert values(environ, "aws-sm:a", "aws-sm:b", "aws-sm:c") == [b"a", b"b", b"c"]
    assert sorted(front.operations) == ["BatchGetSecretValue", *["GetSecretValue"] * 3]


def test_a_batch_tells_each_of_its_failures(
    aws: Moto, environ: dict[str, str], front: Front
) -> None:
    client = aws.client("secretsmanager")
    client.create_secret(Name="there", SecretString="x")
    client.create_secret(Name="gone", SecretString="x")
    client.delete_secret(SecretId="gone")
    there, gone, never, none = answers(
        registry(environ), "aws-sm:there", "aws-sm:gone", "aws-sm:never", "aws-sm:?stage=X"
    )
    assert isinstance(there, Document)
    assert isinstance(gone, SecretNotFoundError)
    assert "is marked for deletion" in gone.message
    assert isinstance(never, SecretNotFoundError)
    assert never.message == "aws-sm:never does not exist"
    assert isinstance(none, ReferenceValueError)
    assert "BatchGetSecretValue" in front.operations


def test_one_that_spoils_a_batch_spoils_no_other(aws: Moto, environ: dict[str, str]) -> None:
    client = aws.client("secretsmanager")
    client.create_secret(Name="good", SecretString="x")
    client.create_secret(Name="valueless")
    good, valueless = answers(registry(environ), "aws-sm:good", "aws-sm:valueless")
    assert isinstance(good, Document)
    assert isinstance(valueless, SecretNotFoundError)


def test_a_batch_that_is_throttled_is_asked_for_again_whole(
    aws: Moto, environ: dict[str, str], front: Front
) -> None:
    for name in "ab":
        aws.client("secretsmanager").create_secret(Name=name, SecretString=name)
    front.rule = lambda _: Refusal(
        400, "ThrottlingException", "Rate exceeded", {"retry-after": "3"}
    )
    found = answers(registry(environ), "aws-sm:a", "aws-sm:b")
    assert [(type(each), getattr(each, "retry_after", None)) for each in found] == [
        (UnavailableError, 3.0)
    ] * 2
    assert front.operations == ["BatchGetSecretValue"]


def test_a_call_that_was_throttled_is_made_again_by_the_core(
    aws: Moto, environ: dict[str, str], front: Front
) -> None:
    aws.client("secretsmanager").create_secret(Name="busy", SecretString="x")

    def once(_: Call) -> Refusal | None:
        return Refusal(400, "ThrottlingException") if len(front.asked) == 1 else None

    front.rule = once
    found = registry(environ)
    first = answers(found, "aws-sm:busy")[0]
    assert isinstance(first, UnavailableError)
    assert isinstance(answers(found, "aws-sm:busy")[0], Document)


def test_the_check_tells_who_is_asking_and_reads_no_secret(
    environ: dict[str, str], front: Front
) -> None:
    health = registry(environ).check("source", "aws-sm")
    assert health.ok
    assert "arn:aws:sts::123456789012:user/moto, eu-west-1" in health.detail
    assert front.operations == ["GetCallerIdentity"]
