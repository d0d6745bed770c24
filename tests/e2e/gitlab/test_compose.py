"""The compose file of a service of one's own, brought up by a real engine as its pages say.

`docker compose` is Debian's `docker-compose`, and PostgreSQL is Debian's, in an image of the name
that the file asks for.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from e2e.gitlab.engine import Engine
from e2e.gitlab.gitlab_ci import BASE, SERVER_IMAGE
from sealpipe_rehearsal.people import Recipient, Submitter
from sealpipe_service.database import versions
from support.own_service import read_exports, wait_for
from support.parts import ROOT, find_postgres, missing, program
from support.ports import free_port
from support.terminal import Terminal

COMPOSE = ROOT / "containers/server/compose.yaml"
(NETWORK,) = yaml.safe_load(COMPOSE.read_text())["networks"]["default"]["ipam"]["config"]
OURS, DATABASES = "sealpipe-server:latest", "postgres:17-bookworm"
"""What the file calls the images."""

POSTGRES = {
    "Dockerfile": f"""
FROM {BASE}
COPY files /
COPY libraries /libraries
RUN cp --no-clobber /libraries/* /usr/lib/ && ldconfig \\
    && useradd --system postgres && install -d -o postgres /var/run/postgresql \\
    && ln -s /usr/lib/postgresql/*/bin/* /usr/local/bin/
COPY start /
ENV PGDATA=/var/lib/postgresql/data
STOPSIGNAL SIGINT
ENTRYPOINT ["/bin/sh", "/start"]
""",
    "start": """
set -eu
if [ "$(id -u)" = 0 ]; then
  install -d -o postgres -g postgres -m 0700 "$PGDATA"
  exec setpriv --reuid=postgres --regid=postgres --init-groups sh "$0" "$@"
fi
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  initdb --encoding=UTF8 --auth=trust --username="$POSTGRES_USER" --pwfile="$POSTGRES_PASSWORD_FILE"
  echo host all all all scram-sha-256 >>"$PGDATA/pg_hba.conf"
  echo "listen_addresses = '*'" >>"$PGDATA/postgresql.conf"
  pg_ctl --wait --options=-clisten_addresses= start
  createdb --username="$POSTGRES_USER" "$POSTGRES_USER"
  pg_ctl --wait stop
fi
exec "$@"
""",
}
"""This machine's, which starts as PostgreSQL's own image does: not as root, and with the user, the
password and the database that its variables name.
"""

NEXT = "0002"
RELEASE = {
    "Dockerfile": f"""
FROM {SERVER_IMAGE}
USER 0
COPY version.py /
RUN cd /opt/sealpipe/lib/python3*/site-packages/sealpipe_service/database \\
    && mv /version.py migrations/versions/v{NEXT}.py \\
    && sed -i 's/^VERSION = "{versions.VERSION}"$/VERSION = "{NEXT}"/' versions.py \\
    && python3 -m compileall -q -f --invalidation-mode unchecked-hash versions.py
USER 10001:0
""",
    "version.py": f"""
from alembic import op

revision = "{NEXT}"
down_revision = "{versions.VERSION}"


def upgrade() -> None:
    op.execute("CREATE TABLE later (name TEXT)")
""",
}
"""A next release, with one more version of the tables: there is none yet."""
UPGRADED = f"upgraded from {versions.VERSION} to version {NEXT}".encode()

DOCKER = """#!/bin/sh
if [ "$1" = compose ]; then shift; exec docker-compose "$@"; fi
exec {} "$@"
"""
"""`docker compose` is a plugin, which Debian does not have."""


def commands(page: str, title: str) -> list[str]:
    """The blocks of commands of a page's section."""
    text = (ROOT / "docs/how-to" / page).read_text(encoding="utf-8")
    section = text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    return re.findall(r"^```sh\n(.+?)^```", section, re.DOTALL | re.MULTILINE)


BEGIN = commands("your-own-service.md", "With containers")[-1]
BACK_UP, RESTORE = commands("operate-your-own-service.md", "Back up and restore with compose")
UP = BEGIN.splitlines()[-1]
LONG = 600
"""Seconds that nothing here takes, however busy the machine is."""
HIDDEN = 0o077
"""The umask of an operator whose files nobody else can read."""


class Operator:
    """Who has the machine with the engine, and a clone."""

    def __init__(self, place: Path, engine: Engine) -> None:
        self._terminal = Terminal(place)
        folder = self._terminal.here / "containers/server"
        folder.mkdir(parents=True)
        shutil.copy(COMPOSE, folder)
        docker = self._terminal.file("bin/docker", DOCKER.format(program("docker")), 0o755)
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        tools = [docker.parent, Path(program("docker-compose")).parent, os.defpath]
        self._terminal.environ |= {
            **engine.environ,
            "PATH": os.pathsep.join(map(str, tools)),
            "SEALPIPE_SERVER_PUBLIC_URL": self.url,
            "SERVER_PORT": str(port),
        }

    def type(self, script: str) -> str:
        """Type commands, which begin in the clone or in the file's folder; what goes to stdout."""
        where = "" if script.startswith("cd ") else "cd containers/server\n"
        typed = script.replace("https://secrets.example.com", self.url)
        done = subprocess.run(
            ["sh", "-eu", "-c", f"umask {HIDDEN:o}\n{where}{typed}"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env=self._terminal.environ,
            cwd=self._terminal.here,
            timeout=LONG,
            check=False,
        )
        assert done.returncode == 0, (script, done)
        return done.stdout

    def password(self) -> str:
        return (self._terminal.here / "containers/server/secrets/database_password").read_text()


@contextmanager
def turn() -> Iterator[None]:
    """The file's network can be there once a machine: other runs of this test wait."""
    with (Path(tempfile.gettempdir()) / "sealpipe-compose.lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        words = ["ip", "-json", "route", "show", "root", NETWORK["subnet"]]
        if json.loads(subprocess.check_output(words)):
            missing(f"the network {NETWORK['subnet']} is this machine's own")
        yield


def copy_postgres(place: Path) -> None:
    """This machine's PostgreSQL, and the libraries that its programs want."""
    programs = find_postgres()
    parts = (programs.parent, Path("/usr/share/postgresql", programs.parent.name))
    for each in parts:
        skipped = shutil.ignore_patterns("bitcode", "llvm*")
        shutil.copytree(each, place / "files" / each.relative_to("/"), ignore=skipped)
    told = subprocess.check_output(["ldd", *programs.glob("*")], text=True)
    (place / "libraries").mkdir()
    for name, path in re.findall(r"^\t(\S+) => (/\S+)", told, re.MULTILINE):
        shutil.copy(path, place / "libraries" / name)


def build(engine: Engine, place: Path, files: dict[str, str], tag: str) -> None:
    place.mkdir(exist_ok=True)
    for name, text in files.items():
        (place / name).write_text(text.lstrip())
    engine.client.images.build(path=str(place), tag=tag, network_mode="host", rm=True)


@pytest.fixture
def operator(engine: Engine, tmp_path: Path) -> Iterator[Operator]:
    copy_postgres(tmp_path / "postgres")
    build(engine, tmp_path / "postgres", POSTGRES, DATABASES)
    engine.client.images.get(SERVER_IMAGE).tag(OURS)
    made = Operator(tmp_path / "operator", engine)
    with turn():
        try:
            yield made
        finally:
            made.type("docker compose down --volumes --timeout 1")


def test_a_service_is_begun_used_restarted_upgraded_restored_and_ended(
    engine: Engine, operator: Operator, tmp_path: Path
) -> None:
    exports = read_exports(operator.type(BEGIN))
    client = Terminal(tmp_path / "client", **exports)
    wait_until_ready(operator)
    link = share(client)
    assert opened(link) == "canary"
    assert collected(client, ask(client)) == "an answer"
    shown = [each.attrs for each in engine.client.containers.list(all=True)]
    assert operator.password() not in json.dumps(shown)

    operator.type("docker compose restart")
    wait_until_ready(operator)
    assert opened(link) == "canary"
    operator.type("docker compose down")
    operator.type(UP)
    wait_until_ready(operator)
    assert opened(link) == "canary"

    operator.type(BACK_UP)
    build(engine, tmp_path / "release", RELEASE, OURS)
    with watching(operator) as answered:
        operator.type(UP)
    wait_until_ready(operator)
    assert answered.until >= read_end_of(tables(engine)), "the old one goes on until then"
    assert UPGRADED in tables(engine).logs()

    assert opened(share(client)) == "canary"
    assert count_shares(client) == 2
    operator.type(RESTORE)
    wait_until_ready(operator)
    assert tables(engine).logs().count(UPGRADED) == 2, "the copy was of the version before"
    assert count_shares(client) == 1
    assert opened(link) == "canary"


def tables(engine: Engine) -> Any:
    """The container of the step that makes and upgrades the tables."""
    label = "com.docker.compose.service=tables"
    (found,) = engine.client.containers.list(all=True, filters={"label": label})
    return found


def read_end_of(container: Any) -> float:
    """When a container ended, in seconds since 1970."""
    return datetime.fromisoformat(container.attrs["State"]["FinishedAt"]).timestamp()


class Answered:
    """Until when every call was answered."""

    until = math.inf


@contextmanager
def watching(operator: Operator) -> Iterator[Answered]:
    """Call the service again and again."""
    answered, is_over = Answered(), threading.Event()

    def watch() -> None:
        while not is_over.wait(0.02):
            if not is_ready(operator):
                answered.until = min(answered.until, time.time())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield answered
    finally:
        is_over.set()
        watcher.join()


def wait_until_ready(operator: Operator) -> None:
    wait_for(lambda: is_ready(operator), LONG)


def is_ready(operator: Operator) -> bool:
    try:
        return httpx.get(f"{operator.url}/readyz", trust_env=False, timeout=60).status_code == 200
    except httpx.TransportError:
        return False


def share(client: Terminal) -> str:
    done = client.sealpipe("share", "-f", "Password=env:VALUE", "--views", "9", VALUE="canary")
    assert done.code == 0, done
    return done.out.strip()


def opened(link: str) -> str:
    (field,) = Recipient().open_link(link)
    return str(field.value)


def count_shares(client: Terminal) -> int:
    return int(client.sealpipe("stats", "--output", "json").json["shares"]["active"])


def ask(client: Terminal) -> str:
    done = client.sealpipe("request", "-a", "Password", "--receipt", "asked.json")
    assert done.code == 0, done
    Submitter().submit(done.out.strip(), {"Password": "an answer"})
    return "asked.json"


def collected(client: Terminal, receipt: str) -> str:
    done = client.sealpipe("collect", receipt, "--output", "json")
    assert done.code == 0, done
    ((field,),) = [each["fields"] for each in done.json["submissions"]]
    return str(field["value"])
