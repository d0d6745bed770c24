"""What is typed at `prompt:` is in the share, and nowhere else: whether all goes well or not."""

from __future__ import annotations

import secrets

import pytest

from sealpipe_rehearsal.running_service import RunningService
from support.commands import SEALPIPE
from support.leaks import Detector
from support.ports import silent_port
from support.terminal import Terminal, bare, one_service, service, user
from support.typing_person import Person

__all__ = ["bare", "one_service", "service", "user"]
WORDS = ("share", "-f", "Password=prompt:Password", "--passcode-from", "prompt:Passcode")
ENDS = {
    "it is shared": ({}, (), 0),
    "as JSON": ({}, ("--output", "json"), 0),
    "it is only tried": ({}, ("--dry-run",), 0),
    "nobody listens": (
        {"SEALPIPE_BASE_URL": f"http://127.0.0.1:{silent_port()}/v1"},
        ("--deadline", "1s"),
        10,
    ),
    "another field is missing": ({}, ("-f", "env:NO_SUCH_NAME"), 14),
    "the key is refused": ({"SEALPIPE_API_KEY": f"svc_sk_live_{'A' * 16}.{'A' * 43}"}, (), 3),
}


@pytest.mark.parametrize("name", ENDS)
def test_what_is_typed_stands_nowhere(user: Terminal, service: RunningService, name: str) -> None:
    environ, words, code = ENDS[name]
    value, passcode = (f"c4nary-{secrets.token_hex(16)}" for _ in range(2))
    with Person([*SEALPIPE, *WORDS, *words], user.with_environ(environ), user.here) as typist:
        typist.answers("Password (not shown): ", value)
        if code != 14:
            typist.answers("Passcode (not shown): ", passcode)
        done = typist.done()
        assert done.code == code, done
    detector = Detector({"value": value.encode(), "passcode": passcode.encode()})
    seen = [done.out.encode(), done.err.encode(), typist.seen]
    seen += [path.read_bytes() for path in user.home.parent.rglob("*") if path.is_file()]
    seen += [part for request in service.seen() for part in (request.target.encode(), request.body)]
    assert not [found for text in seen for found in detector.find(text)]
