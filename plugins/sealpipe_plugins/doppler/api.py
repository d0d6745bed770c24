"""The API of Doppler, version 3."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
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

NAME: Final = "Doppler"

_SERVICE_TOKEN: Final = "dp.st."  # noqa: S105 - how such tokens begin
_BAD_LOGIN: Final = (
    BackendAuthError,
    "refused the login by OIDC",
    (
        "check identity, and that its subject and audience are those of the job's token (the "
        "setting audience)"
    ),
)
_LOGIN_REFUSALS: Final[Refusals] = dict.fromkeys((400, 401, 403, 404, 422), _BAD_LOGIN)


class DopplerSettings(PluginSettings):
    """A token of any kind; or the id of a service account's `identity`, which logs in with the CI
    job's OIDC token.

    `audience` is the one that the identity expects. `api_host` is an address without a path.
    """

    token: Secret | None = None
    identity: str = ""
    audience: str = ""
    api_host: str = "https://api.doppler.com"

    own_variables: ClassVar[Mapping[str, str]] = {
        "token": "DOPPLER_TOKEN",
        "api_host": "DOPPLER_API_HOST",
    }


class Doppler:
    """Requests with the store's token."""

    def __init__(self, settings: DopplerSettings, context: Context) -> None:
        token_hint = "token" if context.named else "DOPPLER_TOKEN, or the setting token"
        if settings.token is None and not settings.identity:
            raise NotConfiguredError(
                f"no Doppler token is set for {context.store}",
                remedy=(
                    f"set {token_hint}, to a service token; or the setting identity, to log in "
                    "by OIDC"
                ),
            )
        if settings.token is not None and settings.identity:
            raise NotConfiguredError(
                f"{context.store} has both a Doppler token and an identity",
                remedy=f"unset {token_hint}, or identity",
            )
        self._settings = settings
        self._context = context
        self._endpoint = Endpoint(
            context,
            NAME,
            settings.api_host,
            setting="api_host (DOPPLER_API_HOST)",
            limit=3 * PLAINTEXT_LIMIT,
        )
        self._login = LoginToken(self._log_in)

    @property
    def has_service_token(self) -> bool:
        """Whether the token belongs to one config."""
        return self._settings.token is not None and self._settings.token.reveal().startswith(
            _SERVICE_TOKEN
        )

    def request(
        self,
        method: str,
        path: str,
        params: Mapping[str, str] | None = None,
        members: Mapping[str, Any] | None = None,
        refusals: Refusals | None = None,
        *,
        writes: bool = False,
    ) -> Reply:
        """Send one request, with JSON if `members` are given.

        `writes` is True if it must not be repeated.
        """
        token = self._settings.token or self._login.get()
        reply = send_with_token(self._endpoint, token, method, path, params, members, writes=writes)
        return require_success(reply, refusals)

    def close(self) -> None:
        """Revoke the token of a login."""
        if self._login.current is not None:
            self._endpoint.post(
                "/v3/auth/revoke", {"token": self._login.current.reveal()}, writes=False
            )

    def _log_in(self) -> tuple[Secret, float]:
        jwt = self._context.oidc_token(self._settings.audience or None)
        members = {"identity": self._settings.identity, "token": jwt.reveal()}
        reply = require_success(
            self._endpoint.post("/v3/auth/oidc", members, writes=False), _LOGIN_REFUSALS
        )
        token = reply.member("token")
        try:
            seconds = (
                datetime.fromisoformat(reply.member("expires_at")) - datetime.now(UTC)
            ).total_seconds()
        except (TypeError, ValueError):
            token = None
        if isinstance(token, str) and token:
            return Secret(token), seconds
        raise unexpected_response()


def unexpected_response() -> PluginError:
    """Return the error for a response that is not Doppler's."""
    return PluginError(
        f"{NAME} sent an unexpected response", remedy="check api_host (DOPPLER_API_HOST)"
    )
