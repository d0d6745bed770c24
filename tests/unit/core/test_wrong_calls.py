"""A wrong call from Python is a UsageError that names what is wrong, and nothing is sent.

Durations are text, too.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import pkgutil
import pydoc
import re
import socket
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealpipe import (
    AsyncClient,
    Client,
    Field,
    Outbox,
    ProtocolError,
    SealpipeError,
    Secret,
    UsageError,
    resolve,
)
from sealpipe.api.operation import Operation
from sealpipe.arguments import RULES, Rule, check_argument, find_rule
from sealpipe.minting import mint
from sealpipe.reference import parse, parse_field, parse_target
from sealpipe.wire import encoding, envelope, keys, sealed_box, tokens
from sealpipe_rehearsal.running_service import RunningService
from support.playing import PlayedNetwork
from support.terminal import PATIENCE, one_service, service
from support.wires import accepted

__all__ = ["one_service", "service"]

KEY = mint().credential.reveal()
DATA, TOKEN = envelope.seal(bytes(32), b"x"), tokens.access_token(bytes(32))
POINT = keys.from_seed(bytes(range(32))).public_key
WRAP = sealed_box.seal(POINT, bytes(32))
ENDS = datetime(2099, 1, 1, tzinfo=UTC)


class Ear:
    """An address where somebody only counts who knocks."""

    def __init__(self) -> None:
        self._knocked: list[Any] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.base_url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/v1"
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        for connection in accepted(self._socket):
            try:
                self._knocked.append(connection.getpeername())
            except OSError:  # it is gone again
                self._knocked.append(None)
            connection.close()

    @property
    def knocks(self) -> int:
        """How many have knocked up to now: a knock of our own is counted after all that came before
        it.
        """
        with socket.socket() as own:
            own.bind(("127.0.0.1", 0))
            name = own.getsockname()
            earlier = self._knocked.count(name)  # somebody had this port before
            own.connect(self._socket.getsockname())
            end = time.monotonic() + PATIENCE
            while self._knocked.count(name) == earlier:
                assert time.monotonic() < end, "nobody counts"
                time.sleep(0.0001)
            self._knocked.remove(name)
        return len(self._knocked)

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(scope="module")
def ear() -> Iterator[Ear]:
    found = Ear()
    yield found
    found.close()


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Odd paths are folders here."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def client(ear: Ear) -> Iterator[Client]:
    with Client(
        api_key=KEY, base_url=ear.base_url, link_base_url="http://127.0.0.1/s", deadline=0.2
    ) as made:
        yield made


VALID: dict[str, dict[str, Any]] = {
    "create_share": {"data": DATA, "access_token": TOKEN},
    "list_shares": {},
    "iter_shares": {},
    "get_share": {"short_code": "aB3"},
    "expire_share": {"short_code": "aB3"},
    "share": {"fields": [Field("a", "b")]},
    "resume": {"entry": "needs an outbox"},
    "create_request": {"title": "t", "public_key": POINT, "fields": [("P", "text")]},
    "list_requests": {},
    "iter_requests": {},
    "get_request": {"short_code": "aB3"},
    "list_submissions": {"short_code": "aB3"},
    "request": {"prompts": ["Password"]},
    "collect": {"request": "aB3"},
    "collect_each": {"requests": ["aB3"]},
    "delete_request": {"short_code": "aB3"},
    "expire_request": {"short_code": "aB3"},
    "purge_request": {"short_code": "aB3", "confirm": "aB3"},
    "get_stats": {},
    "list_tools": {},
    "call_tool": {"name": "get_share"},
    "get_capabilities": {},
    "share_log": {"short_code": "aB3"},
    "iter_share_log": {"short_code": "aB3"},
}
"""What each method can be called with; `resume` needs an entry, and so is always wrong here."""

CYCLE: list[Any] = []
CYCLE.append(CYCLE)
HOSTILE: tuple[Any, ...] = (
    b"bytes", bytearray(b"x"), 1.5, float("nan"), float("inf"), -1, 0, True, 10**400, -(10**400),
    object(), object,
    "\ud800", "a\udfffb", ["\ud800"], {"\ud800": 1}, [None], [1], {1: 2}, {"a": float("nan")},
    {"a": b"x"}, CYCLE,
    datetime(2099, 1, 1), datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC),
    timedelta.max, -timedelta(days=1), range(3), iter("ab"), Secret("a key"), Secret("\ud800"),
    Secret(b"\xff"),
    Secret(5),  # type: ignore[arg-type]
    lambda: None,
    "", " ", "x\ny", "\0", "..", "é" * 70_000,
)  # fmt: skip


def parameters(method: str) -> list[str]:
    return [
        name for name in inspect.signature(getattr(Client, method)).parameters if name != "self"
    ]


CASES = [(method, name) for method in VALID for name in parameters(method)]


def called(client: Client, method: str, given: dict[str, Any]) -> BaseException | None:
    """What a call ends with."""
    try:
        made = getattr(client, method)(**given)
        if isinstance(made, Iterator):
            next(made, None)
    except Exception as error:  # noqa: BLE001 - that is what is looked at
        return error
    return None


def rule(method: str, name: str) -> Rule | None:
    return find_rule(
        method, name, inspect.signature(getattr(Client, method)).parameters[name].annotation
    )


def may_leave(method: str, name: str, value: object) -> bool:
    """What is odd and no mistake: text with a line break in a title, say."""
    texts = isinstance(value, str) and "\ud800" not in value and "\udfff" not in value
    if texts and name in ("title", "description", "organization_id", "cursor", "name"):
        return True
    if texts and name == "short_code":
        return value in (" ", "x\ny", "\0")
    found = rule(method, name)
    return found is not None and found.accepts(value) and name != "resume"


@pytest.mark.parametrize(("method", "name"), CASES, ids=lambda each: each)
def test_a_hostile_argument_is_a_usage_error_and_nothing_is_sent(
    client: Client, ear: Ear, method: str, name: str
) -> None:
    for value in HOSTILE:
        if name in ("wait", "on_progress") and may_leave(method, name, value):
            continue  # it would wait, and what the caller's function does is the caller's
        before = ear.knocks
        error = called(client, method, {**VALID[method], name: value})
        if error is None or not isinstance(error, UsageError):
            assert may_leave(method, name, value), (method, name, type(value), error)
            assert error is None or isinstance(error, SealpipeError), (
                method,
                name,
                type(value),
                error,
            )
            continue
        assert ear.knocks == before, (method, name, type(value))
        assert error.exit_code == 2
        assert error.__cause__ is None


def test_every_parameter_of_every_method_has_a_rule() -> None:
    unruled = [f"{method}({name}=)" for method, name in CASES if rule(method, name) is None]
    assert unruled == [], (
        "add a rule to RULES, or its type to BY_TYPE, in core/sealpipe/arguments.py"
    )
    public = {name for name in vars(Client) if not name.startswith("_")} - {"close"}
    assert public == set(VALID), "VALID of this file has a valid call of each method"


@pytest.mark.parametrize(
    ("method", "name", "value"),
    [
        ("share", "fields", [parse_field("A=env:A")]),
        ("share", "passcode", parse("env:A")),
        ("share", "also_to", [parse("file:a")]),
        ("share", "send", [parse_target("email:a@example.com")]),
        ("share", "params", [("TO", parse("env:TO"))]),
        ("request", "seed_to", parse("file:a")),
        ("request", "params", {"TO": parse("env:TO")}),
        ("collect", "to", [parse("file:a")]),
    ],
)
def test_a_parsed_reference_is_taken_where_the_signature_has_one(
    method: str, name: str, value: object
) -> None:
    found = rule(method, name)
    assert found is not None
    assert found.accepts(value)


def test_a_request_of_a_raw_body_takes_no_reference_to_a_passcode() -> None:
    found = rule("create_request", "passcode")
    assert found is not None
    assert not found.accepts(parse("env:A"))
    assert found.accepts(Secret("1234"))


# -- missing and unknown ------------------------------------------------------------------------


def test_a_client_of_nothing_is_a_type_error_that_names_all_that_it_lacks() -> None:
    with pytest.raises(TypeError, match=r"missing 3 .*'api_key', 'base_url', and 'link_base_url'"):
        Client()  # type: ignore[call-arg]


MISUSED = [
    (lambda c: c.share(), r"missing 1 required positional argument: 'fields'"),
    (lambda c: c.share(["env:A"], expire_in="24h"),
        r"share\(\) got an unexpected keyword argument 'expire_in'"),
    (lambda c: c.share(["env:A"], "a name"), r"takes 2 positional arguments but 3 were given"),
    (lambda c: c.get_share(), r"missing 1 required positional argument: 'short_code'"),
    (lambda c: c.get_share("a", "b"), r"takes 2 positional arguments but 3 were given"),
    (lambda c: c.get_share("a", short_code="b"), r"got multiple values for argument 'short_code'"),
    (lambda c: c.get_share(session="a"), r"unexpected keyword argument 'session'"),
    (lambda c: c.list_shares(custody=5), r"unexpected keyword argument 'custody'"),
    (lambda c: c.iter_shares(pages=1), r"unexpected keyword argument 'pages'"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "said"), MISUSED)
def test_a_missing_or_unknown_argument_is_pythons_own_type_error(
    client: Client, ear: Ear, call: Callable[[Any], object], said: str
) -> None:
    before = ear.knocks
    with pytest.raises(TypeError, match=said) as wrong:
        call(client)
    assert ear.knocks == before
    assert str(wrong.value).startswith(tuple("abcdefghijklmnopqrstuvwxyz")), "no class: both are so"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda c: c.share("env:A"),
            "share(): fields is not a list of Fields and references (got str)"),
        (lambda c: c.share([1, b"x", "env:A"]),
            ("share(): fields is not a list of Fields and references"
         " (got list of bytes, int, str)")),
        (lambda c: c.share(["env:A"], send="email:a@example.com"),
            "share(): send is not a list of texts (got str)"),
        (lambda c: c.share(["env:A"], views=True),
            ("share(): views is not a whole number from 1 to 2147483647"
         " (got bool)")),
        (lambda c: c.share(["env:A"], expires_in=24),
            ('share(): expires_in is not a timedelta, or text such as "24h"'
         " (got int)")),
        (lambda c: c.collect("a", to="file:x"), "collect(): to is not a list of texts (got str)"),
        (lambda c: c.list_shares(page=0),
            "list_shares(): page is not a whole number from 1 to 2147483647 (got int)"),
        (lambda c: c.list_requests(status="over"),
            "list_requests(): status is not one of expired (got str)"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(
    client: Client, ear: Ear, call: Callable[[Any], object], said: str
) -> None:
    before = ear.knocks
    with pytest.raises(UsageError) as caught:
        call(client)
    assert caught.value.message == said
    assert ear.knocks == before


class Log:
    next_cursor = "c"


EXAMPLES: dict[str, Any] = {
    "Field": Field, "Secret": Secret, "UTC": UTC, "datetime": datetime, "timedelta": timedelta,
    "uuid": uuid,
    "envelope": envelope, "sealed_box": sealed_box, "tokens": tokens,
    "content_key": bytes(32), "key_pair": keys.from_seed(bytes(32)), "plaintext": b"[]", "log": Log,
    "os": SimpleNamespace(environ={"SEALPIPE_API_KEY": KEY, "PASSCODE": "1234"}),
}  # fmt: skip
"""What the examples in remedies name: the API, and values that a program has."""


class Wrong:
    """Of no type that any argument takes."""


@pytest.mark.parametrize(
    ("method", "name"),
    [
        *(case for case in CASES if case != ("resume", "resend")),
        *(("Client", name) for name in parameters("__init__")),
    ],
)
def test_each_remedy_is_an_example_that_is_right(client: Client, method: str, name: str) -> None:
    call: Any = Client if method == "Client" else getattr(client, method)
    given: dict[str, Any] = {
        "api_key": KEY,
        "base_url": "https://x/v1",
        "link_base_url": "https://x/s",
    }
    given = given if method == "Client" else VALID[method]
    with pytest.raises(UsageError, match=rf"{name} is not .* \(got Wrong\)") as caught:
        call(**{**given, name: Wrong()})
    example = caught.value.remedy.removeprefix(f"write {name}=")
    if name == "entry":
        assert (example, callable(Outbox.open)) == ("outbox.open(outbox_id)", True)
        return
    annotation = inspect.signature(call).parameters[name].annotation
    check_argument(method, name, annotation, eval(example, EXAMPLES))  # noqa: S307 - ours


@pytest.mark.parametrize(
    "deadline", [float("nan"), float("inf"), 0, -1, "banana", "", True, None, timedelta(days=30)]
)
def test_a_deadline_that_is_none(deadline: Any) -> None:
    with pytest.raises(UsageError):
        Client(
            api_key=KEY,
            base_url="http://127.0.0.1:9/v1",
            link_base_url="http://127.0.0.1/s",
            deadline=deadline,
        )


def test_references_are_a_list() -> None:
    for wrong in ("env:A", None, [1], [b"env:A"]):
        with pytest.raises(UsageError):
            resolve(wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'references'"):
        resolve()  # type: ignore[call-arg]


# -- durations ----------------------------------------------------------------------------------


def test_durations_are_text_or_timedelta(service: RunningService) -> None:
    settings: dict[str, Any] = {
        "base_url": service.base_url,
        "link_base_url": service.link_base_url,
    }
    key = service.create_key()

    def call(deadline: Any) -> str:
        with Client(api_key=key, deadline=deadline, **settings) as client:
            assert client.session.deadline == 30
            for expires_in in ("24h", timedelta(hours=24)):
                share = client.share([Field("a", "b")], expires_in=expires_in)
                assert share.expires_at is not None
                assert abs(share.expires_at - datetime.now(UTC) - timedelta(hours=24)) < timedelta(
                    minutes=1
                )
            code = client.request(["Password"], expires_in="2d").short_code
            return client.collect(code, wait="1s").status

    with ThreadPoolExecutor(4) as pool:  # each waits
        assert list(pool.map(call, ("30s", timedelta(seconds=30), 30, 30.0))) == ["pending"] * 4
    with (
        Client(api_key=key, **settings) as client,
        pytest.raises(UsageError, match="not a duration"),
    ):
        client.share([Field("a", "b")], expires_in="soon")


# -- idempotency keys, and what is sealed by the caller -----------------------------------------


@pytest.mark.parametrize("key", ["", " ", "x\ny", "ä", "\ud800", "x ", "\x7f", "a" * 256, 5, b"x"])
def test_an_idempotency_key_that_cannot_be_sent(client: Client, ear: Ear, key: Any) -> None:
    before = ear.knocks
    for call in ("create_share", "create_request"):
        with pytest.raises(
            UsageError, match="idempotency_key is not 1 to 255 visible ASCII characters"
        ):
            getattr(client, call)(**VALID[call], idempotency_key=key)
    assert ear.knocks == before


def test_below_the_methods_what_http_cannot_carry_is_not_sent_either(
    client: Client, ear: Ear
) -> None:
    from sealpipe.api import shares
    from sealpipe.budget import call

    before = ear.knocks
    for key in (" ", "x\ny", "x\r\nx-other: y", "ä\u0100", "\0"):
        with pytest.raises(UsageError, match="nothing was sent"):
            call(shares.create(b"{}", key), client.session.start_budget(), unclear=True)
    assert ear.knocks == before


def raw(text: str) -> bytes:
    return encoding.decode_base64(text)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("data", f'{DATA}","title":"injected'),
        ("data", DATA.rstrip("=") if DATA.endswith("=") else DATA[:-1]),
        ("data", DATA + "\n"),
        ("data", encoding.encode_base64(bytes(43))),
        ("data", encoding.encode_base64url(bytes([255]) * 44)),
        ("data", ""),
        ("item_key_wrap", f'{WRAP}","title":"injected'),
        ("item_key_wrap", encoding.encode_base64(raw(WRAP)[:-1])),
        ("item_key_wrap", encoding.encode_base64(b"\2" + raw(WRAP)[1:])),
        ("item_key_wrap", encoding.encode_base64(raw(WRAP) + b"x")),
        ("access_token", TOKEN + "="),
        ("access_token", encoding.encode_base64url(bytes(31))),
        ("access_token", '","title":"injected'),
        ("passcode_verifier", "x"),
        ("notify_on", ["opened", "nothing"]),
    ],
    ids=lambda each: each if isinstance(each, str) and each in RULES else "",
)
def test_what_the_caller_sealed_is_checked(client: Client, ear: Ear, name: str, value: Any) -> None:
    before = ear.knocks
    with pytest.raises(UsageError, match=rf"create_share\(\): {name} is not"):
        client.create_share(**{**VALID["create_share"], name: value})
    assert ear.knocks == before


_STRINGS = st.one_of(
    st.text(st.characters(), max_size=20),
    st.sampled_from((DATA, WRAP, TOKEN, f'{DATA}","title":"x', '"}', "\\", "\u2028", '\ud800"')),
    st.binary(min_size=44, max_size=60).map(encoding.encode_base64),
    st.binary(min_size=32, max_size=32).map(encoding.encode_base64url),
)


@given(data=_STRINGS, access_token=_STRINGS, given=st.dictionaries(
    st.sampled_from(("title", "description", "passcode_verifier", "item_key_wrap",
        "organization_id")), _STRINGS
))  # fmt: skip
def test_the_body_is_exactly_what_was_meant_or_there_is_none(
    data: str, access_token: str, given: dict[str, str]
) -> None:
    sent: list[bytes] = []

    def only(operation: Operation[Any], _: float) -> NoReturn:
        sent.append(bytes(operation.body or b""))
        raise ProtocolError("enough")

    with Client(
        api_key=KEY, base_url="http://127.0.0.1:9/v1", link_base_url="http://127.0.0.1/s"
    ) as client:
        client.session = client.session.with_transport(PlayedNetwork(only))
        with pytest.raises((UsageError, ProtocolError)) as caught:
            client.create_share(data=data, access_token=access_token, **given)
    if isinstance(caught.value, UsageError):
        assert sent == []
        return
    meant = {
        "encryption_type": "e2ee-aes256-gcm",
        "data": data,
        "access_token": access_token,
        **given,
    }
    assert json.loads(sent[0], object_pairs_hook=list) == json.loads(
        json.dumps({name: meant[name] for name in dict(json.loads(sent[0]))}),
        object_pairs_hook=list,
    )
    assert json.loads(sent[0]) == meant


# -- what help shows, and frames ----------------------------------------------------------------


@pytest.mark.parametrize("method", VALID)
def test_help_shows_the_real_signature(method: str) -> None:
    shown = inspect.signature(getattr(Client, method))
    assert "session" not in shown.parameters
    assert next(iter(shown.parameters)) == "self"
    assert "Walk" not in str(shown)
    assert re.search(rf"{method}\(\s*self", _help(getattr(Client, method)))


def _help(method: Any) -> str:
    """What help shows; before Python 3.14 it puts annotations in quotes."""
    return pydoc.plain(pydoc.render_doc(method)).replace("'", "")


def test_help_names_what_a_share_takes() -> None:
    text = _help(Client.share)
    assert "expires_in: timedelta | str | None" in text
    assert "-> Share" in text
    assert "-> 'Iterator[ShareInfo]'" in str(inspect.signature(Client.iter_shares))


@pytest.mark.parametrize(
    "method", ["share", "create_share", "request", "create_request", "collect"]
)
def test_help_explains_each_parameter_in_a_line_of_its_own(method: str) -> None:
    text = inspect.getdoc(getattr(Client, method)) or ""
    heads = [
        head
        for line in text.splitlines()
        if line.startswith("- `")
        for head in [line.partition(": ")[0]]
    ]
    assert [name for head in heads for name in re.findall(r"`(\w+)`", head)] == parameters(method)
    assert all(
        "in seconds" in line for line in text.splitlines() if line.startswith("- `timed_view`")
    )


def test_a_create_takes_the_members_in_their_order() -> None:
    assert parameters("create_share") == [
        "data", "access_token", "passcode_verifier", "title", "description", "expires_at", "views",
        "item_key_wrap", "timed_view", "notify_on", "organization_id", "idempotency_key",
    ]  # fmt: skip
    assert parameters("create_request") == [
        "title", "public_key", "fields", "description", "expires_at", "max_submissions", "views",
        "passcode", "requires_login", "requires_mfa", "restricted_domains", "ip_whitelist",
        "organization_id", "idempotency_key",
    ]  # fmt: skip
    for method, required in {"create_share": 2, "create_request": 3}.items():
        found = list(inspect.signature(getattr(Client, method)).parameters.values())[1:]
        assert {each.kind for each in found} == {inspect.Parameter.KEYWORD_ONLY}
        assert [each.default for each in found] == [inspect.Parameter.empty] * required + [None] * (
            len(found) - required
        )


class PassedOnError(Exception):
    """What a method gave to the one that it calls."""


@pytest.mark.parametrize(
    ("method", "callee", "named", "own"),
    [
        ("share", "sealpipe.client.plan_share", ("fields",), ("outbox",)),
        ("request", "sealpipe.request.options.plan_request", ("prompts",), ("outbox",)),
        ("collect_each", "sealpipe.collect.options.plan_collect", ("requests",), ()),
        ("create_share", "sealpipe.api.shares.ShareMembers", (), ("data", "idempotency_key")),
        ("create_request", "sealpipe.api.requests.RequestMembers", (), ("idempotency_key",)),
    ],
)
def test_a_method_passes_on_what_it_is_given(
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    callee: str,
    named: tuple[str, ...],
    own: tuple[str, ...],
) -> None:
    def called(*args: object, **given: object) -> NoReturn:
        raise PassedOnError({**dict(zip(named, args, strict=True)), **given})

    taken = inspect.signature(pkgutil.resolve_name(callee)).parameters
    monkeypatch.setattr(callee, called)
    values = {name: object() for name in parameters(method)}
    with pytest.raises(PassedOnError) as caught:
        inspect.unwrap(getattr(Client, method))(client, **values)
    passed = {name: value for name, value in values.items() if name not in own}
    assert caught.value.args == (passed,)
    assert list(taken) == list(passed)
    defaults = {
        name: each.default
        for name, each in inspect.signature(getattr(Client, method)).parameters.items()
    }
    assert {name: each.default for name, each in taken.items()} == {
        name: defaults[name] for name in passed
    }


def test_collecting_from_one_is_collecting_from_many(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def called(requests: object, **given: object) -> NoReturn:
        raise PassedOnError(requests, given)

    monkeypatch.setattr("sealpipe.collect.options.plan_collect", called)
    values = {name: object() for name in parameters("collect")}
    with pytest.raises(PassedOnError) as caught:
        inspect.unwrap(Client.collect)(client, **values)
    request = values.pop("request")
    assert caught.value.args == ([request], values)


def frames(error: BaseException) -> set[str]:
    return {frame.name for frame in traceback.extract_tb(error.__traceback__)} - {"wrapper"}


def test_an_iterator_lets_no_frame_out_behind_it(client: Client) -> None:
    for walk in (client.iter_shares, client.iter_requests, lambda: client.iter_share_log("aB3")):
        with pytest.raises(SealpipeError) as caught:
            list(walk())
        assert frames(caught.value) <= {
            "test_an_iterator_lets_no_frame_out_behind_it",
            "_iterate_rows",
        }
        shown = "".join(
            traceback.TracebackException.from_exception(caught.value, capture_locals=True).format()
        )
        assert KEY.split(".")[1] not in shown
        assert (caught.value.__cause__, caught.value.__context__) == (None, None)


def test_nor_does_one_of_asyncio(ear: Ear) -> None:
    async def job(method: str, *args: str) -> None:
        settings: dict[str, Any] = {
            "base_url": ear.base_url,
            "link_base_url": "http://127.0.0.1/s",
            "deadline": 0.2,
        }
        async with AsyncClient(api_key=KEY, **settings) as client:
            async for _ in getattr(client, method)(*args):
                pass

    for asked in (("iter_shares",), ("iter_requests",), ("iter_share_log", "aB3")):
        with pytest.raises(SealpipeError) as caught:
            asyncio.run(job(*asked))
        ours = {
            name
            for name in frames(caught.value)
            if name not in ("job", "run", "run_until_complete")
        }
        assert ours <= {"test_nor_does_one_of_asyncio", "_iterate", "_fetch_page"}
        assert (caught.value.__cause__, caught.value.__context__) == (None, None)


def test_none_is_no_limit_and_no_end_where_a_call_says_so(service: RunningService) -> None:
    with Client(
        api_key=service.create_key(), base_url=service.base_url, link_base_url=service.link_base_url
    ) as client:
        share = client.share([Field("Password", "s3cret")], expires_in=None, views=None)
        assert share.expires_at is None
        with pytest.raises(UsageError, match="custody is not one of"):
            client.share([Field("Password", "s3cret")], custody=None)  # type: ignore[arg-type]
