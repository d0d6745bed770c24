"""A failing test of a user's shows no secret, whatever its variables hold and however much pytest
is told to show.
"""

from __future__ import annotations

import json

from service.pytest_plugin.conftest import Project
from support.leaks import Detector
from support.terminal import Terminal

IMPORTS = """
import json, os
from sealpipe import Field, Secret
"""
# A user's test that holds whatever it can get hold of, and fails in one of several ways.
HOLDING = """
def test_{number}(sealpipe_rehearsal):
    api_key = sealpipe_rehearsal.credential()
    environ = sealpipe_rehearsal.environ(api_key)
    merged = {{"PATH": "", **environ}}
    client = sealpipe_rehearsal.client(api_key)
    passcode = Secret(os.environ["PASSCODE"])
    share = client.share([Field("P", Secret(os.environ["VALUE"]))], passcode=passcode, views=2)
    recipient = sealpipe_rehearsal.recipient
    fields = recipient.open_link(share.link, passcode)
    seen = sealpipe_rehearsal.seen()
    with open(os.environ["KNOWN"] + "{number}.json", "w") as file:
        json.dump({{"credential": api_key.reveal(), "link": share.link.reveal()}}, file)
    {failing}
"""
FAILING = (
    "assert [environ, merged, seen, fields, share, client] == sealpipe_rehearsal",
    "recipient.open_link(share.link)",
    'recipient.open_link(share.link.reveal(), "wrong")',
    "recipient.open_link(share.link.reveal()[:-1])",
    'recipient.open_link(share.link.reveal()[:-8] + "AAAAAAAA", Secret(os.environ["PASSCODE"]))',
    "sealpipe_rehearsal.revoke(api_key); client.list_shares()",
)


def test_failing_tests_show_no_secret(bare: Terminal, project: Project) -> None:
    """One run has all of them: what one of them holds may not show in any other, either."""
    value, passcode = "kQ7vWm2xLr9TzB4n", "pX3cJd8sYh5GfN6u"
    theirs = [
        HOLDING.format(number=number, failing=failing) for number, failing in enumerate(FAILING)
    ]
    bare.file("test_theirs.py", IMPORTS + "".join(theirs))
    environ = {"VALUE": value, "PASSCODE": passcode, "KNOWN": f"{bare.home}/known-"}
    ran = project("-vv", "--showlocals", "--full-trace", **environ)
    assert ran.counts == {"failed": len(FAILING)}, ran.out
    assert ran.out.count("recipient  =") >= len(FAILING)
    for number in range(len(FAILING)):
        told = json.loads((bare.home / f"known-{number}.json").read_text())
        _, auth, custody = told["credential"].removeprefix("svc_sk_live_").split(".")
        needles = {"value": value, "passcode": passcode}
        needles |= {"auth secret": auth, "custody secret": custody}
        needles["content key"] = told["link"].partition("#")[2][1:]
        detector = Detector({name: text.encode() for name, text in needles.items()})
        assert detector.find(told["credential"].encode()), "the detector sees nothing"
        assert detector.find(ran.out.encode()) == set(), FAILING[number]
