"""Many creates inside one process, both ways by turns: python creates.py sync|async NUMBER RUNS.
Prints JSON.

Ours is `Client.create_share` or `AsyncClient.create_share`, theirs bare httpx with the same
members; the asynchronous ones keep ten in flight. Both clients and their connections are there
before the first figure.
"""

import asyncio
import base64
import json
import os
import sys
import time
import uuid

import httpx

from sealpipe import AsyncClient, Client
from sealpipe.wire import tokens

IN_FLIGHT = 10
MEMBERS = {
    "data": base64.b64encode(os.urandom(300)).decode(),
    "access_token": tokens.access_token(os.urandom(32)),
}
BODY = {"encryption_type": "e2ee-aes256-gcm", **MEMBERS}
SETTINGS = {
    name: os.environ[f"SEALPIPE_{name.upper()}"]
    for name in ("api_key", "base_url", "link_base_url")
}
BARE = {
    "base_url": SETTINGS["base_url"],
    "headers": {"Authorization": f"Bearer {SETTINGS['api_key'].rpartition('.')[0]}"},
}


def code_of(response):
    """The short code of what was created, as one would write it."""
    assert response.raise_for_status().status_code == 201
    return response.json()["short_code"]


def idempotency():
    return {"Idempotency-Key": str(uuid.uuid4())}


def cost(began, number):
    """Milliseconds, and how many were created."""
    wall, cpu = began
    return {
        "wall": 1000 * (time.perf_counter() - wall),
        "cpu": 1000 * (time.process_time() - cpu),
        "created": number,
    }


def now():
    return time.perf_counter(), time.process_time()


def by_turns_sync(number, runs):
    told = {"ours": [], "theirs": []}
    with Client(**SETTINGS) as client, httpx.Client(**BARE) as http:
        ways = {
            "ours": lambda: client.create_share(**MEMBERS).short_code,
            "theirs": lambda: code_of(http.post("/shares", json=BODY, headers=idempotency())),
        }
        for create in ways.values():
            create()
        for _ in range(runs):
            for side, create in ways.items():
                began = now()
                codes = {create() for _ in range(number)}
                told[side].append(cost(began, len(codes)))
    return told


async def by_turns_async(number, runs):
    told = {"ours": [], "theirs": []}
    async with AsyncClient(**SETTINGS) as client, httpx.AsyncClient(**BARE) as http:

        async def ours():
            return (await client.create_share(**MEMBERS)).short_code

        async def theirs():
            return code_of(await http.post("/shares", json=BODY, headers=idempotency()))

        async def worker(create, left, codes):
            for _ in left:
                codes.add(await create())

        ways = {"ours": ours, "theirs": theirs}
        for create in ways.values():
            await create()
        for _ in range(runs):
            for side, create in ways.items():
                began = now()
                left, codes = iter(range(number)), set()
                await asyncio.gather(*(worker(create, left, codes) for _ in range(IN_FLIGHT)))
                told[side].append(cost(began, len(codes)))
    return told


def main():
    way, number, runs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    told = (
        by_turns_sync(number, runs) if way == "sync" else asyncio.run(by_turns_async(number, runs))
    )
    assert {run["created"] for side in told.values() for run in side} == {number}
    print(json.dumps(told))


main()
