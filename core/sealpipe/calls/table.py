"""The table of calls: `Client` and `AsyncClient` both have exactly these methods.

Each is a function of the session that makes a flow. A client's class turns it into a method when it is first used.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from inspect import Parameter, signature
from types import MethodType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from sealpipe.calls import account, requests, shares, submissions
from sealpipe.flows.paging import Pages
from sealpipe.flows.session import Session
from sealpipe.flows.steps import Flow

if TYPE_CHECKING:
    from sealpipe.aio import AsyncClient
    from sealpipe.client import Client

P = ParamSpec("P")
T = TypeVar("T")


class _Method:
    """Makes one method for each class of clients, with the signature, the docstring and the name of the call."""

    maker: str
    """Name of the static method of a client's class that makes the method."""

    def __init__(self, call: Callable[..., Any]) -> None:
        self._call = call
        self._made: dict[Callable[..., Any], Callable[..., Any]] = {}

    def bind(self, client: object, owner: type) -> Any:
        make = getattr(owner, self.maker)
        if make not in self._made:
            self._made[make] = make(self._call)
        return self._made[make] if client is None else MethodType(self._made[make], client)


class Call(_Method, Generic[P, T]):
    """A call that gives one result."""

    maker = "_make_call"

    def __init__(self, call: Callable[Concatenate[Session, P], Flow[T]]) -> None:
        super().__init__(call)

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

    maker = "_make_list_call"

    def __init__(self, call: Callable[Concatenate[Session, P], Pages[T]]) -> None:
        super().__init__(call)

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


def sign_as_method(method: Callable[..., Any], call: Callable[..., Any], result: str) -> None:
    """Give a method the call's signature: `self` in place of the session, and the type that it returns.

    `result` is the form of that type, such as `Iterator[{}]`: what the flow returns, or what the pages hold, goes in.
    """
    shown = signature(call)
    own = [Parameter("self", Parameter.POSITIONAL_OR_KEYWORD), *list(shown.parameters.values())[1:]]
    _, _, inner = str(call.__annotations__["return"]).partition("[")
    returned = result.format(inner.removesuffix("]") or "Access")  # the log's own type of pages names no rows
    method.__signature__ = shown.replace(parameters=own, return_annotation=returned)  # type: ignore[attr-defined]


class Calls:
    """The calls, by their names."""

    create_share = Call(shares.create_share)
    list_shares = Call(shares.list_shares)
    iter_shares = ListCall(shares.iter_shares)
    get_share = Call(shares.get_share)
    expire_share = Call(shares.expire_share)
    share = Call(shares.share)
    resume = Call(shares.resume)
    create_request = Call(requests.create_request)
    list_requests = Call(requests.list_requests)
    iter_requests = ListCall(requests.iter_requests)
    get_request = Call(requests.get_request)
    list_submissions = Call(requests.list_submissions)
    request = Call(requests.request)
    collect = Call(submissions.collect)
    collect_each = Call(submissions.collect_each)
    delete_request = Call(requests.delete_request)
    expire_request = Call(requests.expire_request)
    purge_request = Call(requests.purge_request)
    get_stats = Call(account.get_stats)
    list_tools = Call(account.list_tools)
    call_tool = Call(account.call_tool)
    get_capabilities = Call(account.get_capabilities)
    share_log = Call(account.share_log)
    iter_share_log = ListCall(account.iter_share_log)
