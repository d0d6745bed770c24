"""The AWS settings, and the credentials for calls.

The default store finds them as AWS's own tools do. A named store uses only the keys, the profile,
the source or the role in its settings, so AWS_ACCESS_KEY_ID of one account is never used for
another.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final, Literal, Protocol

from botocore.credentials import CredentialResolver, Credentials, DeferredRefreshableCredentials
from botocore.exceptions import ProfileNotFound
from botocore.session import Session
from pydantic import PositiveFloat

from sealpipe.plugin import BackendAuthError, Context, NotConfiguredError, PluginError, Secret
from sealpipe.plugin.settings import PluginSettings
from sealpipe_plugins.aws.errors import FAILURES, error_code, map_error
from sealpipe_plugins.aws.transport import send_through


class AwsSettings(PluginSettings):
    """The settings are named as in AWS's own tools.

    Without any, the default store behaves like these tools.

    With `audience`, the role is assumed with the CI's OIDC token; without it, with the credentials
    found. `timeout` is in seconds, for connecting and for each read.
    """

    region: str | None = None
    profile: str | None = None
    access_key_id: Secret | None = None
    secret_access_key: Secret | None = None
    session_token: Secret | None = None
    credential_source: Literal["Environment", "Ec2InstanceMetadata", "EcsContainer"] | None = None
    role_arn: str | None = None
    role_session_name: str = "sealpipe"
    external_id: str | None = None
    audience: str | None = None
    endpoint_url: str | None = None
    timeout: PositiveFloat = 30.0

    # The SDK reads the other settings itself, but not this one.
    own_variables: ClassVar[Mapping[str, str]] = {"region": "AWS_REGION"}


_WITHOUT_VARIABLES: Final[Mapping[str, Any]] = {
    "profile": (None, None, None, None),
    "region": ("region", None, None, None),
}
"""The SDK's table of the sources of these settings (config file, variable, default, type), without
the variables.
"""


class ClientFactory(Protocol):
    """A function that makes a client from a session."""

    def __call__(
        self, session: Session, service: str, region: str | None = None, *, unsigned: bool = False
    ) -> Any:
        """Make the client."""


def make_session(settings: AwsSettings, context: Context, make_client: ClientFactory) -> Session:
    """Return a session whose clients use the configured credentials.

    A role is assumed at the first call.
    """
    session = _base_session(settings, context)
    with_token = settings.role_arn is not None and settings.audience is not None
    credentials = None if with_token else _configured_credentials(session, settings, context)
    if settings.role_arn is None:
        if settings.audience is not None:
            raise NotConfiguredError(
                f"{context.store} has an audience but no role_arn", remedy="set role_arn as well"
            )
        return session if credentials is None else _with_credentials(session, credentials)
    base_session = session if credentials is None else _with_credentials(session, credentials)

    def assume() -> dict[str, Any]:
        sts = make_client(base_session, "sts", unsigned=with_token)
        return _assume_role(sts, settings, context, with_token=with_token)

    role = DeferredRefreshableCredentials(refresh_using=assume, method="sealpipe")
    return _with_credentials(_base_session(settings, context), role)


def _base_session(settings: AwsSettings, context: Context) -> Session:
    session = Session(
        session_vars=dict(_WITHOUT_VARIABLES) if context.named else None, profile=settings.profile
    )
    send_through(session, context, settings.timeout)  # for the clients of the SDK's own logins, too
    if settings.profile is not None:
        _check_profile(session, settings.profile, context)
    return session


def _check_profile(session: Session, profile: str, context: Context) -> None:
    try:
        session.get_scoped_config()
        return
    except ProfileNotFound:
        pass
    raise NotConfiguredError(
        f"{context.store}: there is no AWS profile {profile}",
        remedy="see `aws configure list-profiles`",
    )


def _configured_credentials(session: Session, settings: AwsSettings, context: Context) -> Any:
    """Return the credentials in the settings; None to let the SDK find them."""
    key, secret, token = settings.access_key_id, settings.secret_access_key, settings.session_token
    if key is not None and secret is not None:
        return Credentials(
            key.reveal(), secret.reveal(), token.reveal() if token else None, method="sealpipe"
        )
    if key is not None or secret is not None:
        raise NotConfiguredError(
            f"{context.store} has only half of an AWS access key",
            remedy="set access_key_id and secret_access_key",
        )
    if settings.credential_source is not None:
        return _load_source(session, settings.credential_source, context)
    if context.named and settings.profile is None:
        raise NotConfiguredError(
            (
                f"the store {context.store} has no AWS credentials: AWS_* variables apply to "
                "the default store only"
            ),
            remedy="set its profile, its role_arn with audience (the CI's own token), its "
            "access_key_id and secret_access_key, or credential_source = Environment to use those "
            "variables",
        )
    return None


def _load_source(session: Session, source: str, context: Context) -> Any:
    providers = session.get_component("credential_provider").providers
    credentials = next((p.load() for p in providers if source == p.CANONICAL_NAME), None)
    if credentials is None:
        raise NotConfiguredError(
            f"{context.store}: its credential_source {source} provides no credentials here",
            remedy=(
                "choose another one, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY for "
                "Environment"
            ),
        )
    return credentials


class _StaticProvider:
    """A provider of fixed credentials."""

    METHOD = CANONICAL_NAME = "sealpipe"

    def __init__(self, credentials: Any) -> None:
        self._credentials = credentials

    def load(self) -> Any:
        return self._credentials


def _with_credentials(session: Session, credentials: Any) -> Session:
    session.register_component(
        "credential_provider", CredentialResolver([_StaticProvider(credentials)])
    )
    return session


def _assume_role(
    sts: Any, settings: AwsSettings, context: Context, *, with_token: bool
) -> dict[str, Any]:
    role = {"RoleArn": settings.role_arn, "RoleSessionName": settings.role_session_name}
    failure: PluginError
    try:
        if with_token:
            token = context.oidc_token(settings.audience).reveal()
            response = sts.assume_role_with_web_identity(**role, WebIdentityToken=token)
        else:
            external = {} if settings.external_id is None else {"ExternalId": settings.external_id}
            response = sts.assume_role(**role, **external)
        issued = response["Credentials"]
        return {
            "access_key": issued["AccessKeyId"],
            "secret_key": issued["SecretAccessKey"],
            "token": issued["SessionToken"],
            "expiry_time": issued["Expiration"].isoformat(),
        }
    except FAILURES as error:
        failure = _assume_error(error, settings, context, with_token=with_token)
    raise failure


def _assume_error(
    error: Exception, settings: AwsSettings, context: Context, *, with_token: bool
) -> PluginError:
    action = "sts:AssumeRoleWithWebIdentity" if with_token else "sts:AssumeRole"
    failure = map_error(error, f"{context.store}:", action)
    code = error_code(error)
    if code in (
        "AccessDenied",
        "AccessDeniedException",
        "InvalidIdentityToken",
        "IDPRejectedClaim",
    ):
        identity = "the CI's token" if with_token else "these credentials"
        return BackendAuthError(
            f"AWS does not let {identity} assume the role {settings.role_arn} ({code})",
            remedy=(
                "check the role's trust policy: the identity provider, its audience and the "
                "subject that it names"
            )
            if with_token
            else (
                "check the role's trust policy, its external_id, and that sts:AssumeRole is allowed"
            ),
        )
    return failure
