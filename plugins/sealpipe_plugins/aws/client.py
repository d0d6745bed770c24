"""The connection to AWS: clients of the SDK, one for each service and region, and calls that log nothing.

Clients may be used from several threads, sessions may not: what makes clients does it under a lock. Calls are
not repeated here: the core does that.
"""

from __future__ import annotations

import threading
from collections.abc import Collection
from typing import Any, Final
from urllib.parse import urlsplit

from botocore import UNSIGNED
from botocore.config import Config
from botocore.session import Session

from sealpipe.plugin import Context, Health, NotConfiguredError, PluginError, UnavailableError, in_clear
from sealpipe_plugins.aws.error_table import READ, Doing
from sealpipe_plugins.aws.errors import FAILURES, code_of, told
from sealpipe_plugins.aws.login import AwsSettings, logged_in
from sealpipe_plugins.aws.transport import quiet
from sealpipe_plugins.program import run_with_timeout

THREADS: Final = 4
"""Calls at once: AWS allows an account some forty of these a second."""


class Aws:
    """One account, as the settings say. Nothing is asked before the first call."""

    def __init__(self, settings: AwsSettings, context: Context) -> None:
        self._settings = settings
        self._context = context
        self._lock = threading.Lock()
        self._login = threading.Lock()
        self._session: Session | None = None
        self._clients: dict[tuple[str, str | None], Any] = {}

    def ask(self, service: str, operation: str, *, region: str | None = None, **parameters: Any) -> dict[str, Any]:
        """One call; `operation` as the SDK names its methods. Raises FAILURES, and PluginError where login fails."""
        self._get_ready()
        with quiet():
            answer: dict[str, Any] = getattr(self._client(service, region), operation)(**parameters)
            return answer

    def call(
        self,
        service: str,
        operation: str,
        about: object,
        doing: Doing = READ,
        *,
        expected: Collection[str] = (),
        tagging: str = "",
        region: str | None = None,
        **parameters: Any,
    ) -> dict[str, Any]:
        """One call about a reference. Raises PluginError; an error that is `expected`, by its code, is empty.

        `tagging` is the second operation whose permission it needs, where it sets tags.
        """
        try:
            return self.ask(service, operation, region=region, **parameters)
        except FAILURES as error:
            needs = " and ".join(_action(service, each) for each in (operation, tagging) if each)
            code, failure = code_of(error), told(error, about, needs, doing)
        if code in expected:
            return {}
        raise failure

    def region(self, arn_or_name: str) -> str | None:
        """The region that an ARN names; None for the settings' own."""
        parts = arn_or_name.split(":")
        return parts[3] if parts[0] == "arn" and len(parts) > 5 and parts[3] else None

    def check(self) -> Health:
        """Who AWS takes us for. Needs no permission."""
        try:
            answer = self.ask("sts", "get_caller_identity")
        except FAILURES as error:
            failure = told(error, f"{self._context.store}:", "sts:GetCallerIdentity")
        else:
            return Health(ok=True, detail=f"{answer.get('Arn', 'somebody')}, {self._where()}")
        raise failure

    def close(self) -> None:
        """Hang up, and forget the login."""
        with self._lock:
            clients, self._clients, self._session = list(self._clients.values()), {}, None
        for client in clients:
            client.close()

    def _where(self) -> str:
        return str(self._client("sts", None).meta.region_name)

    def _get_ready(self) -> None:
        """Have credentials at hand: the SDK finds them by ways of its own, which know no deadline."""
        failure: PluginError
        try:
            run_with_timeout(self._context.deadline, self._log_in)
            return
        except TimeoutError:
            failure = UnavailableError(
                f"{self._context.store}: what gives AWS's credentials did not answer in time",
                remedy="look at the profile's credential_process, or at the metadata of this machine or container",
            )
        raise failure

    def _log_in(self) -> None:
        with quiet(), self._login:  # not the other lock: who is late here keeps it
            if self._session is None:
                self._session = logged_in(self._settings, self._context, self._make)
            found = self._session.get_credentials()
            if found is not None:
                found.get_frozen_credentials()  # anew, where they have run out

    def _client(self, service: str, region: str | None) -> Any:
        with self._lock:
            if (service, region) not in self._clients:
                self._clients[service, region] = self._make(self._session, service, region)
            return self._clients[service, region]

    def _make(self, session: Session, service: str, region: str | None = None, *, unsigned: bool = False) -> Any:
        options: dict[str, Any] = {"retries": {"total_max_attempts": 1}}
        if self._context.named:
            options["ignore_configured_endpoint_urls"] = True  # AWS_ENDPOINT_URL is the default store's
        if unsigned:
            options["signature_version"] = UNSIGNED
        client = session.create_client(
            service,
            region_name=region or self._settings.region,
            endpoint_url=self._settings.endpoint_url,
            config=Config(**options),
        )
        _check(client, self._settings, self._context)
        return client


class OnAws:
    """What every source and sink of AWS has: the account, who it is, and an end. Stands before Source or Sink."""

    def __init__(self, settings: AwsSettings, context: Context) -> None:
        super().__init__(settings, context)  # type: ignore[call-arg]  # Source's, or Sink's
        self._aws = Aws(settings, context)

    def check(self) -> Health:
        """Who AWS takes us for."""
        return self._aws.check()

    def close(self) -> None:
        """Hang up."""
        self._aws.close()


def _action(service: str, operation: str) -> str:
    """The permission that a call needs, of the SDK's name for it."""
    return f"{service}:{''.join(word.capitalize() for word in operation.split('_'))}"


def _check(client: Any, settings: AwsSettings, context: Context) -> None:
    """NotConfiguredError where the address that the SDK has settled on is not https, or loopback."""
    parts = urlsplit(client.meta.endpoint_url)
    if parts.hostname and not in_clear(parts.scheme, parts.hostname):
        return
    of_service = "AWS_ENDPOINT_URL_" + client.meta.service_model.service_id.replace(" ", "_").upper()
    set_here = [name for name in (of_service, "AWS_ENDPOINT_URL") if context.environ.get(name)]
    if settings.endpoint_url is not None:
        setting = f"{context.store}'s endpoint_url"
    elif set_here and not context.named:
        setting = set_here[0]
    else:
        setting = f"the endpoint_url in AWS's config file, for {context.store}"
    raise NotConfiguredError(
        f"{setting} is not an https address: credentials and secrets would travel in clear",
        remedy="let it begin with https://; http:// is for this machine itself only",
    )
