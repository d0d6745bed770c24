"""1Password by the command line: a share, and a submission."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from plugins.onepassword.fake_op_connect import TOKEN, FakeConnect
from sealpipe_plugins.onepassword.items import all_values, parse_item
from support.hand_over import VALUE, HandOver


class TestOp(HandOver):
    reference = "op:Prod/db/password"
    missing = "op:Prod/none/password"
    target = "op://Prod/acme#password=staging_password,username=user"
    read_there = frozenset({"token"})
    stored_there = frozenset({"value", "token"})

    @pytest.fixture
    def login(self) -> Iterator[dict[str, str]]:
        with FakeConnect() as self.fake:
            prod, self.port = self.fake.vault("Prod", TOKEN), self.fake.port
            field = {"id": "password", "label": "password", "value": VALUE}
            self.fake.item(prod, "db", fields=[field])
            yield {"OP_CONNECT_HOST": self.fake.base_url, "OP_CONNECT_TOKEN": TOKEN}

    def secrets(self, login: Mapping[str, str]) -> Mapping[str, str]:
        del login
        return {"token": TOKEN}

    def held(self) -> tuple[Mapping[str, str], object]:
        (item,) = [each for each in self.fake.items.values() if each["title"] == "acme"]
        values = all_values(parse_item(item))
        return {"password": values["password"], "user": values["username"]}, item["version"]
