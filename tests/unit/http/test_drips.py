"""No peer holds a command: each exchange has one wall-clock deadline, however busy the peer looks."""

from __future__ import annotations

import os
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import httpx
import pytest
import trustme

from sealpipe import Client
from sealpipe.errors import ConnectError, PluginError, UnavailableError, UnknownOutcomeError
from sealpipe.http.plugin_network import PluginNetwork
from sealpipe.registry import Registry
from sealpipe_plugins import program
from sealpipe_rehearsal.control_client import mint
from support.terminal import Terminal
from support.wires import Wire
from unit.http.dripping import Held, drip, dripping
from unit.http.talkers import TALKERS, post, read

DEADLINE = 1.0
SLACK = 2.0
"""Seconds that a loaded machine may take beside it."""


def assert_late(do: Callable[[Registry, str], object], to: str, peer: Held) -> PluginError:
    """What a call ends with, and it lets go of the peer in time (importing an SDK takes time of its own)."""
    network = PluginNetwork(None, deadline=DEADLINE)
    registry = Registry(environ=os.environ, network=lambda: network, deadline=DEADLINE)
    try:
        with pytest.raises(PluginError) as failed:
            do(registry, to)
    finally:
        network.close()
    while len(peer.held) < peer.connections:
        time.sleep(0.01)
    assert max(peer.held, default=0.0) < DEADLINE + SLACK
    assert isinstance(failed.value, UnavailableError | UnknownOutcomeError), failed.value
    assert re.search("in time|timed out", failed.value.message)
    return failed.value


def set_up(monkeypatch: pytest.MonkeyPatch, name: str, address: str) -> str:
    """The talker's target, with its address set."""
    talker = TALKERS[name]
    for variable, value in talker.environ.items():
        monkeypatch.setenv(variable, value.replace("{}", address))
    return talker.to.replace("{}", address)


@pytest.mark.parametrize("what", ["head", "line", "body", "chunks"])
@pytest.mark.parametrize("name", TALKERS)
def test_a_backend_whose_answer_drips_is_late(monkeypatch: pytest.MonkeyPatch, name: str, what: str) -> None:
    with dripping(what) as peer:
        assert_late(TALKERS[name].do, set_up(monkeypatch, name, f"http://127.0.0.1:{peer.port}"), peer)
        assert peer.connections == 1


@pytest.mark.parametrize("name", TALKERS)
def test_a_backend_whose_handshake_drips_is_late(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    with dripping("handshake") as peer:
        assert_late(TALKERS[name].do, set_up(monkeypatch, name, f"https://127.0.0.1:{peer.port}"), peer)


@pytest.mark.parametrize("name", TALKERS)
def test_a_proxy_whose_answer_drips_is_late(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    with dripping("head") as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.delenv("NO_PROXY", raising=False)
        assert_late(TALKERS[name].do, set_up(monkeypatch, name, "https://backend.example"), proxy)
        assert proxy.connections == 1


def mail(monkeypatch: pytest.MonkeyPatch, port: int, security: str) -> str:
    """A channel to a mail server."""
    own = {"HOST": "127.0.0.1", "PORT": str(port), "SECURITY": security, "SENDER": "ci@example.com"}
    for name, value in own.items():
        monkeypatch.setenv(f"SEALPIPE_PLUGIN_EMAIL__{name}", value)
    return "email:ops@example.com"


@pytest.mark.parametrize(
    ("what", "security"),
    [("greeting", "none"), ("greetings", "starttls"), ("handshake", "tls")],
)
def test_a_mail_server_that_drips_is_late(monkeypatch: pytest.MonkeyPatch, what: str, security: str) -> None:
    with dripping(what) as peer:
        assert_late(post, mail(monkeypatch, peer.port, security), peer)


@pytest.mark.parametrize("after", ["EHLO", "STARTTLS", "MAIL", "RCPT", "DATA", "."])
def test_a_mail_server_that_drips_at_a_later_step_is_late(monkeypatch: pytest.MonkeyPatch, after: str) -> None:
    """The whole conversation has one deadline: steps that each take nearly all of it would not end otherwise."""

    def serve(client: socket.socket) -> None:
        client.sendall(b"220 mail.example\r\n")
        lines = client.makefile("rb")
        for line in lines:
            if after == "." or line.strip() == b".":
                time.sleep(DEADLINE / 4)
            if line.upper().startswith(after.encode()) and (after != "." or line.strip() == b"."):
                drip(client, b"250-")
            elif line.upper().startswith(b"EHLO"):
                client.sendall(b"250-mail.example\r\n250 STARTTLS\r\n")
            else:
                client.sendall(b"354 go\r\n" if line.upper().startswith(b"DATA") else b"250 ok\r\n")

    with Held(serve) as peer:
        security = "starttls" if after == "STARTTLS" else "none"
        assert_late(post, mail(monkeypatch, peer.port, security), peer)


def test_a_mail_servers_handshake_after_starttls_drips(monkeypatch: pytest.MonkeyPatch) -> None:
    def serve(client: socket.socket) -> None:
        client.sendall(b"220 mail.example\r\n")
        client.recv(1024)
        client.sendall(b"250-mail.example\r\n250 STARTTLS\r\n")
        client.recv(1024)
        time.sleep(DEADLINE * 0.7)  # what is left is for the handshake
        client.sendall(b"220 go\r\n")
        client.recv(65536)
        drip(client, b"\x16\x03\x03\x3f\xff")

    with Held(serve) as peer:
        assert_late(post, mail(monkeypatch, peer.port, "starttls"), peer)


def assert_ends_in_time(reference: str) -> None:
    """A source whose own ways know no deadline is left behind."""
    for module in ("aws.client", "keyring.secret_service"):
        import_module(f"sealpipe_plugins.{module}")  # importing an SDK takes time of its own
    network = PluginNetwork(None, deadline=DEADLINE)
    began = time.monotonic()
    with pytest.raises(UnavailableError, match=r"in time|timed out"):
        read(Registry(environ=os.environ, network=lambda: network, deadline=DEADLINE), reference)
    assert time.monotonic() - began < DEADLINE + SLACK


def test_a_program_that_cannot_be_killed_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that became another user, as sudo does: the kernel refuses our signal."""

    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "killpg", refuse)
    began = time.monotonic()
    with pytest.raises(program.ProgramTimeoutError):
        program.run_program(["/bin/sleep", "8"], "sleep", environ={}, timeout=DEADLINE)
    assert time.monotonic() - began < DEADLINE + SLACK
    monkeypatch.undo()
    for process in list(program._running):
        program._kill(process)
    assert not program._running


@pytest.mark.parametrize("profile", ["own", "source"])
def test_a_profiles_process_that_never_ends_is_late(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, profile: str
) -> None:
    """AWS's SDK starts it by itself, also for the profile that another one names as its source."""
    config = tmp_path / "aws-config"
    role = "role_arn = arn:aws:iam::123456789012:role/r\nsource_profile = own"
    config.write_text(f"[profile own]\ncredential_process = sleep 20\n[profile source]\n{role}\n")
    for name, value in {"CONFIG_FILE": str(config), "PROFILE": profile, "REGION": "eu-west-1"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    assert_ends_in_time("aws-sm:db")


@pytest.mark.parametrize("variable", ["AWS_EC2_METADATA_SERVICE_ENDPOINT", "AWS_CONTAINER_CREDENTIALS_FULL_URI"])
def test_a_machine_whose_metadata_drips_is_late(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    """AWS's SDK asks for it by a way of its own."""
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    with dripping("body") as peer:
        monkeypatch.setenv(variable, f"http://127.0.0.1:{peer.port}/")
        assert_ends_in_time("aws-sm:db")
        assert peer.connections


def test_a_keyring_that_never_answers_is_late(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A session bus that lets us in, and then says nothing."""

    def serve() -> None:
        client, _ = bus.accept()
        with client:
            while heard := client.recv(4096):
                if b"AUTH" in heard:
                    client.sendall(b"OK " + b"0" * 32 + b"\r\n")
                if b"NEGOTIATE" in heard:
                    client.sendall(b"AGREE_UNIX_FD\r\n")

    with socket.socket(socket.AF_UNIX) as bus:
        bus.bind(str(tmp_path / "bus"))
        bus.listen()
        threading.Thread(target=serve, daemon=True).start()
        monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", f"unix:path={tmp_path / 'bus'}")
        monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.SecretService.Keyring")
        assert_ends_in_time("keyring:service/user")


def mail_server(client: socket.socket) -> None:
    """One that takes everything."""
    client.sendall(b"220 mail.example\r\n")
    for line in client.makefile("rb"):
        if line.upper().startswith((b"EHLO", b"MAIL", b"RCPT", b".\r\n")):
            client.sendall(b"250 ok\r\n")
        elif line.upper().startswith(b"DATA"):
            client.sendall(b"354 go\r\n")


def test_this_machines_name_is_never_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """smtplib asks for it before it greets: by a resolver that hangs, for as long as that likes."""
    asked: list[object] = []
    for name in ("getfqdn", "gethostbyaddr", "gethostbyname"):
        monkeypatch.setattr(socket, name, lambda *name: asked.append(name) or "slow.example")
    with Wire(mail_server) as peer:
        network = PluginNetwork(None, deadline=DEADLINE)
        registry = Registry(environ=os.environ, network=lambda: network, deadline=DEADLINE)
        post(registry, mail(monkeypatch, peer.port, "none"))
        network.close()
    assert asked == []


def test_a_mail_server_that_never_stops_talking_fills_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    said = 0

    def serve(client: socket.socket) -> None:
        nonlocal said
        while True:
            said += client.send((b"220-" + b"a" * 4000 + b"\r\n") * 16)

    with Wire(serve) as peer:
        network = PluginNetwork(None)
        with pytest.raises(UnavailableError, match="does not speak SMTP"):
            post(Registry(environ=os.environ, network=lambda: network), mail(monkeypatch, peer.port, "none"))
        network.close()
    assert said < 32 * 1024 * 1024


@pytest.mark.parametrize(
    ("words", "environ", "code"),
    [
        (("-f", "A=vault:secret/app#k"), {"VAULT_ADDR": "http://127.0.0.1:{}", "VAULT_TOKEN": "t"}, 14),
        (("-f", "text:x", "--send", "webhook:http://127.0.0.1:{}/x"), {"SEALPIPE_PLUGIN_WEBHOOK__SECRET": "s"}, 11),
    ],
    ids=["a source", "a channel"],
)
def test_the_deadline_of_a_command_is_that_of_whatever_it_talks_to(
    user: Terminal, words: tuple[str, ...], environ: dict[str, str], code: int
) -> None:
    with dripping("head") as peer:
        given = [word.format(peer.port) for word in words]
        own = {name: value.format(peer.port) for name, value in environ.items()}
        done = user.sealpipe("share", *given, "--deadline", "5s", **own)
        assert (done.code, done.out) == (code, ""), done
        assert "did not respond in time" in done.err
        while len(peer.held) < peer.connections:
            time.sleep(0.01)
    assert peer.connections == 1
    assert max(peer.held) < 5 + SLACK


def test_a_name_that_is_looked_up_for_ever_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: time.sleep(30))
    network = PluginNetwork(None, deadline=DEADLINE)
    for call, late in (
        (lambda: network.http().get("https://backend.example"), httpx.ConnectTimeout),
        (lambda: network.connect("https://backend.example"), TimeoutError),
    ):
        began = time.monotonic()
        with pytest.raises(late):
            call()
        assert time.monotonic() - began < DEADLINE + SLACK
    network.close()


def test_a_peer_that_never_reads_is_late() -> None:
    """Its window is full, and each of our sends waits for it."""
    with Wire(lambda _: time.sleep(10)) as peer:
        network = PluginNetwork(None, deadline=DEADLINE)
        began = time.monotonic()
        line = network.connect(f"http://127.0.0.1:{peer.port}")
        with pytest.raises(TimeoutError):
            line.sendall(bytes(64 * 1024 * 1024))
        line.close()
        assert time.monotonic() - began < DEADLINE + SLACK


def test_a_connection_that_is_kept_begins_anew_with_each_request() -> None:
    """The other half: an exchange is late, not a connection that lives longer than one."""

    def serve(client: socket.socket) -> None:
        while client.recv(1024):
            client.sendall(b"pong")

    with Wire(serve) as peer:
        line = PluginNetwork(None, deadline=0.5).connect(f"http://127.0.0.1:{peer.port}")
        for _ in range(4):
            line.sendall(b"ping")
            assert line.recv(4) == b"pong"
            time.sleep(0.2)
        line.close()


def test_tls_over_a_plain_socket_keeps_the_deadline(tmp_path: Path) -> None:
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")

    def serve(client: socket.socket) -> None:
        with context.wrap_socket(client, server_side=True) as secure:
            secure.recv(1024)
            drip(secure, b"HTTP/1.1 200 OK")

    with Wire(serve) as peer:
        line = PluginNetwork(tmp_path / "ca.pem", deadline=DEADLINE).connect(f"https://127.0.0.1:{peer.port}")
        line.sendall(b"GET / HTTP/1.1\r\n\r\n")
        began = time.monotonic()
        with pytest.raises(TimeoutError):
            line.makefile("rb").read(1000)
        line.close()
        assert time.monotonic() - began < DEADLINE + SLACK


@pytest.mark.parametrize("kind", ["plugin", "service"])
def test_tls_inside_of_a_proxys_tls_keeps_the_deadline(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str
) -> None:
    """The proxy lets us through, and what answers behind it drips its handshake."""
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")

    def serve(client: socket.socket) -> None:
        with context.wrap_socket(client, server_side=True) as secure:
            assert secure.recv(65536).startswith(b"CONNECT ")
            secure.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            secure.recv(65536)
            drip(secure, b"\x16\x03\x03\x3f\xff\x02")

    network, url = PluginNetwork(tmp_path / "ca.pem", deadline=DEADLINE), "https://backend.example"
    own = {"link_base_url": url, "ca_file": tmp_path / "ca.pem", "deadline": DEADLINE}
    with Held(serve) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"https://127.0.0.1:{proxy.port}")
        began = time.monotonic()
        if kind == "plugin":
            with pytest.raises(httpx.ConnectTimeout):
                network.http().get(url)
        else:
            with (
                Client(api_key=mint().credential.reveal(), base_url=f"{url}/v1", **own) as client,
                pytest.raises(ConnectError),
            ):
                client.get_stats()
        assert time.monotonic() - began < DEADLINE + SLACK
        network.close()
