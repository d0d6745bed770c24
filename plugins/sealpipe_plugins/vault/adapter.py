"""The adapter that lets hvac's API classes use our connections instead of `requests`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from hvac.adapters import Adapter
from hvac.exceptions import VaultError

from sealpipe.plugin import NotConfiguredError, Secret
from sealpipe_plugins.vault.connections import ConnectionPool, Response


class VaultAdapter(Adapter):  # type: ignore[misc]  # hvac has no types
    """Calls with one token in one namespace. Errors are hvac's exceptions, with Vault's `response` attached."""

    def __init__(self, pool: ConnectionPool, token: Secret | None, namespace: str) -> None:
        # does not call super().__init__(), which creates a requests session
        self._pool = pool
        self._headers = {"X-Vault-Request": "true"}
        self._token = token
        if namespace:
            self._headers["X-Vault-Namespace"] = namespace

    def get_login_token(self, response: Any) -> Any:
        """Return the token of a login, like hvac's own adapters."""
        return response["auth"]["client_token"]

    def request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None = None,
        raise_exception: bool = True,  # noqa: ARG002, FBT001, FBT002 - their signature
        *,
        params: Mapping[str, Any] | None = None,
        json: Any = None,
    ) -> Any:
        """Return the JSON of a 2xx response, or an empty map; numbers keep their original text."""
        target = f"{url}?{urlencode(params)}" if params else url
        body = None if json is None else encode_exactly(json).encode()
        all_headers = {**self._headers, **(headers or {})}
        if self._token is not None:
            all_headers["X-Vault-Token"] = self._token.reveal()
        return decode_response(self._pool.send(method.upper(), target, all_headers, body), method, url)


def decode_response(response: Response, method: str, url: str) -> Any:
    """Decode a response. Raises VaultError for an error, NotConfiguredError if the server is not Vault."""
    text = _decode(response.body)
    if 200 <= response.status < 300:
        if response.body and not isinstance(text, dict):
            raise NotConfiguredError(
                "the server at Vault's address is not Vault: its response is not JSON",
                remedy="check the setting addr, and whether a proxy responds instead",
            )
        return text or {}
    error_list = text.get("errors") if isinstance(text, dict) else None
    errors = [each for each in error_list if isinstance(each, str)] if isinstance(error_list, list) else []
    error = VaultError.from_status(response.status, "", errors=errors, method=method, url=url, json=text)
    error.response = response
    raise error


class Number(str):
    """A number that keeps its original text."""

    __slots__ = ()


def encode_exactly(value: Any) -> str:
    """Encode as canonical JSON: numbers keep their original text, keys are sorted."""
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(key)}:{encode_exactly(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(encode_exactly, value)) + "]"
    return json.dumps(value)


def _decode(body: bytes) -> Any:
    """Decode JSON; None if it is not JSON. Numbers keep their original text, because a password may be a number."""
    try:
        return json.loads(body, parse_int=Number, parse_float=Number, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return None


def _refuse_constant(_name: str) -> Any:
    raise ValueError


def as_number(value: Any) -> int:
    """Return a number as an integer; 0 for None."""
    try:
        return int(value)
    except (TypeError, ValueError):
        return 0


def get_member(value: Any, *names: str) -> Any:
    """Return a member of nested maps, or None."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value
