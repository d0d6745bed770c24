"""Kills processes of a service of one's own, and its PostgreSQL, while clients create, open and
replay.

What a client was answered is there after the last kill, whatever was killed; what it was not
answered is one share or none; a share of one view was opened once at most.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from support.own_service import OwnRunning, list_workers, make_own_service, wait_for
from support.parts import Postgres

TOKEN = "dG9rZW4tdG9rZW4tdG9rZW4tdG9rZW4tdG9rZW4tdG8"
BODY = {
    "data": "Y2lwaGVydGV4dA==" * 4,
    "access_token": TOKEN,
    "encryption_type": "e2ee-aes256-gcm",
    "access_counts_left": 1,
}
CLIENTS = 6


@dataclass
class Client:
    """Creates a share under a key until it is answered, then sometimes opens it, and so on."""

    origin: str
    bearer: str
    number: int
    answered: dict[str, bytes] = field(default_factory=dict)
    opened: Counter[str] = field(default_factory=Counter)
    figures: Counter[str] = field(default_factory=Counter)
    begun: str = ""

    def work(self, is_over: threading.Event) -> None:
        count = 0
        while not is_over.is_set():
            self.begun = f"{self.number}-{count}"
            with contextlib.suppress(httpx.HTTPError), httpx.Client(trust_env=False) as http:
                while not is_over.is_set() and self._step(http, self.begun):
                    count += 1
                    self.begun = f"{self.number}-{count}"

    def _step(self, http: httpx.Client, name: str) -> bool:
        """Whether the share is made, and what was to be done with it."""
        made = create(http, self.origin, self.bearer, name)
        self.figures[f"create {made.status_code}"] += 1
        if made.status_code not in (200, 201):
            assert made.status_code in (409, 429, 500, 502, 503), made.text
            time.sleep(0.05)
            return False
        self.answered[name] = made.content
        code = made.json()["short_code"]
        if len(self.answered) % 3 == 0:
            path = f"{self.origin}/links/shares/{code}/open"
            for _ in range(2):
                if http.post(path, json={"access_token": TOKEN}, timeout=30).status_code == 200:
                    self.opened[code] += 1
        return True


def create(http: httpx.Client, origin: str, bearer: str, name: str) -> httpx.Response:
    headers = {"Authorization": f"Bearer {bearer}", "Idempotency-Key": name}
    return http.post(f"{origin}/v1/shares", json=BODY, headers=headers, timeout=30)


def kill_while_serving(
    place: Path, server: Postgres | None, *, kills: int, seed: int = 0, workers: int = 4
) -> Counter[str]:
    """Kill processes, every tenth time PostgreSQL if there is one, and look what is there then.

    Returns figures. AssertionError where the promise is broken.
    """
    chance = random.Random(seed)  # noqa: S311 - the moments of kills
    own = make_own_service(place, None if server is None else server.address)
    running = OwnRunning(own)
    running.set_account(requests_per_minute=1_000_000)
    bearer = running.create_key().reveal().rpartition(".")[0]
    figures: Counter[str] = Counter()
    is_over = threading.Event()
    clients = [Client(own.public_url, bearer, number) for number in range(CLIENTS)]
    threads = [threading.Thread(target=each.work, args=(is_over,)) for each in clients]
    said: list[str] = []
    with own.running("--workers", str(workers)) as process:
        # Nobody waits for a reader of what it logs.
        threading.Thread(target=lambda: said.extend(process.stderr or ()), daemon=True).start()
        for each in threads:
            each.start()
        for number in range(kills):
            assert process.poll() is None, said[-20:]
            before = sum(len(each.answered) for each in clients)
            wait_for(lambda: sum(len(each.answered) for each in clients) > before)  # noqa: B023
            time.sleep(chance.uniform(0, 0.3))
            if server is not None and number % 10 == 9:
                server.kill()
                server.start()
                figures["kills of PostgreSQL"] += 1
            elif found := list_workers(process):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(chance.choice(found), signal.SIGKILL)
                    figures["kills of processes"] += 1
        is_over.set()
        for each in threads:
            each.join(60)
        _look(own.public_url, bearer, clients, figures)
    live, ended, views = running.store.stats("default")
    running.close()
    made = sum(len(each.answered) for each in clients)
    # Of each client at most one was begun and not answered.
    assert made <= live + ended <= made + CLIENTS, (made, live, ended)
    opened = sum(sum(each.opened.values()) for each in clients)
    # A view whose answer was killed counts as used.
    assert opened <= ended == sum(views.values()), (opened, ended, views)
    figures["answered creates"], figures["answered opens"] = made, opened
    for each in clients:
        figures += each.figures
    return figures


def _look(origin: str, bearer: str, clients: list[Client], figures: Counter[str]) -> None:
    """Each answered create is replayed byte for byte, and no share was opened twice."""
    for each in clients:
        assert set(each.opened.values()) <= {1}
        with httpx.Client(trust_env=False, transport=httpx.HTTPTransport(retries=5)) as http:
            for name, body in each.answered.items():
                again = create(http, origin, bearer, name)
                assert (again.status_code, again.content) == (200, body), name
                figures["replays"] += 1
