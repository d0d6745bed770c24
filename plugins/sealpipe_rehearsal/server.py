"""Starts the rehearsal service on loopback: in a thread (`start`) or as a command (`serve`)."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path

from sealpipe_service.clock import system_clock
from sealpipe_service.database.decisions import Store
from sealpipe_service.database.sqlite import DatabaseFileError as StateFileError
from sealpipe_service.sweeping import Sweeper
from sealpipe_service.webhooks import SIGNATURE_HEADER

from .clock import MovableClock
from .database import RehearsalDatabase
from .fault_parser import FaultPlanError, parse_plan
from .log import Log
from .rehearsed import RehearsedService, ignore_moment
from .running_service import RunningService
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
    """Start a service in a background thread.

    Port 0 selects a free port; with `state` None, data is only in memory.

    `on_moment` is called with the name of a moment in a call (see `RehearsedService`); `extended`
    offers what the specification does not show (docs/reference/rehearsal.md); `signature_header`
    carries the signature of webhooks.

    Raises ValueError for a host that is not loopback or an invalid tag or header, OSError if the
    port is taken, StateFileError for an unusable state file, FaultPlanError for an invalid row of
    `faults`.
    """
    rows = parse_plan(list(faults))
    sock = listen(host, port)
    service: RehearsedService | None = None
    try:
        service = _service(
            state, service_tag, clock, token_bytes, on_moment, extended, signature_header
        )
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
    """Run a service until SIGINT or SIGTERM; return the number of the signal (0 for none).

    `announce` is called with the address once the service accepts connections. Raises the errors of
    `start`.
    """
    rows = parse_plan(list(faults))
    sock = listen(host, port)
    try:
        on_moment = ignore_moment
        service = _service(
            state,
            service_tag,
            system_clock,
            secrets.token_bytes,
            on_moment,
            extended,
            signature_header,
        )
    except BaseException:
        sock.close()
        raise
    service.faults.set(rows)
    address = Address(*sock.getsockname()[:2])
    server = Server(make_config(service), lambda: announce(address))
    sweeper = Sweeper(service)
    try:
        sweeper.start()  # it also finds deliveries that were due when the service last stopped
        with end_on_signals(server):
            server.run(sockets=[sock])
    finally:
        sock.close()
        sweeper.stop()
        service.deliverer.stop()
        service.store.close()
    return server.ended_by_signal


def _service(
    state: Path | None,
    tag: str,
    clock: Callable[[], datetime],
    token_bytes: Callable[[int], bytes],
    on_moment: Callable[[str], None],
    extended: bool,  # noqa: FBT001  # both callers use this name
    signature_header: str,
) -> RehearsedService:
    if not re.fullmatch(r"[a-z0-9]+", tag, re.ASCII):
        raise ValueError(f"a service tag has only lower-case letters and digits, not {tag!r}")
    if not re.fullmatch(r"[A-Za-z0-9-]{1,100}", signature_header, re.ASCII):
        raise ValueError(
            f"a header's name has only letters, digits and -, not {signature_header!r}"
        )
    database = RehearsalDatabase(state, clock)
    return RehearsedService(
        Store(database),
        MovableClock(database),
        Log(),
        tag,
        token_bytes,
        database=database,
        on_moment=on_moment,
        extended=extended,
        signature_header=signature_header,
    )
