"""Who else on the way could learn something: key logs, proxies, servers that redirect, servers that
are not the one.
"""

from __future__ import annotations

import asyncio
import datetime
import ssl
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import trustme

from sealpipe import AsyncClient, Client, Field, ProtocolError
from sealpipe_rehearsal.running_service import RunningService
from support.faults import says
from support.faulty import Faulty
from support.leaks import Detector
from support.ports import silent_port
from support.terminal import Terminal, opened
from support.wires import Proxy, Wire, tls

SECRET = {"DB_PASSWORD": "s3cret-of-the-database"}
SHARE = ["share", "-f", "env:DB_PASSWORD", "--deadline", "30s"]
YESTERDAY = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def context(certificate: trustme.LeafCert) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(made)
    return made


@pytest.fixture
def secure(service: RunningService, authority: trustme.CA) -> Iterator[Wire]:
    """The service behind TLS, for 127.0.0.1 and for api.example."""
    certificate = authority.issue_cert("127.0.0.1", "api.example")
    with tls(context(certificate), service.address) as wire:
        yield wire


@pytest.fixture
def user(user: Terminal, secure: Wire, authority: trustme.CA) -> Terminal:
    """A user whose service speaks TLS, and who trusts its authority."""
    authority.cert_pem.write_to_path(str(user.here / "ca.pem"))
    user.environ["SEALPIPE_BASE_URL"] = f"https://127.0.0.1:{secure.port}/v1"
    user.environ["SEALPIPE_CA_FILE"] = str(user.here / "ca.pem")
    user.environ |= SECRET
    return user


def secrets_of(user: Terminal) -> Detector:
    _, auth, custody = user.environ["SEALPIPE_API_KEY"].split(".")
    return Detector(
        {
            "auth": auth.encode(),
            "custody": custody.encode(),
            "value": SECRET["DB_PASSWORD"].encode(),
        }
    )


def test_a_share_goes_through_tls(user: Terminal, service: RunningService) -> None:
    done = user.sealpipe(*SHARE)
    assert done.code == 0, done
    assert opened(service, done.out) == SECRET


def test_sslkeylogfile_is_not_obeyed(user: Terminal, secure: Wire) -> None:
    log = user.tmp / "keys.log"
    assert user.sealpipe(*SHARE, SSLKEYLOGFILE=str(log)).code == 0
    assert not log.exists()
    # With it, whoever does not look out for this writes the session's keys there.
    naive = (
        "import ssl, sys, urllib.request as r; c = ssl.create_default_context(cafile=sys.argv[2])\n"
    )
    naive += "try: r.urlopen(sys.argv[1], context=c)\nexcept r.HTTPError: pass"
    url = f"https://127.0.0.1:{secure.port}/v1"
    done = user.run(
        [sys.executable, "-c", naive, url, str(user.here / "ca.pem")],
        environ={"SSLKEYLOGFILE": str(log)},
    )
    assert (done.code, "CLIENT_TRAFFIC_SECRET_0" in log.read_text()) == (0, True)


def test_the_certificate_may_be_named_by_ssl_cert_file(user: Terminal) -> None:
    done = user.sealpipe(*SHARE, SEALPIPE_CA_FILE=None, SSL_CERT_FILE=str(user.here / "ca.pem"))
    assert done.code == 0, done


@pytest.mark.parametrize("wrong", ["an unknown authority", "another name", "expired"])
def test_a_certificate_that_is_not_right_is_refused_before_a_byte_is_sent(
    user: Terminal, service: RunningService, authority: trustme.CA, wrong: str
) -> None:
    certificate = {
        "an unknown authority": lambda: trustme.CA().issue_cert("127.0.0.1"),
        "another name": lambda: authority.issue_cert("127.0.0.2", "localhost"),
        "expired": lambda: authority.issue_cert("127.0.0.1", not_after=YESTERDAY),
    }[wrong]()
    with tls(context(certificate), service.address) as wire:
        done = user.sealpipe(*SHARE, SEALPIPE_BASE_URL=f"https://127.0.0.1:{wire.port}/v1")
        assert wire.connections > 0
    assert (done.code, done.out, service.seen()) == (10, "", [])
    assert "certificate verify failed" in done.err


# -- proxies ------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_loopback_never_goes_through_a_proxy(
    user: Terminal, service: RunningService, secure: Wire, scheme: str
) -> None:
    base_url = service.base_url if scheme == "http" else f"https://127.0.0.1:{secure.port}/v1"
    with Proxy(secure.port) as proxy:
        names = ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")
        proxies = dict.fromkeys(names, f"http://127.0.0.1:{proxy.port}")
        assert user.sealpipe(*SHARE, SEALPIPE_BASE_URL=base_url, **proxies).code == 0
        assert (proxy.connections, proxy.heard) == (0, b"")


def test_another_host_goes_through_the_proxy_which_sees_its_name_and_no_more(
    user: Terminal, secure: Wire
) -> None:
    with Proxy(secure.port) as proxy:
        environ = {
            "HTTPS_PROXY": f"http://me:pr0xy-pass@127.0.0.1:{proxy.port}",
            "SEALPIPE_BASE_URL": "https://api.example/v1",
        }
        done = user.sealpipe(*SHARE, **environ)
        assert done.code == 0, done
        assert proxy.heard.startswith(b"CONNECT api.example:443 HTTP/1.1\r\n")
        assert b"Proxy-Authorization: Basic bWU6cHIweHktcGFzcw==" in proxy.heard
        assert secrets_of(user).find(bytes(proxy.heard)) == set()
        assert "pr0xy-pass" not in done.out + done.err


def test_no_proxy_is_honoured(user: Terminal, secure: Wire) -> None:
    with Proxy(secure.port) as proxy:
        environ = {
            "HTTPS_PROXY": f"http://127.0.0.1:{proxy.port}",
            "NO_PROXY": "api.invalid",
            "SEALPIPE_BASE_URL": "https://api.invalid/v1",
        }
        assert user.sealpipe(*SHARE, **environ).code == 10, (
            "there is no such host, and the proxy is not asked"
        )
        assert proxy.connections == 0


def test_a_failing_proxys_password_is_not_shown(user: Terminal) -> None:
    environ = {
        "HTTPS_PROXY": f"http://me:pr0xy-pass@127.0.0.1:{silent_port()}",
        "SEALPIPE_BASE_URL": "https://api.example/v1",
    }
    done = user.sealpipe(*SHARE, "--output", "json", **environ)
    assert (done.code, done.out) == (10, "")
    assert "pr0xy-pass" not in done.err


# -- redirects ----------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_never_followed_with_the_credential(
    bare: Terminal, service: RunningService, status: int
) -> None:
    bare.at(service)
    with Proxy(9) as elsewhere, Faulty(service.address) as faulty:
        faulty.plan(
            then=says(status, headers={"Location": f"http://127.0.0.1:{elsewhere.port}/v1/shares"})
        )
        done = bare.sealpipe(*SHARE, SEALPIPE_BASE_URL=faulty.base_url, **SECRET)
        assert (done.code, done.out, len(faulty.received())) == (12, "", 1)
        assert elsewhere.connections == 0
    assert f"redirect ({status}), which is never followed" in done.err


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
def test_the_clients_follow_no_redirect_either(
    service: RunningService, *, asynchronous: bool
) -> None:
    with Proxy(9) as elsewhere, Faulty(service.address) as faulty:
        faulty.plan(
            then=says(307, headers={"Location": f"http://127.0.0.1:{elsewhere.port}/v1/shares"})
        )
        settings = {
            "api_key": service.create_key(),
            "base_url": faulty.base_url,
            "link_base_url": service.link_base_url,
        }

        with pytest.raises(ProtocolError):
            asyncio.run(_share_async(settings)) if asynchronous else _share(settings)
        assert (elsewhere.connections, len(faulty.received())) == (0, 1)


def _share(settings: dict[str, Any]) -> None:
    with Client(**settings) as client:
        client.share([Field("x", "y")])


async def _share_async(settings: dict[str, Any]) -> None:
    async with AsyncClient(**settings) as client:
        await client.share([Field("x", "y")])
