"""The live half works: run at a rehearsal service that stands in for the development host, which
none of us has here.

What is shown is that the tests find the host, hold it to the same assertions, are careful with it,
and fail where it differs. That the real host passes them is for whoever has one to show
(docs/contributing/live-tests.md).
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.live.target import VARIABLES
from sealpipe.secret import Secret
from sealpipe_rehearsal.running_service import RunningService
from sealpipe_rehearsal.server import start
from sealpipe_service import responses
from support.leaks import Detector
from support.parts import ROOT
from support.terminal import Done, Terminal

HERE = Path(__file__).parent


@pytest.fixture
def stand_in() -> Iterator[RunningService]:
    with start() as running:
        yield running


def variables(host: RunningService, api_key: Secret) -> dict[str, str]:
    return dict(
        zip(VARIABLES.values(), (host.base_url, host.link_base_url, api_key.reveal()), strict=True)
    )


def live(user: Terminal, *words: str, **environ: str) -> Done:
    """`pytest -m live tests/e2e/live`."""
    options = [
        "-p",
        "no:cacheprovider",
        "-c",
        str(ROOT / "pyproject.toml"),
        "--rootdir",
        str(ROOT),
        "-m",
        "live",
    ]
    return user.run(
        [sys.executable, "-m", "pytest", "-n0", *options, *words, str(HERE)], environ=environ
    )


def secrets_of(api_key: Secret) -> Detector:
    _, auth, custody = api_key.reveal().removeprefix("svc_sk_live_").split(".")
    return Detector({"auth secret": auth.encode(), "custody secret": custody.encode()})


def test_they_pass_there_with_few_calls_and_leave_nothing(
    stand_in: RunningService, bare: Terminal
) -> None:
    api_key = stand_in.create_key()
    done = live(bare, "-vv", **variables(stand_in, api_key))
    assert done.code == 0, done.out
    last = done.out.splitlines()[-1]
    assert " passed" in last
    assert not {"skipped", "failed", "error"} & set(last.replace(",", "").split())
    seen = stand_in.seen()
    assert 50 < len(seen) < 100, "a minute's worth of calls of the smaller plan, at most"
    codes = [request.target.rpartition("/")[2] for request in seen if request.method == "DELETE"]
    deleted = Counter(
        code
        for code in codes
        if f"DELETE /v1/requests/{code}" in {f"DELETE {r.target}" for r in seen}
    )
    assert sorted(deleted.values())[-2:] == [1, 3], (
        "one request was made to be deleted twice, and once more"
    )
    assert (
        stand_in.service.database.row("SELECT COUNT(*) FROM shares WHERE ended_at IS NULL", {})[0]
        == 0
    )  # type: ignore[index]
    assert (
        stand_in.service.database.row("SELECT COUNT(*) FROM requests WHERE ended_at IS NULL", {})[0]
        == 0
    )  # type: ignore[index]
    assert stand_in.notes() == []
    assert secrets_of(api_key).find((done.out + done.err).encode()) == set()


def test_a_host_that_differs_fails_them_and_the_output_shows_no_credential(
    stand_in: RunningService, bare: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = responses.Refusal(410, 2, "Gone")
    monkeypatch.setitem(responses.REFUSALS, "share_not_found", gone)  # type: ignore[arg-type]
    api_key = stand_in.create_key()
    done = live(bare, "-vv", "--showlocals", "--full-trace", **variables(stand_in, api_key))
    assert done.code == 1
    failed = {
        line.split("::")[1].split(" - ")[0]
        for line in done.out.splitlines()
        if line.startswith("FAILED")
    }
    assert failed == {
        f"{name}[development host]"
        for name in (
            "test_an_expired_share_is_gone",
            "test_a_code_that_never_was_is_404",
            "test_client",
            "test_async_client",
            "test_command_line",
        )
    }
    assert secrets_of(api_key).find((done.out + done.err).encode()) == set()


def test_a_host_that_is_not_there_fails_them_and_the_output_shows_no_credential(
    bare: Terminal,
) -> None:
    with start() as gone:
        api_key = gone.create_key()
    done = live(bare, "-x", "-vv", "--showlocals", "--full-trace", **variables(gone, api_key))
    assert done.code == 1
    assert "development host did not answer GET /shares: ConnectError" in done.out
    assert secrets_of(api_key).find((done.out + done.err).encode()) == set()


def test_without_the_variables_they_are_skipped_with_the_reason_in_a_strict_run_too(
    bare: Terminal,
) -> None:
    done = live(bare, SEALPIPE_TESTS_STRICT="1")
    assert done.code == 0
    assert (
        "no development host: SEALPIPE_LIVE_BASE_URL, SEALPIPE_LIVE_LINK_BASE_URL, "
        "SEALPIPE_LIVE_API_KEY"
    ) in done.out
    assert not {"passed", "failed", "errors"} & set(done.out.splitlines()[-1].split())


def test_half_of_the_variables_is_a_mistake_and_not_a_skip(bare: Terminal) -> None:
    done = live(bare, "-x", SEALPIPE_LIVE_BASE_URL="http://127.0.0.1:1/v1")
    assert done.code == 1
    assert "named in part: SEALPIPE_LIVE_LINK_BASE_URL, SEALPIPE_LIVE_API_KEY not set" in done.out


def test_the_variables_are_known_to_the_command_line(bare: Terminal) -> None:
    done = bare.sealpipe("shares", "list", **dict.fromkeys(VARIABLES.values(), "x"))
    assert done.code == 2
    assert "SEALPIPE_LIVE" not in done.err
    assert "SEALPIPE_LIVE_BASE_UR" in bare.sealpipe("shares", "list", SEALPIPE_LIVE_BASE_UR="x").err
