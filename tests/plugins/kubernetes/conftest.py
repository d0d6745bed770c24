"""A cluster for each test."""

from __future__ import annotations

import ssl
from collections.abc import Iterator

import pytest
import trustme

from support.kubernetes import Cluster, cluster, kmock_url

__all__ = ["cluster", "kmock_url"]


@pytest.fixture
def authority() -> trustme.CA:
    """The cluster's own."""
    return trustme.CA()


@pytest.fixture
def secure(kmock_url: str, authority: trustme.CA) -> Iterator[Cluster]:
    """On TLS; a client certificate of the same authority is asked for, and does for a token."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with Cluster(kmock_url, context) as made:
        made.secret("prod", "db", {"pw": b"x"})
        yield made
