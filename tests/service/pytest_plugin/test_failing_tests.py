"""A failing test of a user's shows no secret, whatever its variables hold and however much pytest
is told to show.
"""

from __future__ import annotations

import json

import pytest

from service.pytest_plugin.conftest import Project
from support.leaks import Detector
from support.terminal import Terminal

# A user's test that holds whatever it can get hold of, and fails in one of several ways.
HOLDING = """
import json, os
import pytest
from sealpipe import Field, Secret

def test_it(sealpipe_rehearsal):
    api_key = sealpipe_rehearsal.credential()
    environ = sealpipe_rehearsal.environ(api_key)
    merged = {"PATH": "", **environ}
    client = sealpipe_rehearsal.client(api_key)
    passcode = Secret(os.environ["PASSCODE"])
    share = client.share([Field("P", Secret(os.environ["VALUE"]))], passcode=passcode, views=2)
    recipient = sealpipe_rehearsal.recipient
    fields = recipient.open_link(share.link, passcode)
    seen = sealpipe_rehearsal.seen()
    with open(os.environ["KNOWN"], "w") as file:
        json.dump({"credential": api_key.reveal(), "link": share.link.reveal()}, file)
    %s
"""
FAILING = {
    "its own assertion": (
        "assert [environ, merged, seen, fields, share, client] == sealpipe_rehearsal"
    ),
    "a link that wants a passcode": "recipient.open_link(share.link)",
    "the wrong passcode": 'recipient.open_link(share.link.reveal(), "wrong")',
    "a link cut short": "recipient.open_link(share.link.reveal()[:-1])",
    "a link changed": (
        'recipient.open_link(share.link.reveal()[:-8] + "AAAAAAAA", Secret(os.environ["PASSCODE"]))'
    ),
    "a revoked key": "sealpipe_rehearsal.revoke(api_key); client.list_shares()",
}


@pytest.mark.parametrize("how", FAILING)
def test_a_failing_test_shows_no_secret(bare: Terminal, project: Project, how: str) -> None:
    known = bare.home / "known.json"
    value, passcode = "kQ7vWm2xLr9TzB4n", "pX3cJd8sYh5GfN6u"
    bare.file("test_theirs.py", HOLDING % FAILING[how])
    ran = project(
        "-vv", "--showlocals", "--full-trace", VALUE=value, PASSCODE=passcode, KNOWN=str(known)
    )
    assert ran.counts == {"failed": 1}, ran.out
    assert "recipient  =" in ran.out
    told = json.loads(known.read_text())
    _, auth, custody = told["credential"].removeprefix("svc_sk_live_").split(".")
    needles = {"value": value, "passcode": passcode, "auth secret": auth, "custody secret": custody}
    needles["content key"] = told["link"].partition("#")[2][1:]
    detector = Detector({name: text.encode() for name, text in needles.items()})
    assert detector.find(told["credential"].encode()), "the detector sees nothing"
    assert detector.find(ran.out.encode()) == set()
