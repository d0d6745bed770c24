"""Workflows, run by act, against the rehearsal service and a real OpenBao.

A smoke test of what the fake runner (tests/actions) holds in detail: act hands a masked value to the next job, and
splits no mask into its lines; the real runner does neither.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sealpipe import Client
from sealpipe_rehearsal.running import Running
from support.act import Repository
from support.openbao import Bao, dev_server
from support.parts import ROOT
from support.services import one_service, service
from support.terminal import addresses, opened

__all__ = ["one_service", "service"]

WORKFLOWS = ROOT / "docs" / "ci" / "workflows"
PASSWORD = "canary-of-the-application"
ANSWER = f"""#!{sys.executable} -I
import os
from sealpipe_rehearsal.people import Submitter
Submitter().submit(os.environ["COLLECT_LINK"], {{"User name": "acme-bot", "Password": "canary-of-the-vendor"}})
"""


@pytest.fixture(scope="module")
def bao() -> Iterator[Bao]:
    with dev_server() as running:
        yield running


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


@pytest.fixture
def key(service: Running) -> str:
    return service.create_key().reveal()


def ended(service: Running, key: str) -> tuple[list[str], list[str]]:
    """The states of all shares, and of all requests."""
    with Client(api_key=key, base_url=service.base_url, link_base_url=service.link_base_url) as client:
        return [row.state for row in client.shares()], [row.state for row in client.requests()]


def test_a_link_crosses_jobs_an_answer_reaches_openbao_and_a_failure_ends_what_is_open(
    repository: Repository, service: Running, bao: Bao, key: str
) -> None:
    repository.script("answer", ANSWER)
    ran = repository.run(
        "push",
        Path(__file__).with_name("end_to_end.yml"),
        secrets={"SEALPIPE_API_KEY": key, "APP_PASSWORD": PASSWORD, "VAULT_TOKEN": bao.root},
        variables={"VAULT_ADDR": bao.addr},
        environ=addresses(service),
    )
    assert ran.succeeded("Share"), ran.log
    assert ran.succeeded("Unseal, request and collect"), ran.log
    assert (ran.code, ran.succeeded("Fail, and expire")) == (1, False), ran.log
    stored = bao.call("GET", "secret/data/vendor/acme")["data"]
    assert stored == {"user": "acme-bot", "password": "canary-of-the-vendor"}
    assert repository.told.read_text().startswith(service.link_base_url), "and nothing came after the failure"
    for canary in (PASSWORD, "canary-of-the-vendor", key, bao.root):
        assert canary not in ran.log
    print(ended(service, key))
    print(ran.log)
    assert 0
