"""TLS of a server: its versions, its certificate while it serves, and files that do not fit."""

from __future__ import annotations

import asyncio
import logging
import shutil
import socket
import ssl
from asyncio.constants import SSL_HANDSHAKE_TIMEOUT
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trustme

from sealpipe_service import worker
from sealpipe_service.tls import Certificate, CertificateError
from support.server_thread import serve_in_thread
from support.terminal import PATIENCE, Terminal, bare

__all__ = ["bare"]


def issue(authority: trustme.CA, place: Path, name: str) -> tuple[str, str]:
    """Write a certificate and its key, and return their paths."""
    made = authority.issue_cert("127.0.0.1")
    chain, key = place / f"{name}.pem", place / f"{name}.key"
    chain.write_bytes(b"".join(pem.bytes() for pem in made.cert_chain_pems))
    made.private_key_pem.write_to_path(key)
    key.chmod(0o600)
    return str(chain), str(key)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@contextmanager
def calling(
    address: tuple[str, int], authority: trustme.CA, highest: ssl.TLSVersion
) -> Iterator[ssl.SSLSocket]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    context.maximum_version = highest
    context.set_ciphers("ALL:@SECLEVEL=0")
    authority.configure_trust(context)
    with (
        socket.create_connection(address, PATIENCE) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as caller,
    ):
        yield caller


def get(caller: ssl.SSLSocket) -> bytes:
    caller.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
    received = b""
    while not received.endswith(b"}"):
        received += caller.recv(4096)
    return received


def test_a_certificate_is_renewed_while_it_serves_and_no_connection_is_lost(
    authority: trustme.CA, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    chain, key = issue(authority, tmp_path, "used")
    new_chain, new_key = issue(authority, tmp_path, "new")
    certificate = Certificate(chain, key)
    newest = ssl.TLSVersion.MAXIMUM_SUPPORTED
    with serve_in_thread(tls=certificate.context) as server:

        def shown() -> bytes | None:
            with calling(server.address, authority, newest) as caller:
                assert get(caller).startswith(b"HTTP/1.1 200 ")
                return caller.getpeercert(binary_form=True)

        before = shown()
        with calling(server.address, authority, newest) as long:
            get(long)
            shutil.copy(new_chain, chain)
            certificate.renew()
            assert shown() == before, "its key is not there yet"
            shutil.copy(new_key, key)
            certificate.renew()
            assert shown() != before
            assert get(long).startswith(b"HTTP/1.1 200 ")
        Path(key).unlink()
        certificate.renew()
        assert shown() != before
    told = [record.getMessage() for record in caplog.records if record.name.endswith(".tls")]
    failed = f"the certificate was not renewed: {key}"
    assert told == [
        f"{failed} is not the key of the first certificate in {chain}",
        "the certificate was renewed",
        f"{failed} cannot be read: No such file or directory",
    ]


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_tls_is_1_2_with_forward_secrecy_or_later(authority: trustme.CA, tmp_path: Path) -> None:
    certificate = Certificate(*issue(authority, tmp_path, "used"))
    with serve_in_thread(tls=certificate.context) as server:
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            with calling(server.address, authority, version) as caller:
                cipher, told, _ = caller.cipher() or pytest.fail("there is none")
                assert told == version.name.replace("_", ".")
                assert cipher.startswith(("ECDHE-", "TLS_"))
                assert any(each in cipher for each in ("GCM", "CHACHA20"))
        old = calling(server.address, authority, ssl.TLSVersion.TLSv1_1)
        with pytest.raises((ssl.SSLError, ConnectionError)), old as caller:
            get(caller)


def test_who_shakes_no_hands_is_cut(
    authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "WINDOW_SECONDS", 0.05)
    context = Certificate(*issue(authority, tmp_path, "used")).context

    def say_nothing(address: tuple[str, int]) -> bytes:
        with socket.create_connection(address, SSL_HANDSHAKE_TIMEOUT / 2) as caller:
            return caller.recv(1)

    async def serve() -> bytes:
        loop, protocol = asyncio.get_running_loop(), asyncio.Protocol
        async with await loop.create_server(protocol, "127.0.0.1", 0, ssl=context) as server:
            return await asyncio.to_thread(say_nothing, server.sockets[0].getsockname())

    with asyncio.Runner(loop_factory=worker.Loop) as runner:
        assert runner.run(serve()) == b""


def test_what_is_no_pair_is_told_with_what_to_do(authority: trustme.CA, tmp_path: Path) -> None:
    chain, key = issue(authority, tmp_path, "one")
    _, other = issue(authority, tmp_path, "other")
    locked = tmp_path / "locked.key"
    locked.write_text("-----BEGIN ENCRYPTED PRIVATE KEY-----\n")
    damaged = tmp_path / "damaged.pem"
    damaged.write_text("-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n")
    for pair, text in {
        (chain, str(tmp_path / "none")): "none cannot be read: No such file or directory",
        (key, chain): "one.key holds no PEM of a certificate",
        (chain, chain): "one.pem holds no PEM of a private key",
        (chain, str(locked)): "locked.key has a passphrase",
        (chain, other): "other.key is not the key of the first certificate in",
        (str(damaged), key): "damaged.pem or",
    }.items():
        with pytest.raises(CertificateError, match=text) as caught:
            Certificate(*pair)
        assert caught.value.remedy


def test_run_says_so_before_it_serves(
    authority: trustme.CA, tmp_path: Path, bare: Terminal
) -> None:
    chain, _ = issue(authority, tmp_path, "one")
    _, other = issue(authority, tmp_path, "other")
    where = ("--public-url", "https://h.example", "--database", "sqlite:///none/x.db")
    done = bare.sealpipe("server", "run", *where, "--tls-cert", chain, "--tls-key", other)
    assert done.code == 2
    assert "--tls-cert, --tls-key: " in done.err
    assert "is not the key of the first certificate" in done.err
