"""`--debug`: which steps it tells."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest

from sealpipe import Client, Field
from sealpipe.cli import debug
from sealpipe_rehearsal.running_service import RunningService
from support.fake_web import Asked, FakeWeb, Reply
from support.ports import silent_port
from support.terminal import Terminal


def test_each_request_is_told_by_method_path_status_time_and_size(user: Terminal) -> None:
    done = user.sealpipe("shares", "list", "--limit", "7", "--debug")
    assert done.code == 0
    line = (
        r"debug +\d+\.\d{3} s  GET /shares\?page&limit: 200 in \d+ ms, 0 bytes sent, \d+ received\n"
    )
    assert len(re.findall(line, done.err)) == 1
    assert "7" not in re.sub(r"\d+(\.\d+)? (s|ms|bytes|received)", "", done.err.partition("GET")[2])


def split(err: str) -> tuple[list[str], list[str]]:
    """The lines of debug, and all others."""
    lines = err.splitlines()
    return [line for line in lines if line.startswith("debug ")], [
        line for line in lines if line[:6] != "debug "
    ]


def test_what_is_printed_otherwise_stays_the_same(user: Terminal) -> None:
    for words in (["plugins"], ["stats"], ["shares", "list", "--output", "json"]):
        with_debug, without = user.sealpipe(*words, "--debug"), user.sealpipe(*words)
        assert (with_debug.code, with_debug.out) == (without.code, without.out)
        steps, others = split(with_debug.err)
        assert (bool(steps), others) == (True, split(without.err)[1])
        assert split(without.err)[0] == []


def test_a_variable_or_the_config_file_turns_it_on(user: Terminal) -> None:
    config = str(user.file("config.toml", "debug = true\n"))
    assert split(user.sealpipe("stats", SEALPIPE_DEBUG="1").err)[0]
    assert split(user.sealpipe("stats", SEALPIPE_CONFIG=config).err)[0]
    assert not split(user.sealpipe("stats", SEALPIPE_DEBUG="0").err)[0]


def test_waits_and_lost_connections_are_told(user: Terminal) -> None:
    done = user.sealpipe(
        "stats",
        "--debug",
        "--deadline",
        "2s",
        SEALPIPE_BASE_URL=f"http://127.0.0.1:{silent_port()}/v1",
    )
    assert done.code == 10
    assert re.search(r"waiting for \d\.\d{3} s\n", done.err)
    assert "GET /stats: no response in" in done.err
    assert "nothing arrived" in done.err


class Hook(FakeWeb):
    """Takes every message."""

    def answer(self, asked: Asked) -> Reply:  # noqa: ARG002 - as every web has it
        return Reply(200, "ok")


def test_a_plugins_request_is_told_without_its_path(user: Terminal) -> None:
    """The path of a webhook may be a secret."""
    with Hook() as hook:
        words = [
            "share",
            "-f",
            "text:x",
            "--send",
            f"webhook:{hook.base_url}/services/c4nary?token=c4nary",
        ]
        begin = time.monotonic()
        done = user.sealpipe(*words, "--debug", SEALPIPE_PLUGIN_WEBHOOK__UNSIGNED="1")
        seconds = time.monotonic() - begin
    assert (done.code, len(hook.asked)) == (0, 1), done
    (line,) = [line for line in done.err.splitlines() if "POST at" in line]
    told = re.search(r"POST at 127\.0\.0\.1: 200 in (\d+) ms, \d+ bytes sent$", line)
    assert told is not None
    assert int(told[1]) <= 1000 * seconds
    assert not any("c4nary" in line for line in done.err.splitlines() if line.startswith("debug"))


@pytest.fixture
def turned_on() -> Iterator[None]:
    debug.turn_on()
    yield
    debug.turn_off()


@pytest.mark.usefixtures("turned_on")
def test_a_client_tells_the_same_steps(
    service: RunningService, capfd: pytest.CaptureFixture[str]
) -> None:
    settings = {
        "api_key": service.create_key(),
        "base_url": service.base_url,
        "link_base_url": service.link_base_url,
    }
    with Client(**settings) as client:  # type: ignore[arg-type]
        client.share([Field("Password", "x")])
    steps = re.findall(r"  (\S+ \S+(?: \S+)?)", re.sub(r"\d+ ms.*", "", capfd.readouterr().err))
    assert "POST /shares: 201" in steps


def test_a_run_without_it_loads_none_of_it(user: Terminal) -> None:
    code = (
        "import sys; from sealpipe.cli.main import run; run(['stats']); "
        "print('sealpipe.cli.debug' in sys.modules)"
    )
    assert user.run(["python", "-c", code]).out.endswith("False\n")
