"""Webhook signatures: what is right is taken, and every single thing that is wrong is refused with
its reason.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import re
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealpipe import Secret, UsageError, WebhookError
from sealpipe.parsing import format_time
from sealpipe.webhooks import TOLERANCE, verify
from support.terminal import Terminal

NOW = 1_790_000_000
BODY = b'{"event":"share.deleted","short_code":"abc"}'
SECRET = "webhook secret \u00e9"


def digest(body: bytes = BODY, secret: str = SECRET, at: object = NOW) -> str:
    return hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()


def header(body: bytes = BODY, secret: str = SECRET, at: object = NOW) -> str:
    return f"t={at},v1={digest(body, secret, at)}"


def reason(*args: Any, now: float = NOW) -> str:
    with pytest.raises(WebhookError) as caught:
        verify(*args, now=now)
    error = caught.value
    assert SECRET not in f"{error} {error.remedy} {error!r}"
    assert error.remedy
    return error.reason


def test_a_right_signature_gives_the_time_of_signing() -> None:
    signed = verify(BODY, header(), SECRET, now=NOW)
    assert signed == datetime.fromtimestamp(NOW, UTC)
    assert verify(BODY, header(at=int(time.time())), Secret(SECRET)), "and it is true, for who asks"


def test_the_digest_is_the_one_that_the_scheme_prescribes() -> None:
    fixed = "t=1700000000,v1=" + hmac.new(b"k", b"1700000000.{}", "sha256").hexdigest()
    assert verify(b"{}", fixed, "k", now=1_700_000_000)


TEXT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=40)


@given(st.binary(max_size=300), TEXT, st.integers(-TOLERANCE, TOLERANCE))
def test_whatever_is_signed_is_taken_within_the_time(body: bytes, secret: str, late: int) -> None:
    assert verify(body, header(body, secret), secret, now=NOW + late)


@given(st.binary(max_size=60), st.integers(0, 59), st.integers(1, 255))
def test_a_body_with_one_byte_changed_is_not(body: bytes, place: int, change: int) -> None:
    changed = bytearray(body or b"\0")
    changed[place % len(changed)] ^= change
    assert reason(bytes(changed), header(body), SECRET) == "no-match"


@given(st.text(max_size=120))
def test_a_header_of_anything_is_refused_in_our_own_words(text: str) -> None:
    assert reason(BODY, text, SECRET) in ("missing-header", "malformed-header", "no-match")


GOOD = digest()
ARABIC = "".join(chr(0x660 + int(sign)) for sign in str(NOW))
FAULTS: dict[str, tuple[str | None, str]] = {
    "no header": (None, "missing-header"),
    "an empty one": ("", "missing-header"),
    "blanks": ("  ", "malformed-header"),
    "no time": (f"v1={GOOD}", "malformed-header"),
    "two times": (f"t={NOW},t={NOW},v1={GOOD}", "malformed-header"),
    "no digest": (f"t={NOW}", "malformed-header"),
    "a digest of another scheme only": (f"t={NOW},v0={GOOD}", "malformed-header"),
    "a time with a sign": (f"t=+{NOW},v1={GOOD}", "malformed-header"),
    "a time with a fraction": (f"t={NOW}.0,v1={GOOD}", "malformed-header"),
    "a time with a zero before it": (f"t=0{NOW},v1={GOOD}", "malformed-header"),
    "a time in other digits": (f"t={ARABIC},v1={GOOD}", "malformed-header"),
    "a time without an end": (f"t={'9' * 5000},v1={GOOD}", "malformed-header"),
    "a digest that is short": (f"t={NOW},v1={GOOD[:-1]}", "malformed-header"),
    "a digest that is long": (f"t={NOW},v1={GOOD}0", "malformed-header"),
    "a digest that is no hex": (f"t={NOW},v1={GOOD[:-1]}g", "malformed-header"),
    "one digest of two that is none": (f"t={NOW},v1={GOOD},v1=", "malformed-header"),
    "an empty part": (f"t={NOW},v1={GOOD},", "malformed-header"),
    "a part without =": (f"t={NOW},v1={GOOD},v2", "malformed-header"),
    "a part without a name": (f"t={NOW},v1={GOOD},=new", "malformed-header"),
    "more parts than there are schemes": (f"t={NOW}" + 20 * f",v1={GOOD}", "malformed-header"),
    "another time": (f"t={NOW + 1},v1={GOOD}", "no-match"),
    "another digest": (f"t={NOW},v1={'0' * 64}", "no-match"),
    "another secret": (header(secret="other"), "no-match"),
    "the digest without the time": (
        f"t={NOW},v1={hmac.new(SECRET.encode(), BODY, 'sha256').hexdigest()}",
        "no-match",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_each_single_fault_is_refused_with_its_reason(name: str) -> None:
    assert verify(BODY, f"t={NOW},v1={GOOD}", SECRET, now=NOW)
    given_header, expected = FAULTS[name]
    assert reason(BODY, given_header, SECRET) == expected


@pytest.mark.parametrize(
    "text",
    [
        f"t={NOW},v1={GOOD},v2=new",
        f"t={NOW}, v1={GOOD}",
        f"v1={GOOD},t={NOW}",
        f"t={NOW},v1={GOOD.upper()}",
    ],
)
def test_what_the_scheme_may_grow_is_passed_by(text: str) -> None:
    assert verify(BODY, text, SECRET, now=NOW)


@pytest.mark.parametrize(
    ("late", "fine"),
    [(-301, False), (-300, True), (300, True), (300.5, False), (float("nan"), False)],
)
def test_the_time_is_right_to_the_second_either_way(late: float, *, fine: bool) -> None:
    if fine:
        assert verify(BODY, header(), SECRET, now=NOW + late)
    else:
        assert reason(BODY, header(), SECRET, now=NOW + late) == "stale"


def test_while_a_secret_is_replaced_either_side_may_be_first() -> None:
    both = f"t={NOW},v1={digest(secret='old')},v1={digest(secret='new')}"
    assert verify(BODY, both, "old", now=NOW)
    assert verify(BODY, both, "new", now=NOW)
    assert verify(BODY, header(secret="old"), ["new", Secret("old")], now=NOW)
    assert verify(BODY, header(secret="new"), ("new", "old"), now=NOW)
    assert reason(BODY, both, ["older", "newer"]) == "no-match"


@pytest.mark.parametrize("secrets", ["", [], ["", "x"], Secret(""), [Secret("")], "\ud800"])
def test_an_empty_secret_would_let_everybody_sign_and_is_refused(secrets: Any) -> None:
    with pytest.raises(UsageError, match="webhook secret"):
        verify(BODY, header(secret="x"), secrets, now=NOW)


def test_a_body_that_was_parsed_already_is_refused() -> None:
    with pytest.raises(UsageError, match="not bytes"):
        verify(BODY.decode(), header(), SECRET, now=NOW)  # type: ignore[arg-type]


def test_no_frame_of_the_error_holds_the_secret() -> None:
    with pytest.raises(WebhookError) as caught:
        verify(BODY, header(secret="other"), SECRET, now=NOW)
    frames = [
        frame
        for frame in caught.traceback
        if "sealpipe" in str(frame.path) and "tests" not in str(frame.path)
    ]
    assert SECRET not in repr([frame.locals for frame in frames])


DOC = Path(__file__).resolve().parents[3] / "docs/how-to/verify-webhooks.md"


def test_the_receiver_of_the_docs_takes_what_is_signed_and_nothing_else() -> None:
    code = re.findall(r"```python\n(.*?)```", DOC.read_text(encoding="utf-8"), re.DOTALL)[0]
    assert "8000" in code
    told = code.replace("8000", "0").replace(
        "server.serve_forever()", "print(server.server_port, flush=True)\nserver.serve_forever()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", told], env={"WEBHOOK_SECRET": SECRET, "LANG": "C.UTF-8"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        port = int(process.stdout.readline())

        def post(body: bytes, signature: str | None) -> int:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            headers = {} if signature is None else {"X-Service-Signature": signature}
            connection.request("POST", "/", body, headers)
            status = connection.getresponse().status
            connection.close()
            return status

        now = int(time.time())
        assert post(BODY, header(at=now)) == 204
        assert post(BODY + b" ", header(at=now)) == 400
        assert post(BODY, header(at=now - 600)) == 400
        assert post(BODY, None) == 400
    finally:
        process.terminate()
        process.wait(30)
        assert process.stdout is not None
        process.stdout.close()


@pytest.mark.parametrize("secrets", [["NEW"], ["NEW", "OLD"], ["OLD", "NEW"]])
def test_the_command_verifies_a_body_on_stdin(bare: Terminal, secrets: list[str]) -> None:
    body, stamp = b'{"event": "share.deleted"}\n\xff', int(time.time())
    digest = hmac.new(b"canary-new", b"%d.%s" % (stamp, body), "sha256").hexdigest()
    environ = {
        "NEW": "canary-new",
        "OLD": "canary-old",
        "HTTP_X_SIGNATURE": f"t={stamp},v1={digest}",
    }
    words = ["webhooks", "verify", *(f"--secret-from=env:{name}" for name in secrets)]
    done = bare.sealpipe(*words, "--signature", "env:HTTP_X_SIGNATURE", stdin=body, **environ)
    assert (done.code, done.out, done.err) == (
        0,
        f"signed {format_time(datetime.fromtimestamp(stamp, UTC))}\n",
        "",
    )
    bare.file("headers", f"Host: x\r\nX-SERVICE-Signature:  t={stamp},v1={digest}\r\n")
    as_json = bare.sealpipe(
        *words, "--headers", "headers", "--output", "json", stdin=body, **environ
    )
    assert as_json.json["signed_at"] == format_time(datetime.fromtimestamp(stamp, UTC))
    for wrong, reason in ((body + b"\n", "no-match"), (b"", "no-match")):
        refused = bare.sealpipe(
            *words, "--headers", "headers", "--output", "json", stdin=wrong, **environ
        )
        assert (refused.code, refused.out, refused.error["reason"]) == (13, "", reason)
        assert "canary" not in refused.err
