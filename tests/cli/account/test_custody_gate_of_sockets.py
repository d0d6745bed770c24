"""The same gate where plugins speak a protocol themselves, by Vault's and a mail server's
sockets.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trustme

from cli.account.custody_forms import CUSTODY, FORMS, GATE, KEY, OLD, told
from sealpipe.errors import AccessDeniedError
from sealpipe.network.plugin_network import PluginNetwork
from support.faulty import Faulty
from support.mailbox import Mailbox
from support.terminal import Terminal

PATIENCE = 10


class Listener:
    """Takes connections, with TLS or without, and keeps what it is told; it answers nothing but a
    first byte.
    """

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self._context = context
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._got: list[bytes] = []
        self.port = self._socket.getsockname()[1]
        self._thread.start()

    def _run(self) -> None:
        with contextlib.suppress(OSError):
            line, _ = self._socket.accept()
            line.settimeout(PATIENCE)
            if self._context is not None:
                line = self._context.wrap_socket(line, server_side=True)
            with line:
                line.sendall(b"!")
                while data := line.recv(65536):
                    self._got.append(data)

    def got(self) -> bytes:
        """All that it was told, once the other end has hung up."""
        socket.create_connection(("127.0.0.1", self.port)).close()  # where nobody came
        self._thread.join(PATIENCE)
        self._socket.close()
        return b"".join(self._got)


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def network(authority: trustme.CA, tmp_path: Path) -> Iterator[PluginNetwork]:
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    made = PluginNetwork(tmp_path / "ca.pem", GATE)
    yield made
    made.close()


def in_clear(network: PluginNetwork, _: trustme.CA) -> tuple[Listener, socket.socket]:
    listener = Listener()
    return listener, network.connect(f"http://127.0.0.1:{listener.port}")


def by_tls(network: PluginNetwork, authority: trustme.CA) -> tuple[Listener, socket.socket]:
    listener = Listener(_server(authority))
    return listener, network.connect(f"https://127.0.0.1:{listener.port}")


def by_starttls(network: PluginNetwork, authority: trustme.CA) -> tuple[Listener, socket.socket]:
    listener = Listener(_server(authority))
    line = network.connect(f"tcp://127.0.0.1:{listener.port}")
    return listener, network.tls_context().wrap_socket(line, server_hostname="127.0.0.1")


def _server(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context


Way = Callable[[PluginNetwork, trustme.CA], tuple[Listener, socket.socket]]
WAYS = pytest.mark.parametrize("way", [in_clear, by_tls, by_starttls])


@WAYS
@pytest.mark.parametrize(
    "form", ["plain", "the previous one's", "base64 at 2", "hex", "percent", "JSON"]
)
def test_a_socket_writes_nothing_of_a_piece_that_holds_it(
    network: PluginNetwork, authority: trustme.CA, way: Way, form: str
) -> None:
    listener, line = way(network, authority)
    with line:
        line.sendall(b"EHLO here\r\n")
        for write in (line.sendall, line.send):
            with pytest.raises(AccessDeniedError, match="nothing was sent") as caught:
                write(f"a line with {FORMS[form]} in it".encode())
            assert FORMS[form] not in told(caught.value)
        line.sendall(b"QUIT")
        assert line.recv(1) == b"!"
    assert listener.got() == b"EHLO here\r\nQUIT"


@WAYS
def test_nor_where_it_is_written_in_pieces(
    network: PluginNetwork, authority: trustme.CA, way: Way
) -> None:
    listener, line = way(network, authority)
    whole = FORMS["percent"].encode()
    with line:
        line.sendall(b"a" * 5000 + whole[:60])
        with pytest.raises(AccessDeniedError):
            line.sendall(memoryview(whole[60:]))
        assert line.recv(1) == b"!"
    assert listener.got() == b"a" * 5000 + whole[:60]


@WAYS
def test_what_follows_an_answer_is_looked_at_anew(
    network: PluginNetwork, authority: trustme.CA, way: Way
) -> None:
    listener, line = way(network, authority)
    with line:
        line.sendall(b"x")
        assert line.recv(1) == b"!"
        line.sendall(b"y" * 200_000)
        with pytest.raises(AccessDeniedError):
            line.sendall(b"z" + CUSTODY.encode())
    assert listener.got() == b"x" + b"y" * 200_000


@pytest.fixture
def at(bare: Terminal, faulty: Faulty) -> Terminal:
    bare.environ |= {
        "SEALPIPE_API_KEY": KEY,
        "SEALPIPE_API_KEY_PREVIOUS": f"{KEY.rsplit('.', 1)[0]}.{OLD}",
        "SEALPIPE_BASE_URL": faulty.base_url,
        "SEALPIPE_LINK_BASE_URL": "http://127.0.0.1/s",
    }
    return bare


@pytest.mark.parametrize("secret", [CUSTODY, OLD], ids=["this one's", "the previous one's"])
def test_a_path_in_vault_does_not_hold_it(at: Terminal, secret: str) -> None:
    vault = Listener()
    at.environ |= {
        "VAULT_ADDR": f"http://127.0.0.1:{vault.port}",
        "VAULT_TOKEN": "a-token",
        "VAULT_MAX_RETRIES": "0",
    }
    done = at.sealpipe("share", "-f", f"vault:secret/{secret}#x")
    assert done.code == 14, done
    assert "holds the credential: nothing was sent" in done.err
    assert secret.encode() not in vault.got()


def test_no_address_of_a_mail_holds_it(at: Terminal, tmp_path: Path) -> None:
    at.environ |= {"P": f"{CUSTODY}@example.com", "SEALPIPE_API_KEY": KEY}
    with Mailbox(tmp_path) as mailbox:
        at.environ |= mailbox.environ()
        done = at.sealpipe("share", "-f", "A=text:x", "--send", "email:{to}", "--param", "to=env:P")
        assert mailbox.received == []
    assert done.code != 0
    assert CUSTODY not in done.out + done.err
