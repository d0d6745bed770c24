"""A peer that resets a connection as soon as it is there: an error of ours, and none of Python's
own.
"""

from __future__ import annotations

import asyncio
import select
import socket
import struct
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from sealpipe import AsyncClient
from sealpipe.errors import ConnectError, RetriesExhaustedError
from sealpipe.minting import mint
from sealpipe.network.plugin_network import PluginNetwork
from support.wires import Wire

KEY = mint().credential.reveal()


@pytest.fixture
def resetting() -> Iterator[Wire]:
    def serve(client: socket.socket) -> None:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    with Wire(serve) as wire:
        yield wire


def wait_for_the_reset(connection: socket.socket) -> None:
    """Without taking it: whoever uses the connection next is told."""
    poll = select.poll()
    poll.register(connection, select.POLLHUP)
    assert poll.poll(5000)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each connection is used once it is reset."""
    connect = socket.create_connection

    def connect_and_wait(*given: Any, **named: Any) -> socket.socket:
        made = connect(*given, **named)
        wait_for_the_reset(made)
        return made

    monkeypatch.setattr(socket, "create_connection", connect_and_wait)


@pytest.mark.usefixtures("patient")
def test_a_plugins_connection_that_is_reset_at_once_is_no_connection(resetting: Wire) -> None:
    network = PluginNetwork(None)
    with pytest.raises(httpx.ConnectError):
        network.http().get(f"http://127.0.0.1:{resetting.port}")
    network.close()


def list_errors(resetting: Wire) -> list[BaseException | object]:
    """How twenty calls at once end."""
    url = f"http://127.0.0.1:{resetting.port}/v1"

    async def call() -> list[BaseException | object]:
        async with AsyncClient(
            api_key=KEY, base_url=url, link_base_url="https://share.example", deadline=30
        ) as client:
            return await asyncio.gather(
                *(client.get_stats() for _ in range(20)), return_exceptions=True
            )

    return asyncio.run(call())


@pytest.mark.usefixtures("patient")
def test_a_call_whose_connection_is_reset_at_once_ends_as_any_without_one(resetting: Wire) -> None:
    errors = list_errors(resetting)
    assert [
        each for each in errors if not isinstance(each, ConnectError | RetriesExhaustedError)
    ] == []


def test_a_call_whose_connection_is_reset_at_any_moment_ends_as_any_without_one(
    resetting: Wire,
) -> None:
    """Also between the connection and its first byte."""
    errors = list_errors(resetting)
    assert [
        each for each in errors if not isinstance(each, ConnectError | RetriesExhaustedError)
    ] == []
