"""What can be read: key-value engines of both versions, mounts, namespaces, numbers as they are
spelled.
"""

from __future__ import annotations

import secrets

import pytest

from plugins.vault.conftest import Registries
from plugins.vault.storing import values
from sealpipe.errors import SecretNotFoundError, UnsupportedError
from sealpipe.registry import Registry
from support.backends import failed
from support.fake_web import FrontDoor
from support.openbao import Bao


def test_a_versioned_key_gives_its_newest_values(root: Registry) -> None:
    assert values(root, "vault:secret/app/db#password", "vault:secret/app/db#user") == [
        "s3cret",
        "app",
    ]


def test_a_key_of_an_engine_without_versions_is_read_the_same_way(root: Registry) -> None:
    assert values(root, "vault:kv1/a#x") == ["one"]
    assert isinstance(failed(root, "vault:kv1/a?version=1"), UnsupportedError)


def test_slashes_around_a_path_mean_nothing(root: Registry) -> None:
    assert values(root, "vault:/secret/app/db/#user", "vault://secret/app/db#user") == [
        "app",
        "app",
    ]


def test_an_engine_that_stands_deep_is_found_or_named(root: Registry) -> None:
    assert values(root, "vault:deep/mount/a/b#x", "vault:a/b?mount=deep/mount#x") == [
        "deep",
        "deep",
    ]


def test_a_version_is_read_whatever_came_after_it(root: Registry, bao: Bao) -> None:
    path = f"secret/data/versions/{secrets.token_hex(4)}"
    for value in ("first", "second", "third", "fourth"):
        bao.call("POST", path, {"data": {"x": value}})
    bao.call("POST", path.replace("data", "delete", 1), {"versions": [2]})
    bao.call("PUT", path.replace("data", "destroy", 1), {"versions": [3]})
    ref = "vault:" + path.replace("data/", "", 1)
    assert values(root, f"{ref}?version=1#x", f"{ref}#x") == ["first", "fourth"]
    assert "version 2 is deleted" in failed(root, f"{ref}?version=2").message
    assert "version 3 is destroyed" in failed(root, f"{ref}?version=3").message
    assert "not in this version" in failed(root, f"{ref}?version=9").message
    assert {type(failed(root, f"{ref}?version={n}")) for n in (2, 3, 9)} == {SecretNotFoundError}


def test_a_key_whose_newest_version_is_deleted_says_so(root: Registry, bao: Bao) -> None:
    bao.call("POST", "secret/data/gone", {"data": {"x": "1"}})
    bao.call("DELETE", "secret/data/gone")
    found = failed(root, "vault:secret/gone")
    assert isinstance(found, SecretNotFoundError)
    assert "version 1 is deleted" in found.message
    assert "undelete" in found.remedy


def test_a_namespace_is_that_of_the_reference_else_of_the_settings(
    bao: Bao, registry_of: Registries
) -> None:
    bao.call("POST", "sys/namespaces/team")
    bao.call("POST", "sys/mounts/kv", {"type": "kv", "options": {"version": "2"}}, namespace="team")
    bao.call("POST", "kv/data/a", {"data": {"x": "the team's"}}, namespace="team")
    bao.call("POST", "sys/mounts/kv", {"type": "kv", "options": {"version": "1"}})
    bao.call("POST", "kv/a", {"x": "the root's"})
    at_root = registry_of({"VAULT_TOKEN": bao.root})
    assert values(at_root, "vault:kv/a#x", "vault:kv/a?namespace=team#x") == [
        "the root's",
        "the team's",
    ]
    in_team = registry_of({"VAULT_TOKEN": bao.root, "VAULT_NAMESPACE": "team/"})
    assert values(in_team, "vault:kv/a#x", "vault:kv/a?namespace=root#x") == [
        "the team's",
        "the root's",
    ]
    found = failed(at_root, "vault:kv/a?namespace=nobody")
    assert isinstance(found, SecretNotFoundError)
    assert "no namespace nobody" in found.message


def test_numbers_keep_the_spelling_that_vault_has_and_nested_values_their_form(
    root: Registry, bao: Bao
) -> None:
    bao.call(
        "POST",
        "kv1/numbers",
        {"big": 12345678901234567890123, "float": 0.1, "deep": {"list": [{"x": "in"}]}},
    )
    assert values(root, "vault:kv1/numbers#big,float") == ["12345678901234567890123", "0.1"]
    assert values(root, "vault:kv1/numbers#/deep/list/0/x") == ["in"]


@pytest.mark.parametrize(
    "path", ["with blank/Ümläut", "a+b&c=d", "semi;colon", "percent%25sign", "quest%3Fion"]
)
def test_odd_paths_are_read_as_they_are_written(root: Registry, bao: Bao, path: str) -> None:
    from urllib.parse import quote, unquote

    bao.call("POST", f"secret/data/{quote(unquote(path))}", {"data": {"x": "odd"}})
    assert values(root, f"vault:secret/{path}#x") == ["odd"]


def test_forty_references_look_up_their_mount_once(
    registry_of: Registries, bao: Bao, front: FrontDoor
) -> None:
    for number in range(40):
        bao.call("POST", f"kv1/many/{number}", {"a": f"a{number}", "b": "b"})
    registry = registry_of({"VAULT_ADDR": front.base_url, "VAULT_TOKEN": bao.root})
    refs = [f"vault:kv1/many/{number}#a" for number in range(40)]
    assert values(registry, *refs, *refs, *[ref.replace("#a", "#b") for ref in refs])[:40] == [
        f"a{number}" for number in range(40)
    ]
    assert len(front.asked) == 41
    assert [target for target in front.targets if "internal" in target] == front.targets[:1]


def test_a_path_that_can_only_be_written_says_so(root: Registry, bao: Bao) -> None:
    bao.call("POST", "sys/mounts/transit", {"type": "transit"})
    assert isinstance(
        failed(root, "vault:transit/encrypt/key"), UnsupportedError | SecretNotFoundError
    )


def test_doctor_tells_who_answers_and_what_the_token_may(bao: Bao, registry_of: Registries) -> None:
    health = registry_of({"VAULT_TOKEN": bao.token("app", ttl="1h")}).check("source", "vault")
    assert health.ok
    assert "2." in health.detail
    assert "policies app, default" in health.detail
