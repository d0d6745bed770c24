"""No peer holds a command: each exchange has one wall-clock deadline, however busy the peer
looks.
"""

from __future__ import annotations

import os
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
import trustme

from sealpipe import Client
from sealpipe.errors import ConnectError, UnavailableError, UnknownOutcomeError
from sealpipe.minting import mint
from sealpipe.network.plugin_network import PluginNetwork
from sealpipe.registry import Registry
from sealpipe_plugins import program
from sealpipe_rehearsal.running_service import RunningService
from support.stopwatch import stopwatch
from support.terminal import Done, Terminal
from support.wires import Wire
from unit.http.conftest import forget_everybody
from unit.http.dripping import ANSWERS, Held, drip, dripping
from unit.http.talkers import TALKERS, post, read

DEADLINE = 8.0
"""Of what waits together; no call may take two of them, and each reaches its peer within one on a
busy machine.
"""
SHORT, LATE = 0.5, 9.0
"""Of what waits alone, and how much more a busy machine may take: without a deadline, each would
take 20 at least.
"""


class Scene(NamedTuple):
    """A call of a backend through a peer that drips, and the environment that leads it there."""

    peer: Held
    do: Callable[[Registry, str], object]
    to: str
    environ: Mapping[str, str]


class Call(NamedTuple):
    """One that has begun."""

    peer: Held
    end: Future[object]
    seconds: list[float]
    """How long it took, once it has ended."""


def talks(name: str, peer: Held, address: str, **environ: str) -> Scene:
    """The talker, with its address set."""
    talker = TALKERS[name]
    own = {variable: value.replace("{}", address) for variable, value in talker.environ.items()}
    return Scene(peer, talker.do, talker.to.replace("{}", address), own | environ)


def through_proxy(name: str) -> Scene:
    proxy = dripping("head")
    return talks(
        name, proxy, "https://backend.example", HTTPS_PROXY=f"http://127.0.0.1:{proxy.port}"
    )


def backend(name: str, what: str) -> Scene:
    peer = dripping(what)
    return talks(
        name, peer, f"{'https' if what == 'handshake' else 'http'}://127.0.0.1:{peer.port}"
    )


def mail_environ(port: int, security: str) -> dict[str, str]:
    """The settings of a channel to a mail server."""
    own = {"HOST": "127.0.0.1", "PORT": str(port), "SECURITY": security, "SENDER": "ci@example.com"}
    return {f"SEALPIPE_PLUGIN_EMAIL__{name}": value for name, value in own.items()}


def mails(peer: Held, security: str) -> Scene:
    return Scene(peer, post, MAIL, mail_environ(peer.port, security))


def mails_until(after: str) -> Scene:
    """The server drips at one step of the conversation."""

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

    return mails(Held(serve), "starttls" if after == "STARTTLS" else "none")


def mails_after_starttls() -> Scene:
    def serve(client: socket.socket) -> None:
        client.sendall(b"220 mail.example\r\n")
        client.recv(1024)
        client.sendall(b"250-mail.example\r\n250 STARTTLS\r\n")
        client.recv(1024)
        time.sleep(DEADLINE * 0.7)  # what is left is for the handshake
        client.sendall(b"220 go\r\n")
        client.recv(65536)
        drip(client, b"\x16\x03\x03\x3f\xff")

    return mails(Held(serve), "starttls")


def asks_machine(variable: str) -> Scene:
    """AWS's SDK asks for the machine's metadata by a way of its own."""
    peer = dripping("body")
    return Scene(
        peer,
        read,
        "aws-sm:db",
        {"AWS_REGION": "eu-west-1", variable: f"http://127.0.0.1:{peer.port}/"},
    )


MAIL = "email:ops@example.com"
BACKENDS = {f"{name}-{what}": partial(backend, name, what) for name in TALKERS for what in ANSWERS}
HANDSHAKES = {name: partial(backend, name, "handshake") for name in TALKERS}
PROXIES = {name: partial(through_proxy, name) for name in TALKERS}
MAIL_SERVERS = {
    "greeting": lambda: mails(dripping("greeting"), "none"),
    "greetings": lambda: mails(dripping("greetings"), "starttls"),
    "handshake": lambda: mails(dripping("handshake"), "tls"),
    "handshake after STARTTLS": mails_after_starttls,
}
METADATA = {
    variable: partial(asks_machine, variable)
    for variable in ("AWS_EC2_METADATA_SERVICE_ENDPOINT", "AWS_CONTAINER_CREDENTIALS_FULL_URI")
}
STEPS = {
    after: partial(mails_until, after)
    for after in ("EHLO", "STARTTLS", "MAIL", "RCPT", "DATA", ".")
}


def import_sdks() -> None:
    """Which takes time of its own."""
    for module in ("aws.client", "keyring.secret_service"):
        import_module(f"sealpipe_plugins.{module}")


def begin(scene: Scene, pool: ThreadPoolExecutor, home: Path) -> Call:
    """Call, and return once the peer is reached: from then on the environment leads nowhere any
    more.
    """

    seconds: list[float] = []

    def call(environ: Mapping[str, str]) -> None:
        network = PluginNetwork(None, deadline=DEADLINE)
        began = time.monotonic()
        try:
            scene.do(
                Registry(environ=environ, network=lambda: network, deadline=DEADLINE), scene.to
            )
        finally:
            seconds.append(time.monotonic() - began)
            network.close()

    with pytest.MonkeyPatch.context() as patched:
        forget_everybody(patched, home)
        for name, value in scene.environ.items():
            patched.setenv(name, value)
        end = pool.submit(call, dict(os.environ))
        while not scene.peer.connections and not end.done():
            time.sleep(0.002)
    return Call(scene.peer, end, seconds)


@pytest.fixture(scope="module", autouse=True)
def calls(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, commands: object
) -> Iterator[dict[int, Call]]:
    """The calls of all tests that are about to run, by the scene.

    One begins after another, and they wait together.

    They begin with the first test of the file, whichever that is; their own tests are the last.
    """
    assert commands is not None, "they have begun, too"
    scenes = selected(request, "scene")
    home = tmp_path_factory.mktemp("home")
    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(len(scenes) or 1))
        if scenes:
            import_sdks()
        begun = {}
        for make in scenes:
            scene = make()
            stack.enter_context(scene.peer)
            begun[id(make)] = begin(scene, pool, home)
        yield begun


def selected(request: pytest.FixtureRequest, parameter: str) -> list[Any]:
    """The values of a parameter in the tests of this module that are about to run."""
    items = [item for item in request.session.items if isinstance(item, pytest.Function)]
    params = [
        item.callspec.params
        for item in items
        if item.module is request.module and hasattr(item, "callspec")
    ]
    return [own[parameter] for own in params if parameter in own]


def scenes(table: Mapping[str, Callable[[], Scene]]) -> pytest.MarkDecorator:
    """A test of each scene."""
    return pytest.mark.parametrize("scene", table.values(), ids=list(table))


def assert_ends_in_time(reference: str) -> None:
    """A source whose own ways know no deadline is left behind."""
    import_sdks()
    network = PluginNetwork(None, deadline=SHORT)
    with stopwatch() as seconds:
        with pytest.raises(UnavailableError, match=r"in time|timed out"):
            read(Registry(environ=os.environ, network=lambda: network, deadline=SHORT), reference)
        assert seconds() < SHORT + LATE


def test_a_program_that_cannot_be_killed_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that became another user, as sudo does: the kernel refuses our signal."""

    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "killpg", refuse)
    with stopwatch() as seconds:
        with pytest.raises(program.ProgramTimeoutError):
            program.run_program(["/bin/sleep", "60"], "sleep", environ={}, timeout=SHORT)
        assert seconds() < SHORT + LATE
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
    config.write_text(f"[profile own]\ncredential_process = sleep 60\n[profile source]\n{role}\n")
    for name, value in {
        "CONFIG_FILE": str(config),
        "PROFILE": profile,
        "REGION": "eu-west-1",
    }.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    assert_ends_in_time("aws-sm:db")


def test_a_keyring_that_never_answers_is_late(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
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
        network = PluginNetwork(None)
        registry = Registry(environ=mail_environ(peer.port, "none"), network=lambda: network)
        post(registry, MAIL)
        network.close()
    assert asked == []


def test_a_mail_server_that_never_stops_talking_fills_no_memory() -> None:
    said = 0

    def serve(client: socket.socket) -> None:
        nonlocal said
        while True:
            said += client.send((b"220-" + b"a" * 4000 + b"\r\n") * 16)

    with Wire(serve) as peer:
        network = PluginNetwork(None)
        with pytest.raises(UnavailableError, match="does not speak SMTP"):
            post(Registry(environ=mail_environ(peer.port, "none"), network=lambda: network), MAIL)
        network.close()
    assert said < 32 * 1024 * 1024


class Command(NamedTuple):
    """One that meets a peer which drips, and the code that it ends with."""

    words: tuple[str, ...]
    environ: Mapping[str, str]
    code: int


COMMANDS = {
    "a source": Command(
        ("-f", "A=vault:secret/app#k"),
        {"VAULT_ADDR": "http://127.0.0.1:{}", "VAULT_TOKEN": "t"},
        code=14,
    ),
    "a channel": Command(
        ("-f", "text:x", "--send", "webhook:http://127.0.0.1:{}/x"),
        {"SEALPIPE_PLUGIN_WEBHOOK__SECRET": "s"},
        code=11,
    ),
}


def run_late(place: Path, service: RunningService, command: Command) -> tuple[Done, Held]:
    with dripping("head") as peer:
        given = [word.format(peer.port) for word in command.words]
        own = {name: value.format(peer.port) for name, value in command.environ.items()}
        done = (
            Terminal(place)
            .at(service)
            .sealpipe("share", *given, "--deadline", f"{DEADLINE:.0f}s", **own)
        )
        while len(peer.held) < peer.connections:
            time.sleep(0.01)
    return done, peer


@pytest.fixture(scope="module")
def commands(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    one_service: RunningService,
) -> Iterator[dict[str, Future[tuple[Done, Held]]]]:
    """The commands of all tests that are about to run, by their names."""
    with ThreadPoolExecutor(len(COMMANDS)) as pool:
        yield {
            name: pool.submit(
                run_late, tmp_path_factory.mktemp("user"), one_service, COMMANDS[name]
            )
            for name in selected(request, "command")
        }


@pytest.mark.parametrize("command", COMMANDS)
def test_the_deadline_of_a_command_is_that_of_whatever_it_talks_to(
    commands: dict[str, Future[tuple[Done, Held]]], command: str
) -> None:
    done, peer = commands[command].result()
    assert (done.code, done.out) == (COMMANDS[command].code, ""), done
    assert "did not respond in time" in done.err
    assert peer.connections == 1
    assert max(peer.held) < 2 * DEADLINE


def test_a_name_that_is_looked_up_for_ever_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: time.sleep(60))
    network = PluginNetwork(None, deadline=SHORT)
    for call, late in (
        (lambda: network.http().get("https://backend.example"), httpx.ConnectTimeout),
        (lambda: network.connect("https://backend.example"), TimeoutError),
    ):
        with stopwatch() as seconds:
            with pytest.raises(late):
                call()
            assert seconds() < SHORT + LATE
    network.close()


def test_a_peer_that_never_reads_is_late() -> None:
    """Its window is full, and each of our sends waits for it."""
    with Wire(lambda _: time.sleep(60)) as peer:
        network = PluginNetwork(None, deadline=SHORT)
        with stopwatch() as seconds:
            line = network.connect(f"http://127.0.0.1:{peer.port}")
            with pytest.raises(TimeoutError):
                line.sendall(bytes(64 * 1024 * 1024))
            line.close()
            assert seconds() < SHORT + LATE


class Clock:
    """Time as this thread sees it: other calls of this file wait beside, with deadlines of their
    own.
    """

    def __init__(self) -> None:
        self._now, self._thread, self._ahead = time.monotonic, threading.get_ident(), 0.0

    def __call__(self) -> float:
        return self._now() + (self._ahead if threading.get_ident() == self._thread else 0.0)

    def put_forward(self, seconds: float) -> None:
        self._ahead += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock that can be put forward, so that no deadline is near where none is meant to be."""
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", clock)
    return clock


def test_a_connection_that_is_kept_begins_anew_with_each_request(clock: Clock) -> None:
    """The other half: an exchange is late, not a connection that lives longer than one."""

    def serve(client: socket.socket) -> None:
        while client.recv(1024):
            client.sendall(b"pong")

    with Wire(serve) as peer:
        line = PluginNetwork(None, deadline=60).connect(f"http://127.0.0.1:{peer.port}")
        for _ in range(4):
            line.sendall(b"ping")
            assert line.recv(4) == b"pong"
            clock.put_forward(20)
        line.close()


def test_tls_over_a_plain_socket_keeps_the_deadline(tmp_path: Path, clock: Clock) -> None:
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")

    def serve(client: socket.socket) -> None:
        with context.wrap_socket(client, server_side=True) as secure:
            secure.recv(1024)
            drip(secure, b"HTTP/1.1 200 OK")

    with Wire(serve) as peer:
        line = PluginNetwork(tmp_path / "ca.pem", deadline=60).connect(
            f"https://127.0.0.1:{peer.port}"
        )
        line.sendall(b"GET / HTTP/1.1\r\n\r\n")
        clock.put_forward(59.5)
        with stopwatch() as seconds:
            with pytest.raises(TimeoutError):
                line.makefile("rb").read(1000)
            line.close()
            assert seconds() < SHORT + LATE


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

    network, url = PluginNetwork(tmp_path / "ca.pem", deadline=SHORT), "https://backend.example"
    own = {"link_base_url": url, "ca_file": tmp_path / "ca.pem", "deadline": SHORT}
    with Held(serve) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"https://127.0.0.1:{proxy.port}")
        with stopwatch() as seconds:
            if kind == "plugin":
                with pytest.raises(httpx.ConnectTimeout):
                    network.http().get(url)
            else:
                with (
                    Client(
                        api_key=mint().credential.reveal(), base_url=f"{url}/v1", **own
                    ) as client,
                    pytest.raises(ConnectError),
                ):
                    client.get_stats()
            assert seconds() < SHORT + LATE
        network.close()


# -- what waits together ------------------------------------------------------------------------


def assert_late(call: Call) -> None:
    """How a call ends, and it lets go of the peer in time."""
    error = call.end.exception()
    assert isinstance(error, UnavailableError | UnknownOutcomeError), error
    assert re.search("in time|timed out", error.message)
    assert call.peer.connections
    while len(call.peer.held) < call.peer.connections:
        time.sleep(0.01)
    assert 0 < max(call.peer.held) < 2 * DEADLINE


@scenes(BACKENDS)
def test_a_backend_whose_answer_drips_is_late(calls: dict[int, Call], scene: object) -> None:
    assert_late(calls[id(scene)])
    assert calls[id(scene)].peer.connections == 1


@scenes(HANDSHAKES)
def test_a_backend_whose_handshake_drips_is_late(calls: dict[int, Call], scene: object) -> None:
    assert_late(calls[id(scene)])


@scenes(PROXIES)
def test_a_proxy_whose_answer_drips_is_late(calls: dict[int, Call], scene: object) -> None:
    assert_late(calls[id(scene)])
    assert calls[id(scene)].peer.connections == 1


@scenes(MAIL_SERVERS)
def test_a_mail_server_that_drips_is_late(calls: dict[int, Call], scene: object) -> None:
    assert_late(calls[id(scene)])


@scenes(STEPS)
def test_a_mail_server_that_drips_at_a_later_step_is_late(
    calls: dict[int, Call], scene: object
) -> None:
    """The whole conversation has one deadline: steps that each take nearly all of it would not end
    otherwise.
    """
    assert_late(calls[id(scene)])


@scenes(METADATA)
def test_a_machine_whose_metadata_drips_is_late(calls: dict[int, Call], scene: object) -> None:
    call = calls[id(scene)]
    with pytest.raises(UnavailableError, match=r"in time|timed out"):
        call.end.result()
    assert call.seconds[0] < 2 * DEADLINE
    assert call.peer.connections
