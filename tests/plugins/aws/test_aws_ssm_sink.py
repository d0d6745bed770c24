"""The sink aws-ssm on moto's server, and what moto does not refuse, refused as AWS's interface has
it.
"""

from __future__ import annotations

from typing import Any

import pytest

from sealpipe.errors import (
    AccessDeniedError,
    PluginError,
    ReferenceValueError,
    UnavailableError,
    UnsupportedError,
    WriteConflictError,
)
from sealpipe_plugins.aws.content import TAG
from support.aws import Front, Moto
from support.backends import SECRET, put, put_refused, values


@pytest.fixture
def vendor(aws: Moto) -> Any:
    return aws.client("ssm")


def made(vendor: Any, name: str, value: str, kind: str = "SecureString", **more: Any) -> None:
    vendor.put_parameter(Name=name, Value=value, Type=kind, **more)


def held(vendor: Any, name: str) -> tuple[str, int]:
    found = vendor.get_parameter(Name=name, WithDecryption=True)["Parameter"]
    assert found["Type"] == "SecureString"
    return found["Value"], found["Version"]


def markers(vendor: Any, name: str) -> list[str]:
    tags = vendor.list_tags_for_resource(ResourceType="Parameter", ResourceId=name)["TagList"]
    return {tag["Key"]: tag["Value"] for tag in tags}.get(TAG, "").split()


def names(vendor: Any, path: str) -> list[str]:
    page = vendor.get_parameters_by_path(Path=path, Recursive=True)
    return sorted(found["Name"] for found in page["Parameters"])


class TestWhatIsStored:
    def test_the_source_reads_it_under_the_same_reference(self, environ: dict[str, str]) -> None:
        put(environ, "aws-ssm:/app/one", {"": " é\n"})
        put(environ, "aws-ssm:flat", {"any": "x"})
        put(environ, "aws-ssm:/app/two/", {"pw": "a,b", "db/user": "u"})
        assert values(environ, "aws-ssm:/app/one", "aws-ssm:flat") == [" é\n".encode(), b"x"]
        assert values(environ, "aws-ssm:/app/two/#pw,db/user") == [b"a,b", b"u"]

    def test_the_key_of_kms_and_the_tier_stay_as_they_were(
        self, vendor: Any, environ: dict[str, str], front: Front
    ) -> None:
        made(vendor, "/big", "old", KeyId="alias/ours", Tier="Advanced")
        put(environ, "aws-ssm:/big", {"": "x" * 8192}, "replace")
        (asked,) = (asked.parameters for asked in front.asked if asked.operation == "PutParameter")
        assert (asked["KeyId"], asked["Tier"], asked["Type"]) == (
            "alias/ours",
            "Advanced",
            "SecureString",
        )
        found = vendor.describe_parameters(ParameterFilters=[{"Key": "Name", "Values": ["/big"]}])[
            "Parameters"
        ][0]
        assert (found["KeyId"], found["Tier"]) == ("alias/ours", "Advanced")

    def test_below_a_path_nothing_is_written_where_one_key_stands_in_the_way(
        self, vendor: Any, environ: dict[str, str]
    ) -> None:
        made(vendor, "/app/b", "theirs")
        put_refused(
            environ,
            "aws-ssm:/app/",
            {"a": SECRET, "b": SECRET},
            WriteConflictError,
            "already has other content",
        )
        assert names(vendor, "/app/") == ["/app/b"]
        put(environ, "aws-ssm:/app/", {"a": "x", "b": "theirs"})
        assert names(vendor, "/app/") == ["/app/a", "/app/b"]
        assert held(vendor, "/app/b") == ("theirs", 1)

    def test_other_parameters_and_other_tags_stay(
        self, vendor: Any, environ: dict[str, str]
    ) -> None:
        made(vendor, "/app/a", "old", Tags=[{"Key": "team", "Value": "us"}])
        made(vendor, "/app/b", "other")
        put(environ, "aws-ssm:/app/", {"a": "new"}, "replace")
        assert (held(vendor, "/app/a"), held(vendor, "/app/b")) == (("new", 2), ("other", 1))
        tags = vendor.list_tags_for_resource(ResourceType="Parameter", ResourceId="/app/a")[
            "TagList"
        ]
        assert {"Key": "team", "Value": "us"} in tags

    def test_the_markers_of_all_submissions_are_kept_as_far_as_a_tag_goes(
        self, vendor: Any, environ: dict[str, str]
    ) -> None:
        marks = [f"{number}-{'m' * 70}" for number in range(5)]
        for mark in marks:
            put(environ, "aws-ssm:/one", {"": mark}, "replace", marker=mark)
        assert markers(vendor, "/one") == marks[2:]


class TestRefusals:
    @pytest.mark.parametrize(
        ("operation", "action"),
        [
            ("GetParameter", "ssm:GetParameter"),
            ("PutParameter", "ssm:PutParameter"),
            ("DescribeParameters", "ssm:DescribeParameters"),
            ("ListTagsForResource", "ssm:ListTagsForResource"),
            ("AddTagsToResource", "ssm:AddTagsToResource"),
        ],
    )
    def test_the_permission_that_is_missing_is_named(
        self, vendor: Any, environ: dict[str, str], front: Front, operation: str, action: str
    ) -> None:
        made(vendor, "/one", "old")
        front.deny(operation)
        words = f"AWS does not allow {action} for"
        put_refused(environ, "aws-ssm:/one", {"": SECRET}, AccessDeniedError, words, "replace")

    def test_to_make_one_takes_two_permissions(self, environ: dict[str, str], front: Front) -> None:
        front.deny("PutParameter")
        put_refused(
            environ,
            "aws-ssm:/one",
            {"": SECRET},
            AccessDeniedError,
            "allow ssm:PutParameter and ssm:AddTagsToResource for",
        )

    @pytest.mark.parametrize(
        ("code", "kind", "words"),
        [
            ("ThrottlingException", UnavailableError, "asks to try again later"),
            ("TooManyUpdates", UnavailableError, "asks to try again later"),
            ("ParameterLimitExceeded", UnsupportedError, "AWS's limit for the account or path"),
            (
                "ParameterMaxVersionLimitExceeded",
                UnsupportedError,
                "AWS's limit for the account or path",
            ),
            (
                "ParameterPatternMismatchException",
                UnsupportedError,
                "its AllowedPattern does not match",
            ),
            ("InvalidKeyId", AccessDeniedError, "cannot be encrypted: its KMS key"),
            ("ValidationException", ReferenceValueError, "is not valid for AWS"),
        ],
    )
    def test_every_refusal_reads_differently(
        self, environ: dict[str, str], front: Front, code: str, kind: type[PluginError], words: str
    ) -> None:
        front.deny("PutParameter", code)
        put_refused(environ, "aws-ssm:/one", {"": SECRET}, kind, words)

    @pytest.mark.parametrize("kind", ["String", "StringList"])
    def test_a_parameter_that_is_not_encrypted_is_not_written_to(
        self, vendor: Any, environ: dict[str, str], kind: str
    ) -> None:
        made(vendor, "/plain", SECRET, kind)
        for mode in ("create", "replace", "merge"):
            put_refused(
                environ,
                "aws-ssm:/plain",
                {"": SECRET},
                WriteConflictError,
                f"is not encrypted ({kind})",
                mode,
            )

    def test_more_than_the_tier_holds_is_refused(
        self, vendor: Any, environ: dict[str, str], front: Front
    ) -> None:
        put(environ, "aws-ssm:/full", {"": "x" * 4096}, marker="m0")
        put_refused(
            environ,
            "aws-ssm:/new",
            {"": SECRET * 1000},
            UnsupportedError,
            "AWS stores at most 4096 bytes",
        )
        put_refused(
            environ,
            "aws-ssm:/full",
            {"": "x" * 4097},
            UnsupportedError,
            "AWS stores at most 4096 bytes",
            "replace",
        )
        made(vendor, "/big", "old", Tier="Advanced")
        put_refused(
            environ,
            "aws-ssm:/big",
            {"": "x" * 8193},
            UnsupportedError,
            "AWS stores at most 8192 bytes",
            "replace",
        )
        assert b"Overwrite" not in b"".join(asked.body for asked in front.asked)

    def test_of_several_none_is_stored_where_one_is_more_than_its_tier_holds(
        self, vendor: Any, environ: dict[str, str], front: Front
    ) -> None:
        made(vendor, "/app/there", "old")
        for long in ("new", "there"):
            values = {"user": "deploy", long: "x" * 4097}
            put_refused(
                environ,
                "aws-ssm:/app/",
                values,
                UnsupportedError,
                "AWS stores at most 4096 bytes",
                "replace",
            )
        assert [asked.operation for asked in front.asked if asked.operation.startswith("Put")] == []

    @pytest.mark.parametrize(
        ("target", "given", "kind", "words"),
        [
            (
                "aws-ssm:arn:aws:ssm:eu-west-1:1:parameter/a",
                {"": SECRET},
                ReferenceValueError,
                "cannot write a parameter by its ARN",
            ),
            ("aws-ssm:", {"": SECRET}, ReferenceValueError, "is not a valid parameter name"),
            ("aws-ssm:/a:3", {"": SECRET}, ReferenceValueError, "is not a valid parameter name"),
            ("aws-ssm:/a//b", {"": SECRET}, ReferenceValueError, "is not a valid parameter name"),
            ("aws-ssm:a/b", {"": SECRET}, ReferenceValueError, "is not a valid parameter name"),
            ("aws-ssm:/AWS/x", {"": SECRET}, ReferenceValueError, "is not a valid parameter name"),
            ("aws-ssm:ssm-x", {"": SECRET}, ReferenceValueError, "is not a valid parameter name"),
            (
                f"aws-ssm:{'/a' * 16}",
                {"": SECRET},
                ReferenceValueError,
                "is not a valid parameter name",
            ),
            (
                "aws-ssm:/a",
                {"x": SECRET, "y": SECRET},
                ReferenceValueError,
                "is a single parameter",
            ),
            ("aws-ssm:/a/", {"": SECRET}, ReferenceValueError, "is a path"),
            ("aws-ssm:/a/", {"b c": SECRET}, ReferenceValueError, "is not a valid parameter name"),
            ("aws-ssm:/a/", {"/b": SECRET}, ReferenceValueError, "is not a valid parameter name"),
            ("aws-ssm:/a", {"": ""}, UnsupportedError, "not store empty parameters"),
            ("aws-ssm:/a", {"": b"\xff"}, UnsupportedError, "holds text only"),
            ("aws-ssm:/a", {"": "{{ssm:/other}}"}, UnsupportedError, "no parameter with {{}}"),
        ],
    )
    def test_an_invalid_write_fails_before_any_call(
        self,
        environ: dict[str, str],
        front: Front,
        target: str,
        given: Any,
        kind: type[PluginError],
        words: str,
    ) -> None:
        put_refused(environ, target, given, kind, words)
        assert front.asked == []
