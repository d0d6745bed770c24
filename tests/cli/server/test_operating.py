"""What an operator does in the database of a service while it runs, and when that counts."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import sqlite3
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import httpx
import psycopg
import pytest
import trustme
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from sealpipe.cli.server.accounts import add_account
from sealpipe_rehearsal.people import Recipient, Submitter
from sealpipe_service.flood import BURST, MISS
from support.fake_web import Receiver
from support.mailbox import PASSWORD, USER, Mailbox
from support.own_service import (
    OwnRunning,
    OwnService,
    list_workers,
    make_own_service,
    stop,
    wait_for,
)
from support.parts import ROOT, find_postgres, missing, run_postgres
from support.ports import free_port
from support.terminal import PATIENCE, Terminal

DAY = 24 * 3600


@pytest.fixture(scope="module")
def one_running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnRunning]:
    own = make_own_service(tmp_path_factory.mktemp("operated") / "service")
    with own.running("--workers", "2"):
        found = OwnRunning(own)
        yield found
        found.close()


@pytest.fixture
def running(one_running: OwnRunning) -> OwnRunning:
    """A service that has forgotten the test before, and has its account."""
    one_running.reset()
    add_account(one_running.store, "default", None)
    return one_running


@pytest.fixture
def own(running: OwnRunning) -> OwnService:
    """Its machine; who exports what this one has is a client."""
    key = running.create_key().reveal()
    return replace(running.own, exports={**running.own.exports, "SEALPIPE_API_KEY": key})


@pytest.fixture
def client(own: OwnService, tmp_path: Path) -> Terminal:
    return own.client(tmp_path / "client")


def test_a_revoked_key_is_refused_in_its_next_call(own: OwnService, client: Terminal) -> None:
    assert client.sealpipe("stats").code == 0
    key_id = own.command("key", "list", "--output", "json").json["keys"][0]["key_id"]
    assert own.command("key", "revoke", key_id).code == 0
    assert client.sealpipe("stats").code == 3


def test_a_plan_counts_within_half_a_minute(
    own: OwnService, running: OwnRunning, client: Terminal
) -> None:
    share = ("share", "-f", "P=text:x")
    assert client.sealpipe(*share).code == 0
    assert own.command("account", "plan", "default", "--shares", "1").code == 0
    assert client.sealpipe(*share).code == 0, "calls may still see the plan as it was"
    running.advance(30)
    assert client.sealpipe(*share).code == 4
    assert own.command("account", "plan", "default", "--shares", "plan").code == 0
    running.advance(30)
    assert client.sealpipe(*share).code == 0


def test_it_says_nowhere_that_it_is_a_rehearsal(
    own: OwnService, running: OwnRunning, client: Terminal
) -> None:
    credential = running.create_key().reveal().rpartition(".")[0]
    headers = {
        "authorization": f"Bearer {credential}",
        "accept": "application/json, text/event-stream",
    }
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        },
    }
    with httpx.Client(headers=headers, trust_env=False) as caller:
        initialized = caller.post(f"{own.public_url}/v1/mcp", json=message)
        told = caller.get(f"{own.public_url}/v1/capabilities")
        pages = caller.get(f"{own.public_url}/s/r/some")
    assert initialized.json()["result"]["serverInfo"]["name"] == "svc-server"
    assert told.json()["service"]["name"] == "sealpipe server"
    link = client.sealpipe(
        *["tools", "call", "create_share_via_browser", "--print"], "--output", "json"
    )
    for said in (initialized.text, told.text, pages.text, link.out):
        assert "rehears" not in said


def test_an_account_sees_nothing_of_another(
    own: OwnService, client: Terminal, tmp_path: Path
) -> None:
    assert own.command("account", "add", "other").code == 0
    made = own.command("key", "create", "--account", "other", "--scope", "all")
    other = own.client(tmp_path / "other")
    other.environ["SEALPIPE_API_KEY"] = made.out.strip()
    assert client.sealpipe("share", "-f", "P=text:x").code == 0
    assert client.sealpipe("shares", "list", "--output", "json").json["shares"]
    assert other.sealpipe("shares", "list", "--output", "json").json["shares"] == []


def test_custody_account_is_approved_for_who_asked(own: OwnService, client: Terminal) -> None:
    made = own.command("key", "create", "--custody", "account", "--scope", "all")
    asked, first = (
        text.split("_live_")[1].split(".")[0]
        for text in (made.out, own.exports["SEALPIPE_API_KEY"])
    )
    assert own.command("custody", "approve", first).code == 2
    assert own.command("custody", "approve", asked).code == 0
    client.environ["SEALPIPE_API_KEY"] = made.out.strip()
    assert "custody 2" in client.sealpipe("doctor").out


def test_submissions_stay_until_they_are_purged(
    own: OwnService, running: OwnRunning, client: Terminal
) -> None:
    made = client.sealpipe("request", "-a", "P", "--expires-in", "1h", "--receipt", "r.json")
    Submitter().submit(made.out.strip(), {"P": "canary"})
    running.advance(3600 + 29 * DAY)
    assert own.command("purge", "--older-than", "30d", "--output", "json").json["requests"] == 0
    assert "canary" in client.sealpipe("collect", "r.json").out, "it has ended, and can be read"
    assert own.command("purge", "--older-than", "29d").code == 2, "less than 30 days is refused"
    running.advance(DAY + 1)
    purged = own.command("purge", "--older-than", "30d", "--output", "json").json
    assert purged == {"schema": 1, "requests": 1, "submissions": 1}
    assert client.sealpipe("collect", "r.json").code == 6
    listed = client.sealpipe("requests", "list", "--status", "expired", "--output", "json").json
    assert listed["requests"] == []


@pytest.mark.parametrize(
    ("more", "told"),
    [([], "make --listen and --public-url agree"), (["--trusted-proxy", "127.0.0.1"], "serving")],
)
def test_it_says_if_it_is_called_at_another_port_than_it_listens_at(
    tmp_path: Path, more: list[str], told: str
) -> None:
    own = make_own_service(tmp_path)
    where = ["--database", own.database, "--public-url", own.public_url]
    listen = f"127.0.0.1:{free_port()}"
    process = own.operator.start("server", "run", *where, "--listen", listen, *more)
    try:
        assert process.stderr is not None
        said = [process.stderr.readline() for _ in range(1 if more else 2)]
        assert told in said[-1]
    finally:
        process.terminate()
        _, rest = process.communicate(timeout=PATIENCE)
    assert "agree" not in rest


def test_an_interrupted_init_is_done_again_and_a_finished_one_never(tmp_path: Path) -> None:
    operator = Terminal(tmp_path)
    where = ["--database", "sqlite:///s.db", "--public-url", "http://127.0.0.1:8080"]
    assert operator.sealpipe("server", "init", *where).code == 0
    with closing(sqlite3.connect(operator.here / "s.db")) as database:
        database.execute("DELETE FROM service")  # as if it had been killed before its last step
        database.commit()
    again = operator.sealpipe("server", "init", *where, "--tag", "acme")
    assert again.code == 0, again
    assert "acme_sk_live_" in again.out
    refused = operator.sealpipe("server", "init", *where)
    assert (refused.code, refused.out) == (2, "")


def test_a_copy_has_what_was_there(own: OwnService, client: Terminal) -> None:
    code = client.sealpipe("share", "-f", "P=text:x", "--output", "json").json["short_code"]
    assert own.command("database", "backup", "copy.db").code == 0
    assert (own.operator.here / "copy.db").stat().st_mode & 0o777 == 0o600
    assert client.sealpipe("shares", "expire", code, "--yes").code == 0
    address = f"sqlite:///{own.operator.here / 'copy.db'}"
    other = OwnService(own.operator, address, address, own.public_url, own.exports)
    listed = OwnRunning(other)
    assert listed.store.stats("default")[:2] == (1, 0)
    listed.close()


def test_metrics_are_summed_over_processes_and_outlive_those_that_are_killed(
    tmp_path: Path,
) -> None:
    own = make_own_service(tmp_path / "service")
    port = free_port()
    with (
        own.running("--workers", "2", "--metrics", f"127.0.0.1:{port}") as process,
        httpx.Client(trust_env=False) as caller,
    ):

        def read(name: str) -> float:
            text = caller.get(f"http://127.0.0.1:{port}/metrics").text
            families = text_string_to_metric_families(text)
            samples = [each for family in families for each in family.samples]
            return sum(each.value for each in samples if each.name == f"sealpipe_{name}")

        for _ in range(20):
            httpx.get(f"{own.public_url}/healthz", trust_env=False)
        wait_for(lambda: read("requests_total") == 20)
        os.kill(list_workers(process)[0], signal.SIGKILL)
        wait_for(lambda: read("worker_starts_total") == 3)
        assert read("requests_total") == 20
        assert read("requests_in_progress") == 0
        wait_for(lambda: read("sweeps_total") >= 3)


def test_a_webhook_goes_to_a_host_whose_authority_is_in_the_file_of_ones_own(
    tmp_path: Path,
) -> None:
    own = make_own_service(tmp_path / "service")
    own.operator.environ |= {"WEBHOOKS": "k" * 32}
    company, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    company.issue_cert("127.0.0.1").configure_cert(context)
    file = own.operator.here / "company.pem"
    bad = own.operator.sealpipe(
        *("server", "run", "--database", own.database, "--public-url", own.public_url),
        *("--ca-file", file.name),
    )
    assert (bad.code, "--ca-file: the certificates" in bad.err) == (2, True), bad
    company.cert_pem.write_to_path(str(file))
    key = ("--webhook-key", "env:WEBHOOKS")
    run = (*key, "--ca-file", file.name, "--webhook-network", "127.0.0.0/8")
    with Receiver(tls=context) as receiver:
        assert own.command("webhook", "add", receiver.url, *key).code == 0
        with own.running(*run):
            client = own.client(tmp_path / "client")
            code = client.sealpipe("share", "-f", "P=text:x", "--output", "json").json["short_code"]
            assert client.sealpipe("shares", "expire", code, "--yes").code == 0
            wait_for(lambda: receiver.hooks)
    assert code.encode() in receiver.hooks[0].body


DOCKER = """#!/bin/sh
case "$*" in
"compose exec -T database "*) shift 4; exec "$@" ;;
*) echo "$*" >>calls ;;
esac
"""
"""In the place of Docker's client: what it runs beside the database is run here."""


def test_the_page_backs_up_and_restores_a_database_of_compose(tmp_path: Path) -> None:
    page = (ROOT / "docs/how-to/operate-your-own-service.md").read_text()
    section = page.partition("## Back up and restore with compose")[2].partition("\n## ")[0]
    back_up, restore = re.findall(r"```sh\n(.+?)```", section, re.DOTALL)
    (tmp_path / "docker").write_text(DOCKER)
    (tmp_path / "docker").chmod(0o755)
    with run_postgres() as server:
        with psycopg.connect(server.address, autocommit=True) as connection:
            connection.execute("CREATE ROLE sealpipe SUPERUSER LOGIN")
            connection.execute("CREATE DATABASE sealpipe OWNER sealpipe")
        path = f"{tmp_path}:{find_postgres()}:/usr/bin:/bin"
        environ = {"PATH": path, "PGHOST": str(server.folder)}

        def run(script: str) -> None:
            words = ["sh", "-e", "-c", script]
            subprocess.run(words, cwd=tmp_path, env=environ, check=True)

        address = f"postgresql:///sealpipe?host={server.folder}&user=sealpipe"
        own = make_own_service(tmp_path / "service", address)
        run(back_up)
        assert (tmp_path / "backup.dump").stat().st_mode & 0o777 == 0o600
        assert own.command("key", "create", "--name", "later", "--print").code == 0
        names = [line.split("\t")[1] for line in own.command("key", "list").out.splitlines()]
        assert "later" in names
        run(restore)
        restored = [line.split("\t")[1] for line in own.command("key", "list").out.splitlines()]
        assert restored == [each for each in names if each != "later"]
    calls = ["compose stop server", "compose up --detach"]
    assert (tmp_path / "calls").read_text().splitlines() == calls


def need_ipv6() -> None:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        missing("the loopback of IPv6")


def test_it_serves_at_an_address_of_ipv6_where_a_stranger_is_a_network(tmp_path: Path) -> None:
    need_ipv6()
    own = make_own_service(tmp_path / "service", url=f"http://[::1]:{free_port()}")
    with (
        own.running("--trusted-proxy", "::1/128"),
        httpx.Client(base_url=own.public_url, trust_env=False) as caller,
    ):
        assert [caller.get(each).status_code for each in ("/healthz", "/readyz")] == [200, 200]
        link = own.client(tmp_path / "client").sealpipe("share", "-f", "P=text:canary").out.strip()
        assert link.startswith(f"{own.public_url}/s/")
        (field,) = Recipient().open_link(link)
        assert field.value == "canary"

        def ask(address: str) -> int:
            return caller.get("/v1/stats", headers={"x-forwarded-for": address}).status_code

        wait_for(lambda: ask("2001:db8::1") == 429)
        tries = []
        wait_for(lambda: tries.append(ask("2001:db8::ffff:2")) or tries[-1] == 429)
        assert len(tries) < BURST / MISS, "it has no bucket of its own"
        assert ask("2001:db8:0:1::1") == 401, "another network has"


def test_a_process_that_cannot_start_again_is_tried_ever_more_rarely(tmp_path: Path) -> None:
    own = make_own_service(tmp_path / "service")
    file = own.operator.here / "service.db"
    process = own.start()
    assert process.stderr is not None
    file.rename(file.with_name("kept.db"))
    file.write_text("no database")
    file.chmod(0o600)
    os.kill(list_workers(process)[0], signal.SIGKILL)
    told: list[tuple[datetime, str]] = []
    while len(told) < 4:
        line = json.loads(process.stderr.readline())
        if "another is started" in line["message"]:
            told.append((datetime.fromisoformat(line["time"]), line["message"]))
    assert [message.rpartition(" started")[2] for _, message in told] == [
        "",
        *(f" in {seconds} s" for seconds in (1, 2, 4)),
    ]
    assert "service.db" in told[1][1], "it says why"
    for (begun, _), (ended, _), seconds in zip(told[1:], told[2:], (1, 2), strict=False):
        assert (ended - begun).total_seconds() >= seconds
    file.with_name("kept.db").rename(file)
    wait_for(lambda: list_workers(process))
    assert own.client(tmp_path / "client").sealpipe("shares", "list").code == 0
    assert stop(process) == 0


def test_an_owner_gets_a_mail_by_the_server_that_is_named_by_reference(tmp_path: Path) -> None:
    own = make_own_service(tmp_path / "service")
    with Mailbox(tmp_path) as mailbox:
        own.operator.environ |= {
            "SMTP": f"smtp://{USER}:{PASSWORD}@127.0.0.1:{mailbox.port}",
            "SSL_CERT_FILE": str(mailbox.ca_file),
        }
        assert own.command("mail", "add", "ann@acme.example").code == 0
        with own.running("--smtp", "env:SMTP", "--mail-from", "ci@acme.example") as process:
            (worker,) = list_workers(process)
            assert PASSWORD.encode() not in Path(f"/proc/{worker}/environ").read_bytes()
            client = own.client(tmp_path / "client")
            made = client.sealpipe("request", "-a", "P", "--title", "canary")
            Submitter().submit(made.out.strip(), {"P": "x"})
            wait_for(lambda: mailbox.received)
            wait_for(lambda: "1 delivered" in own.command("mail", "list").out)
    (received,) = mailbox.received
    assert received.recipients == ["ann@acme.example"]
    assert "request" in received.mail["subject"]
    assert b"canary" not in received.content
