"""A server behind the real haproxy and the real nginx, which have TLS and share its connections."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import trustme

from cli.server.odd_requests import CHUNKS, ODD
from sealpipe_service.app import PROBES
from sealpipe_service.responses import json_response
from support.own_service import wait_for
from support.parts import program
from support.ports import free_port
from support.server_thread import ServerThread, serve_in_thread
from support.terminal import PATIENCE

STRANGER = "127.0.0.2"
"""Whoever calls the proxy, from another address than the proxy's."""

HAPROXY = """
defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
  http-reuse always
frontend public
  bind 127.0.0.1:{public} ssl crt {folder}/pair.pem
  option forwardfor
  default_backend service
backend service
  server one 127.0.0.1:{port}
"""

NGINX = """
daemon off;
pid {folder}/pid;
error_log stderr;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  upstream service {{ server 127.0.0.1:{port}; keepalive 4; }}
  server {{
    listen 127.0.0.1:{public} ssl;
    ssl_certificate {folder}/pair.pem;
    ssl_certificate_key {folder}/pair.pem;
    client_max_body_size 0;
    location / {{
      proxy_pass http://service;
      proxy_http_version 1.1;
      proxy_request_buffering off;
      proxy_set_header Connection "";
      proxy_set_header Host $http_host;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    }}
  }}
}}
"""

PROXIES: dict[str, tuple[str, Callable[[Path], list[str | Path]]]] = {
    "haproxy": (HAPROXY, lambda file: ["-db", "-f", file]),
    "nginx": (NGINX, lambda file: ["-p", file.parent, "-c", file]),
}


@dataclass
class Proxied:
    """A proxy, and the service that it leads to."""

    public: int
    authority: trustme.CA
    server: ServerThread
    asked: list[str] = field(default_factory=list)
    """What the service was asked for, of what notes it."""
    connections: list[object] = field(default_factory=list)
    """The proxy's."""

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.public}"

    @contextmanager
    def calling(self) -> Iterator[ssl.SSLSocket]:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.authority.configure_trust(context)
        where, here = ("127.0.0.1", self.public), (STRANGER, 0)
        with (
            socket.create_connection(where, PATIENCE, here) as plain,
            context.wrap_socket(plain, server_hostname="127.0.0.1") as caller,
        ):
            yield caller

    def get(self, path: str, *more: str) -> bytes:
        lines = [f"GET {path} HTTP/1.1", f"Host: {self.host}", *more, "Connection: close"]
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    def send(self, sent: bytes) -> bytes:
        """Send, and return all that comes until the proxy closes."""
        with self.calling() as caller:
            caller.sendall(sent)
            received = b""
            with contextlib.suppress(ConnectionError, ssl.SSLError):
                while part := caller.recv(65536):
                    received += part
            return received

    def is_up(self) -> bool:
        try:
            return self.send(self.get("/healthz")).startswith(b"HTTP/1.1 200 ")
        except OSError:
            return False


@pytest.fixture(scope="module", params=PROXIES)
def proxied(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Proxied]:
    name: str = request.param
    template, make_arguments = PROXIES[name]
    folder = tmp_path_factory.mktemp(name)
    authority = trustme.CA()
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(
        folder / "pair.pem"
    )
    with pytest.MonkeyPatch.context() as patch, serve_in_thread(["127.0.0.1/32"]) as server:
        found = Proxied(free_port(), authority, server)
        server.service.public_url = f"https://{found.host}"
        enter = server.crowd.enter
        patch.setattr(
            server.crowd,
            "enter",
            lambda each, peer: found.connections.append(each) or enter(each, peer),
        )
        for path in ("victim", "smuggled"):
            patch.setitem(PROBES, (path,), lambda _, asked: note(found, asked))
        file = folder / "settings"
        values = {"folder": folder, "public": found.public, "port": server.address[1]}
        file.write_text(template.format(**values))
        command = [program(name), *make_arguments(file)]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
            try:
                wait_for(found.is_up)
                yield found
            finally:
                process.terminate()


def note(found: Proxied, asked: object) -> object:
    path, address = asked.segments[0], asked.address  # type: ignore[attr-defined]
    found.asked.append(path)
    return json_response(200, {"path": path, "address": address})


def test_the_service_knows_who_called_and_its_connection_serves_again(proxied: Proxied) -> None:
    before = len(proxied.connections)
    for forged in ((), ("X-Forwarded-For: 192.0.2.7",), ("Forwarded: for=192.0.2.7",)):
        answer = proxied.send(proxied.get("/victim", *forged))
        assert answer.startswith(b"HTTP/1.1 200 ")
        told = json.loads(answer.partition(b"\r\n\r\n")[2])
        assert told == {"path": "victim", "address": STRANGER}
    assert len(proxied.connections) <= before + 1


def test_another_host_is_refused_through_it(proxied: Proxied) -> None:
    asked = proxied.get("/v1/stats").replace(proxied.host.encode(), b"rebound.example")
    assert proxied.send(asked).startswith(b"HTTP/1.1 421 ")


@pytest.mark.parametrize("name", [*ODD, *range(len(CHUNKS))])
def test_nobody_gets_the_answer_to_what_another_smuggled(proxied: Proxied, name: str | int) -> None:
    """Whatever a proxy makes of an odd request, the connection to the service stays in step."""
    smuggled = proxied.get("/smuggled")
    if isinstance(name, str):
        lines = ODD[name].format(host=proxied.host).replace("|", "\r\n")
        odd = lines.encode() + b"\r\n\r\n0\r\n\r\n"
    else:
        lines = f"POST /nothing HTTP/1.1\r\nHost: {proxied.host}\r\n"
        odd = lines.encode() + b"Transfer-Encoding: chunked\r\n\r\n" + CHUNKS[name]
    with proxied.calling() as attacker:
        attacker.sendall(odd + smuggled)
        attacker.settimeout(0.2)
        with contextlib.suppress(OSError):
            attacker.recv(65536)
        for _ in range(2):
            answer = proxied.send(proxied.get("/victim"))
            assert answer.startswith(b"HTTP/1.1 200 ")
            assert json.loads(answer.partition(b"\r\n\r\n")[2])["path"] == "victim"


def test_a_stranger_with_a_long_body_gets_the_services_answer(proxied: Proxied) -> None:
    head = f"POST /v1/shares HTTP/1.1\r\nHost: {proxied.host}\r\nContent-Length: {2**20}\r\n\r\n"
    answer = proxied.send(head.encode() + b" " * 2**20 + proxied.get("/victim"))
    assert answer.startswith(b"HTTP/1.1 401 ")
    assert b"x-content-type-options: nosniff" in answer.lower()
