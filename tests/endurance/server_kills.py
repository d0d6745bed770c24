"""Kill the processes of a service of one's own with SIGKILL under load, again and again.

Callers create shares and open those of one view, and make each call again until it is answered.
Meanwhile a worker is killed at a random moment; now and then the process that starts them, which is
then started again; with --kill-postgres PostgreSQL with all its processes, too. After it:

- each create that was answered is stored once, and its replay is the same bytes, whichever process
  answers;
- no share of one view opened twice;
- a key was in flight (106) for two seconds at most after its process was killed;
- no credential's secrets, no access token and no title is in what the processes said; of the
  secrets and tokens the database and its journals know nothing either;
- an hour after their end no ciphertext is in the files of an SQLite database.

Prints figures; ends with 1 where the promise broke.

    python tests/endurance/server_kills.py [--kills 300] [--seed 0] [--workers 4] [--callers 6]
        [--store sqlite|postgresql] [--kill-postgres]
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import random
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import httpx

from sealpipe.secret import Secret
from sealpipe_service.database.access import Row
from sealpipe_service.database.opening import file_of
from support.own_service import OwnRunning, OwnService, list_workers, make_own_service, wait_for
from support.parts import Postgres, run_postgres

MASTER_EACH, POSTGRES_EACH = 10, 15
IN_FLIGHT_SECONDS = 2.0
HOUR = 3600.0


@dataclass
class Made:
    """A create, and what it was first answered."""

    key: str
    body: bytes
    token: str
    data: str
    title: str
    answer: bytes = b""
    opened: int = 0


@dataclass
class Load:
    """Callers that never give up, and what they were answered."""

    own: OwnService
    bearer: str
    chance: random.Random
    made: list[Made] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    figures: Counter[str] = field(default_factory=Counter)
    longest_in_flight: float = 0.0
    is_over: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def running(self, callers: int) -> Iterator[None]:
        """Let some callers call until the block ends, and their last calls be answered."""
        seeds = [self.chance.random() for _ in range(callers)]
        threads = [threading.Thread(target=self._call, args=(seed,)) for seed in seeds]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self.is_over.set()
            for thread in threads:
                thread.join()

    def _call(self, seed: float) -> None:
        chance = random.Random(seed)  # noqa: S311 - what is called next
        mine: list[Made] = []
        with httpx.Client(base_url=self.own.public_url, trust_env=False, timeout=30) as http:
            while not self.is_over.is_set():
                what = chance.random()
                if what < 0.5 or not mine:
                    mine.append(self._create(http))
                elif what < 0.75:
                    self.replay(http, chance.choice(mine))
                else:
                    self._open(http, chance.choice(mine))

    def _create(self, http: httpx.Client) -> Made:
        made = Made(
            key=secrets.token_hex(16),
            body=b"",
            token=secrets.token_urlsafe(32),
            data=base64.b64encode(secrets.token_bytes(300)).decode(),
            title=f"canary-{secrets.token_hex(8)}",
        )
        members = {
            "encryption_type": "e2ee-aes256-gcm",
            "data": made.data,
            "access_token": made.token,
            "title": made.title,
            "access_counts_left": 1,
        }
        made.body = json.dumps(members).encode()
        answer = self._post(http, made)
        self.figures["replayed at once" if answer.status_code == 200 else "created"] += 1
        made.answer = answer.content
        self.made.append(made)
        return made

    def replay(self, http: httpx.Client, made: Made) -> None:
        """Make an answered create again."""
        answer = self._post(http, made)
        if (answer.status_code, answer.content) != (200, made.answer):
            self.wrong.append(f"a replay is {answer.status_code} with other bytes")
        self.figures["replays"] += 1

    def _post(self, http: httpx.Client, made: Made) -> httpx.Response:
        """Create, as often as it takes to be answered."""
        headers = {
            "Authorization": self.bearer,
            "Idempotency-Key": made.key,
            "Content-Type": "application/json",
        }
        since: float | None = None
        while True:
            try:
                answer = http.post("/v1/shares", content=made.body, headers=headers)
            except httpx.TransportError:
                self.figures["calls without an answer"] += 1
                since = None  # what is in flight from here on is this call
                time.sleep(0.02)
                continue
            if answer.status_code == 409 and answer.json()["error_code"] == 106:
                since = time.monotonic() if since is None else since
                self.longest_in_flight = max(self.longest_in_flight, time.monotonic() - since)
                self.figures["in flight"] += 1
            elif answer.status_code in (200, 201):
                return answer
            elif answer.status_code < 500:
                self.wrong.append(f"a create is {answer.status_code}: {answer.text}")
                return answer
            else:
                self.figures[f"answers of {answer.status_code}"] += 1
            time.sleep(0.02)

    def _open(self, http: httpx.Client, made: Made) -> None:
        """Open it once: nobody knows whether a call without an answer has used the view."""
        code = json.loads(made.answer)["short_code"]
        with suppress(httpx.TransportError):
            answer = http.post(f"/links/shares/{code}/open", json={"access_token": made.token})
            if answer.status_code == 200:
                made.opened += 1
                self.figures["opened"] += 1


class Killer:
    """The service's machine, whose processes are killed."""

    def __init__(self, own: OwnService, workers: int, server: Postgres | None) -> None:
        self._own, self._workers, self._server = own, workers, server
        self.said: list[str] = []
        self.process, self._reader = self._start()

    def _start(self) -> tuple[subprocess.Popen[str], threading.Thread]:
        process = self._own.start("--workers", str(self._workers))
        # Nobody waits for a reader of what it says.
        reader = threading.Thread(target=lambda: self.said.extend(process.stderr or ()))
        reader.start()
        return process, reader

    def kill(self, number: int, chance: random.Random) -> str:
        """Kill something, and return what it was."""
        if self._server is not None and number % POSTGRES_EACH == 0:
            self._server.kill()
            self._server.start("fsync=on")
            return "PostgreSQL"
        if number % MASTER_EACH == 0:
            workers = list_workers(self.process)
            self.process.kill()
            self.process.wait()
            wait_for(lambda: not any(map(_is_there, workers)))
            self._reader.join()
            self.process, self._reader = self._start()
            return "masters"
        if workers := list_workers(self.process):
            with suppress(ProcessLookupError):
                os.kill(chance.choice(workers), signal.SIGKILL)
        return "workers"

    def stop(self) -> None:
        """Stop it in good order."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(120)
        self._reader.join()


def _is_there(process: int) -> bool:
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--callers", type=int, default=6)
    parser.add_argument("--store", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--kill-postgres", action="store_true")
    options = parser.parse_args()
    began = time.monotonic()
    chance = random.Random(options.seed)  # noqa: S311 - the moments of kills
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = None
        if options.store == "postgresql":
            server = stack.enter_context(run_postgres("fsync=on"))
        own = make_own_service(folder, None if server is None else server.address)
        admin = OwnRunning(own)
        admin.set_account(requests_per_minute=10_000_000)
        credential = admin.create_key()
        admin.close()
        load = Load(own, f"Bearer {credential.reveal().rpartition('.')[0]}", chance)
        killer = Killer(own, options.workers, server if options.kill_postgres else None)
        with load.running(options.callers):
            for number in range(1, options.kills + 1):
                before = len(load.made)
                wait_for(lambda: len(load.made) > before)  # noqa: B023
                time.sleep(chance.uniform(0, 0.3))
                load.figures[f"kills of {killer.kill(number, chance)}"] += 1
        with httpx.Client(base_url=own.public_url, trust_env=False, timeout=30) as http:
            for made in load.made:
                load.replay(http, made)
        killer.stop()
        wrong = [*load.wrong, *_check(load, own, killer, [credential, Secret(_of(own))])]
    for name, count in sorted(load.figures.items()):
        print(f"{count:7} {name}")
    print(f"{load.longest_in_flight:7.2f} s in flight at the longest")
    print(f"{time.monotonic() - began:7.0f} s")
    for text in sorted(set(_list_errors(killer.said))):
        print(f"an error was logged: {text}")
    for each in wrong[:20]:
        print(f"WRONG: {each}")
    return 1 if wrong else 0


def _list_errors(said: Sequence[str]) -> Iterator[str]:
    """Give what the log tells of errors that nothing was prepared for."""
    for line in said:
        if '"level": "error"' in line:
            told = json.loads(line)
            yield f"{told['message']}: {told.get('error')} at {told.get('at', [''])[-1]}"


def _of(own: OwnService) -> str:
    return own.exports["SEALPIPE_API_KEY"]


def _check(load: Load, own: OwnService, killer: Killer, credentials: list[Secret]) -> Iterator[str]:
    """Say what is wrong with what is stored, and with what was said."""
    if load.longest_in_flight > IN_FLIGHT_SECONDS:
        yield f"a key was in flight for {load.longest_in_flight:.1f} s"
    yield from (f"{made.title} opened {made.opened} times" for made in load.made if made.opened > 1)
    admin = OwnRunning(own)
    rows = _list(admin)
    stored = Counter(row["title"] for row in rows)
    yield from (
        f"{made.title} is stored {stored[made.title]} times"
        for made in load.made
        if stored[made.title] != 1
    )
    if len(rows) != len(load.made):
        yield f"{len(load.made)} creates were answered, and {len(rows)} shares are stored"
    _, ended, views = admin.store.stats("default")
    # A view whose answer was killed counts as used.
    if not load.figures["opened"] <= ended == sum(views.values()):
        yield f"{load.figures['opened']} opened, {ended} have ended, {views}"
    codes = {row["title"]: row["short_code"] for row in rows}
    for made in load.made:
        if codes.get(made.title) != json.loads(made.answer)["short_code"]:
            yield f"{made.title} was answered with another code"
    parts = [
        part for each in credentials for part in each.reveal().split("_sk_live_")[1].split(".")
    ]
    hidden = [part for part in parts if len(part) > 20] + [made.token for made in load.made]
    said = "".join(killer.said)
    titles = [made.title for made in load.made]
    yield from (f"{text[:6]}... was said" for text in [*hidden, *titles] if text in said)
    file = file_of(own.address)
    if file is not None:
        kept = _read(file)
        yield from (f"{text[:6]}... is in the database" for text in hidden if text.encode() in kept)
        yield from _check_ends(load, admin, file, rows)
    admin.close()


def _check_ends(load: Load, admin: OwnRunning, file: Path, rows: list[Row]) -> Iterator[str]:
    """End what is still open, let an hour pass, sweep: no ciphertext may be left."""
    for row in rows:
        admin.store.delete_share("default", row["short_code"], b"{}", lambda *_: False, _ignore)
    if not any(made.data.encode() in _read(file) for made in load.made):
        yield "no ciphertext was there before its end: the search finds nothing"
    admin.advance(HOUR)
    admin.store.sweep()
    admin.store.scrub()
    kept = _read(file)
    yield from (
        f"the ciphertext of {made.title} is there an hour after its end"
        for made in load.made
        if made.data.encode() in kept
    )


def _ignore() -> None:
    return None


def _list(admin: OwnRunning) -> list[Row]:
    return list(admin.read("SELECT title, short_code FROM shares"))


def _read(file: Path) -> bytes:
    return b"".join(each.read_bytes() for each in file.parent.glob(f"{file.name}*"))


if __name__ == "__main__":
    sys.exit(main())
