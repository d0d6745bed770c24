"""The calls that both clients offer, each defined once: a function of the session that returns a flow.

`Calls` is their table. On first use, `Client` and `AsyncClient` make a method from the call, with its signature, its
docstring and a check of its arguments. Only then is the call's module imported: most programs need one of them, and
`sealpipe share` none.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import wraps
from inspect import Parameter, signature
from types import MethodType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from sealpipe import calls
from sealpipe.calls.arguments import check_arguments
from sealpipe.flows.session import Session
from sealpipe.secret import strips_frames

if TYPE_CHECKING:
    from sealpipe.calls import account as account
    from sealpipe.calls import requests as requests
    from sealpipe.calls import shares as shares
    from sealpipe.flows.lookup import PageIterator

else:  # hidden from mypy, which would take every other name for a module

    def __getattr__(name):
        from importlib import import_module

        if name in ("account", "requests", "shares"):
            return import_module(f"sealpipe.calls.{name}")
        raise AttributeError(f"module 'sealpipe.calls' has no attribute {name!r}")


P = ParamSpec("P")
T = TypeVar("T")
Options = TypeVar("Options")
Started = TypeVar("Started")
AnyClient = TypeVar("AnyClient", bound="Calls")
Blocking = TypeVar("Blocking", bound="BlockingCalls")
Asynchronous = TypeVar("Asynchronous", bound="AsyncCalls")


class _Method:
    """Make one method for each client class, with the call's signature, docstring and name.

    `find` returns the call; its module is loaded when the method is first used.
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
    """A call with one result."""

    factory_name = "_make_call"

    def __init__(self, find: Callable[[], Callable[Concatenate[Session, P], T]]) -> None:
        super().__init__(find)

    @overload
    def __get__(self, client: None, owner: type[Blocking]) -> Callable[Concatenate[Blocking, P], T]: ...
    @overload
    def __get__(
        self, client: None, owner: type[Asynchronous]
    ) -> Callable[Concatenate[Asynchronous, P], Coroutine[Any, Any, T]]: ...
    @overload
    def __get__(self, client: BlockingCalls, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: AsyncCalls, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, client: Any, owner: type) -> Any:
        return self.bind(client, owner)


class ListCall(_Method, Generic[P, T]):
    """A call that iterates over a list, page by page."""

    factory_name = "_make_list_call"

    def __init__(self, find: Callable[[], Callable[Concatenate[Session, P], PageIterator[T]]]) -> None:
        super().__init__(find)

    @overload
    def __get__(self, client: None, owner: type[Blocking]) -> Callable[Concatenate[Blocking, P], Iterator[T]]: ...
    @overload
    def __get__(
        self, client: None, owner: type[Asynchronous]
    ) -> Callable[Concatenate[Asynchronous, P], AsyncIterator[T]]: ...
    @overload
    def __get__(self, client: BlockingCalls, owner: type) -> Callable[P, Iterator[T]]: ...
    @overload
    def __get__(self, client: AsyncCalls, owner: type) -> Callable[P, AsyncIterator[T]]: ...
    def __get__(self, client: Any, owner: type) -> Any:
        return self.bind(client, owner)


def make_method(
    call: Callable[Concatenate[Session, P], Started], drive: Callable[[AnyClient, Started], T], result: str
) -> Callable[Concatenate[AnyClient, P], T]:
    """Make the method of a call: it checks the arguments, and the client drives what the call starts.

    `result` is the template of the return type, as for `copy_signature`.
    """

    @wraps(call)
    @strips_frames
    def method(self: AnyClient, /, *args: P.args, **options: P.kwargs) -> T:
        check_arguments(call, args, options, skip=1)
        return drive(self, call(self.session, *args, **options))

    copy_signature(method, call, result)
    return method


def copy_signature(method: Callable[..., Any], call: Callable[..., Any], result: str) -> None:
    """Give a method the signature of its call, with `self` instead of the session and its own return type.

    `result` is the template of that type, such as `Iterator[{}]`; the result or the pages' rows replace `{}`.
    """
    call_signature = signature(call)
    receiver = [Parameter("self", Parameter.POSITIONAL_OR_KEYWORD), *list(call_signature.parameters.values())[1:]]
    return_type = str(call.__annotations__["return"])
    if result != "{}":
        _, _, inner = return_type.partition("[")
        return_type = result.format(inner.removesuffix("]") or "Access")  # the access log's pages name no type
    method.__signature__ = call_signature.replace(parameters=receiver, return_annotation=return_type)  # type: ignore[attr-defined]


def with_options(
    options: Callable[P, Options], make: Callable[[Session, Options], T]
) -> Callable[Concatenate[Session, P], T]:
    """Make a call from a flow whose options are one dataclass: its fields become the signature, with defaults."""

    def call(session: Session, /, *args: P.args, **named: P.kwargs) -> T:
        return make(session, options(*args, **named))

    init: Any = options.__init__
    call.__module__, call.__name__, call.__doc__ = make.__module__, make.__name__, make.__doc__
    call.__qualname__ = make.__qualname__
    call.__annotations__ = {"return": make.__annotations__["return"]}
    call.__wrapped__ = init  # type: ignore[attr-defined]  # `inspect.signature` reads it
    return call


class Calls:
    """All calls, by name."""

    session: Session

    create_share = Call(lambda: with_options(calls.shares.CreateShareOptions, calls.shares.create_share))
    list_shares = Call(lambda: calls.shares.list_shares)
    iter_shares = ListCall(lambda: calls.shares.iter_shares)
    get_share = Call(lambda: calls.shares.get_share)
    expire_share = Call(lambda: calls.shares.expire_share)
    share = Call(lambda: with_options(calls.shares.ShareOptions, calls.shares.share))
    resume = Call(lambda: calls.shares.resume)
    create_request = Call(lambda: with_options(calls.requests.CreateRequestOptions, calls.requests.create_request))
    list_requests = Call(lambda: calls.requests.list_requests)
    iter_requests = ListCall(lambda: calls.requests.iter_requests)
    get_request = Call(lambda: calls.requests.get_request)
    list_submissions = Call(lambda: calls.requests.list_submissions)
    request = Call(lambda: with_options(calls.requests.RequestOptions, calls.requests.request))
    collect = Call(lambda: with_options(calls.requests.CollectOneOptions, calls.requests.collect))
    collect_each = Call(lambda: with_options(calls.requests.CollectEachOptions, calls.requests.collect_each))
    delete_request = Call(lambda: calls.requests.delete_request)
    expire_request = Call(lambda: calls.requests.expire_request)
    purge_request = Call(lambda: calls.requests.purge_request)
    get_stats = Call(lambda: calls.account.get_stats)
    list_tools = Call(lambda: calls.account.list_tools)
    call_tool = Call(lambda: calls.account.call_tool)
    get_capabilities = Call(lambda: calls.account.get_capabilities)
    share_log = Call(lambda: calls.account.share_log)
    iter_share_log = ListCall(lambda: calls.account.iter_share_log)


class BlockingCalls(Calls):
    """The calls as methods that block."""


class AsyncCalls(Calls):
    """The calls as methods to await."""
