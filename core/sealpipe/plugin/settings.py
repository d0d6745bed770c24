"""The base class of settings. It imports pydantic: import it only in a factory's module.

    class VaultSettings(PluginSettings):
        addr: str
        token: Secret | None = None
        own_variables = {"addr": "VAULT_ADDR", "token": "VAULT_TOKEN"}

A value comes from the environment (`SEALPIPE_PLUGIN_VAULT__ADDR`, for a named store
`SEALPIPE_STORE__PROD__ADDR`), otherwise from the config file (`[plugins.vault]`, `[stores.prod]`),
otherwise, for the default store only, from the backend's own variable, otherwise from the default.
Secrets are never read from the config file.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import ClassVar

from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

__all__ = ["PluginSettings"]


class PluginSettings(BaseSettings):
    """Settings of a plugin: unknown names are errors, and no error shows a value."""

    model_config = SettingsConfigDict(extra="forbid", hide_input_in_errors=True, frozen=True)

    own_variables: ClassVar[Mapping[str, str | tuple[str, ...]]] = {}
    """The backend's own variable for each setting, or several; they apply to the default store
    only.
    """

    file_only: ClassVar[Collection[str]] = ()
    """Settings that the environment cannot set: only users who may write the config file decide."""

    file_only_values: ClassVar[Mapping[str, Collection[str]]] = {}
    """Values that the environment cannot set, by setting; it may set others."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - pydantic-settings' signature
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - as above
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - as above
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - as above
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        # The registry collects the values: pydantic would not notice a mistyped name in the
        # environment.
        return (init_settings,)
