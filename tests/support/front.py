"""A second door to a rehearsal service, at which things go wrong by the service's own fault plan.

It has the service's accounts, keys and shares, and a port, a plan and a log of its own: whoever goes through the
service's first door meets no fault and is not counted. A fault is a row of a plan (docs/reference/rehearsal.md).
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from sealpipe_rehearsal.running_service import RunningService
from sealpipe_rehearsal.service.fault_plan import FaultPlan
from sealpipe_rehearsal.service.log import Log, LoggedRequest
from sealpipe_rehearsal.uvicorn_server import LOOPBACK, Address, Server, listen, make_config

Fault = Mapping[str, Any]

FOR_EVER = 1_000
"""Seconds; far more than any deadline here."""


@dataclass(frozen=True)
class Received:
    """One request as the service's log has it: header names in lower case, the custody part never there."""

    seen: LoggedRequest

    @property
    def method(self) -> str:
        return self.seen.method

    @property
    def target(self) -> str:
        return self.seen.target

    @property
    def head(self) -> bytes:
        return bytes(self.seen).removesuffix(self.seen.body)

    @property
    def body(self) -> bytes:
        return self.seen.body

    def header(self, name: str) -> str | None:
        return dict(self.seen.headers).get(name.lower())


class Front:
    """The door. `faults` happen to one request each, `then` to every one after those; `base_url` is for the client."""

    def __init__(self, service: RunningService, *faults: Fault, then: Fault | None = None) -> None:
        sock = listen(LOOPBACK, 0)
        self.address = Address(*sock.getsockname()[:2])
        behind = replace(service.service, faults=FaultPlan(), log=Log())
        self._running = _Beside(behind, Server(make_config(behind)), sock)
        self.plan(*faults, then=then)

    @property
    def base_url(self) -> str:
        return self.address.base_url

    def received(self) -> list[Received]:
        """Every whole request so far."""
        return [Received(seen) for seen in self._running.seen()]

    def plan(self, *faults: Fault, then: Fault | None = None) -> None:
        """Other faults for what comes next."""
        self._running.set_faults(*faults, *([{**then, "times": "always"}] if then else []))

    def mend(self) -> None:
        """No fault from now on; listen again if nobody did."""
        self._running.mend()

    def refuse(self) -> None:
        """Refuse connections from now on."""
        self._running.refuse()

    def stop(self) -> None:
        self._running.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class _Beside(RunningService):
    """It ends without closing the store: that is the service's."""

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(30)


def same_bytes(requests: Sequence[Any]) -> bool:
    """Whether all of these are one request, byte for byte, head and body: of this door, or of a `Faulty`."""
    return len({(request.head, request.body) for request in requests}) <= 1


# -- rows of a plan -------------------------------------------------------------------------------


def fault(name: str, *, commits: bool = False, **parameters: Any) -> Fault:
    """One by its name; `commits` has the service carry the request out all the same."""
    return {"fault": name, **({"after_commit": True} if commits else {}), **parameters}


passes = fault("pass")
reset_before = fault("reset")
reset_after = fault("reset", commits=True)
closes = fault("close")
closes_after = fault("close", commits=True)
half_head = fault("half-head")
half_body = fault("half-body")
drips_head = fault("drip-head", commits=True)
drips_body = fault("drip-body", commits=True)
hangs = fault("hang", commits=True)
endless = fault("endless", commits=True)
gzipped = fault("gzip")
interim = fault("interim")
refuses_on = fault("refuse", commits=True, seconds=FOR_EVER)
unauthorized = fault("unauthorized")


def says(status: int, body: str = "", headers: Mapping[str, str] | None = None, *, commits: bool = False) -> Fault:
    """Another answer than the service's."""
    return fault("answer", commits=commits, status=status, text=body, headers=dict(headers or {}))


def envelope(
    status: int,
    code: int,
    headers: Mapping[str, str] | None = None,
    *,
    commits: bool = False,
    data: Mapping[str, str] | None = None,
) -> Fault:
    """A refusal in the service's own form."""
    return fault("error", commits=commits, status=status, code=code, headers=dict(headers or {}), data=dict(data or {}))


def rewrites(**members: object) -> Fault:
    """The service's answer with some members changed; `...` leaves one out."""
    changed = {name: value for name, value in members.items() if value is not ...}
    return fault("members", change=changed, drop=[name for name in members if name not in changed])


def replaces(body: bytes | str) -> Fault:
    """The service's status with another body."""
    return fault("body", text=body) if isinstance(body, str) else fault("body", base64=_base64(body))


def raw(data: bytes) -> Fault:
    """Bytes that need not be HTTP, then the end."""
    return fault("garbage", base64=_base64(data))


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
