"""The page's workflows for batches, run by act: with PostgreSQL and an approved plan, and with a
cache.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.workflows.act import Ran, Repository
from sealpipe_rehearsal.running_service import RunningService
from support.ci_jobs import later_sealpipe
from support.mailbox import Mailbox
from support.parts import ROOT, Postgres, run_postgres
from support.terminal import Terminal, addresses

Mail = tuple[dict[str, str], dict[str, str], dict[str, str]]
DOCS = ROOT / "docs/how-to/ci/workflows"
CANARY = "canary-of-acme"
ADOPTS = "Adopt the requests"
"""The step that a run has only where its database may not be the last one."""


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with run_postgres() as server:
        yield server


class Vendors:
    """A repository with a batch of two vendors, whose jobs have a machine of their own each
    time.
    """

    def __init__(
        self,
        repository: Repository,
        service: RunningService,
        key: str,
        mailbox: Mailbox,
        mail: Mail,
    ) -> None:
        self._repository, self._service, self._mailbox = repository, service, mailbox
        self.variables, secrets, self._own = mail
        self.secrets = {"SEALPIPE_API_KEY": key, **secrets}
        self.place = repository.place
        (repository.here / "vendors.csv").write_text(
            "name,email\nacme,ann@acme.example\nbolt,bob@bolt.example\n"
        )
        (repository.here / "vendors.toml").write_text(f"""
name = "vendors"
kind = "request"
rows = "vendors.csv"
key = "name"
[request]
ask = ["Password"]
send = ["email:{{email}}"]
[collect]
to = ["file:{self.place}/{{name}}.secret"]
""")

    def run(self, event: str, name: str, **inputs: str) -> Ran:
        return self._repository.run(
            event,
            DOCS / name,
            secrets=self.secrets,
            variables={**addresses(self._service), **self.variables},
            environ=self._own,
            inputs=inputs,
        )

    def mails(self) -> list[str]:
        return [address for each in self._mailbox.received for address in each.recipients]

    def submit(self) -> None:
        """Acme submits, and some time passes."""
        (received,) = [
            each for each in self._mailbox.received if each.recipients == ["ann@acme.example"]
        ]
        text = next(received.mail.iter_parts()).get_content()
        (link,) = [line for line in text.splitlines() if line.startswith("http")]
        self._service.submitter().submit(link, {"Password": CANARY})

    def stored(self) -> str:
        file = self.place / "acme.secret"
        return file.read_text() if file.exists() else ""


@pytest.fixture
def vendors(
    repository: Repository, service: RunningService, key: str, mailbox: Mailbox, mail: Mail
) -> Vendors:
    return Vendors(repository, service, key, mailbox, mail)


def test_docs_an_approved_plan_creates_and_a_schedule_collects(
    vendors: Vendors, repository: Repository, postgres: Postgres, tmp_path: Path
) -> None:
    address = {"DATABASE_URL": postgres.address, "SEALPIPE_BATCH_DATABASE": "env:DATABASE_URL"}
    admin = Terminal(
        tmp_path / "admin", **address, SEALPIPE_API_KEY=vendors.secrets["SEALPIPE_API_KEY"]
    )
    assert admin.sealpipe("batch", "database", "init").code == 0
    vendors.secrets["DATABASE_URL"] = postgres.address
    proposed = vendors.run("pull_request", "batch.yml")
    assert (proposed.code, vendors.mails()) == (0, []), proposed.log
    assert "| acme | create |  |" in proposed.log, "a reviewer sees it in the summary"
    shutil.rmtree(repository.store / "plan")
    approved = vendors.run("push", "batch.yml")
    assert approved.code == 0, approved.log
    assert [path.name for path in (repository.store / "plan").iterdir()] == ["plan.json"]
    assert sorted(vendors.mails()) == ["ann@acme.example", "bob@bolt.example"]
    vendors.submit()
    repository.sealpipe = later_sealpipe(tmp_path / "later", 120, postgres=True)
    shutil.rmtree(repository.store / "plan")
    scheduled = vendors.run("schedule", "batch.yml")
    assert scheduled.code == 0, scheduled.log
    assert (vendors.stored(), len(vendors.mails())) == (CANARY, 2), scheduled.log
    assert not (repository.store / "plan").exists(), "nothing is created, so nobody has to approve"
    assert CANARY not in scheduled.log
    assert "acme.example" not in scheduled.log + approved.log


def test_docs_a_cache_may_be_an_older_copy_or_gone(
    vendors: Vendors, repository: Repository, tmp_path: Path
) -> None:
    first = vendors.run("workflow_dispatch", "batch-cache.yml", command="run")
    assert (first.code, len(vendors.mails())) == (0, 2), first.log
    assert ADOPTS not in first.log
    (cache,) = repository.store.iterdir()
    assert cache.name.endswith("-ended")
    # What a run leaves that died after its first step.
    cache.rename(cache.with_name(cache.name.replace("-ended", "-begun")))
    vendors.submit()
    vendors.variables["VENDORS_STARTED"] = "true"
    repository.sealpipe = later_sealpipe(tmp_path / "later", 120)
    older = vendors.run("schedule", "batch-cache.yml")
    assert (older.code, vendors.stored(), len(vendors.mails())) == (0, CANARY, 2), older.log
    assert ADOPTS in older.log
    kept = sorted(repository.store.iterdir())
    assert [each.name.rpartition("-")[2] for each in kept] == ["begun", "begun", "ended"]
    for each in kept:
        shutil.rmtree(each)
    gone = vendors.run("schedule", "batch-cache.yml")
    assert (gone.code, len(vendors.mails())) == (1, 2), gone.log
    assert "2 rows failed or are blocked" in gone.log, (
        "whether each got its mail, only a person can know"
    )
    assert ADOPTS in gone.log
    assert CANARY not in older.log + gone.log
