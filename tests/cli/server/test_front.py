"""Who calls a service of one's own: behind proxies, at a socket, with a certificate of its own."""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
from pathlib import Path
from typing import Any

import httpx
import pytest
import trustme

from sealpipe.addresses import describe_other_port
from sealpipe_service.addresses import find_client, read_address
from sealpipe_service.context import is_host_of
from sealpipe_service.database.access import UnavailableError
from sealpipe_service.front import Front
from support.own_service import make_own_service, stop
from support.server_thread import serve_in_thread

PROXIES = [ipaddress.ip_network("10.0.0.0/8"), ipaddress.ip_network("fd00::/8")]


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("10.0.0.1", "", "10.0.0.1"),
        ("10.0.0.1", "192.0.2.7", "192.0.2.7"),
        ("10.0.0.1", "198.51.100.1, 192.0.2.7", "192.0.2.7"),
        ("10.0.0.1", "198.51.100.1, 192.0.2.7, 10.0.0.9", "192.0.2.7"),
        ("10.0.0.1", "made up, 10.0.0.9", "10.0.0.9"),
        ("10.0.0.1", "192.0.2.7, ", "10.0.0.1"),
        ("10.0.0.1", "::ffff:192.0.2.7", "192.0.2.7"),
        ("fd00::1", "2001:db8::7", "2001:db8::7"),
        ("10.0.0.1", "10.0.0.2, 10.0.0.3", "10.0.0.2"),
    ],
)
def test_who_called_is_the_last_address_that_is_no_proxys(
    peer: str, forwarded: str, client: str
) -> None:
    assert find_client(read_address(peer), forwarded, PROXIES) == ipaddress.ip_address(client)


def ask(
    peer: str | None, *, has_tls: bool = False, forwarded: str = "192.0.2.7"
) -> tuple[int, str]:
    """Ask an application behind a front from some address; return the status and who it saw."""
    seen = []
    sent: list[Any] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:  # noqa: ARG001
        seen.append(scope["client"][0])
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.disconnect"}

    scope = {
        "type": "http",
        "client": None if peer is None else (peer, 1),
        "headers": [(b"x-forwarded-for", forwarded.encode())],
        "method": "GET",
        "path": "/",
        "raw_path": b"/",
    }
    front = Front(application, [str(each) for each in PROXIES], has_tls=has_tls)
    asyncio.run(front(scope, receive, send))
    return sent[0]["status"], "".join(seen)


def test_without_tls_only_this_machine_and_named_proxies_are_answered() -> None:
    assert ask("10.0.0.1") == (200, "192.0.2.7")
    assert ask("127.0.0.1") == (200, "127.0.0.1")
    assert ask("::1") == (200, "::1")
    assert ask("192.0.2.9") == (403, "")
    assert ask("::ffff:192.0.2.9") == (403, "")
    assert ask("192.0.2.9", has_tls=True) == (200, "192.0.2.9")
    assert ask(None) == (200, "192.0.2.7"), "at a socket with a path the peer is the proxy"


@pytest.mark.parametrize(
    ("url", "own", "foreign"),
    [
        (
            "https://a.example",
            ["a.example", "A.example:443"],
            ["", "a.example:80", "b.a.example", "a.example:8443"],
        ),
        ("https://a.example:8443", ["a.example:8443"], ["a.example", "a.example:443"]),
        ("http://[::1]", ["[::1]", "[::1]:80"], ["[::1]:443"]),
    ],
)
def test_a_host_is_the_same_with_the_port_that_goes_without_saying(
    url: str, own: list[str], foreign: list[str]
) -> None:
    assert [is_host_of(url, host) for host in (*own, *foreign)] == [True] * len(own) + [
        False
    ] * len(foreign)


@pytest.mark.parametrize(
    ("url", "port", "called"),
    [
        ("https://a.example", 443, None),
        ("https://a.example", 8443, "443"),
        ("https://a.example:8443", 8443, None),
        ("https://a.example:8443", 443, "8443"),
        ("http://127.0.0.1", 8080, "80"),
    ],
)
def test_a_port_that_nobody_listens_at_is_told(url: str, port: int, called: str | None) -> None:
    told = describe_other_port(url, port)
    assert told is None if called is None else told and f"come to port {called} " in told


def test_a_database_that_does_not_answer_is_told_by_one_probe_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail() -> float:
        raise UnavailableError("canary")

    with serve_in_thread() as server:
        monkeypatch.setattr(server.service.store, "now", fail)
        live, ready = (
            httpx.get(f"http://{server.host}/{probe}", trust_env=False)
            for probe in ("healthz", "readyz")
        )
    assert (live.status_code, live.json()) == (200, {"status": "ok"})
    assert (ready.status_code, ready.json()) == (503, {"status": "the database does not answer"})


def test_it_serves_at_a_socket_which_is_gone_afterwards(tmp_path: Path) -> None:
    own = make_own_service(tmp_path)
    path = own.operator.here / "s.sock"
    process = own.start("--socket", str(path))
    process.kill()
    process.communicate()
    assert path.exists()
    process = own.start("--socket", str(path))  # in place of what a killed one left
    with httpx.Client(transport=httpx.HTTPTransport(uds=str(path))) as client:
        answer = client.get(f"{own.public_url}/readyz")
    assert "strict-transport-security" not in answer.headers, "that is for the proxy to say"
    assert answer.json() == {"status": "ok"}
    assert stop(process) == 0
    assert not path.exists()


def test_it_serves_with_a_certificate_of_its_own(tmp_path: Path) -> None:
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    own = make_own_service(tmp_path)
    own.public_url = own.public_url.replace("http://", "https://")
    chain, key = (own.operator.here / name for name in ("chain.pem", "key.pem"))
    chain.write_bytes(b"".join(pem.bytes() for pem in certificate.cert_chain_pems))
    certificate.private_key_pem.write_to_path(key)
    process = own.start("--tls-cert", str(chain), "--tls-key", str(key))
    try:
        assert process.stderr is not None
        assert "every user of this machine can read it: chmod o= " in process.stderr.readline()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        authority.configure_trust(context)
        with httpx.Client(verify=context, trust_env=False) as client:
            answer = client.get(f"{own.public_url}/readyz")
            assert answer.json() == {"status": "ok"}
            assert answer.headers["strict-transport-security"] == "max-age=31536000"
            assert client.get(f"{own.public_url}/v1/stats").status_code == 401
        client_side = own.client(tmp_path / "client")
        authority.cert_pem.write_to_path(client_side.here / "ca.pem")
        secure = {name: value.replace("http://", "https://") for name, value in own.exports.items()}
        done = client_side.sealpipe("stats", SEALPIPE_CA_FILE="ca.pem", **secure)
        assert done.code == 0, done
    finally:
        assert stop(process) == 0
