"""The connection to AWS.

The SDK's clients, one for each service and region, and calls that log nothing.

Clients may be used from several threads, sessions may not: clients are created under a lock. Calls
are not retried here: the core does that.
"""

from __future__ import annotations

import threading
from collections.abc import Collection
from typing import Any, Final
from urllib.parse import urlsplit

from botocore import UNSIGNED
from botocore.config import Config
from botocore.session import Session

from sealpipe.plugin import (
    Context,
    Health,
    NotConfiguredError,
    PluginError,
    UnavailableError,
    is_cleartext,
)
from sealpipe_plugins.aws.error_table import READ, Verb
from sealpipe_plugins.aws.errors import FAILURES, error_code, map_error
from sealpipe_plugins.aws.login import AwsSettings, make_session
from sealpipe_plugins.aws.transport import silence_sdk
from sealpipe_plugins.program import run_with_timeout

THREADS: Final = 4
"""Maximum concurrent calls: AWS allows an account about forty of these a second."""


class Aws:
    """One AWS account, as configured. Connects at the first call."""

    def __init__(self, settings: AwsSettings, context: Context) -> None:
        self._settings = settings
        self._context = context
        self._lock = threading.Lock()
        self._login = threading.Lock()
        self._session: Session | None = None
        self._clients: dict[tuple[str, str | None], Any] = {}

    def call_raw(
        self, service: str, operation: str, *, region: str | None = None, **parameters: Any
    ) -> dict[str, Any]:
        """Make one call; `operation` is the SDK's method name.

        Raises FAILURES, and PluginError if login fails.
        """
        self._ensure_login()
        with silence_sdk():
            response: dict[str, Any] = getattr(self._cached_client(service, region), operation)(
                **parameters
            )
            return response

    def call(
        self,
        service: str,
        operation: str,
        subject: object,
        verb: Verb = READ,
        *,
        expected: Collection[str] = (),
        tagging: str = "",
        region: str | None = None,
        **parameters: Any,
    ) -> dict[str, Any]:
        """Make one call about a reference.

        Raises PluginError; returns an empty response for error codes in `expected`.

        `tagging` is a second operation that the call needs permission for if it sets tags.
        """
        try:
            return self.call_raw(service, operation, region=region, **parameters)
        except FAILURES as error:
            needs = " and ".join(
                _permission(service, each) for each in (operation, tagging) if each
            )
            code, failure = error_code(error), map_error(error, subject, needs, verb)
        if code in expected:
            return {}
        raise failure

    def region(self, arn_or_name: str) -> str | None:
        """Return the region in an ARN; None to use the configured region."""
        parts = arn_or_name.split(":")
        return parts[3] if parts[0] == "arn" and len(parts) > 5 and parts[3] else None

    def check(self) -> Health:
        """Ask AWS for our identity, which needs no permission."""
        try:
            response = self.call_raw("sts", "get_caller_identity")
        except FAILURES as error:
            failure = map_error(error, f"{self._context.store}:", "sts:GetCallerIdentity")
        else:
            return Health(
                ok=True,
                detail=f"{response.get('Arn', 'an unknown identity')}, {self._region_name()}",
            )
        raise failure

    def close(self) -> None:
        """Close the connections and forget the login."""
        with self._lock:
            clients, self._clients, self._session = list(self._clients.values()), {}, None
        for client in clients:
            client.close()

    def _region_name(self) -> str:
        return str(self._cached_client("sts", None).meta.region_name)

    def _ensure_login(self) -> None:
        """Find credentials within the deadline, which the SDK's own providers ignore."""
        failure: PluginError
        try:
            run_with_timeout(self._context.deadline, self._log_in)
            return
        except TimeoutError:
            failure = UnavailableError(
                f"{self._context.store}: the provider of AWS credentials did not respond in time",
                remedy=(
                    "check the profile's credential_process, or the metadata service of this "
                    "machine or container"
                ),
            )
        raise failure

    def _log_in(self) -> None:
        # Its own lock, because a provider that hangs keeps holding it.
        with (
            silence_sdk(),
            self._login,
        ):
            if self._session is None:
                self._session = make_session(self._settings, self._context, self._make_client)
            credentials = self._session.get_credentials()
            if credentials is not None:
                credentials.get_frozen_credentials()  # renewed if they have expired

    def _cached_client(self, service: str, region: str | None) -> Any:
        with self._lock:
            if (service, region) not in self._clients:
                self._clients[service, region] = self._make_client(self._session, service, region)
            return self._clients[service, region]

    def _make_client(
        self, session: Session, service: str, region: str | None = None, *, unsigned: bool = False
    ) -> Any:
        options: dict[str, Any] = {"retries": {"total_max_attempts": 1}}
        if self._context.named:
            options["ignore_configured_endpoint_urls"] = (
                True  # AWS_ENDPOINT_URL applies to the default store only
            )
        if unsigned:
            options["signature_version"] = UNSIGNED
        client = session.create_client(
            service,
            region_name=region or self._settings.region,
            endpoint_url=self._settings.endpoint_url,
            config=Config(**options),
        )
        _check_endpoint(client, self._settings, self._context)
        return client


class AwsPlugin:
    """Mixin of the AWS sources and sinks: account, check and close.

    Must precede Source or Sink in the bases.
    """

    def __init__(self, settings: AwsSettings, context: Context) -> None:
        super().__init__(settings, context)  # type: ignore[call-arg]  # from Source or Sink
        self._aws = Aws(settings, context)

    def check(self) -> Health:
        """Ask AWS for our identity."""
        return self._aws.check()

    def close(self) -> None:
        """Close the connections."""
        self._aws.close()


def _permission(service: str, operation: str) -> str:
    """Return the IAM permission for a call, from the SDK's name of the call."""
    return f"{service}:{''.join(word.capitalize() for word in operation.split('_'))}"


def _check_endpoint(client: Any, settings: AwsSettings, context: Context) -> None:
    """Raise NotConfiguredError if the address that the SDK uses is neither https nor loopback."""
    parts = urlsplit(client.meta.endpoint_url)
    if parts.hostname and not is_cleartext(parts.scheme, parts.hostname):
        return
    service_variable = (
        "AWS_ENDPOINT_URL_" + client.meta.service_model.service_id.replace(" ", "_").upper()
    )
    variables_set = [
        name for name in (service_variable, "AWS_ENDPOINT_URL") if context.environ.get(name)
    ]
    if settings.endpoint_url is not None:
        setting = f"{context.store}'s endpoint_url"
    elif variables_set and not context.named:
        setting = variables_set[0]
    else:
        setting = f"the endpoint_url in AWS's config file, for {context.store}"
    raise NotConfiguredError(
        f"{setting} is not an https address: credentials and secrets would be sent unencrypted",
        remedy="use https://; http:// is only for loopback",
    )
