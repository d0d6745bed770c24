"""What can go wrong while the vault sink stores: kills, lost answers, missing rights, a Vault in
trouble.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from plugins.vault.conftest import Registries
from plugins.vault.storing import marks, newest, place, put, refusal, rights, versions
from sealpipe.errors import (
    AccessDeniedError,
    BackendAuthError,
    PluginError,
    UnavailableError,
    UnsupportedError,
    WriteConflictError,
)
from sealpipe.registry import Registry
from sealpipe_plugins.vault import writing
from support.fake_web import (
    Asked,
    FakeWeb,
    FrontDoor,
    Reply,
    first,
)
from support.openbao import Bao, server


@pytest.fixture
def through(registry_of: Registries, bao: Bao, front: FrontDoor) -> Registry:
    """A registry behind the front, whose token may do all."""
    return registry_of({"VAULT_ADDR": front.base_url, "VAULT_TOKEN": bao.root})


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks follow each other without a pause."""
    monkeypatch.setattr(writing, "READ_DELAYS", (0.0, 0.0))


def is_write(asked: Asked) -> bool:
    return asked.method == "POST" and "/metadata/" not in asked.target


def test_a_lost_answer_is_found_though_another_has_written_since(
    through: Registry, bao: Bao, front: FrontDoor
) -> None:
    body = place()

    def rotated(_: FakeWeb, asked: Asked) -> None:
        front.answer(asked)
        bao.call("POST", body.replace("/", "/data/", 1), {"data": {"x": "rotated"}})

    front.rule = first(is_write, rotated)
    receipt = put(through, body, {"x": "1"}, "replace")
    assert (receipt.version, newest(bao, body), marks(bao, body)) == ("1", {"x": "rotated"}, ["m1"])


def test_a_standby_that_is_behind_is_waited_for(
    through: Registry, bao: Bao, front: FrontDoor
) -> None:
    body = place()
    front.rule = first(lambda asked: "version=1" in asked.target, Reply(404, {"errors": []}))
    assert put(through, body, {"x": "1"}).version == "1"
    assert sum("version=1" in target for target in front.targets) == 2
    assert marks(bao, body) == ["m1"]


def test_a_value_that_does_not_read_back_is_reported(
    through: Registry, bao: Bao, front: FrontDoor
) -> None:
    def changes(asked: Asked) -> Reply:
        reply = front.answer(asked)
        return Reply(reply.status, reply.body.replace(b"s3cret", b"s3cre?"))

    front.rule = lambda asked: changes(asked) if "version=1" in asked.target else None
    body = place()
    found = refusal(through, body, {"x": "s3cret"})
    assert type(found) is PluginError
    assert "is not the one that was stored" in found.message
    assert "s3cre" not in repr(vars(found))
    assert marks(bao, body) == []


def old(front: FrontDoor, asked: Asked) -> Reply:
    """A Vault from before there was custom metadata: it takes no PATCH, and drops what it does not
    know.
    """
    if asked.method == "PATCH":
        return Reply(405, b'{"errors":["1 error occurred:\\n\\t* unsupported operation\\n\\n"]}')
    if asked.method == "POST" and "/metadata/" in asked.target:
        return Reply(204, b"")
    reply = front.answer(asked)
    if "/sys/" in asked.target:
        return reply
    found = json.loads(reply.body)
    for kept in (found.get("data") or {}, (found.get("data") or {}).get("metadata") or {}):
        for name in ("custom_metadata", "current_metadata_version"):
            kept.pop(name, None)
    return Reply(reply.status, found)


def test_a_vault_from_before_there_was_custom_metadata_stores_without_a_mark(
    through: Registry, bao: Bao, front: FrontDoor
) -> None:
    front.rule = lambda asked: old(front, asked)
    body = place()
    assert not put(through, body, {"x": "1"}).already
    assert put(through, body, {"x": "1"}).already
    assert isinstance(refusal(through, body, {"x": "2"}), WriteConflictError)
    assert versions(bao, body) == 1


def test_without_check_and_set_for_metadata_a_mark_that_another_wrote_over_is_set_again(
    through: Registry, bao: Bao, front: FrontDoor
) -> None:
    body, met = place(), []

    def as_vault_does(asked: Asked) -> Reply | None:
        if "/metadata/" not in asked.target:
            return None
        reply = front.answer(asked)
        if asked.method == "PATCH" and not met:
            met.append("once")
            bao.call(
                "POST",
                body.replace("/", "/metadata/", 1),
                {"custom_metadata": {"sealpipe": "theirs"}},
            )
        return Reply(
            reply.status, reply.body.replace(b"current_metadata_version", b"nothing_that_vault_has")
        )

    front.rule = as_vault_does
    put(through, body, {"x": "1"})
    assert met
    assert marks(bao, body) == ["theirs", "m1"]


@pytest.mark.parametrize("status", [403, 405, 501])
def test_where_a_proxy_lets_no_patch_through_the_mark_is_written_another_way(
    through: Registry, bao: Bao, front: FrontDoor, status: int
) -> None:
    front.rule = lambda asked: Reply(status, b"") if asked.method == "PATCH" else None
    body = place()
    put(through, body, {"x": "1"})
    assert marks(bao, body) == ["m1"]


DENIED = {
    "read": ({"data": "create update"}, "secret"),
    "create": ({"data": "read update"}, "secret"),
    "update": ({"data": "create read"}, "secret"),
    "kv1 read": ({"kv1": "create update"}, "kv1"),
    "kv1 create": ({"kv1": "read update"}, "kv1"),
    "kv1 update": ({"kv1": "create read"}, "kv1"),
}


@pytest.mark.parametrize("lacking", DENIED)
def test_each_right_that_lacks_is_named_with_its_path_and_the_line_of_the_policy(
    registry_of: Registries, root: Registry, bao: Bao, lacking: str
) -> None:
    given, mount = DENIED[lacking]
    body, right = place(mount), lacking.split()[-1]
    if right == "update":
        put(root, body, {"old": "1"})
    found = refusal(registry_of({"VAULT_TOKEN": rights(bao, **given)}), body, {"x": "1"}, "merge")
    path = body.replace("secret/", "secret/data/")
    assert isinstance(found, AccessDeniedError)
    assert f"the token has no permission to {right} {path}" in found.message
    assert found.locator == f"vault:{body}"
    wanted = '["read"]' if right == "read" else '["create", "read", "update"]'
    assert found.remedy == f'its policy needs: path "{path}" {{ capabilities = {wanted} }}'


def test_a_token_that_is_none_is_another_matter(registry_of: Registries) -> None:
    found = refusal(registry_of({"VAULT_TOKEN": "none"}), place(), {"x": "1"})
    assert isinstance(found, BackendAuthError)


@pytest.fixture
def sealed(tmp_path: Path) -> Iterator[Bao]:
    with server(tmp_path, unsealed=False) as bao:
        yield bao


def test_a_sealed_vault_says_so(registry_of: Registries, sealed: Bao) -> None:
    found = refusal(
        registry_of({"VAULT_ADDR": sealed.addr, "VAULT_TOKEN": "x"}), place(), {"x": "1"}
    )
    assert isinstance(found, UnavailableError)
    assert "Vault is sealed" in found.message


REFUSED = {
    413: (
        b'{"errors":["http: request body too large"]}',
        UnsupportedError,
        "too large for this Vault",
    ),
    500: (
        b'{"errors":["put failed due to value being too large"]}',
        UnsupportedError,
        "too large for this Vault",
    ),
    405: (b'{"errors":["unsupported operation"]}', UnsupportedError, "cannot write this path"),
    400: (
        b'{"errors":["Upgrading from non-versioned to versioned data."]}',
        UnavailableError,
        "still upgrading",
    ),
    422: (
        b'{"errors":["s3cret is not liked"]}',
        PluginError,
        "Vault rejects the request as invalid",
    ),
}


@pytest.mark.parametrize("status", REFUSED)
def test_each_refusal_of_a_write_reads_differently_and_quotes_nothing(
    through: Registry, front: FrontDoor, status: int
) -> None:
    said, kind, words = REFUSED[status]
    front.rule = lambda asked: Reply(status, said) if is_write(asked) else None
    found = refusal(through, place(), {"x": "s3cret"})
    assert type(found) is kind
    assert words in found.message
    assert "s3cret" not in repr(vars(found)) + repr(found.__context__)


@pytest.mark.usefixtures("impatient")
def test_a_fault_of_vaults_own_that_stored_all_the_same_is_seen(
    through: Registry, bao: Bao, front: FrontDoor
) -> None:
    body = place()

    def stored(_: FakeWeb, asked: Asked) -> Reply:
        front.answer(asked)
        return Reply(502, b"")

    front.rule = first(is_write, stored)
    assert put(through, body, {"x": "1"}).version == "1"
    assert versions(bao, body) == 1


def test_check_neither_reads_nor_stores(through: Registry, front: FrontDoor) -> None:
    health = through.check("sink", "vault")
    assert health.ok
    assert "policies root" in health.detail
    assert {asked.method for asked in front.asked} == {"GET"}
    assert all("/secret/" not in target for target in front.targets)
