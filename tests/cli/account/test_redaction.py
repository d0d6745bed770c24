"""Our credential in what comes back: taken out before anything is shown, however it is written
there.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealpipe import AsyncClient, Client, NotFoundError, SealpipeError
from sealpipe.api.operation import Credential, Failure, Response
from sealpipe.custody_gate import CustodyGate
from sealpipe.minting import mint
from sealpipe.network.exchange import Redactor
from support.faults import echoes, message
from support.faulty import Exchange, Fault, Faulty
from support.terminal import Terminal

KEY = mint().credential.reveal()
HEADER = Credential.parse(KEY).header().reveal()
TWO = HEADER.removeprefix("Bearer ")
AUTH = TWO.rpartition(".")[2]


def taken_out(body: bytes) -> bytes:
    result = Redactor(CustodyGate(Credential.parse(KEY))).redact(
        Response(400, {"x-echo": HEADER, "x-other": "é\x80"}, body, "flaw")
    )
    assert isinstance(result, Response)
    assert (result.status, result.flaw) == (400, "flaw")
    assert result.headers == {"x-echo": "[withheld]", "x-other": "é\x80"}
    return result.body


def escaped(text: str, every: int = 1, form: str = "\\u%04x") -> str:
    return "".join(sign if place % every else form % ord(sign) for place, sign in enumerate(text))


WRITTEN = {
    "the header": HEADER,
    "the two parts": TWO,
    "the auth part": AUTH,
    "cut short": TWO[:-30],
    "cut to one character": TWO[:-42],
    "escaped by JSON": escaped(HEADER),
    "escaped by JSON in capitals": escaped(HEADER, form="\\u%04X"),
    "escaped here and there": escaped(HEADER, 3),
    "the auth part, escaped here and there": escaped(AUTH, 5),
    "JSON in JSON": json.dumps(json.dumps({"message": HEADER})),
    "JSON in JSON, escaped": json.dumps(escaped(AUTH)),
    "run together with more": f"x{AUTH}y",
    "twice": f"{AUTH}{HEADER}",
}


@pytest.mark.parametrize("name", WRITTEN)
def test_it_is_taken_out_however_it_is_written(name: str) -> None:
    left = taken_out(f'{{"message": "before {WRITTEN[name]} after"}}'.encode())
    assert left.startswith(b'{"message": "before ')
    assert left.endswith(b' after"}')
    assert b"[withheld]" in left
    plain = left.decode().encode().decode("unicode_escape")
    assert not any(AUTH[start : start + 6] in plain for start in range(len(AUTH) - 6))


@given(st.binary(max_size=200))
def test_anything_else_stays_as_it_is(body: bytes) -> None:
    assert taken_out(body) == body


@pytest.mark.parametrize(
    "body",
    [json.dumps({"key_id": TWO[12:28]}), '{"a": "\\u0041"}', "svc_sk_live_"],
    ids=["the key id", "another escape", "a prefix"],
)
def test_what_is_no_secret_stays(body: str) -> None:
    assert taken_out(body.encode()) == body.encode()


def test_it_is_taken_out_of_what_a_broken_connection_says() -> None:
    result = Redactor(CustodyGate(Credential.parse(KEY))).redact(
        Failure(sent=True, detail=f"illegal line: {HEADER!r} \udc80")
    )
    assert result == Failure(sent=True, detail="illegal line: '[withheld]' \udc80")


def test_a_header_that_repeats_it_in_small_letters_is_not_shown_whatever_the_size_of_the_body() -> (
    None
):
    response = Response(400, {"x-host": f"{AUTH.lower()}.example"}, b"-" * 64 * 1024)
    result = Redactor(CustodyGate(Credential.parse(KEY))).redact(response)
    assert isinstance(result, Response)
    assert result.body == response.body
    # One secret in 700 begins with twelve characters without a capital: then only it is replaced.
    assert result.headers["x-host"] in ("[withheld]", "[withheld].example")


# -- all parts, of both credentials -------------------------------------------------------------


BEFORE = mint().credential.reveal()
SECRETS = {
    "auth": AUTH,
    "custody": KEY.rsplit(".", 1)[1],
    "previous auth": BEFORE.split(".")[1],
    "previous custody": BEFORE.split(".")[2],
}
ENCODED: dict[str, Callable[[str], bytes]] = {
    "plain": str.encode,
    "base64": lambda text: base64.b64encode(text.encode()),
    "base64 of more": lambda text: base64.b64encode(f"a {text} b".encode()),
    "base64 of yet more": lambda text: base64.b64encode(f"ab {text} b".encode()),
    "base64url": lambda text: base64.urlsafe_b64encode(text.encode()).rstrip(b"="),
    "base64 in lines": lambda text: base64.encodebytes(f"{text} {text}".encode()),
    "hex": lambda text: text.encode().hex().encode(),
    "HEX": lambda text: text.encode().hex().upper().encode(),
    "percent": lambda text: "".join(f"%{ord(sign):02x}" for sign in text).encode(),
    "percent over JSON": lambda text: "".join(f"%5Cu{ord(sign):04x}" for sign in text).encode(),
    "JSON": lambda text: escaped(text).encode(),
    "JSON over base64": lambda text: escaped(base64.b64encode(text.encode()).decode(), 3).encode(),
    "HTML": lambda text: "".join(f"&#{ord(sign)};" for sign in text).encode(),
    "HTML in hex": lambda text: "".join(f"&#x{ord(sign):x};" for sign in text).encode(),
    "UTF-16": lambda text: text.encode("utf-16-le"),
    "UTF-16, the other": lambda text: text.encode("utf-16-be"),
    "cut short": lambda text: text[:20].encode(),
}


def both_out_of(body: bytes) -> Response:
    result = Redactor(CustodyGate(Credential.parse(KEY), Credential.parse(BEFORE))).redact(
        Response(400, {"x": body.decode("latin-1")}, body)
    )
    assert isinstance(result, Response)
    return result


@pytest.mark.parametrize("encoding", ENCODED)
@pytest.mark.parametrize("part", SECRETS)
def test_every_part_is_taken_out_of_bodies_and_headers(part: str, encoding: str) -> None:
    found = ENCODED[encoding](SECRETS[part])
    result = both_out_of(b'{"message": "before ' + found + b' after"}')
    assert found not in result.body
    assert result.body.startswith(b'{"message": "before ')
    assert result.body.rstrip(b"\x00").endswith(b' after"}')
    assert b"[withheld]" in result.body
    left = re.sub(rb"\[withheld\]", b"", result.body[20:-8])
    assert len(left) <= 8, left  # what base64 shares with its neighbours
    assert "[withheld]" in result.headers["x"]
    assert SECRETS[part][:12] not in result.headers["x"]


@pytest.mark.parametrize("secret", [KEY, BEFORE])
def test_the_whole_credential_cut_anywhere_is_taken_out(secret: str) -> None:
    for length in range(secret.index(".") + 2, len(secret) + 1):
        assert both_out_of(f'"{secret[:length]}" after'.encode()).body in (
            b'"[withheld]" after',
            b'"[withheld]." after',
        )


@pytest.mark.parametrize("encoding", ["plain", "base64 of more", "hex", "percent", "JSON"])
def test_a_large_answer_holds_none_of_them(encoding: str) -> None:
    found = ENCODED[encoding](SECRETS["custody"])
    result = both_out_of(b'{"a":"' + b"x" * 3_000_000 + found + b'"}')
    assert found not in result.body
    assert b"[withheld]" in result.body
    assert result.flaw == ""


@pytest.mark.parametrize(
    "sign", [b"\\", b"%41", b"\\u0041", b"&#65;", b"\n ", b"=", b"&#", b"\x00", b"\\\\u"]
)
def test_a_hostile_answer_is_looked_through_in_time(sign: bytes) -> None:
    body = (sign * 1_048_576)[:1_048_576]
    redactor = Redactor(CustodyGate(Credential.parse(KEY), Credential.parse(BEFORE)))
    begun = time.thread_time()
    assert redactor.redact(Response(400, {}, body)) == Response(400, {}, body)
    assert time.thread_time() - begun < 20


# -- real sockets -------------------------------------------------------------------------------


ECHOES: dict[str, Fault] = {
    "in its message": echoes(400, '{"error_code": 19, "message": "bad HEADER"}'),
    "escaped in its message": echoes(400, '{"error_code": 19, "message": "bad ESCAPED"}'),
    "in its additional data": echoes(
        400, '{"error_code": 19, "message": "", "additional_data": {"HEADER": ["HEADER"]}}'
    ),
    "in the gateway's message": echoes(403, '{"Message": "HEADER"}'),
    "in a short code": echoes(200, '{"short_code": "HEADER", "expired_at": null}'),
    "in a member that we do not know": echoes(
        200, '{"short_code": "x", "expired_at": null, "debug": {"sent": "ESCAPED"}}'
    ),
    "in a page": echoes(502, "<pre>HEADER</pre>"),
    "in what is no HTTP": echoes(0, "Authorization: HEADER\r\n\r\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", ECHOES)
@pytest.mark.parametrize("output", ["text", "json"])
def test_an_echo_is_never_printed(bare: Terminal, faulty: Faulty, name: str, output: str) -> None:
    faulty.plan(then=ECHOES[name])
    bare.environ |= {
        "SEALPIPE_API_KEY": KEY,
        "SEALPIPE_BASE_URL": faulty.base_url,
        "SEALPIPE_LINK_BASE_URL": "http://127.0.0.1/s",
    }
    done = bare.sealpipe("shares", "show", "x", "--deadline", "30s", "--output", output)
    assert faulty.received()[0].header("authorization") == HEADER
    assert AUTH not in done.out + done.err
    assert AUTH[:12] not in done.out + done.err
    if (
        "page" not in name
        and "HTTP" not in name
        and (output, name) != ("text", "in a member that we do not know")
    ):
        assert "[withheld]" in done.out + done.err


@pytest.mark.parametrize("part", ["custody", "previous custody", "previous auth"])
def test_nor_is_any_other_part_that_a_message_repeats(
    bare: Terminal, faulty: Faulty, part: str
) -> None:
    secret = SECRETS[part]
    said = json.dumps(
        {"error_code": 19, "message": f"bad title {secret}", "additional_data": {secret: [secret]}}
    )
    faulty.plan(
        then=lambda exchange: exchange.send(message(400, said.encode(), {"x-request": secret}))
    )
    settings = {"base_url": faulty.base_url, "link_base_url": "http://127.0.0.1/s", "deadline": 1}
    with (
        Client(api_key=KEY, api_key_previous=BEFORE, **settings) as client,
        pytest.raises(SealpipeError) as caught,
    ):  # type: ignore[arg-type]
        client.get_share("x")
    assert secret[:12] not in repr((caught.value, vars(caught.value)))
    bare.environ |= {
        "SEALPIPE_API_KEY": KEY,
        "SEALPIPE_API_KEY_PREVIOUS": BEFORE,
        "SEALPIPE_BASE_URL": faulty.base_url,
        "SEALPIPE_LINK_BASE_URL": "http://127.0.0.1/s",
    }
    for output in ("text", "json"):
        done = bare.sealpipe("shares", "show", "x", "--output", output)
        assert done.code == 5
        assert secret[:12] not in done.out + done.err
        assert "[withheld]" in done.err


def test_an_echo_is_on_no_exception_and_in_no_value(faulty: Faulty) -> None:
    with Client(
        api_key=KEY, base_url=faulty.base_url, link_base_url="http://127.0.0.1/s", deadline=30
    ) as client:
        for name, fault in ECHOES.items():
            faulty.plan(then=fault)
            try:
                told = repr(client.get_share("x"))
            except SealpipeError as error:
                told = repr((error, vars(error)))
            assert AUTH[:12] not in told, name


def test_a_share_whose_answer_echoes_is_made_all_the_same(user: Terminal, faulty: Faulty) -> None:
    def adds(exchange: Exchange) -> None:
        answer = exchange.forward()
        sent = exchange.received.header("authorization")
        exchange.send(
            message(answer.status, json.dumps({**json.loads(answer.body), "debug": sent}).encode())
        )

    faulty.plan(then=adds)
    done = user.sealpipe(
        "share", "-f", "text:x", "--output", "json", SEALPIPE_BASE_URL=faulty.base_url
    )
    assert done.code == 0
    assert done.json["link"]
    assert user.environ["SEALPIPE_API_KEY"].split(".")[1] not in done.out + done.err


@pytest.mark.parametrize(
    "form", [str, lambda text: json.dumps(text)[1:-1]], ids=["as it is", "escaped"]
)
def test_a_refusal_does_not_show_the_passcode_that_was_sent(
    user: Terminal, faulty: Faulty, form: Callable[[str], str]
) -> None:
    passcode = "hünter-2 is \\ weak"
    mark = f"the passcode {form(passcode)}"
    body = json.dumps(
        {"message": mark, "error_code": 19, "additional_data": {"passcode": mark}}
    ).encode()
    words = ("request", "-a", "Password", "--passcode-from", "env:CODE")
    for output in ("text", "json"):
        faulty.plan(then=lambda exchange: exchange.send(message(400, body)))
        done = user.sealpipe(
            *words, "--output", output, SEALPIPE_BASE_URL=faulty.base_url, CODE=passcode
        )
        assert done.code == 5
        assert "the passcode [withheld]" in done.err
        assert "nter-2" not in done.out + done.err


def test_nor_the_token_and_the_verifier_of_a_share(user: Terminal, faulty: Faulty) -> None:
    def refuses(exchange: Exchange) -> None:
        text = exchange.received.body.decode()
        exchange.send(message(400, json.dumps({"message": text[-400:], "error_code": 19}).encode()))

    faulty.plan(then=refuses)
    words = ("share", "-f", "text:x", "--custody", "off", "--passcode-from", "env:CODE")
    done = user.sealpipe(*words, SEALPIPE_BASE_URL=faulty.base_url, CODE="hunter2")
    assert done.code == 5
    assert "access_token" in done.err
    sent = json.loads(faulty.received()[0].body)
    assert not [
        name for name in ("access_token", "passcode_verifier") if sent[name] in done.out + done.err
    ]


def test_a_number_that_json_does_not_have_leaves_the_error_valid_json(
    user: Terminal, faulty: Faulty
) -> None:
    body = (
        b'{"message": "no", "error_code": 19, "additional_data": {"a": NaN, "b": -Infinity, '
        b'"c": 1e999}}'
    )
    faulty.plan(then=lambda exchange: exchange.send(message(400, body)))
    done = user.sealpipe(
        "share", "-f", "text:x", "--output", "json", SEALPIPE_BASE_URL=faulty.base_url
    )
    error = json.loads(done.err.splitlines()[-1], parse_constant=pytest.fail)["error"]
    assert (error["exit_code"], error["additional_data"]) == (
        5,
        {"a": "NaN", "b": "-Infinity", "c": "1e999"},
    )


def test_other_tasks_go_on_while_a_large_response_is_searched(
    faulty: Faulty, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticked = threading.Event()

    def redact(_self: Redactor, result: Response | Failure, _sent: object) -> Response | Failure:
        assert ticked.wait(20)
        return result

    monkeypatch.setattr(Redactor, "redact", redact)
    body = json.dumps({"message": "x" * 2 * 1024 * 1024, "error_code": 1}).encode()
    faulty.plan(then=lambda exchange: exchange.send(message(404, body)))

    async def tick() -> None:
        while not faulty.received():
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.3)
        ticked.set()

    async def job() -> None:
        settings: dict[str, Any] = {
            "base_url": faulty.base_url,
            "link_base_url": "http://127.0.0.1/s",
            "deadline": 30,
        }
        async with AsyncClient(api_key=KEY, **settings) as client:
            await asyncio.gather(client.list_submissions("abc"), tick())

    with pytest.raises(NotFoundError):
        asyncio.run(job())
