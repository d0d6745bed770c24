"""A fake of 1Password's SDK: the calls for vaults and items, on items of the SDK's own types,
without its native core.

As 1Password's servers do, it refuses a write that is based on an older version of an item.
"""

from __future__ import annotations

from typing import Any

from onepassword import types

from plugins.onepassword.fake_op_connect import made_id


class FakeSdk:
    """An account: vaults by id, items by id.

    It stands for `onepassword.client.Client`, and for all that has.
    """

    def __init__(self) -> None:
        self.titles = {made_id(0, "v"): "Prod"}
        self.stored: dict[str, types.Item] = {}
        self.calls: list[str] = []
        self.failures: dict[str, Exception] = {}
        self.fails_after = False
        """Whether a write that fails has been done."""
        self.vaults, self.items = _Vaults(self), _Items(self)

    async def authenticate(self, token: str, name: str, version: str) -> FakeSdk:
        assert token.startswith("ops_")
        assert name == "sealpipe"
        assert version
        return self

    def called(self, name: str) -> None:
        self.calls.append(name)
        if not self.fails_after and name in self.failures:
            raise self.failures.pop(name)

    def done(self, name: str) -> None:
        if self.fails_after and name in self.failures:
            raise self.failures.pop(name)

    def values(self, title: str) -> dict[str, str]:
        """What the only item of a title holds."""
        (item,) = [each for each in self.stored.values() if each.title == title]
        sections = {section.id: f"{section.title}/" for section in item.sections}
        return {
            sections.get(each.section_id or "", "") + each.title: each.value
            for each in item.fields
            if each.value
        }


class _Vaults:
    def __init__(self, sdk: FakeSdk) -> None:
        self._sdk = sdk

    async def list(self, params: object = None) -> list[Any]:
        del params
        self._sdk.called("vaults.list")
        return [
            types.VaultOverview.model_construct(id=i, title=title)
            for i, title in self._sdk.titles.items()
        ]


class _Items:
    def __init__(self, sdk: FakeSdk) -> None:
        self._sdk = sdk

    async def list(self, vault_id: str) -> list[Any]:
        self._sdk.called("items.list")
        items = [each for each in self._sdk.stored.values() if each.vault_id == vault_id]
        return [types.ItemOverview.model_construct(id=each.id, title=each.title) for each in items]

    async def get(self, vault_id: str, item_id: str) -> types.Item:
        self._sdk.called("items.get")
        item = self._sdk.stored[item_id]
        assert item.vault_id == vault_id
        return item.model_copy(deep=True)

    async def create(self, params: types.ItemCreateParams) -> types.Item:
        self._sdk.called("items.create")
        params.model_dump_json(by_alias=True)  # as the SDK hands it to its core
        item = types.Item.model_construct(
            id=made_id(len(self._sdk.stored), "i"),
            title=params.title,
            category=params.category,
            vault_id=params.vault_id,
            fields=params.fields or [],
            sections=params.sections or [],
            notes="",
            tags=["kept"],
            version=1,
        )
        self._sdk.stored[item.id] = item
        self._sdk.done("items.create")
        return item

    async def put(self, item: types.Item) -> types.Item:
        self._sdk.called("items.put")
        item.model_dump_json(by_alias=True)
        if item.version != self._sdk.stored[item.id].version:
            raise Exception(
                "Server error: data conflict occurred on the server: performing a vault operation"
            )
        self._sdk.stored[item.id] = item.model_copy(deep=True, update={"version": item.version + 1})
        self._sdk.done("items.put")
        return self._sdk.stored[item.id]
