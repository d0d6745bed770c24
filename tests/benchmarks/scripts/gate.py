"""What part of a create's CPU time the search for the credential takes: gate.py NUMBER, in
`sealpipe rehearse --`.
"""

import base64
import os
import statistics
import sys
import time

from sealpipe import Client, Field
from sealpipe.network import exchange
from sealpipe.session import Session
from sealpipe.wire import tokens

SEARCHES = [(exchange, "check_request"), (exchange.Redactor, "redact")]
SEARCHES += [(Session, "check_clear"), (Session, "check_own")]
MEMBERS = {
    "data": base64.b64encode(os.urandom(300)).decode(),
    "access_token": tokens.access_token(os.urandom(32)),
}
TEXT = "".join(
    f"{number:05} GET /pictures/{number * 7919 % 100_003}.png HTTP/1.1\n"
    for number in range(25_000)
)
WAYS = {
    "create_share, 300 bytes": lambda client: client.create_share(**MEMBERS),
    "share, 300 bytes": lambda client: client.share([Field("a", TEXT[:300])], custody="off"),
    "share, 1 MB": lambda client: client.share([Field("a", TEXT[:1_000_000])], custody="off"),
}
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


def measure(create, client, times):
    """Return the CPU seconds of the searches in a create, and of all of it: medians, so that
    refusals do not count.
    """
    rows = []
    for _ in range(times):
        spent.clear()
        begun = time.thread_time()
        create(client)
        rows.append((sum(spent), time.thread_time() - begun))
    return tuple(map(statistics.median, zip(*rows, strict=True)))


def main(number):
    """Print the figures of each way to create a share."""
    for place, name in SEARCHES:
        setattr(place, name, timed(getattr(place, name)))
    settings = {
        name: os.environ[f"SEALPIPE_{name.upper()}"]
        for name in ("api_key", "base_url", "link_base_url")
    }
    with Client(**settings) as client:
        for what, create in WAYS.items():
            searched, cost = measure(create, client, number // 10 if "MB" in what else number)
            print(f"{what}: {100 * searched / cost:.1f} % of {cost * 1000:.2f} ms CPU")


if __name__ == "__main__":
    main(int(sys.argv[1]))
