"""A process that serves: `python -m sealpipe_service.worker LISTENING CONTROL BOARD SLOT`, see
`supervising`.

Its arguments are numbers: of three descriptors (the socket that all workers accept from, one to the
supervisor, the memory of `meters`), and of its slot in that memory. The settings arrive from the
supervisor, as a line of JSON; the address of the database may hold a password, and arguments and
variables are for all to read. A line goes back when it serves. It is told there to stop, too; when
the other end closes, the supervisor has ended, and so does the worker.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import resource
import secrets
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import uvicorn

from .addresses import read_networks
from .app import build
from .clock import Clock
from .connections import CROWD_KEY, WINDOW_SECONDS, BoundedConnection, Crowd, Door
from .context import Service
from .database.access import DatabaseError
from .database.decisions import Store
from .database.opening import open_database
from .front import Front
from .logs import LoggedJournal, start_logging
from .mail import read_server
from .meters import Meters, open_slot
from .public_addresses import allow_public
from .sealing import NoKey, WebhookSeals
from .serving import make_config
from .supervising import DRAIN, FAILED, READY, ServerSettings
from .tls import Certificate, CertificateError
from .watching import Watch
from .webhook_post import tls_context

MAX_BODY = 20 * 1024 * 1024
GRACE_SECONDS = 30
TICKS = 10
"""Of uvicorn's, in a second."""
FILES = 4096
"""More than the connections that are let in, and all others."""
LAST_SECONDS = 0.2
"""How long connections stay open for calls that were on their way when the sockets were closed."""


class Loop(asyncio.SelectorEventLoop):
    """asyncio's loop, with our limit for handshakes of TLS, which uvicorn does not pass on."""

    async def create_server(self, *args: Any, **options: Any) -> asyncio.Server:
        """Make a server."""
        if options.get("ssl"):
            options["ssl_handshake_timeout"] = WINDOW_SECONDS
        server: asyncio.Server = await super().create_server(*args, **options)
        return server


class Server(uvicorn.Server):
    """A uvicorn server that says when it serves, and minds no signal from then on.

    `crowd` are its connections, and `certificate` is what it shows them.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        crowd: Crowd,
        certificate: Certificate | None,
        announce: Callable[[], None],
    ) -> None:
        super().__init__(config)
        self._crowd = crowd
        self._certificate = certificate
        self._announce = announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then say so."""
        self.lifespan.state[CROWD_KEY] = self._crowd
        await super().startup(sockets)
        self._announce()

    async def on_tick(self, counter: int) -> bool:
        """Look at all connections and at the certificate's files once a second."""
        if counter % TICKS == 0:
            self._crowd.look(asyncio.get_running_loop().time())
            if self._certificate is not None:
                self._certificate.renew()
        return await super().on_tick(counter)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Ignore what ends a process: see `supervising.END`."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept who waits, close the sockets, answer what comes at once, and finish."""
        await asyncio.sleep(0)
        for server in self.servers:
            server.close()
        for each in sockets or []:
            each.close()
        await asyncio.sleep(LAST_SECONDS)
        await super().shutdown()


def make_service(settings: ServerSettings, meters: Meters) -> Service:
    """Open the database and return the service. Raises CertificateError and DatabaseError."""
    if settings.ca_file is not None:
        try:
            tls_context(settings.ca_file)  # now: it may be another file, or none, when it is needed
        except OSError:  # which ssl.SSLError is, too
            raise CertificateError(
                f"{settings.ca_file}: the certificates to trust cannot be read",
                "name a PEM file that the user of the service can read",
            ) from None
    store = Store(open_database(settings.database, is_checked=True))
    return Service(
        store,
        Clock(),
        LoggedJournal(meters),
        store.tag() or "svc",
        secrets.token_bytes,
        max_body=MAX_BODY,
        extended=True,
        public_url=settings.public_url,
        version=settings.version,
        seals=WebhookSeals(settings.webhook_key) if settings.webhook_key else NoKey(),
        allows=allow_public(settings.webhook_networks),
        mail_server=None if settings.mail is None else read_server(*settings.mail),
        ca_file=settings.ca_file,
    )


def work(listening: socket.socket, control: socket.socket, meters: Meters) -> int:
    """Serve until a signal, or until the supervisor has ended; return the exit code."""
    start_logging()
    stream = control.makefile("rwb", buffering=0)
    read: dict[str, Any] = json.loads(stream.readline())
    settings = ServerSettings(**read)
    try:
        certificate = None if settings.tls is None else Certificate(*settings.tls)
        service = make_service(settings, meters)
    except (CertificateError, DatabaseError) as error:
        stream.write(FAILED + f"{error}\n".encode())
        return 1
    try:
        front = Front(build(service), settings.proxies, has_tls=certificate is not None)
        watched = Watch(
            front,
            settings.proxies,
            meters,
            lambda: service.is_stopping,
            tells_addresses=settings.logs_addresses,
        )
        config = make_config(
            watched,
            http=BoundedConnection,
            lifespan="on",
            grace_seconds=GRACE_SECONDS,
            tls=None if certificate is None else certificate.context,
        )
        proxies = read_networks(settings.proxies)
        crowd, door = Crowd(proxies), Door(listening, proxies)
        server = Server(config, crowd, certificate, lambda: _announce(control, service, server))
        _raise_limit_of_files()
        with asyncio.Runner(loop_factory=Loop) as runner:
            runner.run(server.serve(sockets=[door]))
    finally:
        service.store.close()
    return 0


def _raise_limit_of_files() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _announce(control: socket.socket, service: Service, server: Server) -> None:
    with contextlib.suppress(OSError):  # the supervisor has ended
        control.sendall(READY)
    threading.Thread(target=_obey, args=(control, service, server), daemon=True).start()


def _obey(control: socket.socket, service: Service, server: Server) -> None:
    """Do as the supervisor says, until it says END or has ended."""
    with contextlib.suppress(OSError):
        while control.recv(1) == DRAIN:
            service.is_stopping = True
    service.is_stopping = server.should_exit = True


if __name__ == "__main__":
    listening_, control_, board_, slot_ = map(int, sys.argv[1:])
    sys.exit(
        work(
            socket.socket(fileno=listening_),
            socket.socket(fileno=control_),
            open_slot(board_, slot_),
        )
    )
