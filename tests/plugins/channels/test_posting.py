"""How channels reach a system by HTTP: what was certainly not sent, and why, reads differently each
time.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from plugins.channels.using import Using
from sealpipe.errors import NotConfiguredError, UnavailableError
from sealpipe.network.plugin_network import PluginNetwork
from sealpipe.plugin import Context
from sealpipe_plugins.http_api import Endpoint
from support.fake_chat import FakeSlack
from support.fake_web import Reply
from support.ports import silent_port


@pytest.fixture
def authority(tmp_path: Path) -> trustme.CA:
    made = trustme.CA()
    made.cert_pem.write_to_path(tmp_path / "ca.pem")
    return made


@pytest.fixture
def serving(authority: trustme.CA, request: pytest.FixtureRequest) -> Iterator[FakeSlack]:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(getattr(request, "param", "127.0.0.1")).configure_cert(tls)
    with FakeSlack(tls=tls) as server:
        yield server


def at(slack: FakeSlack, ca_file: Path | None) -> Using:
    return Using("slack", {"SLACK_WEBHOOK_URL": slack.webhook_url}, ca_file)


def test_a_ca_that_sealpipe_trusts_serves(serving: FakeSlack, tmp_path: Path) -> None:
    at(serving, tmp_path / "ca.pem").send("")
    assert len(serving.messages) == 1


def test_one_that_it_does_not_trust_is_named(serving: FakeSlack) -> None:
    error = at(serving, None).fails(NotConfiguredError, "")
    at_host = f"Slack at 127.0.0.1:{serving.port}"
    assert (
        error.message == f"{at_host} has a certificate from an authority that is not trusted here"
    )
    assert error.remedy == "name the CA's file in SEALPIPE_CA_FILE"
    assert not serving.asked


@pytest.mark.parametrize("serving", ["other.example"], indirect=True)
def test_another_hosts_certificate(serving: FakeSlack, tmp_path: Path) -> None:
    error = at(serving, tmp_path / "ca.pem").fails(NotConfiguredError, "")
    assert "has a certificate for another host" in error.message


def test_tls_where_there_is_none() -> None:
    with FakeSlack() as slack:
        url = slack.webhook_url.replace("http:", "https:")
        error = Using("slack", {"SLACK_WEBHOOK_URL": url}).fails(NotConfiguredError, "")
    assert "does not speak TLS" in error.message


def test_no_server_is_an_error() -> None:
    port = silent_port()
    error = Using("slack", {"SLACK_WEBHOOK_URL": f"http://127.0.0.1:{port}/x"}).fails(
        UnavailableError, ""
    )
    assert error.message == f"Slack at 127.0.0.1:{port}: connection refused"


def test_no_such_host(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    error = Using("slack", {"SLACK_WEBHOOK_URL": "https://nosuch.invalid/x"}).fails(
        UnavailableError, ""
    )
    assert error.message == "Slack at nosuch.invalid: the host does not exist"


def test_a_proxy_that_wants_a_login(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeSlack() as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.base_url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        using = Using(
            "slack", {"SLACK_WEBHOOK_URL": "https://hooks.acme.example/services/Hook-Canary"}
        )
        proxy.instead.append(Reply(407, "", {"Proxy-Authenticate": "Basic"}))
        error = using.fails(NotConfiguredError, "")
        assert error.message == "the proxy to Slack at hooks.acme.example requires a login"
        assert "HTTPS_PROXY" in error.remedy
        proxy.instead.append(Reply(502))
        assert "refused the connection" in using.fails(UnavailableError, "").message
        assert [(asked.method, asked.target) for asked in proxy.asked] == [
            ("CONNECT", "hooks.acme.example:443")
        ] * 2


def test_a_hidden_address_arrives_whole_though_only_its_host_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("DEBUG")
    network = PluginNetwork(None)
    with FakeSlack() as slack:
        url = f"{slack.base_url}/a%2Fb/c;d?sig=x%2By&sp=%2Fz"
        slack.instead.append(Reply(200, "ok"))
        Endpoint(Context("t", network=lambda: network), "T", url, setting="u", hidden=True).post(
            "", {}
        )
        assert slack.asked[0].target == "/a%2Fb/c;d?sig=x%2By&sp=%2Fz"
    network.http().close()
    assert "HTTP Request: POST http://127.0.0.1" in caplog.text
    assert "sig=" not in caplog.text


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [
        ("30", 30.0),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        ("soon", None),
        ("-1", None),
        ("", None),
    ],
)
def test_how_long_to_wait_is_read_in_either_form(asked: str, seconds: float | None) -> None:
    with FakeSlack() as slack:
        slack.instead.append(Reply(429, "", {"Retry-After": asked}))
        error = Using("slack", {"SLACK_WEBHOOK_URL": slack.webhook_url}).fails(UnavailableError, "")
    assert error.retry_after == seconds
