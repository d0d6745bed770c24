"""Logins to Vault, by method. Files are read when they are needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from hvac.api.auth_methods import JWT, AppRole, Kubernetes, Userpass

from sealpipe.plugin import Context, NotConfiguredError, Secret, read_file
from sealpipe_plugins.vault.adapter import VaultAdapter, as_number, get_member
from sealpipe_plugins.vault.settings import VaultSettings

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")

_FILE_LIMIT: Final = 64 * 1024
"""Maximum size in bytes of a file with a token or a password."""


class Login(NamedTuple):
    """A token.

    `ends_at` is None if it never expires or that is unknown; `uses` is how often it may be used, 0
    for no limit. `is_ours`: we created it by a login, so we revoke it (batch tokens cannot be
    revoked). `is_end_known`: whether `ends_at` was looked up.
    """

    token: Secret
    ends_at: datetime | None = None
    uses: int = 0
    is_ours: bool = False
    is_end_known: bool = False


def choose_method(settings: VaultSettings, context: Context) -> str:
    """Return the login method from the settings.

    Raises NotConfiguredError if none is configured.
    """
    if settings.auth is not None:
        return settings.auth
    for name, is_configured in _SIGNS:
        if is_configured(settings):
            return name
    if _default_token_file(context) is not None:
        return "token"
    raise NotConfiguredError(
        f"no login for {context.store} is configured",
        remedy="set VAULT_TOKEN or BAO_TOKEN, VAULT_ROLE_ID and VAULT_SECRET_ID, or a role for the "
        "CI's own token (auth = jwt)",
    )


_SIGNS: tuple[tuple[str, Callable[[VaultSettings], object]], ...] = (
    ("token", lambda settings: settings.token or settings.token_file),
    ("approle", lambda settings: settings.role_id),
    ("jwt", lambda settings: settings.jwt or settings.jwt_file),
    ("userpass", lambda settings: settings.username),
    ("jwt", lambda settings: settings.role),
)
"""Settings and the method that they imply; the first match counts."""


def log_in(name: str, settings: VaultSettings, context: Context, adapter: VaultAdapter) -> Login:
    """Log in by a method. `adapter` has no token. Raises NotConfiguredError, VaultError."""
    if name == "token":
        return Login(_read_token(settings, context))
    started = datetime.now(UTC)
    auth = get_member(_METHODS[name](settings, context, adapter), "auth")
    token = get_member(auth, "client_token")
    if not isinstance(token, str) or not token:
        raise NotConfiguredError(
            f"the login by {name} returned no token: Vault requires a second factor",
            remedy="use another role",
        )
    lifetime = as_number(get_member(auth, "lease_duration"))
    return Login(
        Secret(token),
        started + timedelta(seconds=lifetime) if lifetime else None,
        as_number(get_member(auth, "num_uses")),
        is_ours=get_member(auth, "token_type") != "batch",
        is_end_known=True,
    )


def _approle(settings: VaultSettings, context: Context, adapter: VaultAdapter) -> Any:
    if not settings.role_id:
        raise _missing_setting(context, "role_id", "VAULT_ROLE_ID")
    secret_id = settings.secret_id or _read_file(settings.secret_id_file, "secret_id_file", context)
    # A role may require no secret id, only a client address in a given range.
    secret_id_text = None if secret_id is None else secret_id.reveal()
    return AppRole(adapter).login(
        settings.role_id,
        secret_id_text,
        use_token=False,
        mount_point=mount_path(settings, "approle"),
    )


def _jwt(settings: VaultSettings, context: Context, adapter: VaultAdapter) -> Any:
    jwt = (
        settings.jwt
        or _read_file(settings.jwt_file, "jwt_file", context)
        or context.oidc_token(settings.audience)
    )
    role = settings.role or None  # Vault then uses the method's default role
    return JWT(adapter).jwt_login(
        role, jwt.reveal(), use_token=False, path=mount_path(settings, "jwt")
    )


def _kubernetes(settings: VaultSettings, context: Context, adapter: VaultAdapter) -> Any:
    if not settings.role:
        raise _missing_setting(context, "role", "VAULT_AUTH_ROLE")
    jwt = (
        settings.jwt
        or _read_file(settings.jwt_file or SERVICE_ACCOUNT, "jwt_file", context)
        or Secret("")
    )
    mount = mount_path(settings, "kubernetes")
    return Kubernetes(adapter).login(
        settings.role, jwt.reveal(), use_token=False, mount_point=mount
    )


def _userpass(settings: VaultSettings, context: Context, adapter: VaultAdapter) -> Any:
    password = settings.password or _read_file(settings.password_file, "password_file", context)
    if not settings.username or password is None:
        raise _missing_setting(context, "password" if settings.username else "username")
    # hvac does not percent-encode these two
    name, mount = quote(settings.username, safe=""), quote(mount_path(settings, "userpass"))
    return Userpass(adapter).login(name, password.reveal(), use_token=False, mount_point=mount)


_METHODS: Mapping[str, Callable[[VaultSettings, Context, VaultAdapter], Any]] = {
    "approle": _approle,
    "jwt": _jwt,
    "kubernetes": _kubernetes,
    "userpass": _userpass,
}


def _read_token(settings: VaultSettings, context: Context) -> Secret:
    configured = settings.token or _read_file(settings.token_file, "token_file", context)
    token = configured or _read_file(_default_token_file(context), "token_file", context)
    if token is None:
        raise _missing_setting(context, "token", "VAULT_TOKEN or BAO_TOKEN")
    return token


def _default_token_file(context: Context) -> Path | None:
    """Return the token file of `vault login`.

    Only the default store uses it, because it belongs to VAULT_ADDR.
    """
    home = context.environ.get("HOME")
    if context.named or not home:
        return None
    file = Path(home) / ".vault-token"
    return file if file.is_file() else None


def _read_file(file: Path | None, setting: str, context: Context) -> Secret | None:
    """Read a file and strip surrounding white space. Raises NotConfiguredError."""
    if file is None:
        return None
    try:
        text = Secret(read_file(file.expanduser(), _FILE_LIMIT).strip())
        text.reveal()
        if text:
            return text
        reason = "is empty"
    except OSError as error:
        reason = f"cannot be read: {(error.strerror or type(error).__name__).lower()}"
    except (UnicodeDecodeError, RuntimeError):
        reason = "is not text, or its home folder does not exist"
    raise NotConfiguredError(
        f"the {setting} of {context.store} {reason}", remedy=f"check the setting {setting}"
    )


def mount_path(settings: VaultSettings, default: str) -> str:
    """Return the mount of the method; `default` if it is not configured."""
    return settings.auth_path.strip("/").removeprefix("auth/") or default


def _missing_setting(context: Context, setting: str, variable: str = "") -> NotConfiguredError:
    variable_hint = f", or {variable}" if variable and not context.named else ""
    return NotConfiguredError(
        f"the login of {context.store} lacks its {setting}",
        remedy=f"set the setting {setting}{variable_hint}",
    )
