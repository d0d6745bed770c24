"""The driver that blocks, and `Client`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import wraps
from typing import Any, ClassVar, Concatenate, ParamSpec, Self, TypeVar

from sealpipe.api.operation import Answer, Failure, Operation
from sealpipe.client import http
from sealpipe.client.calls import account, handing_over, requests, shares
from sealpipe.client.deadline import Deadline, DeadlineBackend, PooledTransport
from sealpipe.client.echo import Echo
from sealpipe.client.pacing import AGAIN, Pacing, Turn, held_back
from sealpipe.client.setup import ClientSetup, shown_as_method
from sealpipe.errors import UsageError
from sealpipe.flows.paging import Pages
from sealpipe.flows.policy import gated
from sealpipe.flows.session import Session
from sealpipe.flows.steps import Do, Flow, Send, Tell, Wait
from sealpipe.secret import sheltered

P = ParamSpec("P")
T = TypeVar("T")


class Network:
    """Sends operations over blocking sockets; safe to use from several threads."""

    def __init__(self, session: Session, watch: Callable[[], http.Watch] = http.Watch) -> None:
        self._session = session
        self._watch = watch
        self._deadline = Deadline()
        self._pacing = Pacing()
        self._echo = Echo(session.credential, session.previous)
        self._transport = self._new_transport()

    def send(self, operation: Operation[Any], timeout: float) -> Answer | Failure:
        """What came back within `timeout` seconds."""
        end = time.monotonic() + timeout
        turn = Turn()
        try:
            while pause := self._pacing.ask(turn):
                if late := held_back(pause, end - time.monotonic()):
                    return late
                time.sleep(min(pause, AGAIN))
        finally:
            self._pacing.forget(turn)
        result = self._exchange(operation, end)
        self._pacing.note(turn, result)
        return self._echo.out_of(result)

    def close(self) -> None:
        self._transport.close()

    def _new_transport(self) -> PooledTransport:
        here = self._session.base_url.startswith("http://")
        return PooledTransport(DeadlineBackend(self._deadline, here=here), **http.pool_options(self._session))

    def _exchange(self, operation: Operation[Any], end: float) -> Answer | Failure:
        if operation.own_connection:
            with closing(self._new_transport()) as transport:
                return self._exchange_over(transport, operation, end)
        return self._exchange_over(self._transport, operation, end)

    def _exchange_over(self, transport: PooledTransport, operation: Operation[Any], end: float) -> Answer | Failure:
        watch = self._watch()
        content = None if operation.body is None else http.pieces(operation.body)
        self._deadline.at = end
        request = http.request(self._session, operation, end - time.monotonic(), content, watch.note)
        try:
            response = transport.handle_request(request)
            gathering = http.Gathering(response, operation)
            try:
                for piece in response.iter_raw():
                    if gathering.full(piece):
                        break
            finally:
                response.close()
            return gathering.answer()
        except Exception as error:
            failure = http.failure(error, watch)
            if failure is None:
                raise
            return failure
        finally:
            self._deadline.at = None


def run(flow: Flow[T], send: Callable[[Operation[Any], float], Answer | Failure]) -> T:
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
                case Tell(callback):
                    _tell(callback)
        except BaseException as raised:  # noqa: BLE001 - the flow decides what it means; an interrupt lets go of locks
            error = raised


def _tell(callback: Callable[[], object]) -> None:
    answer = callback()
    if hasattr(answer, "__await__"):
        if hasattr(answer, "close"):
            answer.close()
        raise UsageError("the callback is asynchronous, and this client is not", remedy="use AsyncClient")


def _driven(
    call: Callable[Concatenate[Session, P], Flow[T]],
) -> Callable[Concatenate[Client, P], T]:
    """The method of a flow: same arguments, same docstring, no body of its own."""

    @wraps(call)
    @sheltered
    def method(self: Client, /, *args: P.args, **options: P.kwargs) -> T:
        from sealpipe.client.calls.arguments import checked  # commands check theirs when they are read

        checked(call, args, options, skip=1)
        return self.run(call(self.session, *args, **options))

    shown_as_method(method, call, {"Flow": "{}"})
    return method


def _walked(
    call: Callable[Concatenate[Session, P], Pages[T]],
) -> Callable[Concatenate[Client, P], Iterator[T]]:
    @wraps(call)
    @sheltered
    def method(self: Client, /, *args: P.args, **options: P.kwargs) -> Iterator[T]:
        from sealpipe.client.calls.arguments import checked

        checked(call, args, options, skip=1)
        return _rows(self, call(self.session, *args, **options))

    shown_as_method(method, call, {"Walk": "Iterator[{}]", "LogWalk": "Iterator[Access]"})
    return method


def _rows(client: Client, walk: Pages[T]) -> Iterator[T]:
    next_page = sheltered(lambda: client.run(walk.next_page()))
    while not walk.done:
        yield from next_page()


class Client(ClientSetup):
    """The service from code that blocks. A context manager; one client may serve several threads.

    `api_key` (all three parts, or two), `base_url` (ends in /v1), `link_base_url`; `deadline` in seconds for
    all tries of one call; `ca_file` is trusted beside the system's certificates. `api_key_previous`, while keys are
    rotated, opens what was sealed to it and is never sent. Raises SettingError.
    """

    _network: Network | None = None
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
        return run(gated(self.session, flow), self._send)

    def _send(self, operation: Operation[Any], timeout: float) -> Answer | Failure:
        network = self._network
        if network is None:
            with self._making:  # one for all threads, or their connections and their pacing were not shared
                network = self._network = self._network or Network(self.session)
        return network.send(operation, timeout)

    create_share = _driven(shares.create_share)
    list_shares = _driven(shares.list_shares)
    iter_shares = _walked(shares.iter_shares)
    get_share = _driven(shares.get_share)
    expire_share = _driven(shares.expire_share)
    share = _driven(shares.share)
    resume = _driven(shares.resume)
    create_request = _driven(requests.create_request)
    list_requests = _driven(requests.list_requests)
    iter_requests = _walked(requests.iter_requests)
    get_request = _driven(requests.get_request)
    list_submissions = _driven(requests.list_submissions)
    request = _driven(handing_over.request)
    collect = _driven(handing_over.collect)
    collect_each = _driven(handing_over.collect_each)
    delete_request = _driven(requests.delete_request)
    expire_request = _driven(requests.expire_request)
    purge_request = _driven(requests.purge_request)
    get_stats = _driven(account.get_stats)
    list_tools = _driven(account.list_tools)
    call_tool = _driven(account.call_tool)
    get_capabilities = _driven(account.get_capabilities)
    share_log = _driven(account.share_log)
    iter_share_log = _walked(account.iter_share_log)
