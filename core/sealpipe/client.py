"""The driver that blocks, and `Client`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate, NoReturn, ParamSpec, Self, TypeVar

from sealpipe.api import Failure, Operation, Response
from sealpipe.calls.table import Calls, make_method
from sealpipe.errors import UsageError
from sealpipe.flows import Do, Flow, Notify, Send, Wait
from sealpipe.flows.policy import guard
from sealpipe.flows.session import Session
from sealpipe.http.network import ServiceNetwork
from sealpipe.secret import strips_frames
from sealpipe.setup import ClientSetup, open_fields, registry, well_called

if TYPE_CHECKING:
    from sealpipe.flows.paging import PageIterator
    from sealpipe.wire.fields import Field

P = ParamSpec("P")
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
    answer = callback()
    if hasattr(answer, "__await__"):
        if hasattr(answer, "close"):
            answer.close()
        raise UsageError("the callback is asynchronous, and this client is not", remedy="use AsyncClient")


def _rows(client: Client, walk: PageIterator[T]) -> Iterator[T]:
    next_page = strips_frames(lambda: client.run(walk.next_page()))
    while not walk.done:
        yield from next_page()


class Client(Calls, ClientSetup):
    """The service from code that blocks. A context manager; one client may serve several threads.

    `api_key` (all three parts, or two), `base_url` (ends in /v1), `link_base_url`; `deadline` in seconds for
    all tries of one call; `ca_file` is trusted beside the system's certificates. `api_key_previous`, while keys are
    rotated, opens what was sealed to it and is never sent. Raises SettingError.
    """

    _network: ServiceNetwork | None = None
    _making: ClassVar[threading.Lock] = threading.Lock()

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

    @staticmethod
    def _make_call(call: Callable[Concatenate[Session, P], Flow[T]]) -> Callable[Concatenate[Client, P], T]:
        return make_method(call, Client.run, "{}")

    @staticmethod
    def _make_list_call(
        call: Callable[Concatenate[Session, P], PageIterator[T]],
    ) -> Callable[Concatenate[Client, P], Iterator[T]]:
        return make_method(call, _rows, "Iterator[{}]")


@strips_frames
@well_called
def resolve(references: Sequence[str], *, ca_file: str | Path | None = None) -> list[Field]:
    """Resolve references to fields in their order, such as `["vault:secret/app/db#user,password"]`.

    Needs no client. Every document is read once, stores at the same time. Raises ReferenceSyntaxError, SettingError,
    PluginError.
    """
    with closing(registry(ca_file)) as plugins:
        return run(open_fields(references, plugins), _no_service)


def _no_service(_operation: Operation[Any], _timeout: float) -> NoReturn:
    raise AssertionError("resolving makes no connection")
