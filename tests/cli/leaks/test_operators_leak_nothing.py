"""What the operator of a service makes goes to stdout, once, and nowhere else: into no argument, no
file or table, and to no process that serves.
"""

from __future__ import annotations

import base64
import json
import os
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from secrets import token_hex

import httpx
import pytest

from sealpipe.wire import keys, tokens
from sealpipe.wire.link import decode_fragment
from sealpipe_rehearsal.people import LinkRefusedError, Recipient, Submitter
from support.commands import SEALPIPE
from support.leaks import Detector, Found
from support.own_service import OwnService, list_workers, make_own_service, stop
from support.strace import Watched, watch
from support.terminal import Terminal

CREDENTIAL = re.compile(r"svc_sk_live_[\w-]{16}\.([\w-]{43})(?:\.([\w-]{43}))?")
HOUR = 3600


def find_parts(text: str) -> dict[str, bytes]:
    """Return the secret parts of a credential in a text, and what follows from them."""
    found = CREDENTIAL.search(text)
    assert found, text
    parts = {"auth part": found[1], **({"custody part": found[2]} if found[2] else {})}
    secrets = {name: part.encode() for name, part in parts.items()}
    for name, part in parts.items():
        secrets[f"{name}, decoded"] = base64.urlsafe_b64decode(f"{part}=")
    if found[2]:
        pair = keys.from_custody_secret(found[2])
        secrets |= {"custody seed": bytes(pair.seed), "custody scalar": bytes(pair.scalar)}
    return secrets


def find_outside(watched: Watched, shown: str, secrets: dict[str, bytes]) -> list[Found]:
    """Return where secrets stand besides stdout, where `shown` stands once."""
    detector = Detector(secrets)
    found: list[Found] = []
    for place, data in watched.places():
        if place == "stdout":
            assert data.count(shown.encode()) == 1
            data = data.replace(shown.encode(), b"")
        found += detector.find(data, place)
    return sorted(found)


@pytest.mark.parametrize("output", ["text", "json"])
def test_a_credential_that_init_makes_is_on_stdout_and_nowhere_else(
    bare: Terminal, output: str
) -> None:
    where = ["--database", "sqlite:///service.db", "--public-url", "http://127.0.0.1:8080"]
    watched = watch(bare, [*SEALPIPE, "server", "init", *where, "--output", output])
    assert watched.done.code == 0, watched.done
    assert any("service.db" in name for name in watched.left)
    found = CREDENTIAL.search(watched.done.out)
    assert found
    assert find_outside(watched, found[0], find_parts(found[0])) == []
    assert watched.executed == []


@pytest.mark.parametrize("words", [[], ["--custody", "account"], ["--custody", "none"]])
def test_a_key_is_on_stdout_and_nowhere_else(tmp_path: Path, words: list[str]) -> None:
    own = make_own_service(tmp_path)
    command = [*SEALPIPE, "server", "key", "create", *words, "--database", own.database]
    watched = watch(own.operator, command)
    assert watched.done.code == 0, watched.done
    shown = watched.done.out.strip()
    assert find_outside(watched, shown, find_parts(shown)) == []
    # What is there already is no file that is left: the tables are searched, too.
    assert search(own, find_parts(shown)) == []


@pytest.mark.parametrize("output", ["text", "json"])
def test_a_webhooks_secret_is_on_stdout_and_nowhere_else_and_its_key_nowhere(
    tmp_path: Path, output: str
) -> None:
    own = make_own_service(tmp_path)
    own.operator.environ["WEBHOOKS"] = key = token_hex(32)
    added = own.command("webhook", "add", "https://a.example", "--webhook-key", "env:WEBHOOKS")
    assert added.code == 0, added
    named = own.command("webhook", "list", "--output", "json").json["webhooks"][0]["id"]
    where = ["--database", own.database, "--webhook-key", "env:WEBHOOKS", "--output", output]
    command = [*SEALPIPE, "server", "webhook", "rotate", named, *where]
    watched = watch(own.operator, command)
    assert watched.done.code == 0, watched.done
    found = re.search(r"whsec_([\w-]{43})", watched.done.out)
    assert found
    secrets = {
        "secret": found[1].encode(),
        "secret, decoded": base64.urlsafe_b64decode(f"{found[1]}="),
        "key": key.encode(),
        "key, decoded": bytes.fromhex(key),
    }
    assert find_outside(watched, found[1], secrets) == []
    assert search(own, secrets) == []


def test_a_custody_secret_that_a_client_makes_is_on_stdout_and_never_at_the_service(
    bare: Terminal, tmp_path: Path
) -> None:
    watched = watch(bare, [*SEALPIPE, "custody", "new"])
    assert watched.done.code == 0, watched.done
    part, public_key = watched.done.out.split()
    secrets = {"custody part": part.encode(), "decoded": base64.urlsafe_b64decode(f"{part}=")}
    assert find_outside(watched, part, secrets) == []

    own = make_own_service(tmp_path / "service")
    made = own.command("key", "create", "--scope", "all", "--custody-public-key", public_key)
    assert made.code == 0, made
    two_parts = made.out.strip()
    assert two_parts.count(".") == 1
    with own.running():
        client = own.client(tmp_path / "client")
        client.environ["SEALPIPE_API_KEY"] = f"{two_parts}.{part}"
        link = client.sealpipe("request", "-a", "P", "--receipt", "r.json").out.strip()
        Submitter().submit(link, {"P": "canary"})
        collected = client.sealpipe("collect", "r.json")
        assert collected.code == 0, collected
        assert "canary" in collected.out
    assert search(own, secrets) == []


def search(own: OwnService, secrets: dict[str, bytes]) -> list[Found]:
    """Search the files of the database."""
    detector = Detector(secrets)
    files = sorted(own.operator.here.glob("service.db*"))
    assert files
    return [found for file in files for found in detector.find(file.read_bytes(), file.name)]


def test_what_serves_has_the_databases_address_in_no_argument_and_no_variable(
    tmp_path: Path,
) -> None:
    own = make_own_service(tmp_path)
    own.operator.environ |= {"DBURL": own.database, "SEALPIPE_SERVER_DATABASE": own.database}
    own.database = "env:DBURL"
    process = own.start("--workers", "2")
    try:
        (told,) = {
            tuple(Path(f"/proc/{each}/{name}").read_bytes() for name in ("cmdline", "environ"))
            for each in list_workers(process)[:1]
        }
        assert b"service.db" not in b"".join(told)
        assert b"SEALPIPE_" not in told[1]
    finally:
        assert stop(process) == 0


def test_a_service_keeps_and_tells_nothing_of_what_it_is_not_to_know(tmp_path: Path) -> None:
    """Of what goes through it stays what its owner is shown, while that works; the log is empty of
    it, and an hour after the end of a share its ciphertext is gone.
    """
    own = make_own_service(tmp_path / "service")
    client = own.client(tmp_path / "client")
    process = own.start("--workers", "2")
    try:
        title, value, passcode, wrong, answer, agent = (token_hex(16) for _ in range(6))
        shared = client.sealpipe(
            *["share", "-f", "P=env:VALUE", "--title", title],
            *["--passcode-from", "env:PASS", "--views", "2", "--notify-on", "viewed,denied"],
            VALUE=value,
            PASS=passcode,
        )
        assert shared.code == 0, shared
        link = shared.out.strip()
        with pytest.raises(LinkRefusedError):
            Recipient().open_link(link, wrong)
        assert Recipient().open_link(link, passcode)
        code = link.rpartition("/")[2].partition("#")[0]
        ask_oddly(own, code, agent)
        ciphertext = read_ciphertext(own)
        assert client.sealpipe("shares", "expire", code, "--yes").code == 0
        made = client.sealpipe("request", "-a", "P", "--title", title)
        Submitter().submit(made.out.strip(), {"P": answer})
        secrets = {
            **find_parts(own.exports["SEALPIPE_API_KEY"]),
            "content key": base64.urlsafe_b64decode(link.partition("#1")[2] + "="),
            "passcode": passcode.encode(),
            "wrong passcode": wrong.encode(),
            "value": value.encode(),
            "submission": answer.encode(),
        }
        assert search(own, secrets) == []
        assert search(own, {"ciphertext": ciphertext}), "until then it is there to be found"
        move_clock(own, HOUR + 1)
        assert own.command("purge", "--older-than", "30d").code == 0  # and what time does
        assert search(own, {"ciphertext": ciphertext}) == []
    finally:
        os.kill(process.pid, 15)
        out, err = process.communicate(timeout=60)
    told = (out + err).encode()
    seen = {
        "access token": token_of(link).encode(),
        "agent": agent.encode(),
        "address": b"127.0.0.1",
    }
    everything = {**secrets, **seen, "ciphertext": ciphertext, "title": title.encode()}
    assert Detector(everything).find(told) == set()
    assert code not in out + err
    lines = [json.loads(line) for line in err.splitlines()]
    assert {line["message"] for line in lines} == {"request", "stopped"}
    asked = {(line["method"], line["route"]) for line in lines if line["message"] == "request"}
    assert asked >= {
        ("POST", "/v1/shares"),
        ("DELETE", "/v1/shares/{shortCode}"),
        ("GET", "/s/{shortCode}"),
        ("POST", "/links/shares/{shortCode}/open"),
        ("POST", "/links/requests/{shortCode}/submit"),
        ("GET", "other"),
    }


def token_of(link: str) -> str:
    return tokens.access_token(decode_fragment(link.partition("#")[2]))


def ask_oddly(own: OwnService, code: str, agent: str) -> None:
    """Ask for what there is and what there is not, as strangers do."""
    with httpx.Client(
        base_url=own.public_url, headers={"user-agent": agent}, trust_env=False
    ) as stranger:
        for path in (f"/s/{code}", f"/s/{agent}", f"/{agent}?{agent}", f"/v1/shares/{agent}"):
            stranger.get(path, headers={"authorization": f"Bearer svc_sk_live_{agent}"})


def read_ciphertext(own: OwnService) -> bytes:
    with closing(sqlite3.connect(own.operator.here / "service.db")) as database:
        ((data,),) = database.execute("SELECT data FROM shares").fetchall()
    return str(data).encode()


def move_clock(own: OwnService, seconds: float) -> None:
    """Let time pass for a service, which has no statement that does so."""
    with closing(sqlite3.connect(own.operator.here / "service.db")) as database:
        database.execute("UPDATE clock SET offset_seconds = offset_seconds + ?", [seconds])
        database.commit()
