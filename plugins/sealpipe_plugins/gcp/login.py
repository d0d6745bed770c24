"""The login to Google: an access token from the configured credentials, by Google's own library.

Nothing but the file, the provider or (for the default store only) the places of Google's own tools
is looked at: not `google.auth.default()`, which reads the environment and asks for a metadata
server on every machine.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from google.auth import exceptions, identity_pool

from sealpipe.plugin import Context, NotConfiguredError, PluginError, Secret, is_loopback, read_file
from sealpipe_plugins.gcp.errors import login_error
from sealpipe_plugins.gcp.settings import GcpSettings
from sealpipe_plugins.gcp.transport import LoginTransport, MetadataTransport

SCOPES: Final = ("https://www.googleapis.com/auth/cloud-platform",)
STS: Final = "https://sts.googleapis.com/v1/token"
IAM: Final = (
    "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/{}:generateAccessToken"
)

_ADDRESSES: Final = ("token_url", "token_uri", "service_account_impersonation_url")
"""Members of a credentials file that say where what it names (a token, or any file) is sent."""
_OLD_KEYS: Final = "accounts.google.com"
"""Where the keys of old files ask for tokens."""
_API: Final = "secretmanager."
"""How the address of Secret Manager begins; the rest is a domain of Google's."""

_OF_ODD_RESPONSES: Final = (
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)
"""What the library raises for a response with other types or numbers than Google's."""

_FILE_LIMIT: Final = 64 * 1024
"""Maximum size in bytes of a file with credentials."""


class Login:
    """The credentials of one store. Thread-safe; logs in at the first call."""

    def __init__(self, settings: GcpSettings, context: Context) -> None:
        self._settings = settings
        self._context = context
        self._lock = threading.Lock()
        self._credentials: Any = None
        self._transport: Any = None

    def headers(self) -> dict[str, str | Secret]:
        """Return the headers that log a request in. Raises PluginError."""
        with self._lock:
            if self._credentials is None:
                self._credentials, self._transport = _find_credentials(
                    self._settings, self._context
                )
            if not self._credentials.valid:
                self._refresh()
            quota = self._credentials.quota_project_id
            token = Secret(f"Bearer {self._credentials.token}")
        return {"authorization": token, **({"x-goog-user-project": quota} if quota else {})}

    def describe(self) -> str:
        """Return whose login it is, as far as the credentials say; after `headers`."""
        email = getattr(self._credentials, "service_account_email", None)
        return str(email) if email else "the configured user"

    def forget(self) -> None:
        """Forget the token: the next call gets a new one."""
        with self._lock:
            if self._credentials is not None:
                self._credentials.token = None

    def _refresh(self) -> None:
        self._transport.refusal = None
        try:
            self._credentials.refresh(self._transport)
            return
        except (exceptions.GoogleAuthError, *_OF_ODD_RESPONSES, OSError):
            pass  # their texts may quote a response or a key
        raise login_error(self._transport.refusal, self._context.store, self._settings)


def _find_credentials(settings: GcpSettings, context: Context) -> tuple[Any, Any]:
    """Return the credentials and the transport that they are to be refreshed by."""
    shared = LoginTransport(context, settings.timeout)
    if settings.workload_identity_provider is not None:
        return _federate(settings, context), shared
    if settings.service_account is not None:
        raise NotConfiguredError(
            f"{context.store} has a service_account but no workload_identity_provider",
            remedy=(
                "set workload_identity_provider as well, or the service account's "
                "credentials_file instead"
            ),
        )
    file = settings.credentials_file or _default_file(context)
    if file is not None:
        return _load_file(file.expanduser(), settings, context), shared
    if context.named:
        raise NotConfiguredError(
            f"the store {context.store} has no Google credentials: "
            "GOOGLE_APPLICATION_CREDENTIALS and gcloud's login "
            "apply to the default store only",
            remedy=(
                "set its credentials_file, or its workload_identity_provider for the CI's own token"
            ),
        )
    return _machine_credentials(context)


def _default_file(context: Context) -> Path | None:
    """Return the file of `gcloud auth application-default login`.

    Only the default store uses it.
    """
    home, folder = context.environ.get("HOME"), context.environ.get("CLOUDSDK_CONFIG")
    if context.named or not (home or folder):
        return None
    file = (
        Path(folder) if folder else Path(home or "", ".config", "gcloud")
    ) / "application_default_credentials.json"
    return file if file.is_file() else None


def _load_file(file: Path, settings: GcpSettings, context: Context) -> Any:
    reason = "it is not a file with Google credentials"
    try:
        info = json.loads(read_file(file, _FILE_LIMIT))
        load = _KINDS.get(info["type"])
        if load is not None and all(
            is_googles(address, settings.url) for address in _list_addresses(info)
        ):
            return load(info)
        reason = (
            "an address in it is not Google's"
            if load is not None
            else f"its type is not one of {', '.join(_KINDS)}"
        )
    except OSError as error:
        reason = error.strerror or type(error).__name__
    except (
        exceptions.GoogleAuthError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        RecursionError,
    ):
        pass  # their texts may quote the key
    raise NotConfiguredError(
        f"the credentials file of {context.store} cannot be used: {reason}",
        remedy="check credentials_file (GOOGLE_APPLICATION_CREDENTIALS): it names the JSON file of "
        "a service account, of gcloud's login, or of workload identity federation",
    )


def _list_addresses(info: Mapping[str, Any]) -> list[str]:
    parts = (info, info.get("source_credentials") or {})
    # Where no address is named, the library makes it of the domain.
    domains = [
        f"https://sts.{part['universe_domain']}" for part in parts if part.get("universe_domain")
    ]
    return domains + [str(part[name]) for part in parts for name in _ADDRESSES if part.get(name)]


def is_googles(address: str, url: str) -> bool:
    """Return whether an address is in a domain of Google's.

    That of Secret Manager itself, if it is another one.
    """
    host, api = ((urlsplit(each).hostname or "").lower() for each in (address, url))
    domains = ("googleapis.com", *([api.removeprefix(_API)] if api.startswith(_API) else []))
    return (
        host == _OLD_KEYS
        or is_loopback(host)
        or any(host.endswith(f".{domain}") for domain in domains)
    )


def _load_service_account(info: Mapping[str, Any]) -> Any:
    from google.oauth2 import service_account

    return service_account.Credentials.from_service_account_info(info, scopes=SCOPES)


def _load_user(info: Mapping[str, Any]) -> Any:
    from google.oauth2 import credentials

    return credentials.Credentials.from_authorized_user_info(info)


def _load_external_account(info: Mapping[str, Any]) -> Any:
    # Only tokens from files and addresses: another kind would start a program or read the variables
    # of AWS.
    return identity_pool.Credentials.from_info(info, scopes=SCOPES)


def _load_impersonated(info: Mapping[str, Any]) -> Any:
    from google.auth import impersonated_credentials

    return impersonated_credentials.Credentials.from_impersonated_service_account_info(
        info, scopes=SCOPES
    )


_KINDS: Final[Mapping[str, Callable[[Mapping[str, Any]], Any]]] = {
    "service_account": _load_service_account,
    "authorized_user": _load_user,
    "external_account": _load_external_account,
    "impersonated_service_account": _load_impersonated,
}


class _CIToken(identity_pool.SubjectTokenSupplier):
    """Supplies the CI's own token."""

    def __init__(self, context: Context, audience: str) -> None:
        self._context = context
        self._audience = audience

    def get_subject_token(self, context: Any, request: Any) -> str:  # noqa: ARG002
        return self._context.oidc_token(self._audience).reveal()


def _federate(settings: GcpSettings, context: Context) -> Any:
    provider = (settings.workload_identity_provider or "").strip("/")
    account = settings.service_account
    return identity_pool.Credentials(
        audience=f"//iam.googleapis.com/{provider}",
        subject_token_type="urn:ietf:params:oauth:token-type:jwt",  # noqa: S106
        token_url=STS,
        subject_token_supplier=_CIToken(
            context, settings.audience or f"https://iam.googleapis.com/{provider}"
        ),
        service_account_impersonation_url=None if account is None else IAM.format(account),
        scopes=SCOPES,
    )


def _machine_credentials(context: Context) -> tuple[Any, MetadataTransport]:
    """Return the credentials of the machine's service account.

    Raises NotConfiguredError if it is not Google's.
    """
    machine = MetadataTransport(context.environ.get("GCE_METADATA_HOST"))
    machine.require_server()
    failure: PluginError
    try:
        from google.auth import compute_engine

        return compute_engine.Credentials(scopes=SCOPES), machine
    except ImportError:
        from sealpipe.installation import format_command  # for an error only

        failure = NotConfiguredError(
            "the package requests, which the login of a Google machine needs, is not installed",
            remedy=format_command(["sealpipe[gcp]"]),
        )
    raise failure
