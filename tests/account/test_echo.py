"""Our credential in what comes back: taken out before anything is shown, however it is written there."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealpipe import Client, SealpipeError
from sealpipe.api.operation import Answer, Failure
from sealpipe.client.echo import Echo
from sealpipe.credential import Credential
from sealpipe_rehearsal.keys import mint
from support.faulty import Exchange, Fault, Faulty, echoes, message
from support.terminal import Terminal

KEY = mint().credential.reveal()
HEADER = Credential.parse(KEY).header().reveal()
TWO = HEADER.removeprefix("Bearer ")
AUTH = TWO.rpartition(".")[2]


def taken_out(body: bytes) -> bytes:
    result = Echo(Credential.parse(KEY)).out_of(Answer(400, {"x-echo": HEADER, "x-other": "é\x80"}, body, "flaw"))
    assert isinstance(result, Answer)
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
    result = Echo(Credential.parse(KEY)).out_of(Failure(sent=True, detail=f"illegal line: {HEADER!r} \udc80"))
    assert result == Failure(sent=True, detail="illegal line: '[withheld]' \udc80")


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
    done = bare.sealpipe("shares", "show", "x", "--deadline", "1s", "--output", output)
    assert faulty.received()[0].header("authorization") == HEADER
    assert AUTH not in done.out + done.err
    assert AUTH[:12] not in done.out + done.err
    if "page" not in name and "HTTP" not in name and (output, name) != ("text", "in a member that we do not know"):
        assert "[withheld]" in done.out + done.err


def test_an_echo_is_on_no_exception_and_in_no_value(faulty: Faulty) -> None:
    with Client(api_key=KEY, base_url=faulty.base_url, link_base_url="http://127.0.0.1/s", deadline=1) as client:
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
        exchange.send(message(answer.status, json.dumps({**json.loads(answer.body), "debug": sent}).encode()))

    faulty.plan(then=adds)
    done = user.sealpipe("share", "-f", "text:x", "--output", "json", SEALPIPE_BASE_URL=faulty.base_url)
    assert done.code == 0
    assert done.json["link"]
    assert user.environ["SEALPIPE_API_KEY"].split(".")[1] not in done.out + done.err
