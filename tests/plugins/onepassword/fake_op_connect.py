"""A fake of 1Password's Connect server: its public interface, on a real socket.

Written from 1Password's published OpenAPI document (version 1.7.1): vaults, items, files, health;
paths, filters, members, statuses and messages are those, and the patches of items, whose fields go
by their ids. Its syncing and its activity are not there. Tests that read and write the same fake by
the vendor's own client hold it to what that client expects.
"""

from __future__ import annotations

import json
import re
from copy import deepcopy
from typing import Any

from support.fake_web import Asked, FakeWeb, Reply

Json = Any


def made_id(number: int, kind: str = "x") -> str:
    """An id as Connect has them: 26 small letters and digits."""
    return f"{kind}{number:025d}"


TOKEN = "Canary-token-1f7a"
HIDDEN = "canary-of-a-hidden-vault-2b9e"
"""A value that `TOKEN` may not see."""
SECTION = made_id(7, "s")


class FakeConnect(FakeWeb):
    """The server's contents: vaults' names by id, FullItems by id, files' bytes by id, and what a
    token may see.
    """

    host = "localhost"

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.vaults: dict[str, str] = {}
        self.items: dict[str, Json] = {}
        self.contents: dict[str, bytes] = {}
        self.tokens: dict[str, set[str]] = {}
        self.read_only: set[str] = set()

    def vault(self, name: str, *tokens: str) -> str:
        """Make a vault that these tokens may see. Its id."""
        vault_id = made_id(len(self.vaults), "v")
        self.vaults[vault_id] = name
        for token in tokens:
            self.tokens.setdefault(token, set()).add(vault_id)
        return vault_id

    def item(self, vault_id: str, title: str, **members: Json) -> str:
        """Make an item. Its id."""
        item_id = made_id(len(self.items), "i")
        self.items[item_id] = {
            "id": item_id,
            "title": title,
            "vault": {"id": vault_id},
            "category": "LOGIN",
            "version": 1,
            **members,
        }
        return item_id

    def answer(self, asked: Asked) -> Reply:
        """What a request is answered with."""
        path, query = asked.path, asked.query
        if path == "/heartbeat":
            return Reply(200, ".")
        if path == "/health":
            return Reply(
                200, {"name": "1Password Connect API", "version": "1.7.1", "dependencies": []}
            )
        scope = self.tokens.get(asked.headers.get("authorization", "").removeprefix("Bearer "))
        if scope is None:
            return _error(401, "Invalid token signature")
        if path == "/v1/vaults":
            found = [
                {"id": i, "name": n, "type": "USER_CREATED"}
                for i, n in self.vaults.items()
                if i in scope
            ]
            return Reply(200, _filtered(found, "name", query))
        match = re.fullmatch(
            r"/v1/vaults/([^/]+)(?:/items(?:/([^/]+)(?:/files(?:/([^/]+)(/content)?)?)?)?)?", path
        )
        if match is None:
            return _error(404, "not found")
        if asked.method == "GET":
            return self._inside(path, match, scope, query)
        return self._written(asked, match, scope)

    def _inside(
        self, path: str, match: re.Match[str], scope: set[str], query: dict[str, str]
    ) -> Reply:
        vault_id, item_id, file_id, content = match.groups()
        if vault_id not in self.vaults:
            return _error(404, f"vault {vault_id} not found")
        if vault_id not in scope:
            return _error(403, f"vault {vault_id} is not in scope")
        here = {i: item for i, item in self.items.items() if item["vault"]["id"] == vault_id}
        if path.endswith("/items"):
            short = ("id", "title", "vault", "category", "version")
            return Reply(
                200,
                _filtered([{n: item[n] for n in short} for item in here.values()], "title", query),
            )
        if item_id is None:
            return Reply(
                200, {"id": vault_id, "name": self.vaults[vault_id], "type": "USER_CREATED"}
            )
        if item_id not in here:
            return _error(404, f"item {item_id} not found")
        files = {each["id"]: each for each in here[item_id].get("files", [])}
        if path.endswith("/files"):
            return Reply(200, list(files.values()))
        if file_id is None:
            return Reply(200, here[item_id])
        if file_id not in files:
            return _error(404, f"file {file_id} not found")
        if content:
            return Reply(200, self.contents[file_id], {"content-type": "application/octet-stream"})
        return Reply(200, files[file_id])

    def _written(self, asked: Asked, match: re.Match[str], scope: set[str]) -> Reply:
        vault_id, item_id, *_ = match.groups()
        token = asked.headers.get("authorization", "").removeprefix("Bearer ")
        if vault_id not in self.vaults:
            return _error(404, f"vault {vault_id} not found")
        if vault_id not in scope or token in self.read_only:
            return _error(403, f"vault {vault_id} is not in scope")
        try:
            body = json.loads(asked.body)
            if asked.method == "POST":
                item = {**body, "version": 1}
                item_id = made_id(len(self.items), "i")
            elif item_id not in self.items:
                return _error(404, f"item {item_id} not found")
            else:
                before = self.items[item_id]
                changed = body if asked.method == "PUT" else _patched(before, body)
                item = {**changed, "version": before["version"] + 1}
            assert item["vault"]["id"] == vault_id
            assert {"title", "category"} <= item.keys()
            sections = {each["id"] for each in item.get("sections") or []}
            for number, field in enumerate(item.get("fields") or []):
                field["id"] = field.get("id") or made_id(1000 * item["version"] + number, "f")
                assert field.get("section") is None or field["section"]["id"] in sections
        except (ValueError, KeyError, TypeError, AssertionError):
            return _error(400, "Invalid item")
        self.items[item_id] = {**item, "id": item_id}
        return Reply(200, self.items[item_id])


def _patched(item: Json, operations: list[Json]) -> Json:
    """The item after a patch: of attributes, whole fields, or attributes of fields, which go by
    their ids.
    """
    item = deepcopy(item)
    for each in operations:
        path, kind = each["path"].split("/")[1:], each["op"]
        assert kind in ("add", "remove", "replace")
        if path == ["fields"]:
            assert kind == "add"
            item.setdefault("fields", []).append(each["value"])
            continue
        assert path[0] == "fields", "attributes of items are not patched here"
        (field,) = [field for field in item["fields"] if field["id"] == path[1]]
        if len(path) == 3 and kind != "remove":
            field[path[2]] = each["value"]
        elif len(path) == 2 and kind == "remove":
            item["fields"].remove(field)
        else:
            raise ValueError("a patch that nobody has sent yet")
    return item


def _filtered(found: list[Json], name: str, query: dict[str, str]) -> list[Json]:
    asked = query.get("filter")
    if not asked:
        return found
    match = re.fullmatch(rf'{name} eq "(.*)"', asked)
    return [each for each in found if match and each[name] == match[1]]


def _error(status: int, message: str) -> Reply:
    return Reply(status, {"status": status, "message": message})


def filled(fake: FakeConnect) -> FakeConnect:
    """Two vaults, one of them hidden from the token, and items with all that an item can have."""
    prod, hidden = fake.vault("Prod env", TOKEN), fake.vault("Hidden", "another token")
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
            "value": "hunter2 é",
        },
        {"id": "notesPlain", "type": "STRING", "purpose": "NOTES", "label": "notesPlain"},
        {
            "id": made_id(1, "f"),
            "type": "CONCEALED",
            "label": "password",
            "value": "root's",
            "section": {"id": SECTION},
        },
        {
            "id": made_id(2, "f"),
            "type": "STRING",
            "label": "host",
            "value": "db.example",
            "section": {"id": SECTION},
        },
        {"id": made_id(3, "f"), "type": "STRING", "label": "twin", "value": "1"},
        {"id": made_id(4, "f"), "type": "STRING", "label": "twin", "value": "2"},
        {"id": made_id(5, "f"), "type": "STRING", "label": "", "value": "nameless"},
    ]
    file = {"id": made_id(1, "d"), "name": "tls.pem", "size": 8, "content_path": "v1/anything"}
    fake.contents[file["id"]] = b"-----\r\n\x00"
    fake.contents[made_id(2, "d")] = b"x" * (16 * 1024 * 1024 + 1)
    files = [file, {"id": made_id(2, "d"), "name": "large.bin"}]
    fake.item(prod, "db", sections=[{"id": SECTION, "label": "Admin"}], fields=fields, files=files)
    fake.item(prod, "twin", fields=[])
    fake.item(prod, "twin", fields=[])
    fake.item(
        prod,
        'a "quoted" \\ title',
        fields=[{"id": "password", "label": "password", "value": "quoted"}],
    )
    fake.item(
        prod,
        made_id(99, "q"),
        fields=[{"id": "password", "label": "password", "value": "like an id"}],
    )
    fake.item(hidden, "db", fields=[{"id": "password", "label": "password", "value": HIDDEN}])
    return fake
