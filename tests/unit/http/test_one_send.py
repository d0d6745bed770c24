"""A request that is small leaves in one piece: its head does not travel alone."""

from __future__ import annotations

import base64
import socket
import struct
import sys
import threading

import pytest

from sealpipe import Client
from sealpipe.errors import AuthenticationError
from sealpipe.minting import mint
from sealpipe.wire.tokens import access_token

DATA_SEGMENTS_AT = 152
"""Where Linux's `struct tcp_info` has the number of segments that brought data."""


def count_segments(connection: socket.socket) -> int:
    """Return how many segments with data this connection has received."""
    told = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    return int(struct.unpack_from("=I", told, DATA_SEGMENTS_AT)[0])


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the number of segments")
def test_the_head_and_the_body_of_a_small_request_are_one_segment() -> None:
    segments: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)

        def refuse_one() -> None:
            connection, _ = server.accept()
            with connection:
                received = b""
                while not received.endswith(b"}"):
                    received += connection.recv(65_536)
                segments.append(count_segments(connection))
                connection.sendall(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 2\r\n\r\n{}")

        thread = threading.Thread(target=refuse_one)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}/v1"
        key = mint().credential.reveal()
        with (
            Client(api_key=key, base_url=url, link_base_url=url) as client,
            pytest.raises(AuthenticationError),
        ):
            client.create_share(
                data=base64.b64encode(bytes(300)).decode(), access_token=access_token(bytes(32))
            )
        thread.join()
    assert segments == [1]
