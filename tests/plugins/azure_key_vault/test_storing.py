"""What the sink azure-kv leaves in a vault, however others write and whatever is lost on the
way.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from plugins.azure_key_vault.fake_key_vault import FakeKeyVault
from sealpipe.errors import (
    AccessDeniedError,
    PluginError,
    ReferenceValueError,
    UnsupportedError,
    WriteConflictError,
)
from sealpipe_plugins.azure_key_vault.sink import TAG
from support.backends import SECRET, at_once, put, put_refused, values
from support.fake_web import Reply, first, meanwhile


def is_call(method: str) -> Any:
    return lambda asked: asked.method == method and "authorization" in asked.headers


def members(azure: FakeKeyVault, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(azure.newest(name))
    return found


def markers(azure: FakeKeyVault, name: str) -> list[str]:
    return azure.tags(name).get(TAG, "").split()


class TestWhatIsStored:
    def test_the_source_reads_it_under_the_same_reference(self, environ: dict[str, str]) -> None:
        put(environ, "azure-kv:acme", {"user": "é", "a.b/c": ' "\\\n'})
        assert values(environ, "azure-kv:acme#user,a.b/c") == ["é".encode(), b' "\\\n']

    @pytest.mark.parametrize("value", [b"\xff", b"", b"x" * 25601])
    def test_what_a_vault_does_not_store_is_refused_before_a_call(
        self, value: bytes, azure: FakeKeyVault, environ: dict[str, str]
    ) -> None:
        put_refused(environ, "azure-kv:db", {"": value}, UnsupportedError, "azure-kv:db")
        assert azure.asked == []

    def test_a_merge_keeps_members_tags_and_content_type(
        self, azure: FakeKeyVault, environ: dict[str, str]
    ) -> None:
        azure.hold(
            "db", '{ "n": 1.10,\n "pw":"old" }', tags={"team": "a"}, contentType="application/json"
        )
        put(environ, "azure-kv:db", {"pw": "new"}, "merge")
        assert azure.newest("db") == '{ "n": 1.10,\n "pw":"new" }'
        assert azure.tags("db") == {"team": "a", TAG: "m1"}
        assert azure.secrets["db"].versions[-1]["contentType"] == "application/json"

    def test_equal_content_only_gets_the_tag(
        self, azure: FakeKeyVault, environ: dict[str, str]
    ) -> None:
        azure.hold("db", '{"a": "x"}', tags={"team": "a"})
        assert put(environ, "azure-kv:db", {"a": "x"}).already
        assert (len(azure.secrets["db"].versions), azure.tags("db")) == (
            1,
            {"team": "a", TAG: "m1"},
        )

    def test_values_with_and_without_a_key_do_not_mix(
        self, azure: FakeKeyVault, environ: dict[str, str]
    ) -> None:
        put_refused(
            environ, "azure-kv:db", {"": "x", "a": "y"}, ReferenceValueError, "cannot be mixed"
        )
        azure.hold("text", "text")
        put_refused(
            environ,
            "azure-kv:text",
            {"a": SECRET},
            WriteConflictError,
            "has a value without keys",
            "merge",
        )

    def test_a_deleted_secret_keeps_its_name(
        self, azure: FakeKeyVault, environ: dict[str, str]
    ) -> None:
        azure.hold("gone", "x").deleted = True
        put_refused(
            environ,
            "azure-kv:gone",
            {"a": SECRET},
            WriteConflictError,
            "is deleted and can be recovered",
        )

    def test_a_login_is_told_which_permission_it_lacks(
        self, azure: FakeKeyVault, environ: dict[str, str]
    ) -> None:
        azure.hold("db", '{"a": "x"}')
        for permission, value, method in (
            ("get", "x", "GET"),
            ("set", "y", "PUT"),
            ("set", "x", "PATCH"),
        ):
            azure.rule = first(is_call(method), Reply(403, {}))
            words = f"secrets/{permission}"
            put_refused(environ, "azure-kv:db", {"a": value}, AccessDeniedError, words, "merge")


class TestAtTheSameMoment:
    def test_merges_that_do_not_cross_lose_nothing(
        self, azure: FakeKeyVault, environ: dict[str, str]
    ) -> None:
        theirs = meanwhile(partial(azure.add, "db", '{"theirs": "2"}'), after=True)
        azure.rule = first(is_call("PUT"), theirs)
        azure.hold("db", '{"a": "1"}')
        put(environ, "azure-kv:db", {"ours": "3"}, "merge")
        assert members(azure, "db") == {"theirs": "2", "ours": "3"}
        assert markers(azure, "db") == ["m1"]

    def test_a_create_that_is_overtaken_is_a_conflict(
        self, azure: FakeKeyVault, environ: dict[str, str]
    ) -> None:
        azure.rule = first(
            is_call("PUT"), meanwhile(partial(azure.add, "db", '{"a": "2"}'), after=True)
        )
        put_refused(environ, "azure-kv:db", {"a": SECRET}, WriteConflictError, "other content")
        assert members(azure, "db") == {"a": "2"}

    def test_of_many_writers_each_ends(self, azure: FakeKeyVault, environ: dict[str, str]) -> None:
        found = at_once(
            *(
                partial(put, environ, "azure-kv:db", {"a": str(n)}, "replace", f"m{n}")
                for n in range(4)
            )
        )
        assert [each for each in found if isinstance(each, PluginError)] == []
        assert members(azure, "db")["a"] in {str(n) for n in range(4)}
