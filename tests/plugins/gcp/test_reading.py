"""gcp-sm:PROJECT/SECRET: references, versions, checksums, and what Google refuses."""

from __future__ import annotations

import json

import pytest

from plugins.gcp.conftest import DEFAULT
from plugins.gcp.fake_secret_manager import NUMBER, PROJECT, FakeSecretManager
from sealpipe.errors import (
    BackendAuthError,
    PluginError,
)
from support.backends import answers, registry, values
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


def test_fifty_secrets_need_one_login(google: FakeSecretManager, environ: dict[str, str]) -> None:
    for number in range(50):
        google.hold(f"s{number}", str(number).encode())
    found = answers(registry(environ), *(f"gcp-sm:s{number}" for number in range(50)))
    assert [getattr(each, "content", each) for each in found] == [
        str(number) for number in range(50)
    ]
    assert [asked.path == "/token" for asked in google.asked].count(True) == 1
    assert len(google.asked) == 51


def test_a_token_that_is_refused_is_not_used_again(
    google: FakeSecretManager, environ: dict[str, str]
) -> None:
    google.hold("db", b"x")
    found = registry(environ)
    assert not isinstance(answers(found, "gcp-sm:db")[0], PluginError)
    google.tokens.clear()
    assert isinstance(answers(found, "gcp-sm:db")[0], BackendAuthError)
    assert not isinstance(answers(found, "gcp-sm:db")[0], PluginError)


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
