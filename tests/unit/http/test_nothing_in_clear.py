"""What leaves for another machine leaves by https: one gate, on the address that is really used."""

from __future__ import annotations

import base64
import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from sealpipe import Client
from sealpipe.errors import (
    ConnectError,
    NotConfiguredError,
    PluginError,
    ReferenceValueError,
    SettingError,
)
from sealpipe.network.plugin_network import PluginNetwork
from sealpipe.parsing import is_loopback, parse_base_url
from sealpipe.registry import Registry
from support.wires import Wire
from unit.http.talkers import TALKERS, post, read

# Not to listen on.
REACHES_HERE = ("127.1", "0.0.0.0", "2130706433", "[::ffff:127.0.0.1]", "0x7f.0.0.1")  # noqa: S104
"""Spellings that lead to a listener of this machine on most systems, and are not taken for it: none
is the name that a certificate, a proxy's exception or another resolver would know."""

STRANGE = (
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "127.0.0.999",
    "127.0.0.\u0660",
    "127.0.0.01",
    "a.localhost",
)


@pytest.fixture
def ear() -> object:
    with Wire(lambda client: client.recv(1)) as wire:
        yield wire


def _set(monkeypatch: pytest.MonkeyPatch, name: str, address: str) -> str:
    talker = TALKERS[name]
    for variable, value in talker.environ.items():
        monkeypatch.setenv(variable, value.replace("{}", address))
    return talker.to.replace("{}", address)


def _failure(name: str, to: str) -> PluginError:
    network = PluginNetwork(None)
    try:
        with pytest.raises(PluginError) as failed:
            TALKERS[name].do(Registry(environ=os.environ, network=lambda: network), to)
    finally:
        network.close()
    return failed.value


@pytest.mark.parametrize("name", TALKERS)
def test_http_to_another_host_is_refused_before_a_byte(
    ear: Wire, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """0.0.0.0 stands for the other machine: a connection to it does arrive here, and would be
    counted.
    """
    error = _failure(name, _set(monkeypatch, name, f"http://0.0.0.0:{ear.port}"))
    assert isinstance(error, NotConfiguredError | ReferenceValueError), error
    assert TALKERS[name].setting in error.message
    assert "https" in error.remedy or "https" in error.message
    assert ear.connections == 0


@pytest.mark.parametrize("name", TALKERS)
def test_http_to_this_machine_is_taken(
    ear: Wire, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The other half: the address is what was refused above, nothing else."""
    to = _set(monkeypatch, name, f"http://127.0.0.1:{ear.port}")
    _failure(name, to)  # what listens there hangs up
    assert ear.connections >= 1


@pytest.mark.parametrize("host", [*REACHES_HERE, *STRANGE])
@pytest.mark.parametrize("way", ["http", "connect", "service"])
def test_other_spellings_of_this_machine_are_other_machines(ear: Wire, host: str, way: str) -> None:
    network, url = PluginNetwork(None), f"http://{host}:{ear.port}/v1"
    calls = {
        "http": lambda: network.http().get(url),
        "connect": lambda: network.connect(url).close(),
        "service": lambda: parse_base_url(url),
    }
    with pytest.raises((NotConfiguredError, SettingError, httpx.InvalidURL)):
        calls[way]()
    network.close()
    assert ear.connections == 0


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.255.255.255", "127.0.0.53", "::1"])
def test_these_are_this_machine(host: str) -> None:
    assert is_loopback(host)


def test_a_profile_of_aws_is_no_way_around(
    ear: Wire, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = tmp_path / "aws-config"
    config.write_text(
        f"[profile p]\nregion = eu-west-1\nendpoint_url = http://0.0.0.0:{ear.port}\n"
    )
    _set(monkeypatch, "aws-sm", "")
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    monkeypatch.setenv("AWS_PROFILE", "p")
    error = _failure("aws-sm", "aws-sm:db")
    assert "the endpoint_url in AWS's config file" in error.message
    assert ear.connections == 0


def test_a_source_that_needs_no_network_is_let_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERE", "v")
    assert read(Registry(environ=os.environ), "env:HERE")


@pytest.mark.parametrize("way", ["http", "connect"])
def test_where_a_name_has_really_led_to_counts(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    """`localhost` in a hosts file that says otherwise: there may be a connection, and there is no
    byte.
    """
    ask, address = socket.getaddrinfo, _other_address()
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda _host, *rest, **more: ask(address, *rest, **more)
    )
    network = PluginNetwork(None)
    with socket.create_server((address, 0)) as listening:
        url = f"http://localhost:{listening.getsockname()[1]}"
        with pytest.raises(NotConfiguredError, match=f"http://{address}"):
            network.http().get(url) if way == "http" else network.connect(url)
        network.close()
        taken, _ = listening.accept()
        with taken:
            taken.settimeout(5)
            assert taken.recv(1) == b""


@pytest.mark.parametrize("own", [{"SECURITY": "none"}, {"USERNAME": "ci", "PASSWORD": "p"}])
def test_a_mail_in_clear_stays_where_localhost_should_lead(
    monkeypatch: pytest.MonkeyPatch, own: Mapping[str, str]
) -> None:
    """The second has a relay inside the network by the config file, and a login, which is for this
    machine only.
    """
    ask, address = socket.getaddrinfo, _other_address()
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda _host, *rest, **more: ask(address, *rest, **more)
    )
    network = PluginNetwork(None)
    config = {} if "SECURITY" in own else {"plugins": {"email": {"security": "plain-internal"}}}
    with socket.create_server((address, 0)) as listening:
        where = {
            "HOST": "localhost",
            "PORT": str(listening.getsockname()[1]),
            "SENDER": "ci@example.com",
        }
        environ = {
            f"SEALPIPE_PLUGIN_EMAIL__{name}": value for name, value in {**where, **own}.items()
        }
        registry = Registry(environ=environ, config=lambda: config, network=lambda: network)
        with pytest.raises(
            NotConfiguredError, match=f"localhost resolves to another machine .{address}."
        ):
            post(registry, "email:ops@example.com")
        taken, _ = listening.accept()
        with taken:
            taken.settimeout(5)
            assert taken.recv(1) == b""


PARTS = (bytes(range(12)), bytes(range(40, 72)), bytes(range(100, 132)))
KEY = "svc_sk_live_" + ".".join(
    base64.urlsafe_b64encode(part).decode().rstrip("=") for part in PARTS
)


def test_the_credential_goes_nowhere_else_either(monkeypatch: pytest.MonkeyPatch) -> None:
    """The service's own address: `localhost` in a hosts file that says otherwise gets no
    request.
    """
    ask, address = socket.getaddrinfo, _other_address()
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda _host, *rest, **more: ask(address, *rest, **more)
    )
    with socket.create_server((address, 0)) as listening:
        url = f"http://localhost:{listening.getsockname()[1]}/v1"
        own = {
            "api_key": KEY,
            "base_url": url,
            "link_base_url": "https://share.example",
            "deadline": 30,
        }
        with pytest.raises(ConnectError, match="localhost resolves to another machine"):
            Client(**own).get_stats()
        listening.settimeout(0.1)
        with suppress(TimeoutError):
            while True:
                taken, _ = listening.accept()
                with taken:
                    taken.settimeout(5)
                    assert taken.recv(1) == b""


def _other_address() -> str:
    """One of this machine that is not loopback. Nothing is sent to find it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no address but loopback")
        return str(probe.getsockname()[0])
