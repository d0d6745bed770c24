"""gcp-sm:PROJECT/SECRET: references, versions, checksums, and what Google refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google_crc32c import value as crc32c

from plugins.gcp.conftest import DEFAULT
from plugins.gcp.fake_secret_manager import FORBIDDEN, NUMBER, PROJECT, FakeSecretManager
from sealpipe.errors import (
    AccessDeniedError,
    BackendAuthError,
    NotConfiguredError,
    PluginError,
    ReferenceValueError,
    SecretNotFoundError,
    UnavailableError,
)
from support.backends import answers, refused, registry, values
from support.fake_web import Reply

CANARY = "canary-of-an-answer"


class TestReferences:
    @pytest.mark.parametrize(
        "body", ["db", f"{PROJECT}/db", f"{NUMBER}/db", f"projects/{PROJECT}/secrets/db"]
    )
    def test_a_secret_is_named_in_three_ways(
        self, body: str, google: FakeSecretManager, environ: dict[str, str]
    ) -> None:
        google.hold("db", b"x")
        assert values(environ, f"gcp-sm:{body}") == [b"x"]

    def test_an_object_is_a_map_unless_it_is_read_raw(
        self, google: FakeSecretManager, environ: dict[str, str]
    ) -> None:
        google.hold("db", b'{"n": 1.10, "a.b": "x"}')
        assert values(environ, "gcp-sm:db#n,a.b", "gcp-sm:db?raw=1") == [
            b"1.10",
            b"x",
            b'{"n": 1.10, "a.b": "x"}',
        ]

    def test_a_version_is_named_and_the_newest_is_read_without(
        self, google: FakeSecretManager, environ: dict[str, str]
    ) -> None:
        google.hold("db", b"old", b"new")
        assert values(environ, "gcp-sm:db?version=1", "gcp-sm:db", "gcp-sm:db?version=latest") == [
            b"old",
            b"new",
            b"new",
        ]

    @pytest.mark.parametrize("body", ["", "a/b/c", "A B", "p/", "../x", f"{PROJECT}/a.b", "p/é"])
    def test_any_other_name_is_refused(
        self, body: str, google: FakeSecretManager, environ: dict[str, str]
    ) -> None:
        refused(environ, f"gcp-sm:{body}", ReferenceValueError, "is not a valid name")
        assert google.asked == []

    def test_a_name_without_a_project_needs_the_setting(self, environ: dict[str, str]) -> None:
        del environ["GOOGLE_CLOUD_PROJECT"]
        error = refused(environ, "gcp-sm:db", NotConfiguredError, "names no project")
        assert "gcp-sm:PROJECT/db" in error.remedy

    def test_a_version_is_no_path(self, google: FakeSecretManager, environ: dict[str, str]) -> None:
        refused(environ, "gcp-sm:db?version=1/..", ReferenceValueError, "version=")
        assert google.asked == []


def test_fifty_secrets_need_one_login(google: FakeSecretManager, environ: dict[str, str]) -> None:
    for number in range(50):
        google.hold(f"s{number}", str(number).encode())
    found = answers(registry(environ), *(f"gcp-sm:s{number}" for number in range(50)))
    assert [getattr(each, "content", each) for each in found] == [
        str(number) for number in range(50)
    ]
    assert [asked.path == "/token" for asked in google.asked].count(True) == 1
    assert len(google.asked) == 51


class TestRefusals:
    @pytest.mark.parametrize(
        ("reference", "kind", "words"),
        [
            ("gcp-sm:nothing", SecretNotFoundError, "does not exist"),
            ("gcp-sm:db?version=7", SecretNotFoundError, "no such version"),
            ("gcp-sm:off", SecretNotFoundError, "disabled or destroyed"),
            (f"gcp-sm:{FORBIDDEN}", AccessDeniedError, "secretmanager.versions.access"),
            ("gcp-sm:other-project/db", NotConfiguredError, "its project does not exist"),
        ],
    )
    def test_are_told_apart(
        self,
        reference: str,
        kind: type[PluginError],
        words: str,
        google: FakeSecretManager,
        environ: dict[str, str],
    ) -> None:
        google.hold("db", b"x")
        google.hold(FORBIDDEN, b"x")
        google.hold("off").versions = [(b"x", "ENABLED"), (b"y", "DISABLED")]
        refused(environ, reference, kind, words)

    @pytest.mark.parametrize(
        ("status", "error", "kind", "words"),
        [
            (
                403,
                {"details": [{"reason": "SERVICE_DISABLED"}]},
                NotConfiguredError,
                "is not enabled",
            ),
            (403, {"details": [{"reason": "BILLING_DISABLED"}]}, NotConfiguredError, "billing"),
            (403, {"details": "odd"}, AccessDeniedError, "does not allow"),
            (401, {"status": "UNAUTHENTICATED"}, BackendAuthError, "refused the token"),
            (400, {"status": "INVALID_ARGUMENT"}, ReferenceValueError, "is not valid"),
            (429, {}, UnavailableError, "try again later"),
            (500, {}, UnavailableError, "failed"),
            (302, {}, NotConfiguredError, "redirect"),
            (200, {}, PluginError, "is not Google Secret Manager's"),
            (418, {}, PluginError, "refused"),
        ],
    )
    def test_say_what_it_is_and_quote_nothing(
        self,
        status: int,
        error: dict[str, Any],
        kind: type[PluginError],
        words: str,
        google: FakeSecretManager,
        environ: dict[str, str],
    ) -> None:
        answer = Reply(status, {"error": {"message": CANARY, **error}, "payload": {"data": CANARY}})
        google.rule = lambda asked: answer if asked.path.endswith(":access") else None
        found = answers(registry(environ), "gcp-sm:db")[0]
        assert type(found) is kind
        assert words in found.message
        assert CANARY not in str(found) + found.remedy

    def test_a_token_that_is_refused_is_not_used_again(
        self, google: FakeSecretManager, environ: dict[str, str]
    ) -> None:
        google.hold("db", b"x")
        found = registry(environ)
        assert not isinstance(answers(found, "gcp-sm:db")[0], PluginError)
        google.tokens.clear()
        assert isinstance(answers(found, "gcp-sm:db")[0], BackendAuthError)
        assert not isinstance(answers(found, "gcp-sm:db")[0], PluginError)


class TestChecksums:
    def test_a_value_that_does_not_match_its_own_is_refused(
        self, google: FakeSecretManager, environ: dict[str, str]
    ) -> None:
        google.hold("db", b"x")
        payload = {"data": "eQ==", "dataCrc32c": str(crc32c(b"x"))}
        answer = {"name": "projects/1/secrets/db/versions/1", "payload": payload}
        google.rule = lambda asked: Reply(200, answer) if asked.path.endswith(":access") else None
        refused(environ, "gcp-sm:db", UnavailableError, "checksum")


class TestDoctor:
    def test_names_the_login_and_the_project(self, keyed: dict[str, str]) -> None:
        health = registry(keyed).check("source", "gcp-sm")
        assert (health.ok, PROJECT in health.detail, "handover@" in health.detail) == (
            True,
            True,
            True,
        )

    def test_a_login_that_may_not_list_may_still_read(
        self, google: FakeSecretManager, environ: dict[str, str]
    ) -> None:
        google.rule = lambda asked: (
            Reply(403, json.dumps({"error": {}})) if "pageSize" in asked.target else None
        )
        health = registry(environ).check("sink", "gcp-sm")
        assert health.ok
        assert "may not list" in health.detail

    def test_needs_no_project(self, environ: dict[str, str]) -> None:
        del environ["GOOGLE_CLOUD_PROJECT"]
        assert (
            "no project is set"
            in registry({**environ, f"{DEFAULT}TIMEOUT": "3"}).check("source", "gcp-sm").detail
        )
