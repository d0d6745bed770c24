"""The pytest plugin (entry point `pytest11`): the fixture `sealpipe_rehearsal` and what it hands to a test.

pytest imports this module in every run wherever sealpipe is installed, so its top imports only pytest and the standard
library.
"""

from __future__ import annotations

import contextlib
import os
from datetime import timedelta

import pytest

TYPE_CHECKING = False  # as typing's own
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path
    from typing import Any, Self

    from sealpipe import AsyncClient, Client
    from sealpipe.secret import Secret

    from .control_client import Webhook
    from .people import Recipient, Submitter
    from .running_service import RunningService
    from .service.log import Event, LoggedRequest, Note
    from .service.webhook_deliveries import WebhookDelivery


@pytest.fixture(scope="session")
def _sealpipe_rehearsal_service() -> Iterator[RunningService]:
    """One service a session (under xdist one a worker), started by the first test that wants it."""
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
    """sealpipe's service as a local copy that has seen nothing yet, and the people at the other end of its links.

    .base_url .link_base_url .api_key .credential(scopes=, custody=) .client() .environ() .recipient .submitter
    .advance(seconds) .faults(...) .seen() .events() .set_account(...) .webhook(url) .deliveries() .extend()
    """
    with Rehearsal(_sealpipe_rehearsal_service, lambda: tmp_path_factory.mktemp("sealpipe_rehearsal")) as rehearsal:
        yield rehearsal


class Rehearsal:
    """A service that this test has for itself: what earlier tests did is forgotten, and its clock is right.

    No repr of it, or of what it returns, shows a credential.
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
        """What links start with, as SEALPIPE_LINK_BASE_URL and `Client(link_base_url=...)` take it."""
        return self._running.link_base_url

    @property
    def service_tag(self) -> str:
        """The tag in its credentials, `svc`."""
        return self._running.service_tag

    @property
    def api_key(self) -> Secret:
        """This test's own credential: every scope, custody `self`. The same one each time."""
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
        """A new API key, all three parts of it. `custody` is `none`, `self` or `account`.

        `scopes` are the specification's (`shares:read`, ...), every one if left out; none at all is allowed. Another
        `account` sees nothing of what this one's keys make. A plan allows so many keys (`business` 5):
        `set_account(api_keys=50)`.
        """
        return self._running.create_key(name=name, scopes=scopes, custody=custody, account=account)

    def revoke(self, credential: Secret) -> None:
        """Revoke a key of this service; its next call is refused."""
        self._running.revoke_key(credential)

    def set_account(self, name: str = "default", *, at_once: bool = True, **changes: str | bool | int) -> None:
        """Change an account: `plan` (`business`, `enterprise`, `none`), `requests_per_minute`, `api_keys`, `shares`,
        `view_protection`, `zero_knowledge_enrolled`, `zero_knowledge_feature`. With `at_once=False` the service
        notices only when it looks the plan up again, within 30 s of its clock.
        """
        self._running.set_account(name, at_once=at_once, **changes)

    def client(self, api_key: Secret | None = None, **options: Any) -> Client:
        """A client of this service, closed when the test ends. `options` are `Client`'s, such as `deadline`."""
        from sealpipe import Client

        return self._exit_stack.enter_context(Client(**self._arguments(api_key), **options))

    def async_client(self, api_key: Secret | None = None, **options: Any) -> AsyncClient:
        """The same for asyncio. Close it yourself: `async with sealpipe_rehearsal.async_client() as client`."""
        from sealpipe import AsyncClient

        return AsyncClient(**self._arguments(api_key), **options)

    def environ(self, api_key: Secret | None = None) -> dict[str, str]:
        """SEALPIPE_* that point a program here, for `monkeypatch.setenv` or for a child's environment.

        With a config file and a state folder that are empty at first. Whatever else of SEALPIPE_* is set in
        this process is in it with an empty value, which counts as unset.
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
        """Somebody who has been sent a link: `.open_link(link, passcode=None)` gives its fields."""
        return self._running.recipient()

    @property
    def submitter(self) -> Submitter:
        """Somebody who has been sent a collect link: `.submit(link, {prompt: value})` fills it in."""
        return self._running.submitter()

    def advance(self, time: float | timedelta) -> None:
        """Let time pass at the service, in seconds or as a timedelta. The test's own clock stays."""
        self._running.advance(time.total_seconds() if isinstance(time, timedelta) else time)

    def faults(self, *rows: Mapping[str, object]) -> None:
        """What is to go wrong from now on, in place of what was: `{"fault": "reset", "after_commit": True}`, ...

        A row happens to the next request that it fits (`times`, `skip` and `when` say otherwise). No row: nothing
        more goes wrong. The names are those of `service.faults.FAULTS`; for a wrong one, ValueError says the nearest.
        """
        self._running.set_faults(*rows)

    def extend(self) -> None:
        """Offer in this test, from now on, what the specification does not show: access log, capabilities and more."""
        self._running.service.extended = True

    def webhook(self, url: str, *, account: str = "default") -> Webhook:
        """Have an account's events posted to your receiver, http on this machine; `.secret` and `.header` sign them."""
        return self._running.add_webhook(url, account=account)

    def deliveries(self) -> list[WebhookDelivery]:
        """What was, and is to be, sent to webhook endpoints, oldest first; what is under way is waited for."""
        return self._running.deliveries()

    def seen(self) -> list[LoggedRequest]:
        """Every request that the service received in this test, oldest first; `bytes(request)` is all of one."""
        return self._running.seen()

    def events(self) -> list[Event]:
        """Every event that the service emitted in this test, oldest first."""
        return self._running.events()

    def notes(self) -> list[Note]:
        """What the service's operator would find in its log, such as `key.compromised`."""
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
    """Text that a failing test's locals do not show, in whatever dict it went into."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'...'"
