"""The source aws-ssm on moto's server."""

from __future__ import annotations

import pytest

from sealpipe.errors import (
    AccessDeniedError,
    ReferenceValueError,
    SecretNotFoundError,
    UnavailableError,
)
from sealpipe.plugin import Document
from support.aws import Front, Moto, Refusal
from support.backends import answers, refused, registry, values


def put(aws: Moto, name: str, value: str, kind: str = "SecureString") -> None:
    aws.client("ssm").put_parameter(Name=name, Value=value, Type=kind, Overwrite=True)


@pytest.mark.parametrize("kind", ["String", "SecureString", "StringList"])
def test_a_parameter_is_decrypted_and_kept_exactly(
    kind: str, aws: Moto, environ: dict[str, str]
) -> None:
    put(aws, "/app/pw", " a,b \n", kind)
    assert values(environ, "aws-ssm:/app/pw") == [b" a,b \n"]


def test_a_name_needs_no_slash(aws: Moto, environ: dict[str, str]) -> None:
    put(aws, "plain", "x")
    assert values(environ, "aws-ssm:plain") == [b"x"]


def test_json_is_read_where_the_reference_says_so(aws: Moto, environ: dict[str, str]) -> None:
    put(aws, "/app/json", '{"pw": "deep"}')
    assert values(environ, "aws-ssm:/app/json", "aws-ssm:/app/json?format=json#pw") == [
        b'{"pw": "deep"}',
        b"deep",
    ]


def test_a_version_or_label_is_named_in_either_way(aws: Moto, environ: dict[str, str]) -> None:
    put(aws, "/app/pw", "one")
    put(aws, "/app/pw", "two")
    aws.client("ssm").label_parameter_version(Name="/app/pw", ParameterVersion=1, Labels=["first"])
    references = ["", ":1", "?version=1", ":first", "?label=first", "?version=2"]
    assert values(environ, *[f"aws-ssm:/app/pw{how}" for how in references]) == [
        b"two",
        *[b"one"] * 4,
        b"two",
    ]


@pytest.mark.parametrize(
    "how", [":1?version=1", "?version=1&label=a", "/?version=1", "?version=0", "?version=x"]
)
def test_two_versions_or_none_that_can_be_are_refused(
    how: str, environ: dict[str, str], front: Front
) -> None:
    assert isinstance(answers(registry(environ), f"aws-ssm:/app/pw{how}")[0], ReferenceValueError)
    assert front.asked == []


def test_a_path_is_all_below_it_as_a_map(aws: Moto, environ: dict[str, str]) -> None:
    for number in range(23):
        put(aws, f"/app/db/p{number:02}", f"v{number}")
    put(aws, "/app/db/deep/er", "d")
    put(aws, "/app/dbx", "no")
    assert values(environ, "aws-ssm:/app/db/#p07,deep/er") == [b"v7", b"d"]
    assert len(values(environ, "aws-ssm:/app/db/#*")) == 24
    refused(environ, "aws-ssm:/nowhere/", SecretNotFoundError, "there is no parameter below")


def test_an_arn_names_its_region(aws: Moto, environ: dict[str, str]) -> None:
    aws.client("ssm", "us-east-2").put_parameter(Name="/far", Value="away", Type="String")
    put(aws, "/near", "here")
    arn = "arn:aws:ssm:us-east-2:123456789012:parameter/far"
    assert values(environ, f"aws-ssm:{arn}", f"aws-ssm:{arn}:1", "aws-ssm:/near") == [
        b"away",
        b"away",
        b"here",
    ]


def test_twenty_five_references_are_three_calls(
    aws: Moto, environ: dict[str, str], front: Front
) -> None:
    for number in range(25):
        put(aws, f"/many/{number}", f"v{number}")
    front.asked.clear()
    found = values(environ, *[f"aws-ssm:/many/{number}" for number in range(25)])
    assert found == [f"v{number}".encode() for number in range(25)]
    assert front.operations == ["GetParameters"] * 3
    assert all(asked.parameters["WithDecryption"] for asked in front.asked)


def test_a_batch_tells_what_is_missing(aws: Moto, environ: dict[str, str]) -> None:
    put(aws, "/there", "x")
    found = answers(
        registry(environ), "aws-ssm:/there", "aws-ssm:/not", "aws-ssm:/there:9", "aws-ssm:"
    )
    assert [type(each) for each in found] == [
        Document,
        SecretNotFoundError,
        SecretNotFoundError,
        ReferenceValueError,
    ]
    assert str(found[1]) == "aws-ssm:/not does not exist"


def test_where_one_may_not_be_read_the_others_are(
    aws: Moto, environ: dict[str, str], front: Front
) -> None:
    for name in "abc":
        put(aws, f"/{name}", name)
    front.rule = lambda asked: (
        Refusal(400, "AccessDeniedException") if b'"/b"' in asked.body else None
    )
    a, b, c = answers(registry(environ), "aws-ssm:/a", "aws-ssm:/b", "aws-ssm:/c")
    assert isinstance(a, Document)
    assert isinstance(b, AccessDeniedError)
    assert (
        b.message
        == "aws-ssm:/b may not be read: AWS does not allow ssm:GetParameter for this identity"
    )
    assert isinstance(c, Document)
    assert sorted(front.operations) == [*["GetParameter"] * 3, "GetParameters"]


def test_a_batch_that_is_throttled_is_asked_for_again_whole(
    environ: dict[str, str], front: Front
) -> None:
    front.rule = lambda _: Refusal(400, "ThrottlingException")
    assert {type(each) for each in answers(registry(environ), "aws-ssm:/a", "aws-ssm:/b")} == {
        UnavailableError
    }
    assert front.operations == ["GetParameters"]


def test_the_permission_for_all_below_is_another_one(environ: dict[str, str], front: Front) -> None:
    front.rule = lambda _: Refusal(400, "AccessDeniedException")
    refused(environ, "aws-ssm:/app/", AccessDeniedError, "ssm:GetParametersByPath")
