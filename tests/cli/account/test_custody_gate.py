"""The custody secret leaves in no request, whatever it is written in, and a call that would send it
sends nothing.
"""

from __future__ import annotations

import base64
import json
import os
import runpy
import ssl
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.account.custody_forms import BEFORE, CUSTODY, FORMS, GATE, KEY, OLD, b64, told
from cli.fake_mcp import FakeMcp
from sealpipe import Client, Field, SealpipeError, Secret, UsageError
from sealpipe.api import shares
from sealpipe.api.operation import Credential
from sealpipe.custody_gate import CustodyGate
from sealpipe.errors import AccessDeniedError
from sealpipe.minting import mint
from sealpipe.network.exchange import CHUNK_SIZE
from sealpipe.network.plugin_network import PluginNetwork
from sealpipe.network.sockets import connect
from sealpipe.wire import envelope, keys, tokens
from sealpipe.wire.encoding import encode_base64url
from sealpipe_rehearsal.running_service import RunningService
from support.fake_web import Receiver
from support.faulty import Faulty
from support.parts import ROOT
from support.terminal import Terminal

LARGE = 1024 * 1024
LATER = datetime.now(UTC) + timedelta(hours=1)
DATA = envelope.seal(bytes(32), b"x")
TOKEN = tokens.access_token(bytes(32))
POINT = keys.from_seed(bytes(range(32))).public_key


@pytest.mark.parametrize("form", FORMS)
def test_the_gate_finds_it_in_every_form(form: str) -> None:
    text = f'{{"title":"a {FORMS[form]} b"}}'.encode("latin-1")
    assert GATE.holds(text)
    with pytest.raises(UsageError, match="holds the credential: nothing was sent") as caught:
        GATE.check("the body", b"nothing", text)
    assert not any(secret in str(vars(caught.value)) for secret in (CUSTODY, OLD))


@pytest.mark.parametrize(
    "form", ["plain", "base64 at 1", "hex", "HEX of its bytes", "percent", "JSON", "HTML in hex"]
)
@pytest.mark.parametrize("at", [0, CHUNK_SIZE - 20, CHUNK_SIZE - 1, LARGE + 5])
def test_it_is_found_where_pieces_meet_and_in_a_large_body(form: str, at: int) -> None:
    text = FORMS[form].encode()
    body = b'{"data":"' + b"A" * at + text + b"B" * CHUNK_SIZE + b'","title":"50 % \\"x\\""}'
    assert GATE.holds(body)
    assert GATE.holds(bytearray(body))
    assert not GATE.holds(body.replace(text, text[::-1]))


@given(st.binary(max_size=300))
def test_anything_else_passes(body: bytes) -> None:
    assert not GATE.holds(body)


GATE_COST = runpy.run_path(str(ROOT / "tests/benchmarks/scripts/gate.py"), run_name="gate")


def test_a_large_body_passes_in_a_few_milliseconds_a_mib(
    record_property: Callable[[str, object], None],
) -> None:
    body = (
        b'{"data":"'
        + base64.b64encode(os.urandom(12 * 1024 * 1024))
        + b'","title":"50 % of \\"all\\""}'
    )
    gate = CustodyGate(Credential.parse(KEY))

    def cost() -> float:
        begun = time.thread_time()
        assert not gate.holds(body)
        return (time.thread_time() - begun) * 1000 / 16

    best = min(cost() for _ in range(5))
    record_property("figure", f"the custody gate: {best:.1f} ms of CPU a MiB")
    assert best < 20  # 8 with nine others on two cores


@pytest.mark.parametrize("way", GATE_COST["WAYS"])
def test_it_takes_about_five_percent_of_a_create_at_most(
    monkeypatch: pytest.MonkeyPatch,
    service: RunningService,
    way: str,
    record_property: Callable[[str, object], None],
) -> None:
    """One try of ten is enough: what else runs on the machine takes caches from the search, too.

    It was at most 4.9 % wherever it was measured. The rest up to 6.5 % is for processors with other
    caches.
    """
    for place, name in GATE_COST["SEARCHES"]:
        monkeypatch.setattr(place, name, GATE_COST["timed"](getattr(place, name)))

    def measure() -> float:
        service.reset()
        settings: dict[str, Any] = {
            "base_url": service.base_url,
            "link_base_url": service.link_base_url,
        }
        with Client(api_key=service.create_key(), **settings) as client:
            searched, cost = GATE_COST["measure"](GATE_COST["WAYS"][way], client, 20)
        return 100 * float(searched) / float(cost)

    tries = (measure() for _ in range(10))
    best = next((share for share in tries if share <= 6.5), 100.0)
    record_property("figure", f"the custody gate: {best:.1f} % of {way}")
    assert 0.5 < best <= 6.5


LINES = "A=b\n" * 50_000
VALUES = {
    "a file": (f"{KEY}\n", True),
    "as bytes": (Secret(f"{KEY}\n".encode()), True),
    "of two parts": (KEY.rsplit(".", 1)[0], True),
    "in base64": (b64(KEY.encode(), 1), True),
    "the end of an environment": (f"{LINES}KEY={KEY}", True),
    "the same as bytes": (Secret(f"{LINES}KEY={KEY}".encode()), True),
    "its custody secret alone": (f"{LINES}{CUSTODY}", True),
    "the previous one": (f"{LINES}KEY={BEFORE}", True),
    "two parts in a long value": (f"{LINES}{KEY.rsplit('.', 1)[0]}", False),
    "after 512 KiB": ("-" * 512 * 1024 + KEY, False),
    "in base64 in a long value": (" " * 2000 + b64(KEY.encode(), 1), False),
    "in a long value that is all base64": (b64(f"{LINES}{KEY}".encode(), 0), True),
    "in one that is base64url": (encode_base64url(f"{LINES}{KEY}".encode()), True),
    "in one that is hex": (f"{LINES}{KEY}".encode().hex(), True),
    "in one that is hex but for its end": (f"{LINES}{KEY}".encode().hex() + "xx", False),
    "no credential in base64": (b64(LINES.encode() * 9, 0), False),
    "another's": (mint().credential.reveal(), False),
    "half a pair": ("\ud800" * 30, False),
}


@pytest.mark.parametrize("value", VALUES)
def test_a_value_is_searched_as_far_as_it_is_said(value: str) -> None:
    content, found = VALUES[value]
    assert GATE.owns(content) is found


def test_what_is_shorter_than_an_end_of_a_secret_passes() -> None:
    ends = [(CUSTODY[: 23 + more], CUSTODY[-24 - more : -1]) for more in (0, 1)]
    assert [[GATE.holds(end.encode()) for end in pair] for pair in ends] == [
        [False, False],
        [True, True],
    ]


def test_only_ciphertext_that_we_made_is_not_searched() -> None:
    """Only the holder of its key can read it.

    What a caller sealed, and what is beside the ciphertext, is searched.
    """
    body, _ = shares.build_body(
        lambda out: out.extend(CUSTODY.encode()), shares.ShareMembers(access_token=TOKEN)
    )
    ours, theirs = (shares.create(body, "a-key", is_ours=is_ours) for is_ours in (True, False))
    assert (GATE.holds(ours.body_in_clear or b""), GATE.holds(theirs.body_in_clear or b"")) == (
        False,
        True,
    )
    titled, _ = shares.build_body(
        lambda out: out.extend(b"AAAA"),
        shares.ShareMembers(access_token=TOKEN, title=f"see {CUSTODY}"),
    )
    assert GATE.holds(shares.create(titled, "a-key", is_ours=True).body_in_clear or b"")


def test_a_title_cannot_pass_for_the_end_of_the_ciphertext() -> None:
    title = f'","access_token":"{CUSTODY}","access_token":"x'
    body, _ = shares.build_body(
        lambda out: out.extend(b"AAAA"),
        shares.ShareMembers(access_token=TOKEN, title=title, description=title),
    )
    in_clear = shares.create(body, "a-key", is_ours=True).body_in_clear or b""
    assert json.loads(in_clear) == json.loads(body) | {"data": ""}


# -- through the library ------------------------------------------------------------------------


Call = Callable[[Any, str], Any]

CALLS: dict[str, Call] = {
    "create_share: title": lambda c, s: c.create_share(data=DATA, access_token=TOKEN, title=s),
    "create_share: description": lambda c,
    s: c.create_share(data=DATA, access_token=TOKEN, description=s),
    "create_share: organization": lambda c,
    s: c.create_share(data=DATA, access_token=TOKEN, organization_id=s),
    "create_share: idempotency key": lambda c,
    s: c.create_share(data=DATA, access_token=TOKEN, idempotency_key=s),
    "create_request: title": lambda c,
    s: c.create_request(title=s, public_key=POINT, fields=[("P", "text")]),
    "create_request: a prompt": lambda c,
    s: c.create_request(title="t", public_key=POINT, fields=[(s, "text")]),
    "create_request: passcode": lambda c, s: c.create_request(
        title="t", public_key=POINT, fields=[("P", "text")], passcode=Secret(s)
    ),
    "create_request: idempotency key": lambda c, s: c.create_request(
        title="t", public_key=POINT, fields=[("P", "text")], idempotency_key=s
    ),
    "share: title": lambda c, s: c.share([Field("a", "b")], title=s),
    "share: label": lambda c, s: c.share([Field(f"a {s}", "b")]),
    "share: file name": lambda c, s: c.share([Field("a", "b", "markdown", filename=s)]),
    "share: unknown member": lambda c, s: c.share([Field("a", "b", extra={"more": [s]})]),
    "share: message": lambda c, s: c.share(
        [Field("a", "b")], send=["webhook:http://127.0.0.1:1"], message_template=f"{s} {{link}}"
    ),
    "share: organization": lambda c, s: c.share([Field("a", "b")], organization_id=s),
    "request: prompt": lambda c, s: c.request([f"id={s}"]),
    "request: passcode": lambda c, s: c.request(["Password"], passcode=s),
    "get_share": lambda c, s: c.get_share(s),
    "expire_share": lambda c, s: c.expire_share(s),
    "share_log": lambda c, s: c.share_log(s),
    "share_log: cursor": lambda c, s: c.share_log("aB3", cursor=s),
    "get_request": lambda c, s: c.get_request(s),
    "list_submissions": lambda c, s: c.list_submissions(s),
    "delete_request": lambda c, s: c.delete_request(s),
    "expire_request": lambda c, s: c.expire_request(s),
    "purge_request": lambda c, s: c.purge_request(s, confirm=s),
    "collect": lambda c, s: c.collect(s),
    "call_tool: name": lambda c, s: c.call_tool(s),
    "call_tool: argument": lambda c, s: c.call_tool("get_share", {"code": {"deep": ["x", s]}}),
    "call_tool: argument's name": lambda c, s: c.call_tool("get_share", {s: 1}),
    "iter_share_log": lambda c, s: list(c.iter_share_log(s)),
}  # fmt: skip
WRITTEN = {
    "plain": CUSTODY,
    "base64": b64(CUSTODY.encode(), 1).rstrip("="),
    "hex": FORMS["hex"],
    "previous": OLD,
}


@pytest.fixture
def client(faulty: Faulty) -> Iterator[Client]:
    settings: dict[str, Any] = {
        "base_url": faulty.base_url,
        "link_base_url": "http://127.0.0.1/s",
        "deadline": 2,
    }
    with Client(api_key=KEY, api_key_previous=BEFORE, **settings) as made:
        yield made


@pytest.mark.parametrize("written", WRITTEN)
@pytest.mark.parametrize("call", CALLS)
def test_no_call_of_the_library_sends_it(
    client: Client, faulty: Faulty, call: str, written: str
) -> None:
    with pytest.raises(UsageError) as caught:
        CALLS[call](client, WRITTEN[written])
    assert caught.value.exit_code == 2
    assert WRITTEN[written] not in told(caught.value)
    assert faulty.received() == []
    assert faulty.connections == 0


def test_where_the_address_holds_it_nothing_is_asked_of_it(
    service: RunningService, faulty: Faulty
) -> None:
    base = faulty.base_url.replace("/v1", f"/{CUSTODY}/v1")
    with pytest.raises(
        UsageError, match="an address holds the credential: nothing was sent"
    ) as caught:
        Client(api_key=KEY, base_url=base, link_base_url=service.link_base_url, deadline=30)
    assert CUSTODY not in told(caught.value)
    assert faulty.connections == 0


@pytest.mark.parametrize("name", ["base_url", "link_base_url"])
def test_a_host_name_may_hold_it_in_lower_case(service: RunningService, name: str) -> None:
    addresses = {"base_url": service.base_url, "link_base_url": service.link_base_url}
    addresses[name] = f"https://{CUSTODY}.example/v1"
    with pytest.raises(UsageError, match="an address holds the credential"):
        Client(
            api_key=KEY, base_url=addresses["base_url"], link_base_url=addresses["link_base_url"]
        )


@pytest.mark.parametrize(
    "written", [CUSTODY, CUSTODY.swapcase(), CUSTODY.upper()], ids=["as it is", "swapped", "upper"]
)
def test_a_domain_of_a_request_may_hold_it_in_lower_case(
    client: Client, faulty: Faulty, written: str
) -> None:
    body = json.dumps({"restricted_domain": [f"{written}.example".lower()]}).encode()
    assert GATE.holds(body)
    title = f"see {written}"
    with pytest.raises(UsageError, match="holds the credential: nothing was sent"):
        client.request(["Password"], title=title)
    assert faulty.received() == []


def test_a_plugins_socket_does_not_look_up_a_host_that_holds_it() -> None:
    with pytest.raises(AccessDeniedError, match="an address holds the credential") as caught:
        connect(f"tcp://{CUSTODY}.example:6379", ssl.create_default_context, None, 1, 1, GATE)
    assert CUSTODY.lower() not in told(caught.value)


def test_a_resent_entry_of_the_outbox_passes_the_same_gate(client: Client, faulty: Faulty) -> None:
    from sealpipe.budget import call

    operation = shares.create(f'{{"title":"{CUSTODY}"}}'.encode(), "a-key")
    with pytest.raises(UsageError):
        call(operation, client.session.start_budget(), unclear=True)
    assert faulty.received() == []


def test_sealed_content_may_contain_it_because_it_is_unreadable(service: RunningService) -> None:
    key = service.create_key().reveal()
    with Client(
        api_key=key, base_url=service.base_url, link_base_url=service.link_base_url
    ) as client:
        sealed = envelope.seal(bytes(32), key.encode())
        assert client.create_share(data=sealed, access_token=TOKEN).short_code


# -- through commands ---------------------------------------------------------------------------


COMMANDS: dict[str, tuple[str, ...]] = {
    "request --passcode-from": ("request", "-a", "Password", "--passcode-from", "env:P"),
    "tools call --param": ("tools", "call", "get_share", "--param", "code=env:P"),
    "tools call": ("tools", "call", CUSTODY),
    "shares show": ("shares", "show", CUSTODY),
    "shares expire": ("shares", "expire", CUSTODY),
    "requests show": ("requests", "show", CUSTODY),
    "requests expire": ("requests", "expire", CUSTODY),
    "requests purge": ("requests", "purge", CUSTODY, "--confirm", CUSTODY),
    "collect": ("collect", CUSTODY, "--to", "dotenv:out.env"),
    "share --field": ("share", "-f", f"{CUSTODY}=text:x"),
    "share --field of a document": ("share", "-f", "env:J?format=json#*"),
    "share --dry-run --title": ("share", "-f", "text:x", "--title", CUSTODY, "--dry-run"),
    "share --dry-run --field": ("share", "-f", f"{CUSTODY}=text:x", "--dry-run"),
    "share --dry-run --send": (
        "share",
        "-f",
        "text:x",
        "--send",
        f"webhook:http://127.0.0.1:1/{CUSTODY}",
        "--dry-run",
    ),
    "share --send": (
        "share",
        "-f",
        "text:x",
        "--send",
        "webhook:http://127.0.0.1:1/{p}",
        "--param",
        "p=env:P",
    ),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("output", ["text", "json"])
def test_no_command_sends_it(
    bare: Terminal, mcp: FakeMcp, faulty: Faulty, command: str, output: str
) -> None:
    words = COMMANDS[command]
    bare.environ |= {
        "SEALPIPE_API_KEY": KEY,
        "SEALPIPE_BASE_URL": mcp.base_url if words[0] == "tools" else faulty.base_url,
        "SEALPIPE_LINK_BASE_URL": "http://127.0.0.1/s",
        "SEALPIPE_PLUGIN_WEBHOOK__UNSIGNED": "1",
        "P": CUSTODY,
        "J": json.dumps({CUSTODY: "x"}),
    }
    done = bare.sealpipe(*words, "--output", output)
    assert done.code == 2, done
    assert "holds the credential: nothing was sent" in done.err
    assert CUSTODY not in done.out + done.err
    assert (faulty.received(), mcp.messages) == ([], [])
    assert all(
        CUSTODY.encode() not in file.read_bytes() for file in bare.home.rglob("*") if file.is_file()
    )


# -- through plugins ----------------------------------------------------------------------------


@pytest.fixture
def http() -> Iterator[httpx.Client]:
    network = PluginNetwork(None, GATE)
    yield network.http()
    network.close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as running:
        yield running


@pytest.mark.parametrize("form", ["plain", "base64 at 2", "hex", "percent", "JSON"])
def test_no_plugin_sends_it_over_the_client_that_all_share(
    http: httpx.Client, receiver: Receiver, form: str
) -> None:
    text = FORMS[form]
    half = len(text) // 2
    sends: list[Callable[[], object]] = [
        lambda: http.post(receiver.url, json={"text": f"see {text}"}),
        lambda: http.post(
            receiver.url, content=iter([b"x", text[:half].encode(), text[half:].encode()])
        ),
        lambda: http.post(receiver.url, headers={"x-token": text}),
        lambda: http.post(receiver.url, auth=("user", CUSTODY)),
        lambda: http.post(f"{receiver.url}/in?key={text}"),
        lambda: http.post(receiver.url, files={"file": text.encode()}),
    ]
    for send in sends:
        with pytest.raises(AccessDeniedError, match="nothing was sent") as caught:
            send()
        assert text not in told(caught.value)
    assert receiver.hooks == []
    assert http.post(receiver.url, json={"text": "nothing of the kind"}).status_code == 204


def test_a_host_of_a_plugin_that_holds_it_is_not_shown(http: httpx.Client) -> None:
    with pytest.raises(AccessDeniedError, match="nothing was sent") as caught:
        http.get(f"https://{CUSTODY}.example/")
    assert CUSTODY.lower() not in told(caught.value)


@pytest.mark.parametrize("size", [64 * 1024, CHUNK_SIZE, CHUNK_SIZE + 1])
def test_nor_is_one_looked_up_that_holds_it_in_small_letters_beside_a_large_body(
    http: httpx.Client, size: int
) -> None:
    with pytest.raises(
        AccessDeniedError, match="the address holds the credential: nothing was sent"
    ):
        http.post(f"https://{CUSTODY}.example/", content=b"A" * size)


def test_every_error_of_the_gate_is_ours() -> None:
    with pytest.raises(SealpipeError):
        GATE.check("it", KEY.encode())
