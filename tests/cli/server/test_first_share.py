"""A service of one's own, from an empty machine on: two commands, and a day of a client."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from sealpipe.version import __version__
from sealpipe_rehearsal.people import LinkRefusedError, Recipient, Submitter
from sealpipe_rehearsal.server import start
from support.ci_jobs import forked_sealpipe
from support.own_service import OwnService, list_workers, make_own_service, stop, wait_for
from support.parts import run_postgres
from support.ports import free_port
from support.terminal import Terminal, addresses

DAY = """
set -eu
link=$(sealpipe share -f Password=env:CANARY --title "Staging" --views 2 2>share.err)
test "$(echo "$link" | sealpipe rehearsal open)" = "Password: $CANARY"
code=${link##*/}
sealpipe shares expire "${code%%#*}" --yes
if echo "$link" | sealpipe rehearsal open; then exit 90; fi
sealpipe share -f Password=env:CANARY --passcode-from env:CANARY --expires-in 1h >two.link
sealpipe rehearsal open --link file:two.link --passcode-from env:CANARY

sealpipe request -a Password -a 'note=Note:text' --receipt receipt.json >collect.link
sealpipe rehearsal answer "$(cat collect.link)" -f Password=env:CANARY -f Note=text:hello
test "$(sealpipe collect receipt.json --output json |
    python -c 'import json,sys; print(json.load(sys.stdin)["submissions"][0]["fields"][0]["value"])'
)" = "$CANARY"
sealpipe requests list
sealpipe requests expire "$(basename "$(cat collect.link)")" --yes
sealpipe shares list
sealpipe stats
sealpipe tools list
sealpipe doctor --roundtrip
"""
"""What a client does in a day, written for no service in particular."""


@contextmanager
def rehearsal(place: Path) -> Iterator[Terminal]:
    with start() as service:
        yield Terminal(place / "client").at(service)


@contextmanager
def server(place: Path) -> Iterator[Terminal]:
    own = make_own_service(place / "service")
    with own.running():
        yield own.client(place / "client")


@contextmanager
def two_machines_on_postgresql(place: Path) -> Iterator[Terminal]:
    """The client's calls go to one, and the people's to the other."""
    with run_postgres() as database:
        own = make_own_service(place / "service", database.address)
        other = replace(own, public_url=f"http://127.0.0.1:{free_port()}")
        client = own.client(place / "client")
        client.environ["SEALPIPE_LINK_BASE_URL"] = f"{other.public_url}/s"
        with own.running("--workers", "2"), other.running("--workers", "2"):
            yield client


@pytest.mark.parametrize("service", [rehearsal, server, two_machines_on_postgresql])
def test_a_clients_day_is_the_same_script(
    tmp_path: Path, service: Callable[[Path], AbstractContextManager[Terminal]]
) -> None:
    (tmp_path / "bin").mkdir()
    forked_sealpipe(tmp_path / "bin")
    with service(tmp_path) as client:
        client.environ["CANARY"] = "canary-of-the-day"
        client.environ["PATH"] = f"{tmp_path / 'bin'}:{client.environ['PATH']}"
        done = client.run(["sh", "-c", DAY])
    assert done.code == 0, done


def test_two_commands_lead_to_a_first_share(tmp_path: Path) -> None:
    began = time.monotonic()
    own = make_own_service(tmp_path / "service")
    with own.running():
        client = own.client(tmp_path / "client")
        done = client.sealpipe("share", "-f", "Password=text:canary")
        took = time.monotonic() - began
        assert done.code == 0, done
        (field,) = Recipient().open_link(done.out.strip())
    assert field.value == "canary"
    assert took < 60, "a busy machine has a minute; alone it takes two seconds"


def test_it_stops_when_it_is_told_and_finishes_what_it_has_begun(tmp_path: Path) -> None:
    own = make_own_service(tmp_path / "service")
    process = own.start("--workers", "2")
    workers = list_workers(process)
    assert len(workers) == 2
    assert stop(process) == 0
    assert not [each for each in workers if Path(f"/proc/{each}").exists()]


def test_a_killed_process_is_replaced_and_a_killed_supervisor_leaves_none(tmp_path: Path) -> None:
    own = make_own_service(tmp_path / "service")
    process = own.start("--workers", "2")
    first, second = list_workers(process)
    os.kill(first, signal.SIGKILL)
    wait_for(lambda: len(set(list_workers(process)) - {first, second}) == 1)
    assert own.client(tmp_path / "client").sealpipe("share", "-f", "P=text:x").code == 0
    workers = list_workers(process)
    process.kill()
    _, said = process.communicate()
    assert '"message": "a process that should serve has ended; another is started"' in said
    wait_for(lambda: not [each for each in workers if Path(f"/proc/{each}/cmdline").exists()])
    with own.running():  # nobody holds its port
        assert own.client(tmp_path / "again").sealpipe("shares", "list").code == 0


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnService]:
    """A service that serves."""
    own = make_own_service(tmp_path_factory.mktemp("own") / "service")
    with own.running():
        yield own


def test_each_host_but_its_own_is_refused_and_probes_are_answered_to_all(own: OwnService) -> None:
    with httpx.Client(base_url=own.public_url, trust_env=False) as client:
        foreign = {"host": "rebound.example"}
        assert client.get("/v1/stats", headers=foreign).status_code == 421
        assert client.get("/s/some", headers=foreign).status_code == 403
        for probe in ("/healthz", "/readyz"):
            answer = client.get(probe, headers=foreign)
            assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
        assert client.get("/v1/stats").status_code == 401
        assert client.get("/rehearsal").status_code == 404
        shown = client.get("/").text + client.get("/s/some").text
        assert "rehears" not in shown


@pytest.mark.parametrize(
    ("restricted", "reason"),
    [
        (["--requires-login"], "login"),
        (["--requires-mfa"], "mfa"),
        (["--restrict-domain", "acme.example"], "domain"),
        (["--restrict-address", "192.0.2.0/24"], "address"),
    ],
)
def test_a_submitter_cannot_say_who_they_are(
    own: OwnService, tmp_path: Path, restricted: list[str], reason: str
) -> None:
    claimed = {"signed_in_as": "kim@acme.example", "mfa": True, "from_ip": "192.0.2.7"}
    made = own.client(tmp_path / "client").sealpipe("request", "-a", "P", *restricted)
    assert made.code == 0, made
    with pytest.raises(LinkRefusedError) as refused:
        Submitter().submit(made.out.strip(), {"P": "x"}, **claimed)
    assert refused.value.reason == reason


def test_a_client_is_told_whose_service_it_is(own: OwnService, tmp_path: Path) -> None:
    done = own.client(tmp_path / "client").sealpipe("doctor")
    assert done.code == 0, done
    assert f"your own service: sealpipe server {__version__}" in done.out
    assert "Enterprise, custody 1, 600 requests per minute, any number of shares, " in done.out


def test_addresses_of_a_rehearsal_are_settings_of_the_same_names(own: OwnService) -> None:
    with start() as service:
        assert {*addresses(service), "SEALPIPE_API_KEY"} == set(own.exports)
