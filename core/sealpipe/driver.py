"""The driver that blocks: it runs flows to their results, over the network and with work of this machine."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, ClassVar, Self, TypeVar

from sealpipe.api import Failure, Operation, Response
from sealpipe.errors import UsageError
from sealpipe.flows import Do, Flow, Notify, Send, Wait
from sealpipe.flows.policy import guard
from sealpipe.flows.session import Session
from sealpipe.http import ServiceNetwork

T = TypeVar("T")


def run(flow: Flow[T], send: Callable[[Operation[Any], float], Response | Failure]) -> T:
    """Drive a flow to its result."""
    result: Any = None
    error: BaseException | None = None
    while True:
        try:
            step = flow.send(result) if error is None else flow.throw(error)
        except StopIteration as stop:
            value: T = stop.value
            return value
        result, error = None, None
        try:
            match step:
                case Send(operation, timeout, _):
                    result = send(operation, timeout)
                case Wait(seconds):
                    time.sleep(seconds)
                case Do(work, _):
                    result = work()
                case Notify(callback):
                    _tell(callback)
        except BaseException as raised:  # noqa: BLE001 - the flow decides what it means; an interrupt lets go of locks
            error = raised


def _tell(callback: Callable[[], object]) -> None:
    outcome = callback()
    if hasattr(outcome, "__await__"):
        if hasattr(outcome, "close"):
            outcome.close()
        raise UsageError("the callback is asynchronous, and this client is not", remedy="use AsyncClient")


class Driver:
    """Runs the flows of one session over its connections. A context manager; one may serve several threads."""

    _network: ServiceNetwork | None = None
    _making: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, session: Session) -> None:
        self.session = session

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        if self._network is not None:
            self._network.close()
            self._network = None
        self.session.close()

    def run(self, flow: Flow[T]) -> T:
        """Drive a flow of `sealpipe.flows` to its result."""
        return run(guard(self.session, flow), self._send)

    def _send(self, operation: Operation[Any], timeout: float) -> Response | Failure:
        network = self._network
        if network is None:
            with self._making:  # one for all threads: they share connections and rate limiter
                network = self._network = self._network or ServiceNetwork(self.session)
        return network.send(operation, timeout)
