"""A cluster for each test, and no kubeconfig of anybody's."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from support.kubernetes import Cluster, emulator


@pytest.fixture
def kmock_url(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    with emulator() as url:
        yield url


@pytest.fixture
def cluster(kmock_url: str) -> Iterator[Cluster]:
    """On plain HTTP, as `kubectl proxy` is."""
    made = Cluster(kmock_url)
    yield made
    made.close()


@pytest.fixture
def authority() -> trustme.CA:
    """The cluster's own."""
    return trustme.CA()


@pytest.fixture
def secure(kmock_url: str, authority: trustme.CA) -> Iterator[Cluster]:
    """On TLS; a client certificate of the same authority is asked for, and does for a token."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    made = Cluster(kmock_url, context)
    made.secret("prod", "db", {"pw": b"x"})
    yield made
    made.close()
