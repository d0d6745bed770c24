"""op://Vault/Item#field=PROMPT: a Connect server by a fake on a real socket, a service account by
the SDK's types.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.onepassword.fake_op_connect import FakeConnect, made_id
from sealpipe.errors import (
    AccessDeniedError,
    BackendAuthError,
    ReferenceValueError,
    SecretNotFoundError,
    UnavailableError,
    WriteConflictError,
)
from sealpipe_plugins.onepassword.changes import plan_changes, read_item
from sealpipe_plugins.onepassword.items import all_values, parse_item
from support.backends import put, put_refused, value_of, values
from support.fake_web import Asked, Reply
from support.parts import library

TOKEN, READER = "Canary-token-90aa", "Canary-token-7be1"
VALUE = "canary-in-an-item-5f1e"
SECTION = made_id(7, "s")


@pytest.fixture
def fake() -> Iterator[FakeConnect]:
    with FakeConnect() as server:
        server.vault("Prod", TOKEN, READER)
        server.read_only.add(READER)
        yield server


def environ(fake: FakeConnect, token: str = TOKEN) -> dict[str, str]:
    return {"OP_CONNECT_HOST": fake.base_url, "OP_CONNECT_TOKEN": token}


def held(fake: FakeConnect, title: str) -> dict[str, str]:
    (item,) = [each for each in fake.items.values() if each["title"] == title]
    return all_values(parse_item(item))


def filled(fake: FakeConnect, title: str = "db") -> Any:
    """An item with all that an item can have."""
    fields = [
        {
            "id": "username",
            "type": "STRING",
            "purpose": "USERNAME",
            "label": "username",
            "value": "app",
        },
        {
            "id": "password",
            "type": "CONCEALED",
            "purpose": "PASSWORD",
            "label": "password",
            "value": "old",
        },
        {
            "id": "notesPlain",
            "type": "STRING",
            "purpose": "NOTES",
            "label": "notesPlain",
            "value": "a note",
        },
        {"id": made_id(1, "f"), "label": "password", "value": "root's", "section": {"id": SECTION}},
        {"id": made_id(2, "f"), "label": "twin", "value": "1"},
        {"id": made_id(3, "f"), "label": "twin", "value": "2"},
    ]
    sections, files = (
        [{"id": SECTION, "label": "Admin"}],
        [{"id": made_id(1, "d"), "name": "tls.pem"}],
    )
    number = fake.item(made_id(0, "v"), title, sections=sections, fields=fields, files=files)
    return fake.items[number]


class TestConnect:
    def test_a_new_item_is_a_login_that_the_vendors_client_reads(self, fake: FakeConnect) -> None:
        sdk = library("onepasswordconnectsdk.client", "onepasswordconnectsdk")
        put(
            environ(fake),
            "op://Prod/acme",
            {"username": "app", "password": VALUE, "Admin/PIN": "1234"},
        )
        client = sdk.Client(fake.base_url, TOKEN)
        item = client.get_item("acme", "Prod")
        fields = {field.label: (field.type, field.purpose, field.value) for field in item.fields}
        assert item.category == "LOGIN"
        assert fields.pop("sealpipe") == ("STRING", None, "m1")
        assert fields == {
            "username": ("STRING", "USERNAME", "app"),
            "password": ("CONCEALED", "PASSWORD", VALUE),
            "PIN": ("CONCEALED", None, "1234"),
        }
        assert [section.label for section in item.sections] == ["Admin"]
        assert value_of("op://Prod/acme/Admin/PIN", environ(fake)) == "1234"

    def test_the_vendors_client_writes_the_same_fake(self, fake: FakeConnect) -> None:
        sdk = library("onepasswordconnectsdk.client", "onepasswordconnectsdk")
        models = library("onepasswordconnectsdk.models", "onepasswordconnectsdk")
        client = sdk.Client(fake.base_url, TOKEN)
        field = models.Field(id="password", type="CONCEALED", label="password", value="theirs")
        item = models.Item(
            title="theirs",
            category="LOGIN",
            vault=models.ItemVault(id=made_id(0, "v")),
            fields=[field],
        )
        made = client.create_item(made_id(0, "v"), item)
        put(environ(fake), "op://Prod/theirs", {"password": VALUE, "new": "1"}, "merge")
        again = client.get_item("theirs", "Prod")
        again.fields[0].value = "theirs again"
        assert client.update_item(made.id, made_id(0, "v"), again).version == 3
        assert held(fake, "theirs") == {"password": "theirs again", "new": "1"}
        with pytest.raises(Exception, match="Received 403"):
            sdk.Client(fake.base_url, READER).create_item(made_id(0, "v"), item)

    def test_merge_touches_nothing_else_of_an_item(self, fake: FakeConnect) -> None:
        item = json.loads(json.dumps(filled(fake)))
        put(
            environ(fake),
            "op://Prod/db",
            {"password": VALUE, "Admin/password": "2", "Admin/PIN": "3"},
            "merge",
        )
        (after,) = fake.items.values()
        names = {"password": VALUE, "root": "2"}
        item["fields"][1]["value"], item["fields"][3]["value"] = names["password"], names["root"]
        assert after["fields"][:6] == item["fields"]
        assert [(each["label"], each["value"]) for each in after["fields"][6:]] == [
            ("PIN", "3"),
            ("sealpipe", "m1"),
        ]
        assert (after["version"], after["files"], after["sections"]) == (
            2,
            item["files"],
            item["sections"],
        )
        patches = [asked for asked in fake.asked if asked.method == "PATCH"]
        assert len(patches) == 1

    def test_replace_leaves_the_fields_that_a_login_always_has_empty(
        self, fake: FakeConnect
    ) -> None:
        filled(fake)
        put(environ(fake), "op://Prod/db", {"password": VALUE}, "replace")
        (after,) = fake.items.values()
        fields = {each["label"]: each["value"] for each in after["fields"]}
        assert fields == {"username": "", "password": VALUE, "notesPlain": "", "sealpipe": "m1"}
        assert after["files"]

    def test_a_field_goes_by_name_id_section_or_in_the_path(self, fake: FakeConnect) -> None:
        filled(fake)
        put(environ(fake), "op://Prod/db/Admin/password", {"": "a"}, "merge", marker="m1")
        put(
            environ(fake),
            f"op://{made_id(0, 'v')}/{made_id(0, 'i')}",
            {made_id(2, "f"): "b"},
            "merge",
            marker="m2",
        )
        assert held(fake, "db") == {
            "username": "app", "password": "old", "notesPlain": "a note", "Admin/password": "a",
            "twin": "b",
        }  # fmt: skip
        # The marker is none of its values.
        assert values(environ(fake), "op://Prod/db#username") == [b"app"]

    def test_the_marker_finds_what_an_earlier_run_stored(self, fake: FakeConnect) -> None:
        first = put(environ(fake), "op://Prod/acme", {"password": "1"}, marker="m1")
        second = put(environ(fake), "op://Prod/acme", {"API key": "2"}, "merge", marker="m2")
        assert (first.version, second.version) == ("1", "2")
        for number, key in (("m1", "password"), ("m2", "API key")):
            repeated = put(
                environ(fake), "op://Prod/acme", {key: "rotated since"}, "replace", marker=number
            )
            assert (repeated.already, repeated.version) == (True, "2")

    def test_a_conflict_is_written_again_on_what_is_there_then(self, fake: FakeConnect) -> None:
        item = filled(fake)

        def refuse(asked: Asked) -> Reply | None:
            if asked.method != "PATCH":
                return None
            fake.rule = lambda _: None
            item["fields"][4]["value"] = "changed by somebody else"
            return Reply(409, {"status": 409, "message": "Conflict"})

        fake.rule = refuse
        put(environ(fake), "op://Prod/db", {"password": VALUE}, "merge")
        assert held(fake, "db")["twin"] == "changed by somebody else"
        assert held(fake, "db")["password"] == VALUE

    def test_two_items_of_a_title_are_an_error(self, fake: FakeConnect) -> None:
        filled(fake)
        filled(fake)
        put_refused(
            environ(fake),
            "op://Prod/db",
            {"password": "1"},
            ReferenceValueError,
            "2 items have that title",
        )

    def test_a_token_that_only_reads_or_is_wrong_is_told_apart(self, fake: FakeConnect) -> None:
        write = ("op://Prod/new", {"password": VALUE})
        put_refused(
            environ(fake, READER),
            *write,
            AccessDeniedError,
            "does not let this token write to that vault",
        )
        put_refused(environ(fake, "another"), *write, BackendAuthError, "refused the token")


OPS = {"OP_SERVICE_ACCOUNT_TOKEN": "ops_Canary-51aa"}


@pytest.fixture
def sdk(monkeypatch: pytest.MonkeyPatch) -> Any:
    library("onepassword", "onepassword-sdk")
    from plugins.onepassword.fake_sdk import FakeSdk

    made = FakeSdk()
    monkeypatch.setattr("onepassword.client.Client", made)
    return made


class TestServiceAccount:
    def test_an_item_is_made_changed_and_replaced(self, sdk: Any) -> None:
        put(OPS, "op://Prod/acme", {"username": "app", "password": "1", "Admin/PIN": "2"})
        assert sdk.values("acme") == {
            "username": "app",
            "password": "1",
            "Admin/PIN": "2",
            "sealpipe": "m1",
        }
        (item,) = sdk.stored.values()
        assert [field.id for field in item.fields[:2]] == ["username", "password"]
        put(OPS, "op://Prod/acme", {"password": VALUE, "API key": "3"}, "merge", marker="m2")
        assert sdk.values("acme") == {
            "username": "app", "password": VALUE, "Admin/PIN": "2", "API key": "3",
            "sealpipe": "m1 m2",
        }  # fmt: skip
        put(OPS, "op://Prod/acme/password", {"": "4"}, "replace", marker="m3")
        assert sdk.values("acme") == {"password": "4", "sealpipe": "m1 m2 m3"}
        (item,) = sdk.stored.values()
        assert (item.tags, item.version) == (["kept"], 3)

    def test_equal_content_and_a_known_marker_write_nothing(self, sdk: Any) -> None:
        put(OPS, "op://Prod/acme", {"password": "1"})
        assert put(OPS, "op://Prod/acme", {"password": "1"}, marker="m2").already
        assert put(OPS, "op://Prod/acme", {"password": "rotated"}, "replace").already
        put_refused(
            OPS, "op://Prod/acme", {"other": VALUE}, WriteConflictError, "other content", "create"
        )
        assert {name for name in sdk.calls if name.startswith("items.")} == {
            "items.list",
            "items.create",
            "items.get",
        }

    def test_a_change_in_between_is_kept(self, sdk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        put(OPS, "op://Prod/acme", {"password": "1", "other": "2"})
        (item,) = sdk.stored.values()
        real, done = sdk.items.put, list[int]()

        async def put_later(changed: Any) -> Any:
            if not done:
                done.append(1)
                item.fields[1].value, item.version = "changed by somebody else", 2
            return await real(changed)

        monkeypatch.setattr(sdk.items, "put", put_later)
        put(OPS, "op://Prod/acme", {"password": VALUE}, "merge", marker="m2")
        assert sdk.values("acme")["other"] == "changed by somebody else"
        assert sdk.values("acme")["password"] == VALUE

    @pytest.mark.parametrize("is_done", [True, False])
    def test_a_lost_answer_is_looked_up(self, is_done: bool, sdk: Any) -> None:  # noqa: FBT001
        sdk.failures["items.create"], sdk.fails_after = (
            Exception("error sending request: network"),
            is_done,
        )
        if is_done:
            assert not put(OPS, "op://Prod/acme", {"password": VALUE}).already
        else:
            put_refused(
                OPS, "op://Prod/acme", {"password": VALUE}, UnavailableError, "was not written"
            )
        assert sdk.calls.count("items.create") == 1

    def test_what_the_sdk_refuses_is_said_in_our_words(self, sdk: Any) -> None:
        write = ("op://Prod/acme", {"password": VALUE})
        sdk.failures["items.create"] = Exception(f"forbidden: 403 {VALUE}")
        put_refused(OPS, *write, AccessDeniedError, "does not let this service account do that")
        sdk.failures["vaults.list"] = Exception("unauthorized: 401")
        put_refused(OPS, *write, BackendAuthError, "refused the service account's token")
        put_refused(
            OPS,
            "op://Nowhere/acme",
            write[1],
            SecretNotFoundError,
            "there is no vault of that name",
        )


LABEL = st.text("abc", min_size=1, max_size=2)
FIELDS = st.lists(st.tuples(LABEL, st.text(max_size=3)), max_size=5, unique_by=lambda each: each[0])


@given(FIELDS, st.dictionaries(LABEL, st.text(max_size=3), min_size=1), st.booleans())
def test_after_its_changes_an_item_holds_what_is_wanted(
    before: list[tuple[str, str]],
    wanted: dict[str, str],
    keeps: bool,  # noqa: FBT001
) -> None:
    fields = [
        {"id": made_id(n, "f"), "label": label, "value": value}
        for n, (label, value) in enumerate(before)
    ]
    item = {"fields": fields}
    after = {key: value.encode() for key, value in wanted.items()}
    after = {**(read_item(item, wanted).values or {}), **after} if keeps else after
    changes = plan_changes(item, wanted, after, "m1")
    left = [
        {**each, "value": changes.values.get(str(each["id"]), each["value"])} for each in fields
    ]
    left = [each for each in left if each["id"] not in changes.removed]
    added = [
        {"id": made_id(n, "n"), "label": each.label, "value": each.value}
        for n, each in enumerate(changes.added)
    ]
    found = read_item({"fields": left + added}, wanted)
    assert found.markers == "m1"
    assert found.values == after
