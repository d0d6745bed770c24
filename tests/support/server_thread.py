"""A server of one's own as `server run` starts it in a process, in a thread of this one: what it
does with bytes, without starting a process. No time passes by itself for its connections.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from sealpipe.cli.server.accounts import add_account
from sealpipe.cli.server.keys import add_key
from sealpipe_service import worker
from sealpipe_service.addresses import read_networks
from sealpipe_service.app import build
from sealpipe_service.clock import Clock
from sealpipe_service.connections import BoundedConnection, Crowd
from sealpipe_service.context import Service
from sealpipe_service.credentials import EXTENDED_SCOPES
from sealpipe_service.database.decisions import Store
from sealpipe_service.database.sqlite import Sqlite
from sealpipe_service.front import Front
from sealpipe_service.logs import LoggedJournal
from sealpipe_service.meters import Meters
from sealpipe_service.serving import bind, make_config
from support.terminal import PATIENCE

TURNS = 20
"""Of the loop: from a connection that waits to be accepted to the first bytes that are read."""


class _Server(worker.Server):
    def capture_signals(self) -> AbstractContextManager[None]:
        """Signals are pytest's."""
        return nullcontext()

    async def on_tick(self, counter: int) -> bool:  # noqa: ARG002
        """Look at no connection: the test does."""
        return self.should_exit


@dataclass
class ServerThread:
    """Where it listens, its data, and its connections."""

    address: tuple[str, int]
    service: Service
    crowd: Crowd
    passed: float = field(default=0.0, init=False)
    """Seconds that connections believe to have passed."""
    loop: asyncio.AbstractEventLoop = field(init=False)

    @property
    def host(self) -> str:
        """What its callers write into `Host`."""
        return f"{self.address[0]}:{self.address[1]}"

    def key(self, account: str = "default") -> str:
        """Make a key with every scope, and return the two parts of it that are sent."""
        store = self.service.store
        if store.account(account) is None:
            add_account(store, account, None)
        scopes = frozenset(EXTENDED_SCOPES)
        made = add_key(store, name="test", scopes=scopes, custody="none", account=account)
        return ".".join(made.reveal().split(".")[:2])

    def connect(self) -> socket.socket:
        """Connect. Its reads have a limit."""
        return socket.create_connection(self.address, PATIENCE)

    def run(self, call: Callable[[], Any]) -> Any:
        """Run a call in the server's loop, which has read what was sent before."""

        async def settled() -> Any:
            for _ in range(TURNS):
                await asyncio.sleep(0)
            return call()

        return asyncio.run_coroutine_threadsafe(settled(), self.loop).result(PATIENCE)

    def look_after(self, seconds: float) -> None:
        """Let its connections look at the time, as much later."""
        self.passed += seconds
        self.run(lambda: self.crowd.look(self.loop.time() + self.passed))


@contextmanager
def serve_in_thread(
    proxies: Sequence[str] = (), tls: ssl.SSLContext | None = None
) -> Iterator[ServerThread]:
    """Serve an empty database in memory, with an account, at loopback."""
    store = Store(Sqlite())
    with bind("127.0.0.1", 0) as listening:
        address = listening.getsockname()
        scheme = "http" if tls is None else "https"
        url = f"{scheme}://{address[0]}:{address[1]}"
        service = Service(
            store,
            Clock(),
            LoggedJournal(Meters()),
            "svc",
            secrets.token_bytes,
            max_body=worker.MAX_BODY,
            extended=True,
            public_url=url,
        )
        running = ServerThread(address, service, Crowd(read_networks(proxies)))
        begun = threading.Event()
        front = Front(build(service), proxies, has_tls=tls is not None)
        config = make_config(
            front, http=BoundedConnection, lifespan="off", grace_seconds=1, tls=tls
        )
        server = _Server(config, running.crowd, None, begun.set)

        async def serve() -> None:
            running.loop = asyncio.get_running_loop()
            await server.serve([listening])

        thread = threading.Thread(target=lambda: asyncio.run(serve()))
        thread.start()
        try:
            assert begun.wait(PATIENCE)
            yield running
        finally:
            server.should_exit = server.force_exit = True
            thread.join()
            store.close()
