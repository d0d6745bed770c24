"""The pydantic-settings model of `settings.GLOBAL`, behind `Client.from_settings`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, ValidationError, create_model
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from sealpipe.config import Config
from sealpipe.errors import SettingError, UsageError
from sealpipe.settings import GLOBAL, Setting

_CLIENT = ("base_url", "link_base_url", "service_tag", "ca_file", "deadline")


class _ConfigFile(PydanticBaseSettingsSource):
    """The user's config file, as the command line reads it."""

    settings_cls: type[_Base]

    def get_field_value(self, field: Any, field_name: str) -> tuple[Any, str, bool]:  # noqa: ARG002
        return self.settings_cls.config.user.get(field_name), field_name, False

    def __call__(self) -> dict[str, Any]:
        return {
            name: value
            for name, value in self.settings_cls.config.user.items()
            if not isinstance(value, dict)
        }


class _Base(BaseSettings):
    config: ClassVar[Config]

    model_config = SettingsConfigDict(
        env_prefix="SEALPIPE_", env_ignore_empty=True, extra="ignore", hide_input_in_errors=True
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - never read
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - never read
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        # No dotenv file: nothing in the working directory is read unless a setting names it.
        return init_settings, env_settings, _ConfigFile(settings_cls)


class _InvalidValueError(ValueError):
    """A validation error that carries the remedy through pydantic."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.remedy = remedy


def _make_validator(setting: Setting) -> Callable[[object], object]:
    def validate(value: object) -> object:
        try:
            return setting.parse(value) if isinstance(value, str) else value
        except UsageError as error:
            raise _InvalidValueError(error.message, error.remedy) from None

    return validate


def build_model(config: Config) -> type[BaseSettings]:
    """Build the model: one field for each global setting that is not secret."""
    fields: dict[str, Any] = {
        setting.name: (
            Annotated[Any, BeforeValidator(_make_validator(setting))],
            None if setting.default is None else setting.parse(setting.default),
        )
        for setting in GLOBAL
        if not setting.secret
    }
    model_fields = create_model("SealpipeSettings", __base__=_Base, **fields)
    model_fields.config = config
    return model_fields


def load_arguments(config: Config) -> dict[str, Any]:
    """Return a client's arguments. SettingError names an invalid setting, never its value."""
    try:
        values = build_model(config)().model_dump()
    except ValidationError as error:
        # Only location, message and remedy, all ours: the error's other parts hold the input.
        first = error.errors(include_input=False, include_url=False)[0]
        name = ".".join(str(part) for part in first["loc"])
        remedy = getattr(first.get("ctx", {}).get("error"), "remedy", None)
        raise SettingError(
            f"{name}: {first['msg'].removeprefix('Value error, ')}", remedy=remedy
        ) from None
    client_settings = {
        "api_key": config.read_api_key(values["api_key_file"]),
        "api_key_previous": config.previous_api_key,
    }
    return {**client_settings, **{name: values[name] for name in _CLIENT}}
