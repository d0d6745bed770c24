"""Workflows, run by act against the rehearsal service and a real OpenBao: one of all actions, and
the pages' own.

A smoke test of what the fake runner (tests/e2e/actions) holds in detail: act hands a masked value
to the next job, and splits no mask into its lines; the real runner does neither.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from e2e.workflows.act import Ran, Repository
from sealpipe import Client
from sealpipe_rehearsal.people import LinkRefusedError
from sealpipe_rehearsal.running_service import RunningService
from support.mailbox import Mailbox
from support.openbao import Bao
from support.parts import ROOT, shebang
from support.terminal import addresses, opened

Mail = tuple[dict[str, str], dict[str, str], dict[str, str]]

DOCS = ROOT / "docs/how-to/ci/workflows"
PASSWORD = "canary-of-the-application"
VENDORS = {"User name": "acme-bot", "Password": "canary-of-the-vendor"}
STORED = {"user": "acme-bot", "password": "canary-of-the-vendor"}
ANSWER = f"""{shebang("-I")}import os
from sealpipe_rehearsal.people import Submitter
Submitter().submit(os.environ["COLLECT_LINK"], {VENDORS!r})
"""


def account(service: RunningService, key: str) -> Client:
    return Client(api_key=key, base_url=service.base_url, link_base_url=service.link_base_url)


def mailed(mailbox: Mailbox, ran: Ran) -> str:
    """The link in the only mail; nothing of it is in the log."""
    assert (ran.code, len(mailbox.received)) == (0, 1), ran.log
    text = next(mailbox.received[0].mail.iter_parts()).get_content()
    [link] = [line for line in text.splitlines() if line.startswith("http")]
    return str(link)


@pytest.mark.usefixtures("extended")
def test_a_link_crosses_jobs_an_answer_reaches_openbao_and_a_failure_ends_what_is_open(
    repository: Repository, service: RunningService, bao: Bao, key: str
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
    assert bao.call("GET", "secret/data/vendor/acme")["data"] == STORED
    [link] = repository.told.read_text().splitlines()
    with pytest.raises(LinkRefusedError):
        opened(service, link)
    with account(service, key) as client:
        assert list(client.iter_requests()) == []
        assert len(list(client.iter_requests(status="expired"))) == 2
    for canary in (PASSWORD, STORED["password"], key, bao.root):
        assert canary not in ran.log


def test_docs_a_rehearsal_needs_no_account(repository: Repository, service: RunningService) -> None:
    ran = repository.run(
        "workflow_dispatch", DOCS / "rehearsal.yml", secrets={}, variables={}, environ={}
    )
    assert ran.code == 0, ran.log
    assert re.search(r"created, [\w-]{12}", ran.log), ran.log
    assert service.seen() == []


def test_docs_a_link_for_a_contractor_on_release(
    repository: Repository, service: RunningService, key: str, mailbox: Mailbox, mail: Mail
) -> None:
    variables, secrets, own = mail
    ran = repository.run(
        "release",
        DOCS / "release-link.yml",
        secrets={"SEALPIPE_API_KEY": key, "STAGING_PASSWORD": PASSWORD, **secrets},
        variables={**addresses(service), "CONTRACTOR": "ann@example.com", **variables},
        environ=own,
    )
    link = mailed(mailbox, ran)
    assert mailbox.received[0].recipients == ["ann@example.com"]
    assert opened(service, link) == {"User": "staging", "Password": PASSWORD}
    assert link.partition("#")[2] not in ran.log


@pytest.mark.usefixtures("extended")
def test_docs_credentials_from_a_vendor_on_a_schedule(
    repository: Repository,
    service: RunningService,
    key: str,
    mailbox: Mailbox,
    mail: Mail,
    bao: Bao,
    job_token: dict[str, str],
) -> None:
    variables, secrets, own = mail
    asked = repository.run(
        "workflow_dispatch",
        DOCS / "vendor-request.yml",
        secrets={"SEALPIPE_API_KEY": key, **secrets},
        variables={**addresses(service), **variables},
        environ=own,
        inputs={"vendor": "ops@vendor.example"},
    )
    link = mailed(mailbox, asked)
    with account(service, key) as client:
        [request] = client.iter_requests()

    def collect() -> Ran:
        return repository.run(
            "schedule",
            DOCS / "vendor-collect.yml",
            secrets={"SEALPIPE_API_KEY": key},
            variables={
                **addresses(service),
                "VENDOR_REQUEST": request.short_code,
                "VAULT_ADDR": bao.addr,
            },
            environ=job_token,
        )

    pending = collect()
    assert (pending.code, "outcome=pending" in pending.log) == (0, True), pending.log
    service.submitter().submit(link, VENDORS)
    collected = collect()
    assert (collected.code, "outcome=collected" in collected.log) == (0, True), collected.log
    stored_at = bao.call("GET", "secret/metadata/vendor/acme")["current_version"]
    assert bao.call("GET", "secret/data/vendor/acme")["data"] == STORED
    with account(service, key) as client:
        assert [row.short_code for row in client.iter_requests(status="expired")] == [
            request.short_code
        ]
    assert STORED["password"] not in collected.log
    again = collect()
    assert (again.code, "outcome=collected" in again.log) == (0, True), again.log
    assert bao.call("GET", "secret/metadata/vendor/acme")["current_version"] == stored_at


def test_docs_vault_to_recipient_with_the_roles_and_policies_of_the_page(
    repository: Repository,
    service: RunningService,
    key: str,
    mailbox: Mailbox,
    mail: Mail,
    bao: Bao,
    job_token: dict[str, str],
) -> None:
    bao.call("POST", "secret/data/app/db", {"data": {"user": "app", "password": PASSWORD}})
    variables, secrets, own = mail
    ran = repository.run(
        "workflow_dispatch",
        DOCS / "vault-to-recipient.yml",
        secrets={"SEALPIPE_API_KEY": key, **secrets},
        variables={**addresses(service), **variables, "VAULT_ADDR": bao.addr},
        environ={**own, **job_token},
        inputs={"recipient": "ann@example.com"},
    )
    assert opened(service, mailed(mailbox, ran)) == {"User": "app", "Password": PASSWORD}
    assert PASSWORD not in ran.log


@pytest.mark.parametrize("code", [0, 1])
def test_docs_a_link_ends_where_a_later_step_fails(
    repository: Repository, service: RunningService, key: str, code: int
) -> None:
    repository.script(
        "deploy", f"#!/bin/sh\necho \"$HANDOVER_LINK\" > '{repository.told}'\nexit {code}\n"
    )
    ran = repository.run(
        "push",
        DOCS / "expire-on-failure.yml",
        secrets={"SEALPIPE_API_KEY": key, "APP_PASSWORD": PASSWORD},
        variables=addresses(service),
    )
    assert ran.code == code, ran.log
    link = repository.told.read_text()
    if code:
        with pytest.raises(LinkRefusedError):
            opened(service, link)
    else:
        assert opened(service, link) == {"Password": PASSWORD}


def test_docs_a_sealed_link_across_jobs(
    repository: Repository, service: RunningService, key: str
) -> None:
    ran = repository.run(
        "workflow_dispatch",
        DOCS / "sealed-link.yml",
        secrets={"SEALPIPE_API_KEY": key, "APP_PASSWORD": PASSWORD},
        variables=addresses(service),
    )
    assert ran.code == 0, ran.log
    link = repository.told.read_text()
    assert opened(service, link) == {"Password": PASSWORD}
    assert link.strip().partition("#")[2] not in ran.log


def test_docs_the_reusable_workflow_hands_on_what_may_cross_jobs(
    repository: Repository, service: RunningService, key: str
) -> None:
    repository.add(ROOT / ".github" / "workflows" / "share.yml")
    ran = repository.run(
        "workflow_dispatch",
        DOCS / "call-share.yml",
        secrets={"SEALPIPE_API_KEY": key, "APP_PASSWORD": PASSWORD},
        variables=addresses(service),
    )
    assert ran.code == 0, ran.log
    assert opened(service, repository.told.read_text()) == {"Password": PASSWORD}
