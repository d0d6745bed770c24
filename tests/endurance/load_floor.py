"""What `server_load.py` compares a service with: the same Starlette, uvicorn, driver and
durability, and an application that inserts one row a call.

A process of it: `python load_floor.py LISTENING ADDRESS`, the number of the socket that all accept
from and the database's address.
"""

from __future__ import annotations

import asyncio
import socket
import sqlite3
import sys
import threading
from collections.abc import Callable

import psycopg
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sealpipe_service.database.opening import file_of
from sealpipe_service.serving import make_config

TABLE = "CREATE TABLE IF NOT EXISTS floor (number {}, body {})"
Insert = Callable[[bytes], None]


def make_sqlite(path: str) -> Insert:
    """Return how a row is inserted into a file, on the disk before it returns."""
    connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=5)
    for pragma in ("journal_mode=WAL", "synchronous=FULL"):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute(TABLE.format("INTEGER PRIMARY KEY AUTOINCREMENT", "BLOB"))
    turns = threading.Lock()

    def insert(body: bytes) -> None:
        with turns:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO floor (body) VALUES (?)", [body])
            connection.execute("COMMIT")

    return insert


def make_postgresql(address: str) -> Insert:
    """Return how a row is inserted into PostgreSQL, by a connection for each thread."""
    own = threading.local()
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(TABLE.format("BIGSERIAL PRIMARY KEY", "BYTEA").encode())

    def insert(body: bytes) -> None:
        if not hasattr(own, "connection"):
            own.connection = psycopg.connect(address, autocommit=True, prepare_threshold=None)
        own.connection.execute(b"INSERT INTO floor (body) VALUES (%s)", [body])

    return insert


def build(insert: Insert) -> Starlette:
    """Return the application."""

    async def create(request: Request) -> Response:
        await asyncio.to_thread(insert, await request.body())
        return Response(b'{"success":true}', 201, media_type="application/json")

    return Starlette(routes=[Route("/rows", create, methods=["POST"])])


def main(listening: str, address: str) -> None:
    file = file_of(address)
    insert = make_postgresql(address) if file is None else make_sqlite(str(file))
    config = make_config(build(insert), http="h11", lifespan="off", grace_seconds=5)
    uvicorn.Server(config).run(sockets=[socket.socket(fileno=int(listening))])


if __name__ == "__main__":
    main(*sys.argv[1:])
