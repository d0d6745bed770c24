"""One rehearsal service, and one OpenBao where it is asked for; each test has an account of its
own.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.fake_web import Receiver
from support.job import call, call_at, job, job_at, proxied, service
from support.openbao import Bao, dev_server

__all__ = ["call", "call_at", "job", "job_at", "proxied", "service"]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


@pytest.fixture(scope="module")
def bao() -> Iterator[Bao]:
    """It is never quite idle: it ends with the file."""
    with dev_server() as bao:
        yield bao
