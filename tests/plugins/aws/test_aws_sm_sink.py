"""The sink aws-sm on moto's server, and what moto does not refuse, refused as AWS's interface has
it.
"""

from __future__ import annotations

import json
from functools import partial
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
from support.fake_web import meanwhile


@pytest.fixture
def vendor(aws: Moto) -> Any:
    return aws.client("secretsmanager")


def made(vendor: Any, name: str, text: str) -> str:
    version: str = vendor.create_secret(Name=name, SecretString=text)["VersionId"]
    return version


def held(vendor: Any, name: str) -> str:
    text: str = vendor.get_secret_value(SecretId=name)["SecretString"]
    return text


def members(vendor: Any, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(held(vendor, name))
    return found


def markers(vendor: Any, name: str) -> list[str]:
    tags = {
        tag["Key"]: tag["Value"] for tag in vendor.describe_secret(SecretId=name).get("Tags", [])
    }
    return tags.get(TAG, "").split()


def versions(vendor: Any, name: str) -> int:
    return len(vendor.list_secret_version_ids(SecretId=name, IncludeDeprecated=True)["Versions"])


class TestWhatIsStored:
    def test_the_source_reads_it_under_the_same_reference(self, environ: dict[str, str]) -> None:
        put(environ, "aws-sm:vendor/acme", {"user": "é", "a.b/c": ' "\\\n'})
        put(environ, "aws-sm:vendor/plain", {"": "text\n"})
        put(environ, "aws-sm:vendor/odd", {"": '{"looks": "like keys"}'})
        assert values(environ, "aws-sm:vendor/acme#user,a.b/c") == ["é".encode(), b' "\\\n']
        assert values(environ, "aws-sm:vendor/plain", "aws-sm:vendor/odd?raw=1") == [
            b"text\n",
            b'{"looks": "like keys"}',
        ]

    def test_bytes_that_are_no_text_are_a_binary_secret_where_they_are_all_of_it(
        self, vendor: Any, environ: dict[str, str]
    ) -> None:
        put(environ, "aws-sm:raw", {"": b"\xff\x00"})
        assert vendor.get_secret_value(SecretId="raw")["SecretBinary"] == b"\xff\x00"
        assert put(environ, "aws-sm:raw", {"": b"\xff\x00"}, marker="m2").already
        put_refused(environ, "aws-sm:keys", {"a": b"\xff"}, UnsupportedError, "holds text only")

    def test_a_merge_keeps_every_other_member_as_it_is_written(
        self, vendor: Any, environ: dict[str, str]
    ) -> None:
        text = (
            '{ "n": 1.10,\n  "big": 123456789012345678901234567890, "é\\u0041": [1, {"a": '
            'null}],"pw":"old", "e":1E5 }'
        )
        made(vendor, "db", text)
        put(environ, "aws-sm:db", {"pw": 'ne"w', "more": "x"}, "merge")
        assert held(vendor, "db") == text.replace('"old"', '"ne\\"w"').replace(
            "1E5", '1E5, "more": "x"'
        )

    def test_a_value_is_not_escaped_to_ascii(self, vendor: Any, environ: dict[str, str]) -> None:
        made(vendor, "db", '{"pw": "old"}')
        put(environ, "aws-sm:db", {"pw": "é"}, "merge")
        assert held(vendor, "db") == '{"pw": "é"}'

    @pytest.mark.parametrize(
        ("text", "after"), [("{}", '{"a": "x"}'), ('{"b":1}', '{"b":1, "a": "x"}')]
    )
    def test_a_new_member_comes_last(
        self, vendor: Any, environ: dict[str, str], text: str, after: str
    ) -> None:
        made(vendor, "db", text)
        put(environ, "aws-sm:db", {"a": "x"}, "merge")
        assert held(vendor, "db") == after

    def test_a_secret_that_was_made_without_a_value_gets_its_first(
        self, vendor: Any, environ: dict[str, str]
    ) -> None:
        for mode in ("create", "replace", "merge"):
            vendor.create_secret(Name=mode)
            assert not put(environ, f"aws-sm:{mode}", {"a": "x"}, mode).already
            assert put(environ, f"aws-sm:{mode}", {"a": "x"}, mode).already
            assert (members(vendor, mode), markers(vendor, mode)) == ({"a": "x"}, ["m1"])

    def test_a_secret_is_named_by_its_arn_too_in_its_region(
        self, aws: Moto, environ: dict[str, str]
    ) -> None:
        far = aws.client("secretsmanager", "us-east-2")
        arn = far.create_secret(Name="far", SecretString='{"a": "1"}')["ARN"]
        put(environ, f"aws-sm:{arn}", {"b": "2"}, "merge")
        assert members(far, "far") == {"a": "1", "b": "2"}
        gone = arn.replace("far", "none")
        put_refused(environ, f"aws-sm:{gone}", {"b": SECRET}, ReferenceValueError, "does not exist")

    def test_all_else_that_the_secret_has_stays(self, vendor: Any, environ: dict[str, str]) -> None:
        tags = [{"Key": "a-team", "Value": "us"}, {"Key": "z-team", "Value": "them"}]
        vendor.create_secret(
            Name="db", SecretString="{}", Description="ours", Tags=tags, KmsKeyId="alias/k"
        )
        put(environ, "aws-sm:db", {"a": "x"}, "replace", marker="a")
        put(environ, "aws-sm:db", {"a": "y"}, "replace", marker="b")
        found = vendor.describe_secret(SecretId="db")
        assert (found["Description"], found["KmsKeyId"]) == ("ours", "alias/k")
        assert [tag for tag in found["Tags"] if tag["Key"] != TAG] == tags
        assert markers(vendor, "db") == ["a", "b"]
        assert members(vendor, "db") == {"a": "y"}


class TestMarkers:
    def test_of_all_submissions_are_kept_as_far_as_a_tag_goes(
        self, vendor: Any, environ: dict[str, str]
    ) -> None:
        names = [f"{number}-{'m' * 70}" for number in range(5)]
        for name in names:
            put(environ, "aws-sm:db", {name[0]: "x"}, "merge", marker=name)
        assert markers(vendor, "db") == names[2:]
        assert put(environ, "aws-sm:db", {"4": "x"}, "merge", marker=names[4]).already
        assert markers(vendor, "db") == names[2:]

    def test_the_token_tells_nothing_of_the_value(
        self, vendor: Any, environ: dict[str, str], front: Front
    ) -> None:
        for name, value in (("one", "1"), ("two", "2")):
            vendor.create_secret(
                Name=name,
                SecretString="{}",
                ClientRequestToken="made-of-the-same-version-as-the-other",
            )
            put(environ, f"aws-sm:{name}", {"pin": value}, "merge")
        tokens = [asked.parameters.get("ClientRequestToken") for asked in front.asked]
        assert len(set(filter(None, tokens))) == 1

    def test_who_makes_a_secret_can_tell_whether_it_was_him(
        self, environ: dict[str, str], front: Front
    ) -> None:
        """AWS says yes to a token that it has seen with the same content, as if it had made the
        secret again.
        """
        for name in ("one", "two"):
            put(environ, f"aws-sm:{name}", {"pin": "1"})
        tokens = [asked.parameters.get("ClientRequestToken") for asked in front.asked]
        assert len(set(filter(None, tokens))) == 2

    def test_a_value_that_was_set_back_can_be_replaced_again(
        self, vendor: Any, environ: dict[str, str]
    ) -> None:
        first = made(vendor, "db", "old")
        ours = put(environ, "aws-sm:db", {"": "new"}, "replace").version
        stage = {"SecretId": "db", "VersionStage": "AWSCURRENT"}
        vendor.update_secret_version_stage(**stage, MoveToVersionId=first, RemoveFromVersionId=ours)
        vendor.untag_resource(SecretId="db", TagKeys=[TAG])
        assert not put(environ, "aws-sm:db", {"": "new"}, "replace").already
        assert held(vendor, "db") == "new"


class TestAtTheSameMoment:
    def test_a_later_write_of_others_is_kept(
        self, vendor: Any, environ: dict[str, str], front: Front
    ) -> None:
        made(vendor, "db", "old")
        theirs = partial(vendor.put_secret_value, SecretId="db", SecretString="theirs")
        front.once("UpdateSecretVersionStage", meanwhile(theirs, after=True))
        assert not put(environ, "aws-sm:db", {"": "ours"}, "replace").already
        assert put(environ, "aws-sm:db", {"": "ours"}, "replace").already, (
            "it has our marker: it was rotated since"
        )
        assert held(vendor, "db") == "theirs"


class TestRefusals:
    def test_where_it_was_not_written_it_is_to_be_tried_again(
        self, environ: dict[str, str], front: Front
    ) -> None:
        for code in ("InternalServiceError", "SomethingNew"):
            front.deny("CreateSecret", code, 500)
            put_refused(
                environ,
                "aws-sm:db",
                {"a": SECRET},
                UnavailableError,
                "was not written: the store failed",
            )
        front.deny("CreateSecret", "ThrottlingException")
        put_refused(
            environ, "aws-sm:db", {"a": SECRET}, UnavailableError, "asks to try again later"
        )

    @pytest.mark.parametrize(
        ("operation", "action"),
        [
            ("DescribeSecret", "secretsmanager:DescribeSecret"),
            ("CreateSecret", "secretsmanager:CreateSecret and secretsmanager:TagResource"),
            ("GetSecretValue", "secretsmanager:GetSecretValue"),
            ("PutSecretValue", "secretsmanager:PutSecretValue"),
            ("UpdateSecretVersionStage", "secretsmanager:UpdateSecretVersionStage"),
        ],
    )
    def test_the_permission_that_is_missing_is_named(
        self, vendor: Any, environ: dict[str, str], front: Front, operation: str, action: str
    ) -> None:
        if operation in ("PutSecretValue", "UpdateSecretVersionStage"):
            made(vendor, "db", "old")
        front.deny(operation)
        words = f"AWS does not allow {action} for this identity"
        error = put_refused(
            environ, "aws-sm:db", {"a": SECRET}, AccessDeniedError, words, "replace"
        )
        assert f"allow {action} on it" in error.remedy

    def test_a_tag_that_may_not_be_set_leaves_the_value_there(
        self, vendor: Any, environ: dict[str, str], front: Front
    ) -> None:
        made(vendor, "db", "old")
        front.deny("TagResource")
        put_refused(
            environ,
            "aws-sm:db",
            {"": SECRET},
            AccessDeniedError,
            "holds the value; its tag may not be written",
            "replace",
        )
        front.rule = lambda _: None
        assert put(environ, "aws-sm:db", {"": SECRET}, "replace").already
        assert (markers(vendor, "db"), versions(vendor, "db")) == (["m1"], 2)

    def test_a_key_of_kms_that_may_not_be_used_is_named_as_that(
        self, environ: dict[str, str], front: Front
    ) -> None:
        front.deny("CreateSecret", "EncryptionFailure")
        error = put_refused(
            environ,
            "aws-sm:db",
            {"a": SECRET},
            AccessDeniedError,
            "cannot be encrypted: its KMS key",
        )
        assert "kms:GenerateDataKey" in error.remedy

    def test_a_secret_that_is_to_be_deleted_is_not_written_to(
        self, vendor: Any, environ: dict[str, str]
    ) -> None:
        made(vendor, "gone", "old")
        vendor.delete_secret(SecretId="gone")
        for mode in ("create", "replace", "merge"):
            error = put_refused(
                environ,
                "aws-sm:gone",
                {"a": SECRET},
                WriteConflictError,
                "is marked for deletion",
                mode,
            )
            assert "restore-secret" in error.remedy

    def test_a_key_is_not_merged_into_what_has_none(
        self, vendor: Any, environ: dict[str, str]
    ) -> None:
        made(vendor, "plain", "text")
        vendor.create_secret(Name="binary", SecretBinary=b"\x00")
        made(vendor, "twice", '{"a": 1, "a": 2}')
        made(vendor, "keys", '{"a": 1}')
        put_refused(
            environ, "aws-sm:plain", {"a": SECRET}, WriteConflictError, "without keys", "merge"
        )
        put_refused(
            environ, "aws-sm:binary", {"a": SECRET}, WriteConflictError, "without keys", "merge"
        )
        put_refused(
            environ,
            "aws-sm:twice",
            {"a": SECRET},
            UnsupportedError,
            "two members of the same name",
            "merge",
        )
        put_refused(environ, "aws-sm:keys", {"": SECRET}, WriteConflictError, "has keys", "merge")
        put(environ, "aws-sm:plain", {"a": "x"}, "replace")
        put(environ, "aws-sm:keys", {"": "x"}, "replace")
        assert (held(vendor, "plain"), held(vendor, "keys")) == ('{"a": "x"}', "x")

    @pytest.mark.parametrize(
        ("target", "given", "kind", "words"),
        [
            (
                "aws-sm:db",
                {"": SECRET, "a": SECRET},
                ReferenceValueError,
                "values with and without a key",
            ),
            ("aws-sm:", {"": SECRET}, ReferenceValueError, "is not a valid secret name"),
            ("aws-sm:with blank", {"": SECRET}, ReferenceValueError, "is not a valid secret name"),
            (
                f"aws-sm:{'x' * 513}",
                {"": SECRET},
                ReferenceValueError,
                "is not a valid secret name",
            ),
            (
                "aws-sm:arn:aws:s3:::bucket",
                {"": SECRET},
                ReferenceValueError,
                "is not a valid secret name",
            ),
            ("aws-sm:db", {"": SECRET * 9000}, UnsupportedError, "65536 bytes"),
            ("aws-sm:db", {"a": "é" * 32768}, UnsupportedError, "65536 bytes"),
            ("aws-sm:db", {"": ""}, UnsupportedError, "not store empty secrets"),
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

    def test_a_different_value_read_back_is_an_error(
        self, environ: dict[str, str], vendor: Any, front: Front
    ) -> None:
        # Somebody who may do all takes the version away and makes another one of its name.
        def swap() -> None:
            vendor.delete_secret(SecretId="db", ForceDeleteWithoutRecovery=True)
            (token,) = (
                call.parameters["ClientRequestToken"]
                for call in front.asked
                if call.operation == "CreateSecret"
            )
            vendor.create_secret(Name="db", SecretString="other", ClientRequestToken=token)

        front.once("CreateSecret", meanwhile(swap, after=True))
        put_refused(
            environ, "aws-sm:db", {"a": SECRET}, PluginError, "did not read back as it was written"
        )
