"""An answer that repeats our credential: httpcore would log it as it came, before anything is taken
out of it.
"""

from __future__ import annotations

import logging
import re
import socket
from contextlib import suppress

import httpcore
import httpx
import pytest

from sealpipe import Client, SealpipeError
from sealpipe.minting import mint
from sealpipe.network.plugin_network import PluginNetwork
from support.wires import Wire

KEY = mint().credential.reveal()
AUTH = KEY.split(".")[1]

HEADS = {
    "a header": b"HTTP/1.1 200 OK\r\nX-Echo: ECHO\r\nContent-Length: 2\r\n\r\n{}",
    "a reason": b"HTTP/1.1 403 ECHO\r\nContent-Length: 2\r\n\r\n{}",
    "no header": b"HTTP/1.1 200 OK\r\nECHO\r\n\r\n",
    "no status": b"ECHO\r\n\r\n",
    "no chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nECHO\r\n",
}


def echoing(head: bytes) -> Wire:
    def serve(client: socket.socket) -> None:
        asked = b""
        while b"\r\n\r\n" not in asked:
            asked += client.recv(65536)
        found = re.search(rb"(?i)authorization: ([^\r]*)", asked)
        assert found
        client.sendall(head.replace(b"ECHO", found[1]))

    return Wire(serve)


def ask(kind: str, url: str) -> None:
    own = {
        "api_key": KEY,
        "base_url": f"{url}/v1",
        "link_base_url": "https://share.example",
        "deadline": 0.5,
    }

    if kind == "plugin":
        network = PluginNetwork(None)
        with suppress(httpx.HTTPError):
            network.http().get(url, headers={"authorization": f"Bearer {AUTH}"})
        network.close()
        return
    with suppress(SealpipeError), Client(**own) as client:
        client.get_stats()


@pytest.mark.parametrize("where", HEADS)
@pytest.mark.parametrize("kind", ["client", "plugin"])
def test_no_record_holds_what_an_answer_repeats(
    caplog: pytest.LogCaptureFixture, kind: str, where: str
) -> None:
    caplog.set_level(logging.DEBUG)
    with echoing(HEADS[where]) as wire:
        ask(kind, f"http://127.0.0.1:{wire.port}")
        assert wire.connections
    assert AUTH not in caplog.text
    assert [record for record in caplog.records if AUTH in str(record.__dict__)] == []


def test_what_a_program_does_with_httpcore_itself_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    with echoing(HEADS["a header"]) as wire, httpcore.ConnectionPool() as pool:
        ask("client", f"http://127.0.0.1:{wire.port}")
        pool.request("GET", f"http://127.0.0.1:{wire.port}", headers={"authorization": "its own"})
    assert "its own" in caplog.text
