"""What goes to an assistant holds no secret in any encoding; text from outside is data that nothing
obeys.
"""

from __future__ import annotations

import json
import re
import unicodedata
from hashlib import shake_128
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sealpipe.errors import PluginError
from sealpipe.mcp import server as serving
from sealpipe.mcp.audit import WithheldError
from sealpipe.mcp.models import Model
from sealpipe.mcp.secret_guard import LONGEST, OutgoingGuard, neutralize, untrusted
from sealpipe.mcp.tools import Answer, Tool, Use
from sealpipe.secret import Secret
from sealpipe.testing.hostile import COMMANDS, MAIL, MARKUP
from support.job import Job
from support.leaks import Detector, encodings

SECRET = 'cänary of "all" ways <&> out/42'


class Said(Model):
    """The arguments of the tool that leaks."""

    said: str = ""


class Leak(Model):
    """Its answer."""

    text: str


def leaking(what: Any) -> Tool[Any, Any]:
    """A tool that sees a secret, and returns or raises what it should not."""

    async def run(call: Any, _arguments: Any) -> Answer:
        seen = Secret(SECRET)
        await call.report(1, None, f"progress {SECRET}")
        if isinstance(what, Exception):
            raise what
        return Answer(Leak(text=what if seen else ""))

    return Tool("leak", "", "", Said, Leak, lambda given: given, lambda _: Use("leak"), run)


@pytest.fixture
def assistant_of(connect: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Connect an assistant to a server with a tool that leaks."""

    def connect_to(tool: Tool[Any, Any], **members: Any) -> Any:
        monkeypatch.setattr(serving, "load_tools", lambda: {"leak": tool})
        return connect(
            "legacy", policy=mock.Mock(allows=lambda _: True, confirms=lambda _: False), **members
        )

    return connect_to


ENCODED = [(name, form.decode("latin-1")) for name, form, _ in encodings(SECRET.encode())]


@pytest.mark.parametrize("text", [text for _, text in ENCODED], ids=[name for name, _ in ENCODED])
def test_an_answer_with_a_secret_is_withheld(text: str) -> None:
    guard = OutgoingGuard()
    guard.see(Secret(SECRET))
    assert guard.holds_secret({"a": ["b", {"c": f"x {text} y"}]})


def test_the_client_hears_that_the_answer_is_withheld(assistant_of: Any) -> None:
    recorded: list[Any] = []
    assistant = assistant_of(leaking(f"it is {SECRET}"), report=lambda *call: recorded.append(call))
    assert "carried out" in assistant.fail("leak")["message"]
    assert isinstance(recorded[0][2], WithheldError)
    assert assistant.fail("leak", said="something else")["kind"] == "SealpipeError"
    assert Detector({"secret": SECRET.encode()}).find("".join(assistant.received).encode()) == set()


@pytest.mark.parametrize(
    "error", [PluginError(f"bad: {SECRET}", remedy=SECRET), ValueError(SECRET)]
)
def test_an_error_with_a_secret_keeps_its_kind(assistant_of: Any, error: Exception) -> None:
    assistant = assistant_of(leaking(error))
    told = assistant.fail("leak")
    assert told["exit_code"] == getattr(error, "exit_code", 1)
    assert Detector({"secret": SECRET.encode()}).find("".join(assistant.received).encode()) == set()


@pytest.mark.parametrize("guess", [SECRET, json.dumps(SECRET), SECRET.encode().hex()])
def test_a_guess_is_not_confirmed_by_a_refusal(assistant_of: Any, guess: str) -> None:
    assistant = assistant_of(leaking(f"you said {guess}"))
    assert assistant.call("leak", said=guess) == {"text": f"you said {guess}"}
    assert assistant.call("leak") == {"text": f"you said {guess}"}


@pytest.mark.parametrize(
    "value", ["pending", "submitted", "expired", "stored", "untrusted", "The code", "12:00"]
)
def test_what_is_submitted_silences_nothing(
    connect: Any, job: Job, tmp_path: Path, value: str
) -> None:
    assistant = connect("legacy")
    target = f"file:{tmp_path}/value"
    made = assistant.call("request_secret", prompts=[{"text": "The code"}], to=target)
    submitted = made["code"] if value == "The code" else value
    job.service.submitter().submit(made["link"], {"The code": submitted})
    assistant.call("collect_secret", code=made["code"])
    assert (tmp_path / "value").read_text() == submitted
    assert (
        assistant.call("wait_for_submission", code=made["code"], seconds=0)["state"] == "submitted"
    )
    assert assistant.call("collect_secret", code=made["code"])["request"] == "expired"
    again = assistant.call(
        "request_secret", prompts=[{"text": "Another"}], to=target, title=submitted
    )
    assert (
        assistant.call("wait_for_submission", code=again["code"], seconds=0)["state"] == "pending"
    )


def test_the_end_of_a_link_is_a_secret() -> None:
    guard = OutgoingGuard()
    guard.see(Secret("https://share.example/abc#1" + "k3Y-" * 10))
    assert guard.holds_secret("1" + "k3Y-" * 10)
    assert not guard.holds_secret("https://share.example/abc")


def test_memory_stays_bounded() -> None:
    guard = OutgoingGuard()
    for number in range(1500):
        guard.see(Secret(f"{number:06} is the value {number:06}"))
    guard.see(Secret("x\n" * 5_000_000))
    guard.know(["y" * 2_000_000])
    assert guard.holds_secret("001499 is the value 001499")
    assert not guard.holds_secret("000000 is the value 000000")


def test_the_credential_is_never_forgotten_and_nobody_makes_more_of_that() -> None:
    guard = OutgoingGuard()
    guard.see(Secret("x_sk_live_AbCdEf.the-second-part.the-third-part"))
    for number in range(3000):
        guard.see(Secret(f"x_sk_live_{number}.{number:012}"))
    assert guard.holds_secret("the-second-part")
    assert guard.holds_secret("the-third-part")
    assert not guard.holds_secret(f"{20:012}")


def test_many_large_values_take_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    # An eighth: to prepare them takes seconds.
    monkeypatch.setattr("sealpipe.mcp.secret_guard._MOST_BYTES", 32 * 1024)
    guard = OutgoingGuard()
    values = [shake_128(bytes([number])).hexdigest(1500) for number in range(18)]
    for value in values:
        guard.see(Secret(value))
    assert guard.holds_secret(values[-1])
    assert not guard.holds_secret(values[0])


def test_what_is_used_again_is_not_forgotten() -> None:
    guard = OutgoingGuard()
    for number in range(1500):
        guard.see(Secret(f"value {number}"))
        guard.see(Secret("the password"))
    assert guard.holds_secret("the password")


@pytest.mark.parametrize("part", [slice(0, 12), slice(8, 20)])
def test_either_end_of_a_short_value_is_found(part: slice) -> None:
    guard = OutgoingGuard()
    guard.see(Secret("0123456789abcdefghij"))
    assert guard.holds_secret("0123456789abcdefghij"[part])


@pytest.mark.parametrize(
    "value", ["detail", "doctor", "server", "terminal", "plugins", "state directory"]
)
def test_what_is_submitted_leaves_an_error_its_meaning(
    connect: Any, job: Job, tmp_path: Path, value: str
) -> None:
    assistant = connect("legacy")
    made = assistant.call(
        "request_secret", prompts=[{"text": "The code"}], to=f"file:{tmp_path}/value"
    )
    job.service.submitter().submit(made["link"], {"The code": value})
    assistant.call("collect_secret", code=made["code"])
    assert "short code" in assistant.fail("status", code="other")["message"]
    assert assistant.call("check")["findings"]


NEUTRAL = re.compile(r"<[A-Za-z/!?]|\]\(|\]\[|!\[|```|~~~|&[#A-Za-z]|://")


@given(
    st.one_of(
        st.sampled_from(MAIL + MARKUP + COMMANDS),
        st.text(),
        st.text("<>[]()!`~&#:/a\u202e\u200b\x1b\n"),
    )
)
@example("a" * 199 + "<b")
def test_text_from_outside_is_harmless(text: str) -> None:
    shown = neutralize(text)
    assert len(shown) <= LONGEST
    assert NEUTRAL.search(shown) is None
    assert all(each in "\n\t " or unicodedata.category(each)[0] not in "CZ" for each in shown)
    assert list(untrusted(text)) == ["untrusted"]


@given(st.text("abc äß漢 -_.,'\"=", max_size=LONGEST))
def test_plain_text_stays_as_it_is(text: str) -> None:
    assert neutralize(text) == text
