"""Lets hvac's API classes use the network that plugins share, instead of `requests`."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from functools import cache, partial
from typing import Any, Final
from urllib.parse import urlencode

from hvac.adapters import Adapter
from hvac.exceptions import VaultError

from sealpipe.plugin import Context, NotConfiguredError, PluginError, Secret, UnavailableError
from sealpipe_plugins.http_api import Endpoint
from sealpipe_plugins.http_reply import Reply
from sealpipe_plugins.vault.settings import VaultSettings

BODY_LIMIT: Final = 32 * 1024 * 1024
"""Maximum bytes of a response."""

_RETRY_DELAY: Final = 0.2
"""Seconds after a call without a response during which calls fail at once."""


class Server:
    """One Vault. Where it does not respond, 50 references that wait for one another fail together.

    Thread-safe.
    """

    def __init__(self, settings: VaultSettings, context: Context) -> None:
        ca_file = settings.ca_file and settings.ca_file.expanduser()
        self._endpoint = Endpoint(
            context,
            "Vault",
            settings.addr,
            setting="addr",
            client=cache(partial(context.network.http, ca_file=ca_file)) if ca_file else None,
            timeout=settings.timeout,
            limit=BODY_LIMIT,
            untrusted_remedy="name the CA's file in VAULT_CACERT (the setting ca_file), or in "
            "SEALPIPE_CA_FILE",
        )
        self.host = self._endpoint.host
        self._last_failure: tuple[float, PluginError] | None = None

    def send(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str | Secret],
        body: bytes | None,
        timeout: float | None,
    ) -> Reply:
        """Make one request.

        Raises UnavailableError or NotConfiguredError if there is no response.
        """
        if (
            self._last_failure is not None
            and time.monotonic() - self._last_failure[0] < _RETRY_DELAY
        ):
            raise copy_error(self._last_failure[1])
        try:
            return self._endpoint.request(method, target, body, headers=headers, timeout=timeout)
        except (UnavailableError, NotConfiguredError) as error:
            self._last_failure = time.monotonic(), error
            raise

    def retry_at_once(self) -> None:
        """Let the next call be sent, even if the last one has just failed."""
        self._last_failure = None


class VaultAdapter(Adapter):  # type: ignore[misc]  # hvac has no types
    """Calls with one token in one namespace.

    Errors are hvac's exceptions, with Vault's `response` attached.

    `timeout` is in seconds for each step, if it is not the setting's.
    """

    def __init__(
        self, server: Server, token: Secret | None, namespace: str, timeout: float | None = None
    ) -> None:
        # does not call super().__init__(), which creates a requests session
        if not namespace.isascii() or not namespace.isprintable():
            raise NotConfiguredError(
                "the namespace contains invalid characters", remedy="check the namespace"
            )
        self._server = server
        self._timeout = timeout
        headers = {
            "X-Vault-Request": "true",
            "X-Vault-Namespace": namespace,
            "X-Vault-Token": token,
        }
        self._headers = {name: value for name, value in headers.items() if value}

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
        reply = self._server.send(
            method.upper(), target, {**self._headers, **(headers or {})}, body, self._timeout
        )
        return decode_response(reply, method, url)


def copy_error(error: PluginError) -> PluginError:
    """Copy an error for another call, because each call adds its own locator."""
    return type(error)(error.message, remedy=error.remedy)


def decode_response(response: Reply, method: str, url: str) -> Any:
    """Decode a response.

    Raises VaultError for an error, NotConfiguredError if the server is not Vault.
    """
    text = _decode(response.body)
    if 200 <= response.status < 300:
        if response.body and not isinstance(text, dict):
            raise NotConfiguredError(
                "the server at Vault's address is not Vault: its response is not JSON",
                remedy="check the setting addr, and whether a proxy responds instead",
            )
        return text or {}
    error_list = text.get("errors") if isinstance(text, dict) else None
    errors = (
        [each for each in error_list if isinstance(each, str)]
        if isinstance(error_list, list)
        else []
    )
    error = VaultError.from_status(
        response.status, "", errors=errors, method=method, url=url, json=text
    )
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
        return (
            "{"
            + ",".join(f"{json.dumps(key)}:{encode_exactly(value[key])}" for key in sorted(value))
            + "}"
        )
    if isinstance(value, list):
        return "[" + ",".join(map(encode_exactly, value)) + "]"
    return json.dumps(value)


def _decode(body: bytes) -> Any:
    """Decode JSON; None if it is not JSON.

    Numbers keep their original text, because a password may be a number.
    """
    try:
        return json.loads(
            body, parse_int=Number, parse_float=Number, parse_constant=_refuse_constant
        )
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
