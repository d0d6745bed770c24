"""The pytest plugin (entry point `pytest11`): the fixture `sealpipe_rehearsal` and its `Rehearsal`.

pytest imports this module in every run wherever sealpipe is installed, so its top imports only
pytest and the standard library.
"""

from __future__ import annotations

import contextlib
import os
from datetime import timedelta

import pytest

TYPE_CHECKING = False  # the same form as in typing
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path
    from typing import Any, Self

    from sealpipe import AsyncClient, Client
    from sealpipe.secret import Secret
    from sealpipe_service.journal import Event, Note
    from sealpipe_service.webhook_deliveries import WebhookDelivery

    from .control_client import Webhook
    from .log import LoggedRequest
    from .people import Recipient, Submitter
    from .running_service import RunningService


@pytest.fixture(scope="session")
def _sealpipe_rehearsal_service() -> Iterator[RunningService]:
    """One service per session (per worker with xdist), started by the first test that needs it."""
    missing = None
    try:
        from sealpipe_rehearsal.server import start
    except ImportError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in ("starlette", "uvicorn"):
            raise
    if missing:
        pytest.fail(
            f"the fixture sealpipe_rehearsal needs {missing}, which is not installed: "
            "pip install 'sealpipe[rehearsal]'",
            pytrace=False,
        )
    with start() as running:
        yield running


@pytest.fixture
def sealpipe_rehearsal(
    _sealpipe_rehearsal_service: RunningService, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Rehearsal]:
    """An empty local copy of the service, with a recipient and a submitter for its links.

    .base_url .link_base_url .api_key .credential(scopes=, custody=) .client() .environ() .recipient
    .submitter .advance(seconds) .faults(...) .seen() .events() .set_account(...) .webhook(url)
    .deliveries() .extend()
    """
    with Rehearsal(
        _sealpipe_rehearsal_service, lambda: tmp_path_factory.mktemp("sealpipe_rehearsal")
    ) as rehearsal:
        yield rehearsal


class Rehearsal:
    """A service for this test alone: data of earlier tests is deleted, and the clock is reset.

    No credential appears in its repr or in those of its results.
    """

    def __init__(self, running: RunningService, new_folder: Callable[[], Path]) -> None:
        self._running = running
        self._new_folder = new_folder
        self._api_key: Secret | None = None
        self._exit_stack = contextlib.ExitStack()
        running.mend()
        running.reset()
        running.service.extended = False

    def __repr__(self) -> str:
        return f"<Rehearsal at {self.base_url}>"

    @property
    def base_url(self) -> str:
        """The API's address, as SEALPIPE_BASE_URL and `Client(base_url=...)` take it."""
        return self._running.base_url

    @property
    def link_base_url(self) -> str:
        """The address that links start with, as SEALPIPE_LINK_BASE_URL and
        `Client(link_base_url=...)` take it.
        """
        return self._running.link_base_url

    @property
    def service_tag(self) -> str:
        """The tag in its credentials, `svc`."""
        return self._running.service_tag

    @property
    def api_key(self) -> Secret:
        """This test's credential, with every scope and custody `self`; the same on each access."""
        if self._api_key is None:
            self._api_key = self.credential()
        return self._api_key

    def credential(
        self,
        *,
        scopes: Iterable[str] | None = None,
        custody: str = "self",
        account: str = "default",
        name: str = "test",
    ) -> Secret:
        """Create an API key and return its three-part credential.

        `custody` is `none`, `self` or `account`.

        `scopes` are the specification's (`shares:read`, ...): by default all; an empty list is
        allowed. Another `account` sees none of this account's shares. A plan limits the number of
        keys (`business`: 5); `set_account(api_keys=50)` raises it.
        """
        return self._running.create_key(name=name, scopes=scopes, custody=custody, account=account)

    def revoke(self, credential: Secret) -> None:
        """Revoke a key of this service. Its next call is refused."""
        self._running.revoke_key(credential)

    def set_account(
        self, name: str = "default", *, at_once: bool = True, **changes: str | bool | int
    ) -> None:
        """Change an account.

        `plan` (`business`, `enterprise`, `none`), `requests_per_minute`, `api_keys`, `shares`,
        `view_protection`, `zero_knowledge_enrolled`, `zero_knowledge_feature`. With `at_once=False`
        calls see the change up to 30 s later by the service's clock.
        """
        self._running.set_account(name, at_once=at_once, **changes)

    def client(self, api_key: Secret | None = None, **options: Any) -> Client:
        """A client of this service, closed when the test ends.

        `options` are `Client`'s, such as `deadline`.
        """
        from sealpipe import Client

        return self._exit_stack.enter_context(Client(**self._arguments(api_key), **options))

    def async_client(self, api_key: Secret | None = None, **options: Any) -> AsyncClient:
        """Like `client`, for asyncio.

        Close it yourself: `async with sealpipe_rehearsal.async_client() as client`.
        """
        from sealpipe import AsyncClient

        return AsyncClient(**self._arguments(api_key), **options)

    def environ(self, api_key: Secret | None = None) -> dict[str, str]:
        """Return SEALPIPE_* variables of this service (for `monkeypatch.setenv` or a child).


        They name an empty config file and an empty state directory. Other SEALPIPE_* variables of
        this process get an empty value, which counts as unset.
        """
        folder = self._new_folder()
        config = folder / "config.toml"
        config.touch(mode=0o600)
        return {name: "" for name in os.environ if name.startswith("SEALPIPE_")} | {
            "SEALPIPE_API_KEY": HiddenText((api_key or self.api_key).reveal()),
            "SEALPIPE_BASE_URL": self.base_url,
            "SEALPIPE_LINK_BASE_URL": self.link_base_url,
            "SEALPIPE_CONFIG": str(config),
            "SEALPIPE_STATE_DIR": str(folder / "state"),
        }

    @property
    def recipient(self) -> Recipient:
        """A person who has been sent a link.

        `.open_link(link, passcode=None)` returns its fields.
        """
        return self._running.recipient()

    @property
    def submitter(self) -> Submitter:
        """A person who has been sent a collect link.

        `.submit(link, {prompt: value})` fills it in.
        """
        return self._running.submitter()

    def advance(self, time: float | timedelta) -> None:
        """Move the service's clock forward, by seconds or a timedelta.

        The test's own clock does not change.
        """
        self._running.advance(time.total_seconds() if isinstance(time, timedelta) else time)

    def faults(self, *rows: Mapping[str, object]) -> None:
        """Inject these faults from now on, instead of earlier ones, such as `{"fault": "reset"}`.

        A row affects the next matching request, unless `times`, `skip` or `when` say otherwise.
        Without rows, faults end. The names are in `sealpipe_rehearsal.faults.FAULTS`; ValueError
        suggests the nearest for an unknown one.
        """
        self._running.set_faults(*rows)

    def extend(self) -> None:
        """From now on, offer newer endpoints too, such as access log and capabilities."""
        self._running.service.extended = True

    def webhook(self, url: str, *, account: str = "default") -> Webhook:
        """Send an account's events to your receiver (http on this machine).

        See `.secret` and `.header`.
        """
        return self._running.add_webhook(url, account=account)

    def deliveries(self) -> list[WebhookDelivery]:
        """Return the deliveries to webhook endpoints, oldest first. Waits for those in progress."""
        return self._running.deliveries()

    def seen(self) -> list[LoggedRequest]:
        """Return the requests that the service received in this test, oldest first.

        `bytes(request)` is a whole one.
        """
        return self._running.seen()

    def events(self) -> list[Event]:
        """Return every event that the service emitted in this test, oldest first."""
        return self._running.events()

    def notes(self) -> list[Note]:
        """Return the notes for the service's operator, such as `key.compromised`."""
        return self._running.notes()

    def _arguments(self, api_key: Secret | None) -> dict[str, Any]:
        return {
            "api_key": api_key or self.api_key,
            "base_url": self.base_url,
            "link_base_url": self.link_base_url,
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._exit_stack.close()


class HiddenText(str):
    """Text whose repr hides it, so that no failing test prints it, not even inside a dict."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'...'"
