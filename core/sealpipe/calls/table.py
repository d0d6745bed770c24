"""The table of calls: `Client` and `AsyncClient` both have exactly these methods.

Each is a function of the session that makes a flow. A client's class turns it into a method when it is first used.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import wraps
from inspect import Parameter, signature
from types import MethodType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from sealpipe import calls
from sealpipe.flows import Flow
from sealpipe.flows.session import Session
from sealpipe.secret import strips_frames

if TYPE_CHECKING:
    from sealpipe.aio import AsyncClient
    from sealpipe.client import Client
    from sealpipe.client_base import ClientSetup
    from sealpipe.flows.lookup import PageIterator

P = ParamSpec("P")
T = TypeVar("T")
Options = TypeVar("Options")
Started = TypeVar("Started")
AnyClient = TypeVar("AnyClient", bound="ClientSetup")


class _Method:
    """Makes one method for each class of clients, with the signature, the docstring and the name of the call.

    `find` returns the call: its module is loaded when the method is first used.
    """

    factory_name: str
    """Name of the static method of a client's class that makes the method."""

    def __init__(self, find: Callable[[], Callable[..., Any]]) -> None:
        self._find = find
        self._methods: dict[Callable[..., Any], Callable[..., Any]] = {}

    def bind(self, client: object, owner: type) -> Any:
        make = getattr(owner, self.factory_name)
        if make not in self._methods:
            self._methods[make] = make(self._find())
        return self._methods[make] if client is None else MethodType(self._methods[make], client)


class Call(_Method, Generic[P, T]):
    """A call that gives one result."""

    factory_name = "_make_call"

    def __init__(self, find: Callable[[], Callable[Concatenate[Session, P], Flow[T]]]) -> None:
        super().__init__(find)

    @overload
    def __get__(self, client: None, owner: type[Client]) -> Callable[Concatenate[Client, P], T]: ...
    @overload
    def __get__(
        self, client: None, owner: type[AsyncClient]
    ) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]: ...
    @overload
    def __get__(self, client: Client, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: AsyncClient, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, client: Any, owner: type) -> Any:
        return self.bind(client, owner)


class ListCall(_Method, Generic[P, T]):
    """A call that goes through a list page by page."""

    factory_name = "_make_list_call"

    def __init__(self, find: Callable[[], Callable[Concatenate[Session, P], PageIterator[T]]]) -> None:
        super().__init__(find)

    @overload
    def __get__(self, client: None, owner: type[Client]) -> Callable[Concatenate[Client, P], Iterator[T]]: ...
    @overload
    def __get__(
        self, client: None, owner: type[AsyncClient]
    ) -> Callable[Concatenate[AsyncClient, P], AsyncIterator[T]]: ...
    @overload
    def __get__(self, client: Client, owner: type) -> Callable[P, Iterator[T]]: ...
    @overload
    def __get__(self, client: AsyncClient, owner: type) -> Callable[P, AsyncIterator[T]]: ...
    def __get__(self, client: Any, owner: type) -> Any:
        return self.bind(client, owner)


def make_method(
    call: Callable[Concatenate[Session, P], Started], drive: Callable[[AnyClient, Started], T], result: str
) -> Callable[Concatenate[AnyClient, P], T]:
    """Make the method of a call: it checks the arguments and lets the client drive what the call starts.

    `result` is the form of the type that it returns, as for `copy_signature`.
    """

    @wraps(call)
    @strips_frames
    def method(self: AnyClient, /, *args: P.args, **options: P.kwargs) -> T:
        from sealpipe.calls.arguments import check_arguments  # commands check theirs when they are read

        check_arguments(call, args, options, skip=1)
        return drive(self, call(self.session, *args, **options))

    copy_signature(method, call, result)
    return method


def copy_signature(method: Callable[..., Any], call: Callable[..., Any], result: str) -> None:
    """Give a method the call's signature: `self` in place of the session, and the type that it returns.

    `result` is the form of that type, such as `Iterator[{}]`: what the flow returns, or what the pages hold, goes in.
    """
    call_signature = signature(call)
    receiver = [Parameter("self", Parameter.POSITIONAL_OR_KEYWORD), *list(call_signature.parameters.values())[1:]]
    _, _, inner = str(call.__annotations__["return"]).partition("[")
    return_type = result.format(inner.removesuffix("]") or "Access")  # the log's own type of pages names no rows
    method.__signature__ = call_signature.replace(parameters=receiver, return_annotation=return_type)  # type: ignore[attr-defined]


def with_options(
    options: Callable[P, Options], make: Callable[[Session, Options], Flow[T]]
) -> Callable[Concatenate[Session, P], Flow[T]]:
    """The call of a flow that takes its options as one value: their fields are its signature, defaults included."""

    def call(session: Session, /, *args: P.args, **named: P.kwargs) -> Flow[T]:
        return make(session, options(*args, **named))

    init: Any = options.__init__
    call.__module__, call.__name__, call.__doc__ = make.__module__, make.__name__, make.__doc__
    call.__qualname__ = make.__qualname__
    call.__annotations__ = {"return": make.__annotations__["return"]}
    call.__wrapped__ = init  # type: ignore[attr-defined]  # what `inspect.signature` looks at
    return call


class Calls:
    """The calls, by their names."""

    create_share = Call(lambda: calls.shares.create_share)
    list_shares = Call(lambda: calls.shares.list_shares)
    iter_shares = ListCall(lambda: calls.shares.iter_shares)
    get_share = Call(lambda: calls.shares.get_share)
    expire_share = Call(lambda: calls.shares.expire_share)
    share = Call(lambda: with_options(calls.shares.ShareOptions, calls.shares.share))
    resume = Call(lambda: calls.shares.resume)
    create_request = Call(lambda: calls.requests.create_request)
    list_requests = Call(lambda: calls.requests.list_requests)
    iter_requests = ListCall(lambda: calls.requests.iter_requests)
    get_request = Call(lambda: calls.requests.get_request)
    list_submissions = Call(lambda: calls.requests.list_submissions)
    request = Call(lambda: with_options(calls.requests.RequestOptions, calls.requests.request))
    collect = Call(lambda: with_options(calls.submissions.CollectOneOptions, calls.submissions.collect))
    collect_each = Call(lambda: with_options(calls.submissions.CollectEachOptions, calls.submissions.collect_each))
    delete_request = Call(lambda: calls.requests.delete_request)
    expire_request = Call(lambda: calls.requests.expire_request)
    purge_request = Call(lambda: calls.requests.purge_request)
    get_stats = Call(lambda: calls.account.get_stats)
    list_tools = Call(lambda: calls.account.list_tools)
    call_tool = Call(lambda: calls.account.call_tool)
    get_capabilities = Call(lambda: calls.account.get_capabilities)
    share_log = Call(lambda: calls.account.share_log)
    iter_share_log = ListCall(lambda: calls.account.iter_share_log)
