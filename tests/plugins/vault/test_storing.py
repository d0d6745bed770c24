"""What the vault sink stores: versions, marks, other keys, other writers."""

from __future__ import annotations

import http.client
import itertools
from functools import partial

import pytest

from plugins.vault.conftest import Registries
from plugins.vault.storing import (
    marks,
    metadata,
    newest,
    place,
    put,
    refusal,
    rights,
    values,
    versions,
)
from sealpipe.errors import (
    ReferenceValueError,
    SecretNotFoundError,
    UnavailableError,
    UnsupportedError,
    WriteConflictError,
)
from sealpipe.plugin import Mode
from sealpipe.reference import parse
from sealpipe.registry import Registry
from sealpipe.registry.sinks import describe_write
from support.fake_web import Asked, FrontDoor, first, meanwhile
from support.openbao import Bao


def raw(bao: Bao, method: str, path: str, body: str | None = None) -> str:
    """A call as it is on the wire: what a number is spelled like is lost in Python's own types."""
    line = http.client.HTTPConnection("127.0.0.1", bao.port, timeout=30)
    try:
        line.request(method, f"/v1/{path}", body, {"X-Vault-Token": bao.root})
        answer = line.getresponse()
        text = answer.read().decode()
    finally:
        line.close()
    assert answer.status < 300, text
    return text


def custom(bao: Bao, body: str, **members: str) -> None:
    bao.call("POST", body.replace("/", "/metadata/", 1), {"custom_metadata": members})


@pytest.mark.parametrize("mount", ["secret", "kv1", "deep/mount"])
def test_the_source_reads_back_what_the_sink_stored_under_the_same_reference(
    root: Registry, mount: str
) -> None:
    body = place(mount)
    put(root, body, {"password": " s3cret \n", "#/%": "odd"})
    assert values(root, f"vault:{body}#password", f"vault:{body}#%23%2F%25") == [
        " s3cret \n",
        "odd",
    ]


def test_a_mount_that_is_named_is_stored_in_and_read_from(root: Registry) -> None:
    body = place("deep/mount")
    put(root, f"{body.removeprefix('deep/mount/')}?mount=deep/mount", {"x": "1"})
    assert values(root, f"vault:{body}#x") == ["1"]


def test_a_submission_is_one_version_with_its_mark_in_the_custom_metadata(
    root: Registry, bao: Bao
) -> None:
    body = place()
    assert put(root, body, {"x": "1"}).version == "1"
    assert (versions(bao, body), marks(bao, body)) == (1, ["m1"])
    again = put(root, body, {"x": "1"})
    assert (again.version, again.already, versions(bao, body)) == ("1", True, 1)


def test_a_new_key_is_stored_in_six_calls_and_looked_up_in_two(
    registry_of: Registries, bao: Bao, front: FrontDoor
) -> None:
    body = place()
    registry = registry_of({"VAULT_ADDR": front.base_url, "VAULT_TOKEN": bao.root})
    put(registry, body, {"x": "1"})
    assert [asked.method for asked in front.asked] == ["GET", "GET", "POST", "GET", "GET", "PATCH"]
    front.asked.clear()
    put(registry, body, {"x": "1"})
    assert [asked.method for asked in front.asked] == ["GET"], "the mount is known by now"


def test_equal_content_without_the_mark_is_marked_and_makes_no_version(
    root: Registry, bao: Bao
) -> None:
    body = place()
    bao.call("POST", body.replace("/", "/data/", 1), {"data": {"x": "1"}})
    receipt = put(root, body, {"x": "1"})
    assert (receipt.already, receipt.version, versions(bao, body), marks(bao, body)) == (
        True,
        "1",
        1,
        ["m1"],
    )


def test_submissions_that_are_merged_into_one_place_are_all_marked_there(
    root: Registry, bao: Bao
) -> None:
    body = place()
    for number in range(3):
        put(root, body, {f"k{number}": "v"}, "merge", f"m{number}")
    assert newest(bao, body) == {"k0": "v", "k1": "v", "k2": "v"}
    assert marks(bao, body) == ["m0", "m1", "m2"]
    bao.call(
        "POST", body.replace("/", "/data/", 1), {"data": {"k0": "rotated", "k1": "v", "k2": "v"}}
    )
    assert put(root, body, {"k0": "v"}, "replace", "m0").already
    assert newest(bao, body)["k0"] == "rotated"


def test_the_oldest_marks_go_where_vaults_limit_is_reached(root: Registry, bao: Bao) -> None:
    body = place()
    names = [f"{number:02}".ljust(80, "x") for number in range(9)]
    for name in names:
        put(root, body, {"x": name}, "replace", name)
    assert marks(bao, body) == names[-6:], (
        "six of 80 with the blanks between them are 485 bytes of 512"
    )


def test_other_custom_metadata_and_settings_stay(registry_of: Registries, bao: Bao) -> None:
    allowed = {"patch": "read patch", "update": "read create update", "patch without read": "patch"}
    for words in allowed.values():
        body = place()
        bao.call(
            "POST",
            body.replace("/", "/metadata/", 1),
            {"custom_metadata": {"owner": "team"}, "max_versions": 7},
        )
        token = rights(bao, data="create read update", metadata=words)
        put(registry_of({"VAULT_TOKEN": token}), body, {"x": "1"})
        found = metadata(bao, body)
        assert (found["custom_metadata"], found["max_versions"]) == (
            {"owner": "team", "sealpipe": "m1"},
            7,
        ), words


def test_concurrently_changed_metadata_is_read_again(
    registry_of: Registries, bao: Bao, front: FrontDoor
) -> None:
    for words, method in (("read patch", "PATCH"), ("read create update", "POST")):
        body, met = place(), []

        def theirs(body: str = body, met: list[str] = met) -> None:
            met.append("once")
            custom(bao, body, sealpipe="theirs", owner="team")

        fits = partial(lambda m, asked: asked.method == m and "/metadata/" in asked.target, method)
        front.rule = first(fits, meanwhile(theirs))
        token = rights(bao, data="create read update", metadata=words)
        put(registry_of({"VAULT_ADDR": front.base_url, "VAULT_TOKEN": token}), body, {"x": "1"})
        assert metadata(bao, body)["custom_metadata"] == {"owner": "team", "sealpipe": "theirs m1"}
        assert met


@pytest.mark.parametrize("metadata_rights", ["deny", "read"])
def test_without_a_right_to_the_metadata_it_is_stored_and_equal_content_decides(
    registry_of: Registries, bao: Bao, metadata_rights: str
) -> None:
    body = place()
    registry = registry_of(
        {"VAULT_TOKEN": rights(bao, data="create read update", metadata=metadata_rights)}
    )
    assert not put(registry, body, {"x": "1"}).already
    assert put(registry, body, {"x": "1"}).already
    assert (versions(bao, body), marks(bao, body)) == (1, [])
    bao.call("POST", body.replace("/", "/data/", 1), {"data": {"x": "rotated"}})
    assert isinstance(refusal(registry, body, {"x": "1"}), WriteConflictError)
    assert not put(registry, body, {"x": "1"}, "replace").already, "what the page warns of"


def test_where_check_and_set_is_required_it_is_given(registry_of: Registries, bao: Bao) -> None:
    for words, marked in (("read patch", ["m1"]), ("patch", [])):
        body = place()
        required = {"cas_required": True, "metadata_cas_required": True}
        bao.call("POST", body.replace("/", "/metadata/", 1), required)
        token = rights(bao, data="create read update", metadata=words)
        put(registry_of({"VAULT_TOKEN": token}), body, {"x": "1"})
        assert (newest(bao, body), marks(bao, body)) == ({"x": "1"}, marked)


def test_where_the_custom_metadata_is_full_it_is_stored_without_a_mark(
    root: Registry, bao: Bao
) -> None:
    body = place()
    custom(bao, body, **{f"k{number}": "v" for number in range(64)})
    assert not put(root, body, {"x": "1"}).already
    assert put(root, body, {"x": "1"}).already
    assert len(metadata(bao, body)["custom_metadata"]) == 64


@pytest.mark.parametrize("gone", ["delete", "destroy"])
def test_a_newest_version_that_is_gone_counts_as_nothing_and_keeps_its_number(
    root: Registry, bao: Bao, gone: str
) -> None:
    body = place()
    put(root, body, {"x": "1"})
    bao.call("PUT", body.replace("/", f"/{gone}/", 1), {"versions": [1]})
    receipt = put(root, body, {"x": "1"}, "create", "m2")
    assert (receipt.version, receipt.already, newest(bao, body)) == ("2", False, {"x": "1"})
    assert marks(bao, body) == ["m1", "m2"]


def test_a_key_that_has_metadata_and_no_version_yet_is_stored(root: Registry, bao: Bao) -> None:
    body = place()
    custom(bao, body, owner="team")
    assert put(root, body, {"x": "1"}).version == "1"


@pytest.mark.parametrize("mount", ["secret", "kv1"])
def test_merging_leaves_other_keys_as_they_are_to_the_letter(
    root: Registry, bao: Bao, mount: str
) -> None:
    body = place(mount)
    path = body.replace("/", "/data/", 1) if mount == "secret" else body
    there = '{"deep":{"list":[1,2.5,null,true,{"n":1e+21}]},"n":12345678,"text":"5"}'
    raw(bao, "POST", path, f'{{"data":{there}}}' if mount == "secret" else there)
    before = raw(bao, "GET", path)
    put(root, body, {"new": "1"}, "merge")
    after = raw(bao, "GET", path)
    start = before.index('{"deep"')
    kept = before[start : before.index('"text":"5"}') + len('"text":"5"')]
    assert kept.replace('"text"', '"new":"1","text"') in after


def test_a_number_is_not_the_text_that_reads_the_same(root: Registry, bao: Bao) -> None:
    body = place()
    bao.call("POST", body.replace("/", "/data/", 1), {"data": {"x": 5}})
    assert isinstance(refusal(root, body, {"x": "5"}), WriteConflictError)
    put(root, body, {"x": "5"}, "merge")
    assert newest(bao, body) == {"x": "5"}


def test_writes_against_an_endless_writer_end(
    registry_of: Registries, bao: Bao, front: FrontDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sealpipe_plugins.confirm.MAX_BACKOFF", 0.0)
    body, numbers = place(), itertools.count()

    def writes(asked: Asked) -> None:
        if asked.method == "POST" and "/data/" in asked.target:
            theirs = {"theirs": str(next(numbers))}
            bao.call("POST", body.replace("/", "/data/", 1), {"data": theirs})

    front.rule = writes
    registry = registry_of({"VAULT_ADDR": front.base_url, "VAULT_TOKEN": bao.root})
    found = refusal(registry, body, {"ours": "1"}, "merge")
    assert isinstance(found, UnavailableError)
    assert "other writers keep changing it" in found.message
    assert "ours" not in newest(bao, body)


def test_a_namespace_is_that_of_the_target_else_of_the_settings(
    registry_of: Registries, bao: Bao
) -> None:
    bao.call("POST", "sys/namespaces/storing")
    bao.call(
        "POST", "sys/mounts/kv", {"type": "kv", "options": {"version": "2"}}, namespace="storing"
    )
    put(registry_of({"VAULT_TOKEN": bao.root}), "kv/a?namespace=storing", {"x": "1"})
    put(registry_of({"VAULT_TOKEN": bao.root, "VAULT_NAMESPACE": "storing"}), "kv/b", {"x": "2"})
    assert newest(bao, "kv/a", namespace="storing") == {"x": "1"}
    assert metadata(bao, "kv/b", namespace="storing")["custom_metadata"] == {"sealpipe": "m1"}
    assert isinstance(
        refusal(registry_of({"VAULT_TOKEN": bao.root}), "kv/a?namespace=nowhere", {"x": "1"}),
        SecretNotFoundError,
    )


def test_only_a_key_value_engine_is_stored_in(root: Registry, bao: Bao) -> None:
    bao.call("POST", "sys/mounts/keys", {"type": "transit"})
    ends = refusal(root, "cubbyhole/a", {"x": "1"})
    other = refusal(root, "keys/a", {"x": "1"})
    assert (type(ends), type(other)) == (UnsupportedError, UnsupportedError)
    assert "private to its token" in ends.message
    assert "not a key-value engine" in other.message
    assert isinstance(refusal(root, "nowhere/a", {"x": "1"}), SecretNotFoundError)


@pytest.mark.parametrize("value", [b"\xff\xfe", "\ud800"])
def test_a_value_that_is_not_utf_8_is_refused_with_what_to_do(
    root: Registry, value: str | bytes
) -> None:
    found = refusal(root, place(), {"x": value})
    assert isinstance(found, UnsupportedError)
    assert "decode=base64" in found.remedy


def test_a_value_without_a_key_is_refused_with_what_to_do(root: Registry) -> None:
    found = refusal(root, place(), {"": "1"})
    assert isinstance(found, ReferenceValueError)
    assert "#password=PROMPT" in found.remedy


def test_the_apis_path_is_not_taken_for_a_keys(root: Registry, bao: Bao) -> None:
    assert isinstance(refusal(root, "secret/data/storing/a", {"x": "1"}), ReferenceValueError)
    bao.call("POST", "secret/data/data/there", {"data": {"x": "1"}})
    put(root, "secret/data/there", {"y": "2"}, "merge")
    assert newest(bao, "secret/data/there") == {"x": "1", "y": "2"}, "somebody means it"


@pytest.mark.parametrize("body", ["secret", "secret//a", "secret/../a", "", "a?mount="])
def test_a_target_that_cannot_be_is_refused_before_anybody_is_asked(
    registry_of: Registries, body: str
) -> None:
    registry = registry_of({"VAULT_ADDR": "http://127.0.0.1:9", "VAULT_TOKEN": "x"})
    with pytest.raises(ReferenceValueError):
        describe_write(registry, "vault", registry.locate(parse(f"vault:{body}"), "sink"), "create")
    assert isinstance(refusal(registry, body, {"x": "1"}), ReferenceValueError)


def test_a_planned_write_is_described(registry_of: Registries) -> None:
    registry = registry_of({"VAULT_ADDR": "http://127.0.0.1:9", "VAULT_TOKEN": "x"})
    locator = registry.locate(parse("vault:a/b?namespace=team&mount=kv"), "sink")
    modes: tuple[Mode, ...] = ("create", "replace", "merge")
    told = [describe_write(registry, "vault", locator, mode) for mode in modes]
    assert told == [
        "store kv/a/b in Vault at 127.0.0.1:9 if it does not exist (namespace team)",
        "store kv/a/b in Vault at 127.0.0.1:9, replacing all its keys (namespace team)",
        "store keys of kv/a/b in Vault at 127.0.0.1:9, and keep its other keys (namespace team)",
    ]
