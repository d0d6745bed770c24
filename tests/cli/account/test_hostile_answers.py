"""A service that means us harm: what it says does not command a CI runner, and its streams do not
hold us.
"""

from __future__ import annotations

import json
import time

import httpcore
import pytest

from sealpipe.api.operation import Credential, Failure, Operation, Resend, Response
from sealpipe.api.responses import make_service_error
from sealpipe.custody_gate import CustodyGate
from sealpipe.minting import mint
from sealpipe.network.exchange import Redactor, ResponseBuffer
from support.faults import envelope, says
from support.faulty import Fault, Faulty
from support.outside_text import commands
from support.terminal import Terminal

COMMAND = (
    "::set-output name=a::b ##[error]c ##vso[task.setvariable variable=d]e ##teamcity[x] "
    "##utp:x section_end:1:x"
)


def rows(name: str, **members: object) -> Fault:
    return says(200, json.dumps({name: [{"short_code": COMMAND, **members}], "pagination": {}}))


TOLD: dict[str, tuple[Fault, tuple[str, ...]]] = {
    "a share": (rows("shares", expired_at=None), ("shares", "list")),
    "a request": (rows("requests", expired_at=None), ("requests", "list")),
    "a submission": (rows("submissions", data="AA=="), ("requests", "submissions", "x")),
    "who opened a share": (
        says(200, json.dumps({"short_code": "x", "entries": [{"user_agent": COMMAND}]})),
        ("shares", "log", "x"),
    ),
    "a refusal": (envelope(400, 19, data={COMMAND: COMMAND}), ("shares", "list")),
    "a message": (says(400, json.dumps({"error_code": 19, "message": COMMAND})), ("doctor",)),
}


@pytest.mark.parametrize("output", ["text", "json"])
@pytest.mark.parametrize("name", TOLD)
def test_what_the_service_says_is_no_command_to_a_ci_runner(
    user: Terminal, faulty: Faulty, name: str, output: str
) -> None:
    fault, words = TOLD[name]
    faulty.plan(then=fault)
    done = user.sealpipe(*words, "--output", output, SEALPIPE_BASE_URL=faulty.base_url)
    assert commands(done.out + done.err) == []
    assert "task.setvariable" in done.out + done.err
    if output == "json" and done.code == 0:
        assert "##[error]c" in json.dumps(done.json)


def test_the_service_does_not_say_which_schema_our_output_has(
    user: Terminal, faulty: Faulty
) -> None:
    faulty.plan(then=says(200, '{"short_code": "x", "expired_at": null, "schema": 7, "more": [1]}'))
    done = user.sealpipe(
        "shares", "show", "x", "--output", "json", SEALPIPE_BASE_URL=faulty.base_url
    )
    assert (done.json["schema"], done.json["more"]) == (1, [1])


def test_a_number_that_json_could_not_say_again_is_no_json(user: Terminal, faulty: Faulty) -> None:
    faulty.plan(then=says(200, '{"short_code": "x", "expired_at": null, "more": 1e999}'))
    done = user.sealpipe(
        "shares",
        "show",
        "x",
        "--output",
        "json",
        "--deadline",
        "30s",
        SEALPIPE_BASE_URL=faulty.base_url,
    )
    assert (done.code, done.out) == (12, "")


KEY = Credential.parse(mint().credential.reveal())


def searched(body: bytes) -> Response:
    result: Response | Failure = Redactor(CustodyGate(KEY)).redact(Response(400, {}, body))
    assert isinstance(result, Response)
    return result


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le"])
def test_an_echo_in_another_encoding_than_utf_8_is_not_read(encoding: str) -> None:
    said = json.dumps({"message": KEY.header().reveal(), "error_code": 19})
    assert "[withheld]" in make_service_error(searched(said.encode())).message
    error = make_service_error(searched(said.encode(encoding)))
    assert error.error_code is None
    assert KEY.auth_secret.reveal() not in error.message


def test_a_megabyte_of_backslashes_is_searched_in_no_time() -> None:
    began = time.process_time()
    searched(b'{"a": "\\u0041' + b"\\" * 2**20 + b'"}')
    # A search from each of them to the last would take an hour.
    assert time.process_time() - began < 20


# -- streams ------------------------------------------------------------------------------------


class Asked:
    """An operation whose answer is a stream; notes what it is asked to look at."""

    def __init__(self, wanted: bytes = b"never") -> None:
        self.looked_at: list[bytes] = []
        self._wanted = wanted

    def whole(self, answer: Response) -> bool:
        self.looked_at.append(answer.body)
        return self._wanted in answer.body

    def buffer(self) -> ResponseBuffer:
        return ResponseBuffer(
            httpcore.Response(200),
            Operation("wait", "POST", "/mcp", Resend.READ, lambda _: None, is_complete=self.whole),
        )


@pytest.mark.parametrize(
    "event", [b"\n", b"data: x\n", b"data: x\n\n", b": x\r\n\r\n", b"data: x\r\r"]
)
def test_a_stream_in_tiny_pieces_is_looked_at_once(event: bytes) -> None:
    asked = Asked()
    buffer = asked.buffer()
    for _ in range(5000):
        assert not buffer.add(event)
    assert sum(map(len, asked.looked_at)) <= 5000 * len(event)
    assert buffer.to_response().body == 5000 * event


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_an_event_is_found_as_soon_as_it_has_ended_however_it_is_cut(end: bytes, size: int) -> None:
    first, last = (
        b"event: message" + end + b"data: " + word + end + end for word in (b"first", b"last")
    )
    asked = Asked(b"last")
    buffer = asked.buffer()
    stream = first + last + b": and so on"
    pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
    needed = next(number for number, piece in enumerate(pieces, 1) if buffer.add(piece))
    # A line ends with CR as with CRLF: its LF need not be waited for.
    assert len((first + last).removesuffix(b"\n")) <= needed * size < len(first + last) + size
