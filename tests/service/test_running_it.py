"""Starting, stopping, the state file, and what is never written into it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path

import httpx
import pytest

from sealpipe.secret import Secret
from sealpipe_rehearsal import control_client
from sealpipe_rehearsal.running_service import RunningService
from sealpipe_rehearsal.server import StateFileError, serve, start
from service.callers import TOKEN, WRAP, Api, refusal, two_parts
from service.serving import DEAF, serving
from support.ports import free_port


def test_a_state_file_survives_a_restart(tmp_path: Path, caller: Callable[..., Api]) -> None:
    state = tmp_path / "state.db"
    with start(state=state) as running:
        api = caller(running, account="kept")
        running.set_account("kept", view_protection=False)
        first = api.create("k", title="kept", access_counts_left=1)
        code = first.json()["short_code"]
    with start(state=state) as running:
        again = Api(running, api.credential)
        assert again.codes() == [code]
        replay = again.create("k", title="kept", access_counts_left=1)
        assert (replay.status_code, replay.content) == (200, first.content)
        assert refusal(again.create("k")) == (409, 105)
        assert refusal(again.create(passcode_verifier="v" * 43)) == (403, 53)
        told = control_client.send_request(
            running.origin, "POST", f"/links/shares/{code}/open", {"access_token": TOKEN}
        )
        assert told[0] == 200
        again.http.close()


def test_an_advanced_clock_stays_advanced_until_it_is_reset(tmp_path: Path) -> None:
    state = tmp_path / "state.db"
    with start(state=state) as running:
        running.advance(86_400)
    for days in (1, 0):
        with start(state=state) as running:
            ahead = running.service.clock.now() - datetime.now(UTC)
            assert abs(ahead.total_seconds() - days * 86_400) < 5
            assert running.service.store.now() == pytest.approx(
                running.service.clock.timestamp(), abs=5
            )
            running.reset()


def test_a_killed_service_comes_back_with_what_it_had_answered(tmp_path: Path) -> None:
    state = tmp_path / "state.db"
    with serving(state) as (process, base_url):
        credential = control_client.register_key(base_url, name="n")
        with httpx.Client(trust_env=False) as http:
            first = _create(http, base_url, credential)
        process.send_signal(signal.SIGKILL)
        process.wait(10)
    with start(state=state) as running, httpx.Client(trust_env=False) as http:
        replay = _create(http, running.base_url, credential)
        assert (first.status_code, replay.status_code, replay.content) == (201, 200, first.content)


def _create(http: httpx.Client, base_url: str, credential: Secret) -> httpx.Response:
    content = f'{{"encryption_type":"e2ee-aes256-gcm","data":"x","access_token":"{TOKEN}"}}'
    headers = {"Authorization": f"Bearer {two_parts(credential)}", "Idempotency-Key": "k"}
    headers["Content-Type"] = "application/json"
    return http.post(f"{base_url}/shares", content=content, headers=headers)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_command_in_good_order(tmp_path: Path, number: signal.Signals) -> None:
    with serving(tmp_path / "state.db") as (process, base_url):
        assert control_client.call_control_api(base_url, "GET", "")["service_tag"] == "svc"
        process.send_signal(number)
        assert process.stdout is not None
        assert process.stdout.read() == f"ended by {int(number)}\n"
        assert process.wait(10) == 0
    assert not list(tmp_path.glob("state.db-*"))


def test_a_signal_just_before_the_server_sleeps_ends_it(tmp_path: Path) -> None:
    with serving(tmp_path / "state.db", DEAF) as (process, _):
        process.send_signal(signal.SIGTERM)
        assert process.stdout is not None
        assert process.stdout.read() == f"ended by {int(signal.SIGTERM)}\n"


def test_the_state_file_is_for_its_owner_alone(tmp_path: Path, caller: Callable[..., Api]) -> None:
    state = tmp_path / "state.db"
    state.touch(mode=0o666)
    before = os.umask(0)
    try:
        with start(state=state) as running:
            caller(running).created()
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert set(modes.values()) == {0o600}
    assert "state.db" in modes


def test_no_secret_is_in_the_state_file(tmp_path: Path, caller: Callable[..., Api]) -> None:
    verifier = "V" * 43
    with start(state=tmp_path / "state.db") as running:
        api = caller(running)
        api.created(passcode_verifier=verifier, item_key_wrap=WRAP)
        httpx.get(
            f"{running.base_url}/shares",
            headers={"Authorization": f"Bearer {api.credential.reveal()}"},
            trust_env=False,
        )
        written = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    written += b"".join(path.read_bytes() for path in tmp_path.iterdir())
    _, auth_secret, custody_secret = api.credential.reveal().split(".")
    assert WRAP.encode() in written, "or this test reads the wrong files"
    for secret in (TOKEN, verifier, auth_secret, custody_secret):
        assert secret.encode() not in written


def test_two_services_do_not_share_a_state_file(tmp_path: Path) -> None:
    state = tmp_path / "state.db"
    with start(state=state), pytest.raises(StateFileError, match="locked"):
        start(state=state)


def test_a_state_file_that_is_not_ours_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "notes.txt"
    other.write_text("these are my notes, and no database at all\n" * 100)
    with pytest.raises(StateFileError, match="not a database"):
        start(state=other)
    link = tmp_path / "link"
    link.symlink_to(other)
    with pytest.raises(StateFileError):
        start(state=link)
    with pytest.raises(StateFileError):
        start(state=tmp_path / "missing" / "state.db")


@pytest.mark.parametrize(
    "host",
    ["0.0.0.0", "::", "192.0.2.1", "example.org", "localhost", ""],  # noqa: S104 - refused
)
def test_it_listens_on_loopback_only(host: str) -> None:
    with pytest.raises(ValueError, match="only"):
        start(host=host)
    with pytest.raises(ValueError, match="only"):
        serve(host=host)


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6")
def test_it_listens_on_the_other_loopback_too() -> None:
    try:
        running = start(host="::1")
    except OSError as error:
        pytest.skip(f"no IPv6 loopback: {error}")
    with running:
        assert running.base_url.startswith("http://[::1]:")
        assert control_client.call_control_api(running.base_url, "GET", "")["service_tag"] == "svc"


@pytest.mark.parametrize("tag", ["", "CRS", "a-b", "a_b", "é"])
def test_a_service_tag_is_letters_and_digits(tag: str) -> None:
    with pytest.raises(ValueError, match="tag"):
        start(service_tag=tag)


def test_a_taken_port_is_an_error() -> None:
    with start() as running, pytest.raises(OSError, match="in use"):
        start(running.address.port)


def test_stopping_closes_the_port_and_stopping_again_does_nothing() -> None:
    running = start(free_port())
    running.stop()
    running.stop()
    with pytest.raises(control_client.RehearsalError):
        control_client.send_request(running.origin, "GET", "/rehearsal")
    with pytest.raises(sqlite3.ProgrammingError):
        running.service.database.row("SELECT 1", {})


def test_clock_and_randomness_come_from_outside(caller: Callable[..., Api]) -> None:
    noon = datetime(2031, 5, 5, 12, tzinfo=UTC)
    with start(clock=lambda: noon, token_bytes=bytes) as running:
        assert (
            control_client.call_control_api(running.origin, "GET", "")["now"]
            == "2031-05-05T12:00:00Z"
        )
        assert caller(running).created() == "A" * 12


def test_importing_the_package_loads_nothing() -> None:
    heavy = "{'uvicorn', 'starlette', 'sqlite3', 'httpx', 'cryptography', 'sealpipe'}"
    program = f"import sys, sealpipe_rehearsal; print(sorted({heavy} & sys.modules.keys()))"
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "[]"


def test_serving_loads_no_cryptography() -> None:
    program = "import sys, sealpipe_rehearsal.server; print('cryptography' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "False"


def test_the_service_imports_nothing_of_ours() -> None:
    program = (
        "import sys, sealpipe_service.app as app; print(sorted({name.partition('.')[0] "
        "for name in sys.modules} & {'sealpipe', 'sealpipe_plugins', 'cryptography', 'httpx'}))"
    )
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "[]"


def test_answers_are_dated_by_the_services_clock(service: RunningService, api: Api) -> None:
    service.advance(86_400)
    dated = parsedate_to_datetime(api.http.get("/shares").headers["date"])
    assert abs((dated - datetime.now(UTC)).total_seconds() - 86_400) < 5


def test_another_programs_database_is_left_unchanged(tmp_path: Path) -> None:
    other = tmp_path / "theirs.db"
    with contextlib.closing(sqlite3.connect(other)) as database:
        database.execute("CREATE TABLE a (b)")
    other.chmod(0o644)
    before = other.read_bytes()
    with pytest.raises(StateFileError, match="another program"):
        start(state=other)
    assert (other.read_bytes(), stat.S_IMODE(other.stat().st_mode)) == (before, 0o644)
    assert [path.name for path in tmp_path.iterdir()] == ["theirs.db"]
