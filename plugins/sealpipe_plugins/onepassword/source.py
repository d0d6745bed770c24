"""`op://Vault/Item/[section/]field`: 1Password, through a Connect server or a service account."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import Field

from sealpipe.plugin import (
    Context,
    Document,
    Health,
    Locator,
    NotConfiguredError,
    PluginError,
    ReferenceValueError,
    Secret,
    Source,
    UnsupportedError,
)
from sealpipe.plugin.settings import PluginSettings
from sealpipe_plugins.onepassword.items import all_values, choose_part, parse_item

if TYPE_CHECKING:
    from sealpipe_plugins.onepassword.sdk import SdkClient


class OnePasswordSettings(PluginSettings):
    """A Connect server's address and token, or a service account's token; Connect takes precedence,
    as in `op`.

    `timeout` is in seconds, for requests of a service account.
    """

    connect_host: str = ""
    connect_token: Secret | None = None
    service_account_token: Secret | None = None
    timeout: float = Field(60.0, gt=0, le=600)

    own_variables = {  # noqa: RUF012 - a ClassVar of the base
        "connect_host": "OP_CONNECT_HOST",
        "connect_token": "OP_CONNECT_TOKEN",
        "service_account_token": "OP_SERVICE_ACCOUNT_TOKEN",
    }


_PATH = "write op://Vault/Item/field, or op://Vault/Item/section/field"


def make_source(settings: OnePasswordSettings, context: Context) -> Source:
    """Return the source for the configured method."""
    return (ConnectSource if uses_connect(settings, context) else ServiceAccountSource)(
        settings, context
    )


def uses_connect(settings: OnePasswordSettings, context: Context) -> bool:
    """Return whether Connect is configured: it takes precedence, as in 1Password's own `op`.

    Raises NotConfiguredError if neither login is complete.
    """
    host, token = settings.connect_host, settings.connect_token
    if host and token:
        return True
    if host or token:
        missing, present = (
            ("OP_CONNECT_TOKEN", "OP_CONNECT_HOST")
            if host
            else ("OP_CONNECT_HOST", "OP_CONNECT_TOKEN")
        )
        raise NotConfiguredError(
            f"{present} is set but {missing} is not", remedy=f"set {missing}, or unset {present}"
        )
    if settings.service_account_token:
        return False
    raise NotConfiguredError(
        f"{context.store}: no 1Password login is configured",
        remedy="set OP_SERVICE_ACCOUNT_TOKEN, or OP_CONNECT_HOST and OP_CONNECT_TOKEN",
    )


class ConnectSource(Source):
    """A Connect server. An item is fetched once, however many fields are read."""

    concurrency = 8

    def __init__(self, settings: OnePasswordSettings, context: Context) -> None:
        super().__init__(settings, context)
        from sealpipe_plugins.onepassword.connect import Connect

        host, token = settings.connect_host, settings.connect_token
        self._connect = Connect(context, host, token)  # type: ignore[arg-type]

    def fetch(self, locator: Locator) -> Document:
        """Return a field's value or a file's bytes.

        Without a field, a map of all non-empty fields.
        """
        path = parse_path(locator, shortest=2)
        for name in ("attribute", "ssh-format"):
            if locator.param(name) is not None:
                raise UnsupportedError(
                    f"{locator}: a Connect server does not support {name}=",
                    remedy="use a service account, or leave it out",
                )
        item = self._connect.get_item(path[0], path[1])
        item_parts = parse_item(item)
        if len(path) == 2:
            return Document(all_values(item_parts))
        part = choose_part(item_parts, path[2:])
        return Document(self._connect.get_file(item, part.file) if part.file else part.value)

    def check(self) -> Health:
        """Check whether the server responds and accepts the token. Reads no item."""
        return Health(ok=True, detail=self._connect.check())


class ServiceAccountSource(Source):
    """A service account, through 1Password's SDK: all references of a run in one request."""

    def __init__(self, settings: OnePasswordSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._sdk = make_sdk(settings, context)

    def fetch(self, locator: Locator) -> Document:
        """Return a field's value."""
        result = self.fetch_many([locator])[locator]
        if isinstance(result, PluginError):
            raise result
        return result

    def fetch_many(self, locators: Sequence[Locator]) -> dict[Locator, Document | PluginError]:
        """Return the values of several fields."""
        results: dict[Locator, Document | PluginError] = {}
        references: dict[Locator, str] = {}
        for locator in locators:
            try:
                references[locator] = _make_reference(locator)
            except PluginError as error:
                results[locator] = error
        resolved_values = self._sdk.resolve(list(references.values())) if references else {}
        for locator, reference in references.items():
            item_parts = resolved_values[reference]
            results[locator] = (
                item_parts if isinstance(item_parts, PluginError) else Document(item_parts)
            )
        return results

    def check(self) -> Health:
        """Check whether 1Password accepts the token."""
        self._sdk.check()
        return Health(ok=True, detail="the service account is logged in")


def make_sdk(settings: OnePasswordSettings, context: Context) -> SdkClient:
    """Return the SDK's client for a service account.

    Raises NotConfiguredError without the package.
    """
    from sealpipe_plugins import program
    from sealpipe_plugins.onepassword.sdk import SdkClient

    try:
        is_configured = "timeout" in settings.model_fields_set
        timeout = program.effective_timeout(
            settings.timeout, context.deadline, is_configured=is_configured
        )
        token = settings.service_account_token
        return SdkClient(token, _sealpipe_version(), timeout)  # type: ignore[arg-type]
    except ImportError:
        pass
    from sealpipe.installation import format_command  # for an error only

    raise NotConfiguredError(
        "1Password's SDK, which a service account needs, is not installed",
        remedy=f"{format_command(['sealpipe[op]'])}; a Connect server needs no package",
    )


def parse_path(locator: Locator, *, shortest: int) -> list[str]:
    """Return vault, item, and the section and field that are named. Raises ReferenceValueError."""
    path = locator.body.split("/")
    if not all(path) or not shortest <= len(path) <= 4:
        raise ReferenceValueError(f"{locator} is not a 1Password reference", remedy=_PATH)
    return path


def _make_reference(locator: Locator) -> str:
    path = parse_path(locator, shortest=2)
    if len(path) == 2:
        raise UnsupportedError(
            f"{locator} names a whole item, which a service account cannot read here",
            remedy=f"name a field: {_PATH}; or use a Connect server",
        )
    query = "&".join(f"{name}={value}" for name, value in locator.params)
    return f"op://{locator.body}" + (f"?{query}" if query else "")


def _sealpipe_version() -> str:
    from importlib.metadata import version

    return version("sealpipe")
