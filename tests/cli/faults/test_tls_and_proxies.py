"""Faults below HTTP: TLS that does not come about, proxies that refuse, connections that nobody
serves.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trustme

from cli.faults.resuming import assert_finished_by_resume
from sealpipe import Client, Field, errors
from support import faults
from support.faults import says
from support.faulty import Faulty, Greeting, same_bytes
from support.job import Job
from support.stopwatch import stopwatch
from support.wires import LOOPBACK

DEADLINE, LATE = 3.0, 9.0
"""Seconds, and how many more a busy machine may take; a peer holds its connection for at least
20.
"""
HOST = "service.example"
"""Behind a proxy: loopback is never reached through one."""


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def tls(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(LOOPBACK, HOST).configure_cert(context)
    return context


@pytest.fixture
def ca_file(authority: trustme.CA, tmp_path: Path) -> str:
    path = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(path)
    return str(path)


def assert_nothing_left(job: Job) -> None:
    assert job.shares() == []
    assert job.left() == []


def test_an_answer_lost_inside_tls_is_replayed(
    tls: ssl.SSLContext, ca_file: str, proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    server = proxied(faults.reset_after, faults.half_body, tls=tls)
    job = job_at(server)
    done = job.share(SEALPIPE_CA_FILE=ca_file)
    assert done.code == 0, done
    assert len(server.received()) == 3
    assert same_bytes(server.received())
    assert len(job.shares()) == 1
    assert job.opens(done.out)


def test_an_untrusted_certificate_means_nothing_was_sent(
    tls: ssl.SSLContext, proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    server = proxied(tls=tls)
    job = job_at(server)
    done = job.share("--deadline", "30s")
    assert (done.code, done.out) == (10, "")
    assert server.received() == []
    assert_nothing_left(job)


def test_plain_text_where_tls_is_expected_is_provably_nothing_sent(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    server = proxied(greets=lambda _, client: client.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n"))
    job = job_at(server)
    done = job.share(
        "--deadline", "30s", SEALPIPE_BASE_URL=server.base_url.replace("http:", "https:")
    )
    assert (done.code, done.out) == (10, "")
    assert_nothing_left(job)


@pytest.mark.parametrize(
    "greeting", [faults.drips_tls, faults.never_reads], ids=["drip-fed", "silent"]
)
def test_a_tls_handshake_that_never_ends_is_bounded_by_the_deadline(
    greeting: Greeting, proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    server = proxied(greets=greeting)
    job = job_at(server)
    base_url = server.base_url.replace("http:", "https:")
    with (
        Client(
            api_key=job.api_key, base_url=base_url, link_base_url=base_url, deadline=DEADLINE
        ) as client,
        stopwatch() as seconds,
    ):
        with pytest.raises(errors.ConnectError):
            client.share([Field("DB_PASSWORD", job.secret)], outbox=job.outbox)
        assert seconds() < DEADLINE + LATE
    assert_nothing_left(job)


def test_a_connection_that_is_reset_at_once_is_finished_by_resume(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    """Something of the request had left before the RST came: nothing is proven."""
    server = proxied(greets=faults.hangs_up)
    job = job_at(server)
    done = job.share("--deadline", "30s")
    assert (done.code, done.out) == (9, "")
    assert job.shares() == []
    server.mend()
    assert_finished_by_resume(job)


def test_a_large_share_to_a_silent_peer_obeys_the_deadline(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    server = proxied(greets=faults.never_reads)
    job = job_at(server)
    arguments: dict[str, Any] = {
        "base_url": server.base_url,
        "link_base_url": job.service.link_base_url,
    }
    large = job.secret * 300_000
    with (
        Client(api_key=job.api_key, deadline=DEADLINE, **arguments) as client,
        stopwatch() as seconds,
    ):
        with pytest.raises(errors.OutcomeUnknownError):
            client.share([Field("DB_PASSWORD", large)], outbox=job.outbox)
        assert seconds() < DEADLINE + LATE
    assert len(job.entries()) == 1
    assert job.shares() == []


# -- proxies ----------------------------------------------------------------------------------


def through(proxy: Faulty, ca_file: str) -> dict[str, str]:
    return {
        "HTTPS_PROXY": f"http://{LOOPBACK}:{proxy.port}",
        "SEALPIPE_BASE_URL": f"https://{HOST}/v1",
        "SEALPIPE_CA_FILE": ca_file,
    }


def test_a_share_goes_through_a_proxy_that_sees_no_credential_and_an_answer_lost_there_is_replayed(
    tls: ssl.SSLContext, ca_file: str, proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    server = proxied(faults.reset_after, tls=tls)
    proxy = proxied(then=faults.tunnels((LOOPBACK, server.port)))
    job = job_at(server)
    environ: dict[str, Any] = through(proxy, ca_file)
    done = job.share(**environ)
    assert done.code == 0, done
    assert {request.method for request in proxy.received()} == {"CONNECT"}
    assert all(request.target == f"{HOST}:443" for request in proxy.received())
    assert all(request.header("authorization") is None for request in proxy.received())
    assert len(server.received()) == 2
    assert same_bytes(server.received())
    assert len(job.shares()) == 1
    assert job.opens(done.out)


@pytest.mark.parametrize("status", [407, 403, 502, 503])
def test_a_proxy_that_refuses_to_connect_is_provably_nothing_sent(
    status: int, ca_file: str, proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    proxy = proxied(then=says(status, "<!DOCTYPE html>", {"Proxy-Authenticate": "Basic"}))
    job = job_at(proxy)
    environ: dict[str, Any] = through(proxy, ca_file)
    done = job.share("--deadline", "30s", **environ)
    assert (done.code, done.out) == (10, ""), done
    assert {request.method for request in proxy.received()} == {"CONNECT"}
    assert_nothing_left(job)


def test_a_proxy_that_hangs_is_provably_nothing_sent(
    ca_file: str, proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    proxy = proxied(then=faults.holds_before)
    job = job_at(proxy)
    environ: dict[str, Any] = through(proxy, ca_file)
    done = job.share("--deadline", "5s", **environ)
    assert (done.code, done.out) == (10, ""), done
    assert_nothing_left(job)


def test_a_tunnel_that_breaks_after_the_commit_is_finished_by_resume(
    tls: ssl.SSLContext, ca_file: str, proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    server = proxied(faults.reset_after, tls=tls)
    proxy = proxied(faults.tunnels((LOOPBACK, server.port)), then=says(407))
    job = job_at(server)
    environ: dict[str, Any] = through(proxy, ca_file)
    done = job.share("--deadline", "30s", **environ)
    assert (done.code, done.out) == (9, "")
    proxy.plan(then=faults.tunnels((LOOPBACK, server.port)))
    assert_finished_by_resume(job, **environ)


def test_loopback_is_never_reached_through_a_proxy(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    server, proxy = proxied(), proxied()
    job = job_at(server)
    address = f"http://{LOOPBACK}:{proxy.port}"
    done = job.share(HTTP_PROXY=address, http_proxy=address, HTTPS_PROXY=address, ALL_PROXY=address)
    assert done.code == 0
    assert proxy.connections == 0
