"""Time that a test moves, on the real network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sealpipe import Client
from sealpipe.api.operation import Operation
from sealpipe.network.exchange import Service
from sealpipe.network.service_network import ServiceNetwork
from sealpipe.session import Session
from support.job import Job
from support.playing import PlayedNetwork, play

T = TypeVar("T")


@dataclass
class Hours:
    """Does work on the real network, in time that passes only while it waits.

    `sent` are the moments at which something was sent, `waited` how long each wait was. What `at`
    planned happens before the wait ends in which its moment lies; `passes` is told of each wait.
    """

    session: Session
    now: float = 0.0
    sent: list[tuple[float, str]] = field(default_factory=list)
    waited: list[float] = field(default_factory=list)
    passes: Callable[[float], object] = lambda _: None
    _planned: list[tuple[float, Callable[[], object]]] = field(default_factory=list)
    _network: ServiceNetwork | None = None

    def at(self, when: float, what: Callable[[], object]) -> None:
        self._planned.append((when, what))

    def run(self, work: Callable[[Session], T]) -> T:
        try:
            session = self.session.with_transport(PlayedNetwork(self._send))
            return play(lambda: work(session), self._wait)
        finally:
            if self._network is not None:
                self._network.close()

    def _send(self, operation: Operation[Any], timeout: float) -> Any:
        self.sent.append((self.now, operation.path))
        if self._network is None:
            self._network = ServiceNetwork(
                Service(
                    self.session.base_url,
                    self.session.credential,
                    self.session.gate,
                    self.session.ca_file,
                )
            )
        return self._network.send(operation, timeout)

    def _wait(self, seconds: float) -> None:
        self.waited.append(seconds)
        self.now += seconds
        self.passes(seconds)
        for due in sorted(
            (each for each in self._planned if each[0] <= self.now), key=lambda each: each[0]
        ):
            self._planned.remove(due)
            due[1]()


def open_session(job: Job, base_url: str | None = None) -> Session:
    """A session of a job's client, at the service or at what stands before it."""
    address = base_url or job.service.base_url
    client = Client(api_key=job.api_key, base_url=address, link_base_url=job.service.link_base_url)
    return client.session
