"""The secrets of webhooks are sealed: whoever has the database alone can sign nothing."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from secrets import token_hex

import pytest

from sealpipe_service.database.opening import open_database
from sealpipe_service.sealing import NoKey, WebhookSeals
from sealpipe_service.webhooks import SealError, endpoints, open_secrets
from support.leaks import Detector
from support.own_service import OwnRunning, OwnService, make_own_service

URL = "https://hooks.example.com/events"


def test_a_sealed_secret_opens_with_its_key_for_its_endpoint_alone() -> None:
    seals = WebhookSeals("k" * 32)
    stored = seals.seal("whsec_canary", "wh_one")
    assert "canary" not in stored
    assert stored != seals.seal("whsec_canary", "wh_one"), "each sealing is another"
    assert seals.open(stored, "wh_one") == "whsec_canary"
    for other, name, text in (
        (WebhookSeals("j" * 32), "wh_one", stored),
        (seals, "wh_two", stored),
        (seals, "wh_one", stored[:-4]),
        (seals, "wh_one", "whsec_never-sealed"),
        (seals, "wh_one", "sealed1:"),
        (NoKey(), "wh_one", stored),
    ):
        with pytest.raises(SealError):
            other.open(text, name)
    with pytest.raises(SealError):
        NoKey().seal("whsec_canary", "wh_one")


def test_the_database_has_no_secret_of_a_webhook_that_was_added_or_rotated(tmp_path: Path) -> None:
    own = make_own_service(tmp_path)
    own.operator.environ |= {"WEBHOOKS": token_hex(32)}
    secrets = {}
    for number, words in enumerate((["add", URL], ["rotate", "ID"])):
        known = find_id(own)
        words = [known if word == "ID" else word for word in words]
        done = own.command("webhook", *words, "--webhook-key", "env:WEBHOOKS")
        assert done.code == 0, done
        secrets[f"secret {number}"] = done.out.strip().removeprefix("whsec_").encode()
    files = sorted(own.operator.here.glob("service.db*"))
    assert [found for each in files for found in Detector(secrets).find(each.read_bytes())] == []

    running = OwnRunning(own)
    (endpoint,) = endpoints(running.store)
    opened = open_secrets(endpoint, WebhookSeals(own.operator.environ["WEBHOOKS"]))
    running.close()
    kept = [opened.previous_secret, opened.secret]
    assert [f"whsec_{each.decode()}" for each in secrets.values()] == kept


def find_id(own: OwnService) -> str:
    with closing(sqlite3.connect(own.operator.here / "service.db")) as database:
        found = database.execute("SELECT id FROM webhooks").fetchall()
    return found[0][0] if found else ""


def test_what_is_due_for_an_endpoint_is_kept_while_the_key_is_missing(tmp_path: Path) -> None:
    """A server that was started before there was an endpoint has no key for it."""
    own = make_own_service(tmp_path / "service")
    own.operator.environ |= {"WEBHOOKS": token_hex(32)}
    with own.running():
        added = own.command("webhook", "add", URL, "--webhook-key", "env:WEBHOOKS")
        assert added.code == 0, added
        client = own.client(tmp_path / "client")
        code = client.sealpipe("share", "-f", "P=text:x", "--output", "json").json["short_code"]
        assert client.sealpipe("shares", "expire", code, "--yes").code == 0
        rotated = client.sealpipe(
            *["tools", "call", "rotate_webhook_secret", "--print"],
            *["--param", f"webhook_id=text:{find_id(own)}"],
        )
        assert "operator" in rotated.out + rotated.err
    listed = own.command("webhook", "list", "--output", "json").json
    assert listed["webhooks"][0]["deliveries"] == {"waiting": 1}


def test_the_list_says_why_a_delivery_was_not_sent(tmp_path: Path) -> None:
    own = make_own_service(tmp_path)
    own.operator.environ |= {"WEBHOOKS": token_hex(32)}
    assert own.command("webhook", "add", URL, "--webhook-key", "env:WEBHOOKS").code == 0
    running = OwnRunning(own)
    with open_database(own.address).write() as transaction:
        transaction.change("queue", webhook_id=find_id(own), event=b"{}")
    row = running.store.lease_delivery()
    assert row is not None
    why = "not sent: 10.0.0.7 is not public"
    assert running.store.settle_delivery(row["number"], why, "waiting", 10.0)
    running.close()
    told = f"{URL}\t1 waiting; last answer: {why}"
    assert told in own.command("webhook", "list").out
    (listed,) = own.command("webhook", "list", "--output", "json").json["webhooks"]
    assert (listed["deliveries"], listed["last_answer"]) == ({"waiting": 1}, why)
