"""A 1Password Connect server, by its public REST API (version 1): vaults, items and files.

The server's ids are validated before they are used in paths. Responses are never shown.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from sealpipe.plugin import (
    PLAINTEXT_LIMIT,
    AccessDeniedError,
    BackendAuthError,
    Context,
    PayloadTooLargeError,
    PluginError,
    ReferenceValueError,
    Secret,
    SecretNotFoundError,
)
from sealpipe_plugins.http_api import Endpoint, ResponseTooLongError
from sealpipe_plugins.http_errors import Refusals, require_success
from sealpipe_plugins.http_reply import Reply
from sealpipe_plugins.onepassword.changes import BUILT_IN, Changes, NewField
from sealpipe_plugins.onepassword.items import MARKER, new_id

T = TypeVar("T")

_ID: Final = re.compile(r"[a-z0-9]{26}")
_NAME: Final = "1Password Connect"

_REFUSALS: Final[Refusals] = {
    401: (
        BackendAuthError,
        "refused the token",
        "check that OP_CONNECT_TOKEN is complete, not expired, and for this server",
    ),
    403: (
        AccessDeniedError,
        "does not let this token read that vault",
        "give the token access to the vault",
    ),
}

_WRITE_REFUSALS: Final[Refusals] = {
    **_REFUSALS,
    400: (
        PluginError,
        "refused the change",
        "check the item in 1Password: some fields of some categories are fixed",
    ),
    403: (
        AccessDeniedError,
        "does not let this token write to that vault",
        "give the token write access to the vault",
    ),
}
_CHANGED_MEANWHILE: Final = {"POST": (409,), "PATCH": (404, 409)}


class Connect:
    """A Connect server.

    Responses are cached for the run: references to one item cost one request.
    """

    def __init__(self, context: Context, host: str, token: Secret) -> None:
        self._endpoint = Endpoint(
            context,
            _NAME,
            host,
            setting="connect_host (OP_CONNECT_HOST)",
            headers={"authorization": Secret(f"Bearer {token.reveal()}")},
            limit=PLAINTEXT_LIMIT,
        )
        self._lock = threading.Lock()
        self._locks: dict[tuple[str, ...], threading.Lock] = {}
        self._known: dict[tuple[str, ...], Any] = {}

    def get_item(self, vault: str, title: str) -> Mapping[str, Any]:
        """Return a whole item, by ids or names.

        Raises SecretNotFoundError, ReferenceValueError (ambiguous name).
        """
        vault_id = self._find_vault_id(vault)
        return self._get_once(("item", vault_id, title), lambda: self._find_item(vault_id, title))

    def find(self, vault: str, title: str) -> Mapping[str, Any] | None:
        """Return an item as it is now, or None. Raises ReferenceValueError (ambiguous name)."""
        vault_id = self._find_vault_id(vault)
        try:
            return self._find_item(vault_id, title)
        except SecretNotFoundError:
            return None

    def create(self, vault: str, title: str, fields: Sequence[NewField]) -> bool:
        """Make a login. Returns False if others changed the vault meanwhile.

        Raises UnknownOutcomeError.
        """
        vault_id = self._find_vault_id(vault)
        sections = {
            name: new_id() for name in dict.fromkeys(field.section for field in fields) if name
        }
        item = {
            "vault": {"id": vault_id},
            "title": title,
            "category": "LOGIN",
            "sections": [{"id": number, "label": name} for name, number in sections.items()],
            "fields": [
                _make_field(field._replace(section=sections.get(field.section, "")))
                for field in fields
            ],
        }
        return self._write("POST", f"/v1/vaults/{vault_id}/items", item)

    def update_item(self, item: Mapping[str, Any], changes: Changes) -> bool:
        """Change fields of an item in one request.

        Returns False if others changed it. Raises UnknownOutcomeError.
        """
        vault_id = _require_id(_require_object(item.get("vault")).get("id"))
        operations = [
            *({"op": "remove", "path": f"/fields/{field_id}"} for field_id in changes.removed),
            *(
                {"op": "replace", "path": f"/fields/{field_id}/value", "value": value}
                for field_id, value in changes.values.items()
            ),
            *(
                {"op": "add", "path": "/fields", "value": _make_field(field)}
                for field in changes.added
            ),
        ]
        return self._write(
            "PATCH", f"/v1/vaults/{vault_id}/items/{_require_id(item.get('id'))}", operations
        )

    def get_file(self, item: Mapping[str, Any], file_id: str) -> bytes:
        """Return the content of an item's file."""
        vault_id = _require_id(_require_object(item.get("vault")).get("id"))
        item_id = _require_id(item.get("id"))
        file = f"/v1/vaults/{vault_id}/items/{item_id}/files/{_require_id(file_id)}"
        return self._get(f"{file}/content").body

    def check(self) -> str:
        """Return the server's version and the number of visible vaults."""
        version = _require_object(self._get_json("/health")).get("version")
        safe_version = (
            version
            if isinstance(version, str) and re.fullmatch(r"[0-9.]{1,20}", version)
            else "unknown"
        )
        return f"{_NAME} {safe_version}, {len(self._list_vaults())} vaults"

    def _list_vaults(self) -> list[Mapping[str, Any]]:
        return self._get_once(("vaults",), lambda: _require_objects(self._get_json("/v1/vaults")))

    def _find_vault_id(self, name: str) -> str:
        if _ID.fullmatch(name):
            return name
        return _require_one(
            [
                _require_id(each.get("id"))
                for each in self._list_vaults()
                if each.get("name") == name
            ],
            "vault",
            "name",
        )

    def _find_item(self, vault_id: str, title: str) -> Mapping[str, Any]:
        path = f"/v1/vaults/{vault_id}/items"
        if _ID.fullmatch(title):
            try:
                return _require_object(self._get_json(f"{path}/{title}"))
            except SecretNotFoundError:
                pass  # a title may look like an id
        # The server cannot filter titles with quotes, so titles are compared again here.
        plain = not {'"', "\\"} & set(title)
        params = {"filter": f'title eq "{title}"'} if plain else None
        ids = [
            _require_id(each.get("id"))
            for each in _require_objects(self._get_json(path, params))
            if each.get("title") == title
        ]
        return _require_object(self._get_json(f"{path}/{_require_one(ids, 'item', 'title')}"))

    def _get_once(self, key: tuple[str, ...], make: Callable[[], T]) -> T:
        with self._lock:
            lock = self._locks.setdefault(key, threading.Lock())
        with lock:  # only one thread requests an item
            if key not in self._known:
                self._known[key] = make()
            value: T = self._known[key]
            return value

    def _write(self, method: str, path: str, body: object) -> bool:
        reply = self._endpoint.request(method, path, json.dumps(body).encode(), writes=True)
        if reply.status in _CHANGED_MEANWHILE[method]:
            return False
        require_success(reply, _WRITE_REFUSALS)
        return True

    def _get_json(self, path: str, params: Mapping[str, str] | None = None) -> Any:
        reply = self._get(path, params)
        try:
            return json.loads(reply.body)
        except (ValueError, RecursionError):
            pass
        raise PluginError(
            f"{_NAME} at {self._endpoint.host} sent a response that is not JSON",
            remedy="check that OP_CONNECT_HOST is a Connect server",
        )

    def _get(self, path: str, params: Mapping[str, str] | None = None) -> Reply:
        try:
            return require_success(self._endpoint.get(path, params), _REFUSALS)
        except ResponseTooLongError:
            pass
        raise PayloadTooLargeError(
            f"{_NAME} responded with more than {PLAINTEXT_LIMIT // 1024 // 1024} MiB"
        )


def _make_field(field: NewField) -> dict[str, Any]:
    """Return a new field as Connect takes it; `section` is an id."""
    if field.label in BUILT_IN and not field.section:
        kind = "STRING" if field.label == BUILT_IN[0] else "CONCEALED"
        built_in = {"id": field.label, "purpose": field.label.upper(), "type": kind}
        return {**built_in, "label": field.label, "value": field.value}
    section = {"section": {"id": field.section}} if field.section else {}
    kind = "STRING" if field.label == MARKER else "CONCEALED"
    return {"type": kind, "label": field.label, "value": field.value, **section}


def _require_one(ids: list[str], what: str, name: str) -> str:
    if len(ids) == 1:
        return ids[0]
    if ids:
        raise ReferenceValueError(
            f"{len(ids)} {what}s have that {name}", remedy=f"name the {what} by its id"
        )
    raise SecretNotFoundError(
        f"there is no {what} of that {name}, or the token may not see it",
        remedy=f"check the {name}: case matters; or name the {what} by its id",
    )


def _require_id(value: object) -> str:
    if isinstance(value, str) and _ID.fullmatch(value):
        return value
    raise PluginError(f"{_NAME} sent something without a valid id", remedy="check OP_CONNECT_HOST")


def _require_object(value: object) -> Mapping[str, Any]:
    if isinstance(value, dict):
        return value
    raise PluginError(f"{_NAME} sent an unexpected response", remedy="check OP_CONNECT_HOST")


def _require_objects(value: object) -> list[Mapping[str, Any]]:
    if isinstance(value, list) and all(isinstance(each, dict) for each in value):
        return value
    raise PluginError(f"{_NAME} sent an unexpected response", remedy="check OP_CONNECT_HOST")
