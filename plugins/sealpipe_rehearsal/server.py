"""Starting the rehearsal service on loopback: in a thread for tests and the tour, or as a command."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path

from .running_service import RunningService
from .service.clock import Clock, system_clock
from .service.context import Service, ignore_moment
from .service.fault_parser import FaultPlanError, parse_plan
from .service.log import Log
from .service.store import StateFileError, Store
from .service.webhooks import SIGNATURE_HEADER
from .uvicorn_server import LOOPBACK, Address, Server, end_on_signals, listen, make_config

__all__ = ["Address", "FaultPlanError", "RunningService", "StateFileError", "serve", "start"]


def start(
    port: int = 0,
    state: Path | None = None,
    service_tag: str = "svc",
    *,
    host: str = LOOPBACK,
    clock: Callable[[], datetime] = system_clock,
    token_bytes: Callable[[int], bytes] = secrets.token_bytes,
    on_moment: Callable[[str], None] = ignore_moment,
    faults: Iterable[Mapping[str, object]] = (),
    extended: bool = False,
    signature_header: str = SIGNATURE_HEADER,
) -> RunningService:
    """Start a service in a background thread. Port 0 takes a free one; `state` None keeps it in memory.

    Raises ValueError for a host that is not loopback or a tag that cannot be one, OSError where the port
    is taken, StateFileError for a state file that cannot be used, FaultPlanError for a row of `faults` that
    cannot be. `at` is `Service.at`: it is called at named moments of a call. `extended` offers what the
    specification does not show (docs/reference/rehearsal.md); `signature_header` is what webhooks are signed in.
    """
    rows = parse_plan(list(faults))
    sock = listen(host, port)
    service: Service | None = None
    try:
        service = _service(state, service_tag, clock, token_bytes, on_moment, extended, signature_header)
        service.faults.set(rows)
        return RunningService(service, Server(make_config(service)), sock)
    except BaseException:
        sock.close()
        if service is not None:
            service.store.close()
        raise


def serve(
    port: int = 0,
    state: Path | None = None,
    service_tag: str = "svc",
    announce: Callable[[Address], None] = lambda _: None,
    *,
    host: str = LOOPBACK,
    faults: Iterable[Mapping[str, object]] = (),
    extended: bool = False,
    signature_header: str = SIGNATURE_HEADER,
) -> int:
    """Run a service until SIGINT or SIGTERM; the number of the signal that ended it (0 for none).

    `announce` is called with the address as soon as the service answers. Raises as `start` does.
    """
    rows = parse_plan(list(faults))
    sock = listen(host, port)
    try:
        on_moment = ignore_moment
        service = _service(state, service_tag, system_clock, secrets.token_bytes, on_moment, extended, signature_header)
    except BaseException:
        sock.close()
        raise
    service.faults.set(rows)
    address = Address(*sock.getsockname()[:2])
    server = Server(make_config(service), lambda: announce(address))
    try:
        service.deliverer.wake()  # what was due when it ended
        with end_on_signals(server):
            server.run(sockets=[sock])
    finally:
        sock.close()
        service.deliverer.stop()
        service.store.close()
    return server.ended_by_signal


def _service(
    state: Path | None,
    tag: str,
    clock: Callable[[], datetime],
    token_bytes: Callable[[int], bytes],
    on_moment: Callable[[str], None],
    extended: bool,  # noqa: FBT001  # both callers name it so
    signature_header: str,
) -> Service:
    if not re.fullmatch(r"[a-z0-9]+", tag, re.ASCII):
        raise ValueError(f"a service tag is lower-case letters and digits, not {tag!r}")
    if not re.fullmatch(r"[A-Za-z0-9-]{1,100}", signature_header, re.ASCII):
        raise ValueError(f"a header's name is letters, digits and -, not {signature_header!r}")
    store = Store(state)
    return Service(
        store, Clock(clock), Log(), tag, token_bytes, on_moment, extended=extended, signature_header=signature_header
    )
