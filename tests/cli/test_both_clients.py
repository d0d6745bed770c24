"""`AsyncClient` is `Client` in worker threads: each method gives the same results and the same
errors, and sends the same requests. So every other test of a method asks `Client` alone.

What only `AsyncClient` has (cancelled tasks, many calls at once, closing, threads) is in
`tests/cli/faults/test_threads.py`, `test_cancelling.py` and `tests/unit/run/test_workers.py`.
"""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sealpipe import AsyncClient, Client, Field, OutcomeUnknownError, SealpipeError, Secret
from sealpipe.client import ClientSetup
from sealpipe.state.entry import Entry, JournaledLink
from sealpipe.state.outbox import Outbox
from sealpipe.wire import keys
from sealpipe_rehearsal.running_service import RunningService
from support.faults import closes, replaces, says
from support.faulty import Faulty, Received, passes

PAIR = keys.from_seed(bytes(range(32)))
BODY = {"data": 80 * "A", "access_token": 43 * "A"}
FORM = {"title": "t", "public_key": PAIR.public_key, "fields": [("Password", "password")]}
FAULTS = {
    "as it is": passes,
    "the credential is refused": says(401),
    "no JSON": replaces("<html>"),
    "no answer": closes,
}


class World(NamedTuple):
    """What an account has when a method is called."""

    share: str
    request: str
    place: Path
    entry: Callable[[], Entry]


Words = tuple[tuple[Any, ...], dict[str, Any]]


def with_words(*args: Any, **options: Any) -> Words:
    return args, options


CALLS: Mapping[str, Callable[[World], list[Words]]] = {
    "create_share": lambda _: [with_words(**BODY), with_words(**BODY, views=0)],
    "list_shares": lambda _: [with_words(limit=1), with_words(page=9), with_words(page=0)],
    "iter_shares": lambda _: [with_words(limit=1), with_words(limit=0)],
    "get_share": lambda w: [with_words(w.share), with_words("nobody"), with_words(5)],
    "expire_share": lambda w: [with_words(w.share, keep=w.place), with_words("nobody")],
    "share": lambda w: [
        with_words([Field("Password", "s3cret", type="password")], title="DB", views=3),
        with_words([f"file:{w.place}/missing"]),
        with_words(["text:x"], send=["nowhere:x"]),
        with_words(["text:x"], also_to=[f"file:{w.place}/copy#x"], outbox=w.place / "box"),
    ],
    "resume": lambda w: [with_words(w.entry()), with_words("no entry")],
    "create_request": lambda _: [with_words(**FORM), with_words(**{**FORM, "title": ""})],
    "list_requests": lambda _: [with_words(), with_words(status="expired")],
    "iter_requests": lambda _: [with_words(limit=1), with_words(status="expired")],
    "get_request": lambda w: [with_words(w.request), with_words("nobody")],
    "list_submissions": lambda w: [with_words(w.request), with_words("nobody")],
    "request": lambda w: [
        with_words(["Password"], title="for DB", max_submissions=2),
        with_words(["Password"], key="new", outbox=w.place / "box"),
        with_words([]),
    ],
    "collect": lambda w: [
        with_words(w.request, to=[f"file:{w.place}/password#password"]),
        with_words(w.request, to=[f"file:{w.place}/password#nothing"]),
        with_words("nobody"),
    ],
    "collect_each": lambda w: [
        with_words([w.request], folder=w.place / "each", after="expire"),
        with_words(["nobody", w.request]),
    ],
    "delete_request": lambda w: [with_words(w.request), with_words("nobody")],
    "expire_request": lambda w: [with_words(w.request, keep=w.place), with_words("nobody")],
    "purge_request": lambda w: [
        with_words(w.request, confirm=w.request, keep=w.place),
        with_words(w.request, confirm="another"),
    ],
    "get_stats": lambda _: [with_words(), with_words("too many")],
    "list_tools": lambda _: [with_words()],
    "call_tool": lambda _: [with_words("share_stats"), with_words("nothing", {"a": 1})],
    "get_capabilities": lambda _: [with_words()],
    "share_log": lambda w: [with_words(w.share, limit=1), with_words("nobody")],
    "iter_share_log": lambda w: [with_words(w.share), with_words("nobody")],
}
"""Calls of each method in their order: what works, and what does not."""


def public(kind: type) -> set[str]:
    return {
        name for name in dir(kind) if not name.startswith("_") and callable(getattr(kind, name))
    }


def test_the_table_has_every_method_of_both_clients() -> None:
    setup = public(ClientSetup) | {"close"}
    assert public(Client) == CALLS.keys() | setup
    assert public(AsyncClient) == CALLS.keys() | setup | {"run", "with_origin"}


@pytest.mark.parametrize("method", [*CALLS, "__init__", "close"])
def test_a_method_has_the_same_signature_and_help_but_is_awaited(method: str) -> None:
    blocking, awaited = getattr(Client, method), getattr(AsyncClient, method)
    there, here = inspect.signature(blocking), inspect.signature(awaited)
    assert here.parameters == there.parameters
    assert here.return_annotation.removeprefix("Async") == there.return_annotation
    is_iterator = there.return_annotation.startswith("Iterator")
    assert inspect.iscoroutinefunction(awaited) == (not is_iterator and method != "__init__")
    assert is_iterator or method == "close" or inspect.getdoc(awaited) == inspect.getdoc(blocking)


class Account:
    """An account of its own at the service, with a share, a request and what is not finished."""

    def __init__(self, service: RunningService, server: Faulty, place: Path) -> None:
        place.mkdir()
        self.service, self.server, self.place = service, server, place
        self.codes: set[str] = set()
        self.arguments: dict[str, Any] = {
            "api_key": service.create_key(account=place.name).reveal(),
            "base_url": server.base_url,
            "link_base_url": service.link_base_url,
            "deadline": 5.0,
        }

    def note_codes(self) -> None:
        """What the service has drawn so far; what is purged is in no table any more."""
        for table in ("shares", "requests", "submissions"):
            query = f"SELECT short_code FROM {table}"  # noqa: S608 - one of these three
            self.codes |= {
                row["short_code"] for row in self.service.service.database.rows(query, {})
            }
        self.codes |= {entry.stem for entry in self.place.rglob("*.sealed")}

    def make_world(self) -> World:
        """As both find it."""
        self.server.mend()
        with Client(**self.arguments) as client:
            for _ in range(2):
                share = client.share(["text:hello"]).short_code
            made = client.request(["Password", "User"])
        self.service.submitter().submit(made.collect_link, {"Password": "pw", "User": "bob"})
        self.note_codes()
        return World(share, made.short_code, self.place, self.begin_share)

    def begin_share(self) -> Entry:
        """A share that was not answered, for `resume`."""
        folder = self.place / "begun"
        self.server.plan(then=closes)
        with Client(**self.arguments) as client:
            with pytest.raises(OutcomeUnknownError) as caught:
                client.share(["text:hello"], outbox=folder)
            entry = Outbox(folder, client.session.credential).open(caught.value.outbox_id or "")
        assert isinstance(entry, Entry)
        return entry


def call_blocking(account: Account, method: str, calls: list[Words]) -> Iterator[Any]:
    with Client(**account.arguments) as client:
        for args, options in calls:
            try:
                found = getattr(client, method)(*args, **options)
                yield list(found) if isinstance(found, Iterator) else found
            except (SealpipeError, TypeError) as error:
                yield error


def call_awaiting(account: Account, method: str, calls: list[Words]) -> list[Any]:
    async def call_each() -> list[Any]:
        results: list[Any] = []
        async with AsyncClient(**account.arguments) as client:
            for args, options in calls:
                try:
                    found = getattr(client, method)(*args, **options)
                    is_iterator = isinstance(found, AsyncIterator)
                    results.append([row async for row in found] if is_iterator else await found)
                except (SealpipeError, TypeError) as error:
                    results.append(error)
        return results

    return asyncio.run(call_each())


DRAWN = re.compile(r"[\w+/=-]{16,}|\b[0-9a-f]{12}\b")
"""Keys, ciphertext, credentials, and the digest at the end of a marker."""
TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.\d]*(?:Z|[+-]\d\d:\d\d)?")


class Likeness:
    """What results, errors and requests are without what is drawn anew each time."""

    def __init__(self, account: Account) -> None:
        self._code = re.compile("|".join(account.codes))
        self._place = str(account.place)
        self._seen: list[str] = []
        self._errors: list[BaseException] = []

    def __call__(self, each: Any) -> Any:
        match each:
            case None | bool() | int() | float():
                return each
            case Secret():
                return self(each.reveal())
            case bytes():
                return self(each.decode("latin-1"))
            case str():
                text = self._code.sub(self._number, each).replace(self._place, "<place>")
                return DRAWN.sub("<drawn>", TIME.sub("<time>", text))
            case datetime():
                return "<time>"
            case Received():
                return self(each.head), self(json.loads(each.body or "null"))
            case BaseException() if each in self._errors:
                return "the same error"
            case BaseException():
                self._errors.append(each)
                return type(each), self(str(each)), self(vars(each))
            case Mapping():
                return {name: self(one) for name, one in each.items()}
            case Entry():
                return Entry
            case list() | tuple() | set() | frozenset():
                return [self(one) for one in each]
            case _ if dataclasses.is_dataclass(each):
                fields = dataclasses.fields(each)
                return type(each), {field.name: self(getattr(each, field.name)) for field in fields}
            case _:
                return type(each)

    def _number(self, code: re.Match[str]) -> str:
        """The same code is the same number."""
        if code[0] not in self._seen:
            self._seen.append(code[0])
        return f"<code {self._seen.index(code[0])}>"


@pytest.fixture
def server(extended: RunningService) -> Iterator[Faulty]:
    with Faulty(extended.address) as made:
        yield made


@pytest.mark.parametrize("method", CALLS)
def test_a_method_gives_the_same_results_and_errors_and_sends_the_same(
    extended: RunningService, server: Faulty, tmp_path: Path, method: str
) -> None:
    told = []
    for kind in (call_blocking, call_awaiting):
        account = Account(extended, server, tmp_path / kind.__name__)
        world = account.make_world()
        for name, fault in FAULTS.items():
            calls = CALLS[method](world)
            before = len(server.received())
            server.plan(then=fault)
            results = list(kind(account, method, calls))
            sent = server.received()[before:]
            account.note_codes()
            for each in results:
                if isinstance(each, JournaledLink):
                    each.keep()
            told.append((name, *Likeness(account)([results, sent])))
    half = len(told) // 2
    for blocking, awaiting in zip(told[:half], told[half:], strict=True):
        assert awaiting == blocking
    _, results, sent = told[0]
    assert sent
    assert not isinstance(results[0], tuple) or not issubclass(results[0][0], SealpipeError)
