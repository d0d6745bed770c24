"""What part of a create's CPU time the search for the credential takes: gate.py NUMBER, in `sealpipe rehearse --`."""

import base64
import os
import sys
import time

from sealpipe import Client, Field
from sealpipe.flows.session import Session
from sealpipe.http import exchange
from sealpipe.wire import tokens

SEARCHES = [(exchange, "check_request"), (exchange.Redactor, "redact")]
SEARCHES += [(Session, "check_clear"), (Session, "check_own")]
SETTINGS = {name: os.environ[f"SEALPIPE_{name.upper()}"] for name in ("api_key", "base_url", "link_base_url")}
MEMBERS = {"data": base64.b64encode(os.urandom(300)).decode(), "access_token": tokens.access_token(os.urandom(32))}
spent = []


def timed(search):
    """The search, whose CPU time is noted."""

    def run(*args, **options):
        begun = time.thread_time()
        try:
            return search(*args, **options)
        finally:
            spent.append(time.thread_time() - begun)

    return run


for place, name in SEARCHES:
    setattr(place, name, timed(getattr(place, name)))
number = int(sys.argv[1])
with Client(**SETTINGS) as client:
    ways = {
        "create_share, 300 bytes": (number, lambda: client.create_share(**MEMBERS)),
        "share, 300 bytes": (number, lambda: client.share([Field("a", "x" * 300)], custody="off")),
        "share, 1 MB": (number // 10, lambda: client.share([Field("a", "x" * 1_000_000)], custody="off")),
    }
    for what, (times, create) in ways.items():
        create()
        spent.clear()
        begun = time.thread_time()
        for _ in range(times):
            create()
        cost = time.thread_time() - begun
        print(f"{what}: {100 * sum(spent) / cost:.1f} % of {cost / times * 1000:.2f} ms CPU")
