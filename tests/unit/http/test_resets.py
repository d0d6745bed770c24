"""A peer that resets a connection as soon as it is there: an error of ours, and none of Python's own."""

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
from sealpipe.http.plugin_network import PluginNetwork
from sealpipe_rehearsal.control_client import mint
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


def test_a_plugins_connection_that_is_reset_at_once_is_no_connection(
    resetting: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = socket.create_connection

    def connect_and_wait(*given: Any, **named: Any) -> socket.socket:
        made = connect(*given, **named)
        wait_for_the_reset(made)
        return made

    monkeypatch.setattr(socket, "create_connection", connect_and_wait)
    network = PluginNetwork(None)
    with pytest.raises(httpx.ConnectError):
        network.http().get(f"http://127.0.0.1:{resetting.port}")
    network.close()


@pytest.mark.parametrize("waits", [True, False])
def test_an_asynchronous_call_whose_connection_is_reset_at_once_ends_as_any_without_one(
    resetting: Wire, monkeypatch: pytest.MonkeyPatch, *, waits: bool
) -> None:
    """The other calls are reset when it happens to come: also between the connection and its first byte."""
    url = f"http://127.0.0.1:{resetting.port}/v1"
    if waits:
        connect = asyncio.SelectorEventLoop.sock_connect

        async def connect_and_wait(self: Any, connection: socket.socket, address: Any) -> None:
            await connect(self, connection, address)
            wait_for_the_reset(connection)

        monkeypatch.setattr(asyncio.SelectorEventLoop, "sock_connect", connect_and_wait)

    async def errors() -> list[BaseException | object]:
        async with AsyncClient(api_key=KEY, base_url=url, link_base_url="https://share.example", deadline=30) as client:
            return await asyncio.gather(*(client.get_stats() for _ in range(20)), return_exceptions=True)

    ends = asyncio.run(errors())
    kinds = ConnectError if waits else (ConnectError, RetriesExhaustedError)
    assert [each for each in ends if not isinstance(each, kinds)] == []
