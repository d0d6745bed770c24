"""The API of Infisical, on its cloud or self-hosted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from sealpipe.plugin import (
    PLAINTEXT_LIMIT,
    BackendAuthError,
    Context,
    NotConfiguredError,
    PluginError,
    Secret,
)
from sealpipe.plugin.settings import PluginSettings
from sealpipe_plugins.http_api import Endpoint
from sealpipe_plugins.http_errors import Refusals, require_success
from sealpipe_plugins.http_reply import Reply
from sealpipe_plugins.login_token import LoginToken, send_with_token

NAME: Final = "Infisical"

_LONGEST: Final = 1e9
"""Seconds. What is longer, or no number, is no lifetime of a token."""

_LOGIN: Final = "/api/v1/auth/{method}/login"
_REFUSED: Final = (400, 401, 403, 404, 422)
_BAD_TOKEN: Final = (
    BackendAuthError,
    "refused the token",
    "create another one: it is wrong, expired or revoked",
)


class InfisicalSettings(PluginSettings):
    """A machine identity's login: an access `token`; `client_id` and `client_secret` (Universal
    Auth); or `identity_id`, which logs in with the CI job's OIDC token for `audience`.

    `url` is the address of the instance.
    """

    url: str = "https://app.infisical.com"
    token: Secret | None = None
    client_id: str = ""
    client_secret: Secret | None = None
    identity_id: str = ""
    audience: str = ""

    own_variables: ClassVar[Mapping[str, str]] = {
        "url": "INFISICAL_API_URL",
        "token": "INFISICAL_TOKEN",
        "client_id": "INFISICAL_UNIVERSAL_AUTH_CLIENT_ID",
        "client_secret": "INFISICAL_UNIVERSAL_AUTH_CLIENT_SECRET",
        "identity_id": "INFISICAL_MACHINE_IDENTITY_ID",
    }


class Infisical:
    """Requests with the identity's token."""

    def __init__(self, settings: InfisicalSettings, context: Context) -> None:
        _check_login(settings, context)
        self._settings = settings
        self._context = context
        # The variable of Infisical's own command line ends in /api.
        url = settings.url.rstrip("/").removesuffix("/api")
        self._endpoint = Endpoint(
            context, NAME, url, setting="url (INFISICAL_API_URL)", limit=3 * PLAINTEXT_LIMIT
        )
        self._login = LoginToken(self._log_in)

    def request(
        self,
        method: str,
        path: str,
        params: Mapping[str, str] | None = None,
        members: Mapping[str, Any] | None = None,
        refusals: Refusals | None = None,
    ) -> Reply:
        """Send one request, with JSON if `members` are given: then it must not be repeated."""
        token = self._settings.token or self._login.get()
        is_write = members is not None
        reply = send_with_token(
            self._endpoint, token, method, path, params, members, writes=is_write
        )
        # An expired token is refused with 403, too.
        is_token_error = reply.status == 403 and reply.member("error") == "TokenError"
        return require_success(
            reply, {403: _BAD_TOKEN} if is_token_error else {401: _BAD_TOKEN, **(refusals or {})}
        )

    def check(self) -> str:
        """Log in, or check that Infisical responds; a token that was given is not checked."""
        if self._settings.token is None:
            self._login.get()
            return "logged in; what the identity may read cannot be checked"
        require_success(self._endpoint.get("/api/status"))
        return "it responds; the token was not checked"

    def close(self) -> None:
        """Revoke the token of a login."""
        if self._login.current is not None:
            self._endpoint.post(
                "/api/v1/auth/token/revoke", {"accessToken": self._login.current.reveal()}
            )

    def _log_in(self) -> tuple[Secret, float]:
        settings = self._settings
        if settings.client_secret is not None:
            method, what, remedy = (
                "universal-auth",
                "Universal Auth",
                "check client_id and client_secret",
            )
            members = {
                "clientId": settings.client_id,
                "clientSecret": settings.client_secret.reveal(),
            }
        else:
            method, what = "oidc-auth", "OIDC"
            remedy = (
                "check identity_id, and that its subject and audience are those of the job's "
                "token (audience)"
            )
            jwt = self._context.oidc_token(settings.audience or None)
            members = {"identityId": settings.identity_id, "jwt": jwt.reveal()}
        refusals: Refusals = dict.fromkeys(
            _REFUSED, (BackendAuthError, f"refused the login by {what}", remedy)
        )
        reply = require_success(
            self._endpoint.post(_LOGIN.format(method=method), members, writes=False), refusals
        )
        token, seconds = reply.member("accessToken"), reply.member("expiresIn")
        if (
            isinstance(token, str)
            and token
            and isinstance(seconds, int | float)
            and abs(seconds) <= _LONGEST
        ):
            return Secret(token), float(seconds)
        raise unexpected_response()


def unexpected_response() -> PluginError:
    """Return the error for a response that is not Infisical's."""
    return PluginError(
        f"{NAME} sent an unexpected response", remedy="check url (INFISICAL_API_URL)"
    )


def _check_login(settings: InfisicalSettings, context: Context) -> None:
    """Refuse settings that do not name exactly one login."""
    has_universal_auth = bool(settings.client_id or settings.client_secret)
    logins = [settings.token is not None, has_universal_auth, bool(settings.identity_id)]
    if sum(logins) != 1:
        raise NotConfiguredError(
            f"{context.store} has {'several logins' if any(logins) else 'no login'} for Infisical",
            remedy=(
                "set exactly one: token; client_id and client_secret; or identity_id, to log "
                "in by OIDC"
            ),
        )
    if has_universal_auth and not (settings.client_id and settings.client_secret):
        missing = "client_secret" if settings.client_id else "client_id"
        raise NotConfiguredError(
            f"the login of {context.store} lacks its {missing}", remedy=f"set {missing}, too"
        )
