"""The fixture `sealpipe_rehearsal`, as a user's own tests have it
(docs/how-to/test-your-code.md).
"""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from sealpipe import (
    AuthenticationError,
)
from sealpipe_rehearsal import Rehearsal
from service.plugin_cases import (
    test_a_revoked_credential_and_a_smaller_plan,
    test_a_secret_comes_from_its_submitter,
    test_a_secret_goes_to_its_recipient,
    test_asyncio_too,
    test_credentials_by_scope_custody_and_account,
    test_time_passes_in_seconds_or_as_a_timedelta,
)
from service.pytest_plugin.conftest import Project
from support.commands import SEALPIPE
from support.terminal import Terminal

__all__ = [
    "test_a_revoked_credential_and_a_smaller_plan",
    "test_a_secret_comes_from_its_submitter",
    "test_a_secret_goes_to_its_recipient",
    "test_asyncio_too",
    "test_credentials_by_scope_custody_and_account",
    "test_time_passes_in_seconds_or_as_a_timedelta",
]

LOADED = """
import sys, time, pytest
before, started = set(sys.modules), time.process_time()
import sealpipe_rehearsal.pytest_plugin
print(time.process_time() - started, *sorted(set(sys.modules) - before))
"""


def test_every_pytest_run_has_it() -> None:
    (found,) = [
        point
        for point in entry_points(group="pytest11")
        if point.dist and point.dist.name == "sealpipe"
    ]
    assert (found.name, found.value) == ("sealpipe_rehearsal", "sealpipe_rehearsal.pytest_plugin")


def test_a_run_that_does_not_use_it_pays_next_to_nothing() -> None:
    def loaded() -> list[str]:
        return subprocess.run(
            [sys.executable, "-c", LOADED], check=True, capture_output=True, text=True
        ).stdout.split()

    runs = [loaded() for _ in range(5)]
    assert [run[1:] for run in runs] == [
        ["sealpipe_rehearsal", "sealpipe_rehearsal.pytest_plugin"]
    ] * 5
    assert min(float(run[0]) for run in runs) < 0.005


TIMED = """
import time
from pathlib import Path

def queued():
    threads = Path("/proc/self/task").glob("*/schedstat")
    return sum(int(each.read_text().split()[1]) for each in threads) / 1e9

def ran():
    return time.monotonic() - queued()

began = ran()

def test_it(sealpipe_rehearsal):
    assert sealpipe_rehearsal.api_key
    assert ran() - began < 1
"""
"""What runs its first use, without the time in which a busy machine let it wait for a core."""


def test_its_first_use_takes_less_than_a_second(bare: Terminal, project: Project) -> None:
    bare.file("test_theirs.py", TIMED)
    ran = project()
    assert ran.counts == {"passed": 1}, ran.out


def test_pytest_fixtures_lists_it(project: Project) -> None:
    told = project("--fixtures", "-v").out
    assert "sealpipe_rehearsal" in told
    assert ".credential(scopes=, custody=)" in told


def test_one_service_serves_the_session_and_each_test_finds_it_as_new(
    bare: Terminal, project: Project
) -> None:
    """Nothing of a test is left to the next: no share, key, log, time, switch of an account,
    fault.
    """
    bare.file(
        "test_theirs.py",
        """
import time
import pytest
from sealpipe import AuthenticationError, OutcomeUnknownError, ConnectError

before = []

@pytest.mark.parametrize("number", range(2))
def test_it(sealpipe_rehearsal, number):
    it = sealpipe_rehearsal
    assert it.seen() == it.events() == it.notes() == []
    client = sealpipe_rehearsal.client()
    assert list(client.iter_shares()) == []
    for address, api_key in before:
        assert address == sealpipe_rehearsal.base_url
        with pytest.raises(AuthenticationError):
            sealpipe_rehearsal.client(api_key).list_shares()
    share = client.share(["P=text:x"], passcode="this one is allowed again")
    assert abs(share.expires_at.timestamp() - 72 * 3600 - time.time()) < 60
    assert client.get_share(share.short_code).expires_at == share.expires_at
    client.expire_share(client.share(["P=text:x"]).short_code)
    assert len(sealpipe_rehearsal.events()) == 1
    assert sealpipe_rehearsal.recipient.look(share.link)
    sealpipe_rehearsal.advance(10 * 24 * 3600)
    sealpipe_rehearsal.set_account(view_protection=False)
    sealpipe_rehearsal.faults(
        {"fault": "refuse", "seconds": 600}, {"fault": "unauthorized", "times": "always"}
    )
    with pytest.raises(OutcomeUnknownError):
        sealpipe_rehearsal.client(deadline=30).share(["P=text:x"])
    with pytest.raises(ConnectError):
        sealpipe_rehearsal.client(deadline=1).share(["P=text:x"])
    before.append((sealpipe_rehearsal.base_url, sealpipe_rehearsal.api_key))
""",
    )
    ran = project("-W", "error")
    assert ran.counts == {"passed": 2}, ran.out


def test_what_the_service_saw_and_emitted(sealpipe_rehearsal: Rehearsal) -> None:
    client = sealpipe_rehearsal.client()
    share = client.share(["P=text:a secret that stays here"])
    client.expire_share(share.short_code)
    assert [(seen.method, seen.target) for seen in sealpipe_rehearsal.seen()] == [
        ("POST", "/v1/shares"),
        ("DELETE", f"/v1/shares/{share.short_code}"),
    ]
    assert all(b"a secret that stays here" not in bytes(seen) for seen in sealpipe_rehearsal.seen())
    (event,) = sealpipe_rehearsal.events()
    assert event.payload == {"event": "share.deleted", "short_code": share.short_code}


def test_faults_start_and_end_on_request(sealpipe_rehearsal: Rehearsal) -> None:
    client = sealpipe_rehearsal.client()
    sealpipe_rehearsal.faults({"fault": "reset", "after_commit": True, "when": "POST /shares"})
    assert client.share(["P=text:x"]).outcome == "replayed"
    assert len(client.list_shares().items) == 1
    sealpipe_rehearsal.faults({"fault": "unauthorized", "times": "always"})
    with pytest.raises(AuthenticationError):
        client.list_shares()
    sealpipe_rehearsal.faults()
    assert len(client.list_shares().items) == 1


def test_an_unknown_fault_is_reported_with_the_nearest(sealpipe_rehearsal: Rehearsal) -> None:
    with pytest.raises(ValueError, match="did you mean 'reset'"):
        sealpipe_rehearsal.faults({"fault": "rest"})


def test_the_environment_points_a_program_here_and_away_from_whatever_was_set(
    sealpipe_rehearsal: Rehearsal, bare: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEALPIPE_API_KEY_FILE", "/nowhere")
    monkeypatch.setenv("SEALPIPE_SHARE_VIEWS", "no number")
    outer = {"SEALPIPE_API_KEY_FILE": "/nowhere", "SEALPIPE_SHARE_VIEWS": "no number"}
    environ = sealpipe_rehearsal.environ()
    done = bare.run([*SEALPIPE, "share", "-f", "text:x"], environ={**outer, **environ})
    assert (done.code, done.err.count("warning")) == (0, 0), done.err
    assert [
        field.value for field in sealpipe_rehearsal.recipient.open_link(done.out.rstrip("\n"))
    ] == ["x"]
    assert list(bare.home.iterdir()) == []
    assert (Path(environ["SEALPIPE_STATE_DIR"]) / "outbox").is_dir()


def test_the_environment_serves_from_settings(
    sealpipe_rehearsal: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sealpipe import Client

    for name, value in sealpipe_rehearsal.environ().items():
        monkeypatch.setenv(name, value)
    with Client.from_settings() as client:
        client.share(["P=text:x"])
    assert len(sealpipe_rehearsal.seen()) == 1


def test_clients_are_closed_when_the_test_ends(bare: Terminal, project: Project) -> None:
    bare.file(
        "test_theirs.py",
        """
kept = []

def test_one(sealpipe_rehearsal):
    kept.append(sealpipe_rehearsal.client())
    kept[0].list_shares()
    assert kept[0].session.transport._network is not None

def test_two():
    assert kept[0].session.transport._network is None
""",
    )
    assert project("-W", "error").counts == {"passed": 2}


def test_without_the_extra_only_its_tests_fail_and_name_it(
    bare: Terminal, project: Project
) -> None:
    bare.file(
        "missing/uvicorn.py",
        "raise ModuleNotFoundError('No module named uvicorn', name='uvicorn')\n",
    )
    bare.file(
        "test_theirs.py", "def test_uses(sealpipe_rehearsal): pass\n\ndef test_does_not(): pass\n"
    )
    ran = project(PYTHONPATH=str(bare.here / "missing"))
    assert ran.counts == {"passed": 1, "error": 1}, ran.out
    assert "needs uvicorn, which is not installed: pip install 'sealpipe[rehearsal]'" in ran.out
    assert "Traceback" not in ran.out
