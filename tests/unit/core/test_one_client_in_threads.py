"""One client that several threads use from the start."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import sealpipe.network.service_network
from sealpipe import Client, SealpipeError
from sealpipe.minting import mint
from sealpipe.network.service_network import ServiceNetwork
from support.ports import silent_port

THREADS = 4


def test_threads_share_connections_and_pacing_from_the_first_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[object] = []
    late = threading.Event()

    class Slow(ServiceNetwork):
        def __init__(self, *args: object) -> None:
            made.append(self)
            late.wait(0.2)  # the others are at it, too
            super().__init__(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(sealpipe.network.service_network, "ServiceNetwork", Slow)
    ready = threading.Barrier(THREADS)

    def calls(client: Client) -> None:
        ready.wait(10)
        with pytest.raises(SealpipeError):
            client.get_share("..")  # refused before anything is sent
        with pytest.raises(SealpipeError):
            client.get_share("x")

    address = f"http://127.0.0.1:{silent_port()}"
    with (
        Client(
            api_key=mint().credential,
            base_url=f"{address}/v1",
            link_base_url=f"{address}/s",
            deadline=30,
        ) as client,
        ThreadPoolExecutor(THREADS) as pool,
    ):
        list(pool.map(calls, [client] * THREADS))
    assert len(made) == 1
