"""Collects NUMBER answers of one request, and opens them bare, by turns: python many_answers.py
NUMBER RUNS FOLDER.

Ours is `Client.collect(pick="each")`, without and with a folder for each; bare is what a script
does with the same answer: httpx, `json.loads`, and cryptography. The answer is made beforehand and
served by another process. Prints JSON: microseconds of CPU for each answer, and the peak of what
Python allocates, in sizes of the answer.
"""

import itertools
import json
import os
import signal
import socket
import sys
import time
import tracemalloc
from pathlib import Path

import httpx
from opening import headers, opened, private_key, public_key

from sealpipe import Client
from sealpipe.wire import sealed_box
from sealpipe.wire.encoding import decode_base64url

CODE = "manyanswers"


def answers(number):
    """What the service tells of the request, and of its submissions."""
    key = public_key(private_key())
    plain = json.dumps(
        [{"key": "Password", "value": "correct horse battery staple", "type": "password"}]
    ).encode()
    rows = [
        {
            "short_code": f"answer{index}",
            "created_at": "2026-11-21T10:00:00Z",
            "encryption_type": "e2ee-ecdh-p256",
            "data": sealed_box.seal(decode_base64url(key), plain),
        }
        for index in range(number)
    ]
    state = {"short_code": CODE, "expired_at": "2036-11-21T10:00:00Z", "public_key": key}
    listed = {"submissions": rows, "count": number, "skipped_not_end_to_end_encrypted": 0}
    return json.dumps(state).encode(), json.dumps(listed).encode()


def serve(listening, state, listed):
    """Answer, in a process of its own; its number."""
    child = os.fork()
    while not child:
        connection, _ = listening.accept()
        with connection:
            body = (
                listed
                if b"/submissions " in connection.recv(65536).partition(b"\r\n")[0]
                else state
            )
            about = (
                "content-type: application/json\r\nconnection: close\r\ncontent-length: "
                f"{len(body)}\r\n\r\n"
            )
            connection.sendall(b"HTTP/1.1 200 OK\r\n" + about.encode() + body)
    return child


def took(work, number):
    began = time.process_time()
    work()
    return 1e6 * (time.process_time() - began) / number


def peak(work, size):
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    work()
    after = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return (after - before) / size


def main():
    number, runs, folder = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    state, listed = answers(number)
    listening = socket.create_server(("127.0.0.1", 0))
    child = serve(listening, state, listed)
    url, numbers = f"http://127.0.0.1:{listening.getsockname()[1]}/v1", itertools.count()
    http = httpx.Client(headers=headers(), timeout=60)
    client = Client(api_key=os.environ["SEALPIPE_API_KEY"], base_url=url, link_base_url=url)

    def ours(into=None):
        found = client.collect(CODE, pick="each", folder=into)
        assert len(found.submissions) == number

    def stored():
        ours(folder / str(next(numbers)))

    def bare():
        answer = http.get(f"{url}/requests/{CODE}/submissions")
        key = private_key()
        found = [json.loads(opened(key, row["data"])) for row in answer.json()["submissions"]]
        assert len(found) == number

    ways = {"ours": ours, "bare": bare, **({"dir": stored} if number <= 1000 else {})}
    try:
        for way in ways.values():
            way()
        told = {name: [] for name in ways}
        for _ in range(runs):
            for name, way in ways.items():
                told[name].append(took(way, number))
        told["peak"] = {name: peak(ways[name], len(listed)) for name in ("ours", "bare")}
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    print(json.dumps(told))


main()
