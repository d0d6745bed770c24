"""Settings of AWS, for everything that is read from it or stored in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import PositiveFloat

from sealpipe.plugin import Secret
from sealpipe.plugin.settings import PluginSettings


class AwsSettings(PluginSettings):
    """Names as AWS's own tools have them. Without any, the default store does as these tools do.

    With `audience` the role is assumed by the CI's OIDC token, without it by the credentials that are found.
    `timeout` is in seconds, for connecting and for each read.
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

    # The SDK knows the others by itself; this one it does not.
    own_variables: ClassVar[Mapping[str, str]] = {"region": "AWS_REGION"}
