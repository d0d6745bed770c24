"""Items by 1Password's own SDK, for a service account.

A write carries the version of the vault that it is based on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Final

from sealpipe.plugin import (
    ReferenceValueError,
    SecretNotFoundError,
    UnavailableError,
    UnknownOutcomeError,
)
from sealpipe_plugins.http_errors import CHECK_FIRST
from sealpipe_plugins.onepassword.changes import BUILT_IN, Changes, NewField
from sealpipe_plugins.onepassword.items import MARKER, new_id
from sealpipe_plugins.onepassword.sdk import ConflictError, SdkClient

_ITEM: Final = "item of the SDK"
"""The key of the SDK's own item in an item in Connect's form."""


class SdkItems:
    """The items of a service account. Each call logs in."""

    def __init__(self, sdk: SdkClient) -> None:
        self._sdk = sdk
        self._types = import_module("onepassword.types")

    def find(self, vault: str, title: str) -> Mapping[str, Any] | None:
        """Return an item as it is now, in Connect's form."""

        async def find(client: Any) -> Any:
            vault_id = _require_one(await client.vaults.list(), vault, "vault")
            overviews = [
                each for each in await client.items.list(vault_id) if title in (each.title, each.id)
            ]
            if not overviews:
                return None
            return await client.items.get(vault_id, _require_one(overviews, title, "item"))

        item = self._sdk.run(find)
        return None if item is None else _in_connect_form(item)

    def create(self, vault: str, title: str, fields: Sequence[NewField]) -> bool:
        """Make a login."""
        types = self._types
        sections = {
            name: new_id() for name in dict.fromkeys(field.section for field in fields) if name
        }

        async def create(client: Any) -> Any:
            vault_id = _require_one(await client.vaults.list(), vault, "vault")
            params = types.ItemCreateParams(
                category=types.ItemCategory.LOGIN,
                vault_id=vault_id,
                title=title,
                fields=[self._make_field(field, sections.get(field.section)) for field in fields],
                sections=[
                    types.ItemSection(id=number, title=name) for name, number in sections.items()
                ],
            )
            return await client.items.create(params)

        return self._write(create)

    def update_item(self, item: Mapping[str, Any], changes: Changes) -> bool:
        """Change an item's fields; all else of it is sent back as it was read."""
        changed = item[_ITEM].model_copy(deep=True)
        changed.fields = [field for field in changed.fields if field.id not in changes.removed]
        for field in changed.fields:
            field.value = changes.values.get(field.id, field.value)
        changed.fields += [
            self._make_field(field, field.section or None) for field in changes.added
        ]
        return self._write(lambda client: client.items.put(changed))

    def check(self) -> str:
        """Log in."""
        self._sdk.check()
        return "the service account is logged in"

    def _write(self, write: Callable[[Any], Any]) -> bool:
        try:
            self._sdk.run(write)
            return True
        except ConflictError:
            return False
        except UnavailableError as error:
            reason = error.message
        raise UnknownOutcomeError(f"{reason}, after it was sent a change", remedy=CHECK_FIRST)

    def _make_field(self, field: NewField, section_id: str | None) -> Any:
        types = self._types
        is_text = field.label in (BUILT_IN[0], MARKER) and not section_id
        return types.ItemField(
            id=field.label if field.label in BUILT_IN and not section_id else new_id(),
            title=field.label,
            section_id=section_id,
            field_type=types.ItemFieldType.TEXT if is_text else types.ItemFieldType.CONCEALED,
            value=field.value,
        )


def _require_one(found: Sequence[Any], name: str, what: str) -> str:
    """Return the id of the only one with a title or an id."""
    ids = [each.id for each in found if name == each.id] or [
        each.id for each in found if name == each.title
    ]
    if len(ids) == 1:
        return str(ids[0])
    if ids:
        raise ReferenceValueError(
            f"{len(ids)} {what}s have that name", remedy=f"name the {what} by its id"
        )
    raise SecretNotFoundError(
        f"there is no {what} of that name, or it is hidden from this account",
        remedy=f"check the {what}: case matters",
    )


def _in_connect_form(item: Any) -> Mapping[str, Any]:
    """Return an item of the SDK as Connect has it, with itself for the next write."""
    fields = [
        {"id": field.id, "label": field.title, "value": field.value}
        | ({"section": {"id": field.section_id}} if field.section_id else {})
        for field in item.fields
    ]
    sections = [{"id": section.id, "label": section.title} for section in item.sections]
    return {
        "id": item.id,
        "version": item.version,
        "sections": sections,
        "fields": fields,
        _ITEM: item,
    }
