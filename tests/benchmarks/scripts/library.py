"""Sealing and posting inside one process, both ways by turns: python library.py FILE RUNS. Prints
JSON.

Both clients and their connections are there before the first figure, and each way is done once
uncounted.
"""

import json
import os
import sys
import time
import tracemalloc
from pathlib import Path

import httpx
import naive

from sealpipe import Client, Field
from sealpipe.api import shares
from sealpipe.wire import envelope, fields, tokens


def cost(work):
    """Milliseconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return {"wall": 1000 * (time.perf_counter() - wall), "cpu": 1000 * (time.process_time() - cpu)}


def peak(work):
    """Bytes that Python has allocated at the most beyond what there was before."""
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    work()
    after = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return after - before


def main():
    value, runs = Path(sys.argv[1]).read_text(), int(sys.argv[2])
    field, key = Field("FILE", value, type="multiline"), os.urandom(32)
    settings = {
        name: os.environ[f"SEALPIPE_{name.upper()}"]
        for name in ("api_key", "base_url", "link_base_url")
    }
    with Client(**settings) as client, httpx.Client() as http:

        def ours():
            return client.share([field], custody="off").link.reveal()

        def theirs():
            return naive.share("FILE", value, "multiline", post=http.post)

        told = {"links": [ours(), theirs()], "ours": [], "theirs": []}
        for _ in range(runs):
            told["ours"].append(cost(ours))
            told["theirs"].append(cost(theirs))

    def seal_ours():
        shares.build_body(
            lambda out: envelope.seal_chunks(key, fields.chunks([field]), out=out),
            shares.ShareMembers(access_token=tokens.access_token(key)),
        )

    def seal_theirs():
        json.dumps(naive.body(key, "FILE", value, "multiline"), separators=(",", ":")).encode()

    told["peak"] = {"ours": peak(seal_ours), "theirs": peak(seal_theirs)}
    print(json.dumps(told))


main()
