"""The way out that plugins share: whom it trusts, by which proxy it goes, and what it never
does.
"""

from __future__ import annotations

import os
import select
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import httpx
import pytest
import trustme

from sealpipe.errors import NotConfiguredError
from sealpipe.network.plugin_network import PluginNetwork
from sealpipe.network.service_network import make_pool_proxy, make_tls_context
from sealpipe.registry import Registry
from support.distributions import Site
from support.fake_web import Asked, FakeWeb, Reply
from support.faults import Fault, raw, says, tunnels
from support.faulty import Exchange, Faulty
from support.ports import silent_port
from support.wires import LOOPBACK

HOST = "backend.example"
"""Only a proxy knows it."""

NetworkOf = Callable[[Path | None], PluginNetwork]


class Backend(FakeWeb):
    def answer(self, asked: Asked) -> Reply:
        if asked.path == "/moved":
            return Reply(302, "", {"location": "/elsewhere"})
        return Reply(200, "it is I", {"set-cookie": "session=1"})


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def ca_file(authority: trustme.CA, tmp_path: Path) -> Path:
    path = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(path)
    return path


@pytest.fixture
def secure(authority: trustme.CA) -> Iterator[Backend]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(LOOPBACK, HOST).configure_cert(context)
    with Backend(context) as backend:
        yield backend


@pytest.fixture
def plain() -> Iterator[Backend]:
    with Backend() as backend:
        yield backend


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "NO_PROXY",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
    ):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
def network_of() -> Iterator[NetworkOf]:
    made: list[PluginNetwork] = []

    def network(ca_file: Path | None) -> PluginNetwork:
        made.append(PluginNetwork(ca_file))
        return made[-1]

    yield network
    for each in made:
        each.close()


def test_only_the_users_ca_is_trusted(
    network_of: NetworkOf, secure: Backend, ca_file: Path
) -> None:
    assert network_of(ca_file).http().get(secure.base_url).text == "it is I"
    with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
        network_of(None).http().get(secure.base_url)


def test_the_end_of_a_run_ends_its_connections_and_another_run_makes_new_ones(
    network_of: NetworkOf, plain: Backend
) -> None:
    made = cache(lambda: network_of(None))
    found = Registry(network=made)
    found.close()
    assert made.cache_info().currsize == 0, "what was not needed is not made to be closed"
    client = made().http()
    assert client.get(plain.base_url).is_success
    found.close()
    assert client.is_closed
    assert made().http().get(plain.base_url).is_success


def test_a_certificate_for_another_name_is_not_trusted(
    network_of: NetworkOf, secure: Backend, ca_file: Path
) -> None:
    with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
        network_of(ca_file).http().get(secure.base_url.replace(LOOPBACK, "localhost"))


def test_all_plugins_of_a_run_have_one_client_with_the_cores_own_trust(
    network_of: NetworkOf, site: Site, ca_file: Path
) -> None:
    its_own = "class It(Source):\n    def fetch(self, locator): ...\n"
    site.source("attic", its_own)
    site.source("cellar", its_own)
    network = network_of(ca_file)
    found = Registry(environ={}, network=lambda: network)
    attic, cellar = found.source("attic").context.network, found.source("cellar").context.network
    assert attic.http() is cellar.http()
    assert attic.ca_bundle() == cellar.ca_bundle()


def test_session_keys_are_never_written(
    network_of: NetworkOf,
    secure: Backend,
    ca_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "keys"))
    assert ssl.create_default_context().keylog_filename, "Python itself obeys it"
    network = network_of(ca_file)
    assert network.http().get(secure.base_url).is_success
    assert network.tls_context().keylog_filename is None
    (tmp_path / "keys").unlink()  # Python's own, just now
    assert network.http().get(secure.base_url).is_success
    assert not (tmp_path / "keys").exists()


def test_a_proxy_over_tls_is_checked_as_everything_else() -> None:
    """With a context of ours: httpcore's own would obey SSLKEYLOGFILE, and not know the CA file."""
    context = make_tls_context({})
    for address, expected in (
        ("https://user:p%40ss@proxy.example:3128", context),
        ("http://proxy.example", None),
    ):
        proxy = make_pool_proxy(address, context)
        assert proxy is not None
        assert proxy.ssl_context is expected
        assert proxy.auth == ((b"user", b"p@ss") if "@" in address else None)
        assert b"p@ss" not in bytes(proxy.url)


@pytest.fixture
def backend_authority() -> trustme.CA:
    """A cluster's own, which no system knows."""
    return trustme.CA()


@pytest.fixture
def inside(backend_authority: trustme.CA) -> Iterator[Backend]:
    """A backend that asks for a client's certificate."""
    context = asking(backend_authority, ssl.CERT_REQUIRED)
    backend_authority.issue_cert(HOST).configure_cert(context)
    with Backend(context) as backend:
        yield backend


def asking(authority: trustme.CA, mode: ssl.VerifyMode) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = mode
    authority.configure_trust(context)
    return context


def own_client(network: PluginNetwork, authority: trustme.CA, folder: Path) -> httpx.Client:
    """As a plugin has one for a cluster: its CA, and a certificate to log in with."""
    pair, certificate, key = (
        authority.issue_cert("client.example"),
        folder / "client.pem",
        folder / "client.key",
    )
    pair.cert_chain_pems[0].write_to_path(certificate)
    pair.private_key_pem.write_to_path(key)
    return network.http(
        authorities=authority.cert_pem.bytes().decode(), certificate=(certificate, key)
    )


def test_a_plugins_own_ca_is_trusted_without_a_certificate(
    network_of: NetworkOf, authority: trustme.CA, secure: Backend
) -> None:
    with network_of(None).http(authorities=authority.cert_pem.bytes().decode()) as client:
        assert client.get(secure.base_url).text == "it is I"


def test_a_plugins_ca_file_is_trusted_beside_all_others(
    network_of: NetworkOf,
    secure: Backend,
    backend_authority: trustme.CA,
    ca_file: Path,
    tmp_path: Path,
) -> None:
    backend_authority.cert_pem.write_to_path(tmp_path / "backend.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    backend_authority.issue_cert(LOOPBACK).configure_cert(context)
    with (
        Backend(context) as other,
        network_of(ca_file).http(ca_file=tmp_path / "backend.pem") as client,
    ):
        assert [client.get(each.base_url).text for each in (secure, other)] == ["it is I"] * 2


def test_no_plugin_gets_the_cookies_of_another(network_of: NetworkOf, plain: Backend) -> None:
    client = network_of(None).http()
    for _ in range(2):
        client.get(plain.base_url)
    assert len(plain.asked) == 2
    assert ["cookie" in asked.headers for asked in plain.asked] == [False, False]


def test_certificates_are_read_for_https_only(
    network_of: NetworkOf,
    plain: Backend,
    secure: Backend,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
    client = network_of(None).http()
    assert client.get(plain.base_url).text == "it is I"
    with pytest.raises(NotConfiguredError, match="certificates to trust cannot be read"):
        client.get(secure.base_url)


def test_a_proxy_over_tls_is_trusted_by_the_systems_ca_and_gets_no_certificate_of_a_backend(
    network_of: NetworkOf,
    authority: trustme.CA,
    backend_authority: trustme.CA,
    inside: Backend,
    ca_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    context, shown = asking(backend_authority, ssl.CERT_OPTIONAL), []
    authority.issue_cert(LOOPBACK).configure_cert(context)

    def serve(exchange: Exchange) -> None:
        assert isinstance(exchange.client, ssl.SSLSocket)
        shown.append(exchange.client.getpeercert())
        tunnels_tls(exchange, inside.port)

    monkeypatch.setenv("SSL_CERT_FILE", str(ca_file))
    with Faulty((LOOPBACK, 1), then=serve, tls=context) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"https://{LOOPBACK}:{proxy.port}")
        with own_client(network_of(None), backend_authority, tmp_path) as client:
            assert client.get(f"https://{HOST}/x").text == "it is I"
    assert shown == [None]


def test_a_backends_ca_does_not_vouch_for_a_proxy(
    network_of: NetworkOf,
    backend_authority: trustme.CA,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    backend_authority.issue_cert(LOOPBACK).configure_cert(context)
    with Faulty((LOOPBACK, 1), then=says(200), tls=context) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"https://{LOOPBACK}:{proxy.port}")
        with (
            own_client(network_of(None), backend_authority, tmp_path) as client,
            pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"),
        ):
            client.get(f"https://{HOST}/x")
        assert proxy.received() == []


def tunnels_tls(exchange: Exchange, port: int) -> None:
    """As `tunnels` does, by one thread: two may not use one TLS connection."""
    with socket.create_connection((LOOPBACK, port), timeout=10) as upstream:
        exchange.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
        client = exchange.client
        assert isinstance(client, ssl.SSLSocket)
        while True:
            for side in (
                [client] if client.pending() else select.select([client, upstream], [], [], 10)[0]
            ):
                piece = side.recv(65536)
                (upstream if side is client else client).sendall(piece)
                if not piece:
                    return


def test_redirects_are_not_followed(network_of: NetworkOf, plain: Backend) -> None:
    answer = network_of(None).http().get(plain.base_url + "/moved", headers={"authorization": "x"})
    assert (answer.status_code, answer.headers["location"]) == (302, "/elsewhere")
    assert len(plain.asked) == 1


def test_the_environments_proxy_is_used_also_for_tls_and_never_for_loopback(
    network_of: NetworkOf,
    secure: Backend,
    plain: Backend,
    ca_file: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    network = network_of(ca_file)
    with Faulty((LOOPBACK, 1), then=tunnels((LOOPBACK, secure.port))) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://user:pass@{LOOPBACK}:{proxy.port}")
        assert network.http().get(f"https://{HOST}/x").text == "it is I"
        (asked,) = proxy.received()
        assert (asked.method, asked.target) == ("CONNECT", f"{HOST}:443")
        assert asked.header("proxy-authorization") == "Basic dXNlcjpwYXNz"
        assert network.http().get(secure.base_url).text == "it is I"
        assert len(proxy.received()) == 1
    with Faulty((LOOPBACK, 1), then=says(200, "from the proxy")) as proxy:
        monkeypatch.setenv("http_proxy", f"http://{LOOPBACK}:{proxy.port}")
        # Unencrypted, though only as far as the proxy.
        with pytest.raises(NotConfiguredError, match=f"http://{HOST}"):
            network.http().get(f"http://{HOST}/x")
        assert network.http().get(plain.base_url).text == "it is I"
        assert proxy.received() == []


def test_a_socket_goes_through_the_proxy_and_tls_ends_behind_it(
    network_of: NetworkOf, secure: Backend, ca_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Faulty((LOOPBACK, 1), then=tunnels((LOOPBACK, secure.port))) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://user:p%40ss@{LOOPBACK}:{proxy.port}")
        line = network_of(ca_file).connect(f"https://{HOST}")
        with line:
            line.sendall(f"GET /x HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n".encode())
            assert b"".join(iter(lambda: line.recv(65536), b"")).endswith(b"it is I")
        (asked,) = proxy.received()
    assert (asked.method, asked.target) == ("CONNECT", f"{HOST}:443")
    assert asked.header("host") == f"{HOST}:443"
    assert asked.header("proxy-authorization") == "Basic dXNlcjpwQHNz"


@pytest.mark.parametrize(
    ("answer", "kind", "told"),
    [
        (says(407), "ProxyError", "407"),
        (says(502, "for people"), "ProxyError", "502"),
        (raw(b"SSH-2.0-OpenSSH_9.2\r\n\r\n"), "OSError", "not HTTP"),
        (raw(b"HTTP/1.1 200 Fine\r\n"), "OSError", "closed the connection"),
        (raw(b""), "OSError", "closed the connection"),
    ],
)
def test_a_proxy_that_makes_no_tunnel_is_an_error_of_the_socket(
    network_of: NetworkOf,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    answer: Fault,
    kind: str,
    told: str,
) -> None:
    caplog.set_level(0)
    with Faulty((LOOPBACK, 1), then=answer) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://user:pass@{LOOPBACK}:{proxy.port}")
        with pytest.raises(OSError, match=told) as caught:
            network_of(None).connect(f"https://{HOST}")
    assert type(caught.value).__name__ == kind
    assert "people" not in caplog.text + str(caught.value)


def test_a_proxy_that_nobody_runs_is_told_by_the_system(
    network_of: NetworkOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", f"http://{LOOPBACK}:{silent_port()}")
    with pytest.raises(ConnectionRefusedError):
        network_of(None).connect(f"https://{HOST}")


def test_a_host_of_no_proxy_gets_none(
    network_of: NetworkOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    monkeypatch.setenv("NO_PROXY", "inside.example,.corp")
    network = network_of(None)
    assert network.proxy(f"https://{HOST}/") == "http://proxy.example:3128"
    for host in ("inside.example", "vault.corp", "localhost", "127.0.0.1", "[::1]"):
        assert network.proxy(f"https://{host}/") is None


def test_an_invalid_proxy_is_reported_and_not_shown(
    network_of: NetworkOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "ftp://user:c4nary@proxy.example")
    with pytest.raises(NotConfiguredError, match="not an http") as told:
        network_of(None).proxy(f"https://{HOST}/")
    assert "c4nary" not in f"{told.value} {told.value.remedy}"


def test_the_bundle_is_the_systems_certificates_and_the_users(
    network_of: NetworkOf, ca_file: Path, authority: trustme.CA, secure: Backend
) -> None:
    bundle = network_of(ca_file).ca_bundle()
    assert bundle is not None
    assert bundle.stat().st_mode & 0o777 == 0o600
    assert authority.cert_pem.bytes().strip() in bundle.read_bytes()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cafile=bundle)
    assert context.cert_store_stats()["x509_ca"] > 50, "the system's are there, too"
    assert httpx.get(secure.base_url, verify=context, trust_env=False).text == "it is I"


def test_there_is_no_bundle_where_nothing_is_set(network_of: NetworkOf) -> None:
    assert network_of(None).ca_bundle() is None


@pytest.mark.parametrize("how", ["SSL_CERT_FILE", "SSL_CERT_DIR"])
def test_the_certificates_that_the_environment_names_take_the_place_of_the_systems(
    network_of: NetworkOf, tmp_path: Path, ca_file: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    other, folder = trustme.CA(), tmp_path / "certs"
    folder.mkdir()
    file = folder / "0a1b2c3d.0"
    other.cert_pem.write_to_path(file)
    (folder / "README").write_text("no certificate")
    monkeypatch.setenv(how, str(file if how == "SSL_CERT_FILE" else folder))
    for extra, expected in ((None, 1), (ca_file, 2)):
        bundle = network_of(extra).ca_bundle()
        assert bundle is not None
        assert bundle.read_bytes().count(b"BEGIN CERTIFICATE") == expected


@pytest.mark.parametrize("name", ["SSL_CERT_FILE", "ca_file"])
def test_unreadable_certificates_are_reported(
    network_of: NetworkOf,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    plain: Backend,
    name: str,
) -> None:
    missing = tmp_path / "missing.pem"
    if name == "SSL_CERT_FILE":
        monkeypatch.setenv(name, str(missing))
    network = network_of(missing if name == "ca_file" else None)
    for ask in (
        network.ca_bundle,
        network.tls_context,
        lambda: network.connect(plain.base_url.replace("http", "https")),
    ):
        with pytest.raises(
            NotConfiguredError, match="the certificates to trust cannot be read"
        ) as told:
            ask()
        assert "SSL_CERT_FILE" in told.value.remedy


def test_the_bundle_goes_when_the_process_ends(tmp_path: Path, ca_file: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from sealpipe.network.plugin_network import "
        "PluginNetwork\n"
        "bundle = PluginNetwork(Path(sys.argv[1])).ca_bundle(); print(bundle, bundle.exists())"
    )
    environ = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code, ca_file],
        check=True,
        capture_output=True,
        text=True,
        env=environ,
    )
    path, existed = done.stdout.split()
    assert existed == "True"
    assert path.startswith(str(tmp_path))
    assert not Path(path).exists()
