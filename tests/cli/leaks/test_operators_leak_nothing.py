"""What the operator of a service makes goes to stdout, once, and nowhere else: into no argument, no
file or table, and to no process that serves.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from secrets import token_hex

import httpx
import psycopg
import pytest

from sealpipe.wire import keys, tokens
from sealpipe.wire.link import decode_fragment
from sealpipe_rehearsal.people import LinkRefusedError, Recipient, Submitter
from support.commands import SEALPIPE
from support.leaks import Detector, Found, encodings
from support.own_service import OwnRunning, OwnService, list_workers, make_own_service, stop
from support.parts import Postgres, run_postgres
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
    """Search the files of the database.

    Its journal is read first, from where what is written goes into the file at any moment.
    """
    detector = Detector(secrets)
    files = sorted(own.operator.here.glob("service.db*"), reverse=True)
    assert files
    read = [(file.read_bytes(), file.name) for file in files]
    return [found for data, name in read for found in detector.find(data, name)]


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


STORES = ("SQLite", "PostgreSQL")
KEEPING_ALL = ("autovacuum=off", "wal_recycle=off")
"""A PostgreSQL that lets go of nothing by itself, and of what is in its log when it can."""


class Kept:
    """The files of a service's database, whichever it is."""

    def __init__(self, own: OwnService, server: Postgres | None) -> None:
        self._own = own
        self._server = server

    def find(self, secrets: dict[str, bytes]) -> set[Found]:
        """Search all of them: of PostgreSQL its data, its write-ahead log and what it says."""
        if self._server is None:
            return set(search(self._own, secrets))
        self._tell("CHECKPOINT")  # what is in memory only is written
        files = [file for file in self._server.folder.rglob("*") if file.is_file()]
        assert len(files) > 500
        windows = dict(_windows(secrets))
        kept = ((file.name, file.read_bytes()) for file in files)
        return {
            Found(*windows[window], name)
            for name, data in kept
            for window in windows
            if window in data
        }

    def let_go(self) -> None:
        """Do what an operator of PostgreSQL can do against what ended rows leave behind."""
        if self._server is not None:
            for each in ("VACUUM FULL shares", "SELECT pg_switch_wal()", "CHECKPOINT"):
                self._tell(each)

    def _tell(self, text: str) -> None:
        assert self._server is not None
        with psycopg.connect(self._server.address, autocommit=True) as connection:
            connection.execute(text.encode())


def _windows(secrets: dict[str, bytes]) -> Iterator[tuple[bytes, tuple[str, str]]]:
    """Give the beginning and the end of each secret in the encodings of a database."""
    for name, value in secrets.items():
        for encoding, encoded, size in encodings(value):
            if encoding.startswith(("raw", "base64", "hex", "UTF-16")):
                for window in (encoded[:size], encoded[-size:]):
                    yield window, (name, encoding)


@pytest.fixture(params=STORES)
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[OwnService, Kept]]:
    """A service on either store, and the files of its database."""
    with ExitStack() as opened:
        server = None
        if request.param == "PostgreSQL":
            server = opened.enter_context(run_postgres(*KEEPING_ALL))
        address = None if server is None else server.address
        own = make_own_service(tmp_path / "service", address)
        yield own, Kept(own, server)


def test_a_service_keeps_and_tells_nothing_of_what_it_is_not_to_know(
    kept: tuple[OwnService, Kept], tmp_path: Path
) -> None:
    """Of what goes through it stays what its owner is shown, while that works; the log is empty of
    it, and an hour after the end of a share its ciphertext is gone: from PostgreSQL's files once
    they were cleared of dead rows.
    """
    own, files = kept
    client = own.client(tmp_path / "client")
    own.operator.environ["WEBHOOKS"] = webhook_key = token_hex(32)
    hook = own.command(
        *("webhook", "add", "https://hooks.invalid", "--webhook-key", "env:WEBHOOKS")
    )
    webhook_secret = re.search(r"whsec_([\w-]{43})", hook.out)
    assert webhook_secret, hook
    process = own.start("--workers", "2", "--webhook-key", "env:WEBHOOKS")
    try:
        value, passcode, wrong, answer, agent = (token_hex(16) for _ in range(5))
        title = f"{token_hex(16)}@{token_hex(8)}.example"
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
        with closing(OwnRunning(own)) as running:
            (row,) = running.read("SELECT data FROM shares")
        ended = {"ciphertext": str(row["data"]).encode(), "title": title.encode()}
        content_key = decode_fragment(link.partition("#")[2])
        assert client.sealpipe("shares", "expire", code, "--yes").code == 0
        made = client.sealpipe("request", "-a", "P", "--title", f"for {answer[:4]}")
        Submitter().submit(made.out.strip(), {"P": answer})
        secrets = {
            **find_parts(own.exports["SEALPIPE_API_KEY"]),
            "content key": content_key,
            "access token": tokens.access_token(content_key).encode(),
            "passcode": passcode.encode(),
            "verifier": tokens.passcode_verifier(passcode).encode(),
            "wrong passcode": wrong.encode(),
            "wrong verifier": tokens.passcode_verifier(wrong).encode(),
            "value": value.encode(),
            "submission": answer.encode(),
            "webhook secret": webhook_secret[1].encode(),
            "webhook secret, decoded": base64.urlsafe_b64decode(f"{webhook_secret[1]}="),
            "webhook key": webhook_key.encode(),
            "webhook key, decoded": bytes.fromhex(webhook_key),
        }
        assert files.find(secrets) == set()
        there = {each.secret for each in files.find(ended)}
        assert there == set(ended), "until then it is there to be found"
        with closing(OwnRunning(own)) as running:
            running.advance(HOUR + 1)
        assert own.command("purge", "--older-than", "30d").code == 0  # and what time does
        if own.address.startswith("postgresql:"):
            assert files.find(ended), "PostgreSQL keeps dead rows, and its log: the page says so"
        files.let_go()
        assert files.find({**secrets, **ended}) == set()
    finally:
        os.kill(process.pid, 15)
        out, err = process.communicate(timeout=60)
    told = (out + err).encode()
    seen = {"agent": agent.encode(), "address": b"127.0.0.1"}
    assert Detector({**secrets, **ended, **seen}).find(told) == set()
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


def ask_oddly(own: OwnService, code: str, agent: str) -> None:
    """Ask for what there is and what there is not, as strangers do."""
    with httpx.Client(
        base_url=own.public_url, headers={"user-agent": agent}, trust_env=False
    ) as stranger:
        for path in (f"/s/{code}", f"/s/{agent}", f"/{agent}?{agent}", f"/v1/shares/{agent}"):
            stranger.get(path, headers={"authorization": f"Bearer svc_sk_live_{agent}"})
