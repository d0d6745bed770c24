"""Settings of Vault and OpenBao, named like their own environment variables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator

from sealpipe.plugin import Secret
from sealpipe.plugin.settings import PluginSettings


def _seconds(value: object) -> object:
    """Parse a duration in the format of VAULT_CLIENT_TIMEOUT: 60, 60s or 2m."""
    match = re.fullmatch(r"([0-9]{1,5})(s|m)", value) if isinstance(value, str) else None
    return int(match[1]) * (60 if match[2] == "m" else 1) if match else value


Method = Literal["token", "approle", "jwt", "kubernetes", "userpass"]


class VaultSettings(PluginSettings):
    """A Vault server and the login to it.

    `auth` is the login method; by default it follows from the other settings. `auth_path` is the
    mount of that method (default: its name).

    `audience` is the audience of the CI's own token, used if there is no `jwt`. `ca_file` is
    trusted in addition to sealpipe's certificates. `timeout` is in seconds, for each step of a
    call.
    """

    addr: str
    namespace: str = ""
    auth: Method | None = None
    auth_path: str = ""
    token: Secret | None = None
    token_file: Path | None = None
    role: str = ""
    role_id: str = ""
    secret_id: Secret | None = None
    secret_id_file: Path | None = None
    jwt: Secret | None = None
    jwt_file: Path | None = None
    audience: str | None = None
    username: str = ""
    password: Secret | None = None
    password_file: Path | None = None
    ca_file: Path | None = None
    timeout: Annotated[float, BeforeValidator(_seconds)] = 15.0

    own_variables: ClassVar[Mapping[str, str | tuple[str, ...]]] = {
        "addr": ("VAULT_ADDR", "BAO_ADDR"),
        "namespace": "VAULT_NAMESPACE",
        "token": ("VAULT_TOKEN", "BAO_TOKEN"),
        "role_id": "VAULT_ROLE_ID",
        "secret_id": "VAULT_SECRET_ID",
        "role": "VAULT_AUTH_ROLE",
        "auth_path": "VAULT_AUTH_PATH",
        "ca_file": "VAULT_CACERT",
        "timeout": "VAULT_CLIENT_TIMEOUT",
    }
