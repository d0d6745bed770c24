"""What `start` returns: a service in this process, and methods to manage and inspect it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, Self, Unpack

from sealpipe.secret import Secret
from sealpipe_service.journal import Event, Note
from sealpipe_service.webhook_deliveries import WebhookDelivery

from . import control_client
from .control_client import KeyOptions, Webhook
from .fault_parser import parse_plan
from .fault_plan import Progress
from .log import LoggedRequest
from .rehearsed import RehearsedService
from .uvicorn_server import Address, Server

if TYPE_CHECKING:
    from .people import Recipient, Submitter

_START_SECONDS = 10
_STOP_SECONDS = 10
_DELIVERY_SECONDS = 20


class RunningService:
    """A service that runs in a thread of this process.

    As a context manager, it stops at the end.
    """

    def __init__(self, service: RehearsedService, server: Server, sock: socket.socket) -> None:
        host, port = sock.getsockname()[:2]
        self.address = Address(host, port)
        self.service = service
        self._server = server
        self._thread = threading.Thread(
            target=server.run, kwargs={"sockets": [sock]}, name="sealpipe-rehearsal", daemon=True
        )
        self._thread.start()
        service.deliverer.wake()  # deliveries that were due when the service last stopped
        if not server.ready.wait(_START_SECONDS):
            self.stop()
            raise RuntimeError("the rehearsal service did not start")

    @property
    def base_url(self) -> str:
        """The API's address, ending in /v1."""
        return self.address.base_url

    @property
    def link_base_url(self) -> str:
        """The address that links start with, ending in /s."""
        return self.address.link_base_url

    @property
    def origin(self) -> str:
        """The address without a path."""
        return self.address.origin

    @property
    def service_tag(self) -> str:
        """The tag in this service's credentials and key derivations."""
        return self.service.tag

    def create_key(self, *, name: str = "rehearsal", **options: Unpack[KeyOptions]) -> Secret:
        """Create and register a key: see `control_client.register_key`.

        Returns the three-part credential.
        """
        return control_client.register_key(self.origin, name=name, **options)

    def set_account(
        self, name: str = "default", *, at_once: bool = True, **changes: str | bool | int
    ) -> None:
        """Change an account's plan, limits or switches: see `control_client.set_account`."""
        control_client.set_account(self.origin, name, at_once=at_once, **changes)

    def revoke_key(self, credential: Secret) -> None:
        """Revoke a key that `create_key` returned."""
        control_client.revoke_key(self.origin, _key_id(credential))

    def grant_custody(self, credential: Secret) -> None:
        """Approve custody `account` for a key that requested it."""
        control_client.grant_custody(self.origin, _key_id(credential))

    def advance(self, seconds: float) -> None:
        """Move the service's clock forward."""
        self.service.clock.advance(seconds)

    def recipient(self) -> Recipient:
        """A person who has been sent a share's link."""
        from .people import Recipient  # here, so that serving does not load cryptography

        return Recipient(self.origin)

    def submitter(self) -> Submitter:
        """A person who has been sent a collect link."""
        from .people import Submitter

        return Submitter(self.origin)

    def add_webhook(self, url: str, *, account: str = "default") -> Webhook:
        """Add a webhook endpoint for an account's events; its secret is shown only now."""
        return control_client.add_webhook(self.origin, url, account=account)

    def rotate_webhook(self, webhook_id: str) -> Webhook:
        """Create a new secret for an endpoint. For 24 hours the previous secret also signs."""
        return control_client.rotate_webhook(self.origin, webhook_id)

    def remove_webhook(self, webhook_id: str) -> None:
        """Remove an endpoint and its pending deliveries."""
        control_client.remove_webhook(self.origin, webhook_id)

    def deliveries(self) -> list[WebhookDelivery]:
        """Return the deliveries to webhook endpoints, oldest first. Waits for those in progress."""
        self.service.deliverer.wait_idle(_DELIVERY_SECONDS)
        return self.service.deliverer.all()

    def seen(self) -> list[LoggedRequest]:
        """Return every request that the service received, oldest first, except calls of the control
        API.
        """
        return self.service.log.requests()

    def events(self) -> list[Event]:
        """Return every event that the service emitted, oldest first."""
        return self.service.log.events()

    def notes(self) -> list[Note]:
        """Return the notes for the operator, such as compromised keys, oldest first."""
        return self.service.log.notes()

    def set_faults(self, *rows: Mapping[str, object]) -> None:
        """Replace the fault plan; without rows, remove it.

        Raises FaultPlanError for an invalid row.

        A row is an entry of a plan file's `[[fault]]`: `{"fault": "reset", "after_commit": True,
        "times": 2}`.
        """
        self.service.faults.set(parse_plan(rows))

    def faults(self) -> list[Progress]:
        """Return every row of the fault plan and its progress."""
        return self.service.faults.progress()

    def refuse(self) -> None:
        """Refuse new connections until `mend`. Open connections stay."""
        self._server.set_connection_refusal(enabled=True)

    def mend(self) -> None:
        """Remove the fault plan and accept connections again."""
        self.service.faults.set([])
        self._server.set_connection_refusal(enabled=False)

    def rename(self, what: Literal["shares", "requests"], code: str, other: str) -> None:
        """Give a share or a request another short code.

        Links and sealed links that name the old one no longer work.
        """
        statements = {
            "shares": "UPDATE shares SET short_code = :other WHERE short_code = :code",
            "requests": "UPDATE requests SET short_code = :other WHERE short_code = :code",
        }
        self.service.database.run_text(statements[what], {"code": code, "other": other})

    def reset(self) -> None:
        """Delete accounts, keys, shares, records and the log."""
        control_client.reset(self.origin)

    def stop(self) -> None:
        """Finish open calls, then close the port and the state. May be called twice."""
        self._server.end()
        self._thread.join(_STOP_SECONDS)
        self.service.deliverer.stop()
        self.service.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _key_id(credential: Secret) -> str:
    return credential.reveal().partition("_sk_live_")[2].partition(".")[0]
