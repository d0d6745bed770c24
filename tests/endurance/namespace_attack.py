"""Attack a service of one's own from a second network namespace, as strangers do: their addresses
are not this machine's, so every limit counts them.

A namespace is made with ip(8), as root, with an address of the attacker and one of a bystander. The
service has TLS of its own, and once more haproxy before it. The attacker

- opens connections and begins no handshake;
- sends heads a byte a second (not with --short);
- names another host, and guesses codes with made-up addresses in X-Forwarded-For and Forwarded;
- sends haproxy what two programs could read differently, with a second request behind it.

Meanwhile the bystander is served. Prints a line for each; ends with 1 where a promise broke.

    python tests/endurance/namespace_attack.py [--short]
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import trustme

from cli.server.odd_requests import CHUNKS, ODD
from sealpipe_service.connections import MOST_OF_ADDRESS, TWICE, WINDOW_SECONDS
from sealpipe_service.flood import BURST, MISS
from support.own_service import make_own_service
from support.ports import free_port

PATIENCE = 20.0
HAPROXY = """
defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
  http-reuse always
frontend public
  bind {host}:{public} ssl crt {pair}
  option forwardfor
  default_backend service
backend service
  server one 127.0.0.1:{port}
"""
SHORT_ODD = ("two hosts", "length and coding", "two lengths", "an unknown coding")
UNKNOWN = "/links/shares/unknown"


@dataclass(frozen=True)
class Target:
    """Where the service is called, and from which addresses."""

    host: str
    port: int
    attacker: str
    bystander: str

    @property
    def name(self) -> str:
        return f"{self.host}:{self.port}"

    def connect(self, source: str) -> socket.socket:
        return socket.create_connection((self.host, self.port), PATIENCE, (source, 0))

    @contextmanager
    def calling(self, source: str) -> Iterator[ssl.SSLSocket]:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with self.connect(source) as plain, context.wrap_socket(plain) as caller:
            yield caller

    def get(self, path: str, *more: str, host: str = "") -> bytes:
        lines = [f"GET {path} HTTP/1.1", f"Host: {host or self.name}", *more, "Connection: close"]
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    def ask(self, source: str, path: str, *more: str, host: str = "") -> int:
        """Return the status of an answer."""
        with self.calling(source) as caller:
            caller.sendall(self.get(path, *more, host=host))
            received = b""
            with suppress(ConnectionError, ssl.SSLError):
                while part := caller.recv(65536):
                    received += part
        return int(received[9:12])

    def time_bystander(self) -> float:
        """Return how many milliseconds the bystander waited for a good answer."""
        begun = time.monotonic()
        status = self.ask(self.bystander, "/healthz")
        assert status == 200, f"the bystander got {status}"
        return (time.monotonic() - begun) * 1000


def is_open(connection: socket.socket) -> bool:
    connection.setblocking(False)  # noqa: FBT003
    try:
        return connection.recv(1) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


def flood_with_handshakes(target: Target, *, is_short: bool) -> str:
    most = TWICE * MOST_OF_ADDRESS
    with ExitStack() as held:
        crowd = [held.enter_context(target.connect(target.attacker)) for _ in range(most + 50)]
        time.sleep(1)
        left = sum(map(is_open, crowd))
        waited = max(target.time_bystander() for _ in range(5))
        assert left <= most, f"{left} connections stayed"
        if not is_short:
            time.sleep(WINDOW_SECONDS + 2)
            assert not any(map(is_open, crowd)), "some stayed without a handshake"
    return f"{left} of {len(crowd)} stayed; the bystander waited {waited:.0f} ms"


def drip_heads(target: Target) -> str:
    begun = time.monotonic()
    with ExitStack() as held:
        crowd = [held.enter_context(target.calling(target.attacker)) for _ in range(50)]
        letters = iter(target.get("/healthz", f"X-Long: {'x' * 100}"))
        while any(is_still_open(each) for each in crowd):
            assert time.monotonic() - begun < 2 * WINDOW_SECONDS, "some were not cut"
            letter = bytes([next(letters)])
            for each in crowd:
                with suppress(OSError):
                    each.sendall(letter)
            waited = target.time_bystander()
            time.sleep(1)
    return f"cut after {time.monotonic() - begun:.0f} s; the bystander waited {waited:.0f} ms"


def is_still_open(caller: ssl.SSLSocket) -> bool:
    caller.settimeout(0.001)
    try:
        return caller.recv(1) != b""
    except TimeoutError:
        return True
    except OSError:
        return False


def name_others(target: Target) -> str:
    host = "rebound.example"
    found = [target.ask(target.attacker, path, host=host) for path in ("/s/any", "/v1/stats")]
    assert found == [403, 421], found
    answered, most = 0, int(BURST / MISS)
    begun = time.monotonic()
    while True:
        forged = f"192.0.2.{answered % 250}"
        names = (f"X-Forwarded-For: {forged}", f"Forwarded: for={forged}", "X-Real-IP: 127.0.0.1")
        status = target.ask(target.attacker, UNKNOWN, *names)
        if status == 429:
            break
        assert status == 404, status
        answered += 1
        # A token comes back each second.
        assert answered <= most + time.monotonic() - begun + 1, "each name had a bucket of its own"
    assert target.ask(target.bystander, UNKNOWN) == 404, "the bystander is counted with it"
    return f"other hosts refused; {answered} guesses answered, whatever address they named"


def smuggle(target: Target, *, is_short: bool) -> str:
    bodies = CHUNKS[:3] if is_short else CHUNKS
    heads = {name: ODD[name] for name in SHORT_ODD} if is_short else ODD
    post = f"POST /nothing HTTP/1.1\r\nHost: {target.name}\r\nTransfer-Encoding: chunked\r\n\r\n"
    odd = [
        *(
            head.format(host=target.name).replace("|", "\r\n").encode() + b"\r\n\r\n0\r\n\r\n"
            for head in heads.values()
        ),
        *(post.encode() + body for body in bodies),
    ]
    for each in odd:
        with target.calling(target.attacker) as attacker:
            attacker.sendall(each + target.get(UNKNOWN))
            attacker.settimeout(0.2)
            with suppress(OSError):
                attacker.recv(65536)
            for _ in range(2):
                target.time_bystander()  # who would get 404 out of step
    return f"{len(odd)} odd requests left every connection in step"


def attack(told: str) -> None:
    """Attack, as a process in the other namespace."""
    values = json.loads(told)
    is_short, public = values.pop("is_short"), values.pop("public")
    target = Target(**values)
    proxied = replace(target, port=public)
    for name, run in {
        "handshakes": lambda: flood_with_handshakes(target, is_short=is_short),
        "slow heads": lambda: "left out" if is_short else drip_heads(target),
        "smuggling through haproxy": lambda: smuggle(proxied, is_short=is_short),
        "names of others": lambda: name_others(target),
    }.items():
        print(f"{name}: {run()}", flush=True)


# -- the two namespaces


def run_ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


@contextmanager
def make_namespace(network: str) -> Iterator[str]:
    """Make a namespace with two addresses, and an address here that it reaches."""
    name, link = f"sealpipe-{os.getpid()}", f"sp{os.getpid()}"
    run_ip("netns", "add", name)
    try:
        run_ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", name)
        run_ip("address", "add", f"{network}.1/24", "dev", link)
        run_ip("link", "set", link, "up")
        for end in (2, 3):
            run_ip("-n", name, "address", "add", f"{network}.{end}/24", "dev", "eth0")
        run_ip("-n", name, "link", "set", "eth0", "up")
        yield name
    finally:
        run_ip("netns", "delete", name)


@contextmanager
def run_haproxy(folder: Path, **values: object) -> Iterator[None]:
    file = folder / "haproxy.cfg"
    file.write_text(HAPROXY.format(**values))
    with subprocess.Popen(["haproxy", "-db", "-f", file], stderr=subprocess.DEVNULL) as proxy:
        try:
            yield
        finally:
            proxy.terminate()


def main(*, is_short: bool) -> int:
    """Attack; return the exit code."""
    network = f"198.{18 + os.getpid() // 256 % 2}.{os.getpid() % 256}"
    host, port, public, plain = f"{network}.1", free_port(), free_port(), free_port()
    with ExitStack() as running, contextlib.suppress(KeyboardInterrupt):
        folder = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="attack-")))
        namespace = running.enter_context(make_namespace(network))
        made = trustme.CA().issue_cert(host)
        pair = folder / "pair.pem"
        made.private_key_and_cert_chain_pem.write_to_path(str(pair))
        own = make_own_service(folder / "service", url=f"https://{host}:{port}")
        running.enter_context(own.running("--tls-cert", str(pair), "--tls-key", str(pair)))
        behind = replace(own, public_url=f"https://{host}:{public}")
        trusted = ("--trusted-proxy", "127.0.0.1/32")
        running.enter_context(behind.running(*trusted, listen=f"127.0.0.1:{plain}"))
        values = {"host": host, "public": public, "port": plain, "pair": pair}
        running.enter_context(run_haproxy(folder, **values))
        ends = {"attacker": f"{network}.2", "bystander": f"{network}.3"}
        told = {"host": host, "port": port, "public": public, "is_short": is_short, **ends}
        words = [sys.executable, "-P", __file__, "--attack", json.dumps(told)]
        command = ["ip", "netns", "exec", namespace, *words]
        return subprocess.run(command, check=False, timeout=300).returncode
    return 1


def choose(words: Sequence[str]) -> int:
    """Do what the arguments say."""
    match words:
        case ["--attack", told]:
            attack(told)
            return 0
        case [] | ["--short"]:
            return main(is_short=bool(words))
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(choose(sys.argv[1:]))
