"""Collecting into places: a request that somebody has answered, the machines that collect it, and
the backends.

The fixtures start each backend of `support.places` once, and only where a test asks for it; they go
with a conftest that has a `service`.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from sealpipe_rehearsal.running_service import RunningService
from support import places
from support.aws import InAwsSm, InAwsSsm
from support.fake_github import FakeGitHub, InGitHub
from support.fake_gitlab import FakeGitLab, InGitLab
from support.job import Job, client_of
from support.kubernetes import Cluster, InKubernetes, emulator
from support.openbao import Bao, InVault, dev_server
from support.parts import secret_service
from support.terminal import Done

PROMPTS = ("Staging password", "user=User name:text")
"""Their ids are `staging_password` and `user`."""
MARK = "p.w."
"""How every password here begins: no output may have it, and no short code has a dot."""


@dataclass(frozen=True)
class Given:
    """What somebody typed, and the code that the submission got.

    Every backend of ours can hold the values.
    """

    code: str
    password: str
    user: str = "bob.the-builder"

    def values(self) -> dict[str, bytes]:
        """By the keys that they are stored under."""
        return {"password": self.password.encode(), "user": self.user.encode()}


@dataclass(frozen=True)
class Asked:
    """A request of a job's account. Its receipt is a file beside the job's others."""

    job: Job
    code: str
    link: str
    receipt: Path

    def answer(self) -> Given:
        """Somebody fills the form in."""
        password = f"{MARK}{secrets.token_hex(12)}"
        given = {"Staging password": password, "User name": Given.user}
        return Given(self.job.service.submitter().submit(self.link, given), password)

    def words(self, *targets: str) -> list[str]:
        """`collect RECEIPT` into these targets."""
        return [
            "collect",
            str(self.receipt),
            *(word for target in targets for word in ("--to", target)),
        ]

    def stores(
        self,
        *targets: str,
        more: Sequence[str] = (),
        code: int = 0,
        under: Sequence[str] = (),
        **environ: str | None,
    ) -> Done:
        """Collect into these targets, with that exit code. No value shows in any output."""
        done = self.job.run(*self.words(*targets), *more, under=under, **environ)
        assert done.code == code, done
        assert MARK not in done.out + done.err, done
        return done

    def deletes(self) -> int:
        """How many DELETEs of it have arrived at the service."""
        return sum(
            seen.method == "DELETE" and self.code in seen.target for seen in self.job.service.seen()
        )

    def is_over(self) -> bool:
        """Whether it has ended, as the service has it."""
        with client_of(self.job) as client:
            return client.get_request(self.code).public_key is None

    def submissions(self) -> int:
        """How many the service has."""
        with client_of(self.job) as client:
            return len(client.list_submissions(self.code).items)


def asked(job: Job, name: str = "acme.json") -> Asked:
    """A new request, made by the command line."""
    words = [word for prompt in PROMPTS for word in ("--ask", prompt)]
    done = job.run("request", *words, "--receipt", name, "--output", "json")
    assert done.code == 0, done
    return Asked(job, done.json["short_code"], done.json["collect_link"], job.terminal.here / name)


def asked_at_once(job: Job, name: str = "acme.json") -> Asked:
    """The same by the library, for tests that make many."""
    with client_of(job) as client:
        made = client.request(PROMPTS)
        receipt = job.terminal.file(name, made.receipt.dump())
        return Asked(job, made.short_code, made.collect_link, receipt)


def another_machine(job: Job) -> dict[str, str | None]:
    """Settings of one that has a state folder of its own, and knows nothing of the job's."""
    return {"SEALPIPE_STATE_DIR": str(job.state.parent / f"state-{secrets.token_hex(4)}")}


def an_hour_later(job: Job) -> None:
    """As if what the job's records tell of a DELETE had happened an hour and more ago."""
    for record in (job.state / "requests").glob("*.jsonl"):
        lines = [json.loads(line) for line in record.read_text().splitlines()]
        for line in lines:
            if "sending" in line:
                line["sending"] = {name: _earlier(at) for name, at in line["sending"].items()}
        record.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))


def _earlier(at: str | None) -> str | None:
    return None if at is None else (datetime.fromisoformat(at) - timedelta(hours=2)).isoformat()


Into = Callable[[str], places.Place]

NAMES = (
    "vault",
    "aws-sm",
    "aws-ssm",
    "k8s",
    "github-secret",
    "gitlab-variable",
    "keyring",
    "file",
    "dir",
    "dotenv",
)


@pytest.fixture
def job(service: RunningService, tmp_path: Path) -> Job:
    """For a folder whose conftest has none."""
    return Job(tmp_path, service)


@pytest.fixture
def group() -> str:
    """A name that no other test uses."""
    return f"g{secrets.token_hex(5)}"


@pytest.fixture(scope="module")
def bao() -> Iterator[Bao]:
    """One for each file: it is never quite idle, and would go on to the end of the run."""
    with dev_server() as bao:
        bao.call("POST", "sys/mounts/kv1", {"type": "kv", "options": {"version": "1"}})
        yield bao


@pytest.fixture
def vault(bao: Bao) -> InVault:
    return InVault(bao)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    with emulator() as url, Cluster(url) as made:
        yield made


@pytest.fixture
def hub() -> Iterator[FakeGitHub]:
    with FakeGitHub() as server:
        yield server


@pytest.fixture
def lab() -> Iterator[FakeGitLab]:
    with FakeGitLab() as server:
        yield server


@pytest.fixture(scope="session")
def keyring_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    with secret_service(tmp_path_factory.mktemp("session")) as environ:
        yield environ


@pytest.fixture
def into(request: pytest.FixtureRequest, job: Job) -> Into:
    """A backend by its name; the job knows it, too."""
    get = request.getfixturevalue
    made: dict[str, Callable[[], places.Place]] = {
        "vault": lambda: InVault(get("bao")),
        "aws-sm": lambda: InAwsSm(get("one_moto")),
        "aws-ssm": lambda: InAwsSsm(get("one_moto")),
        "k8s": lambda: InKubernetes(get("cluster")),
        "github-secret": lambda: InGitHub(get("hub")),
        "gitlab-variable": lambda: InGitLab(get("lab")),
        "keyring": lambda: places.InKeyring(get("keyring_session")),
        "file": lambda: places.InFile(job.terminal.here),
        "dir": lambda: places.InDir(job.terminal.here),
        "dotenv": lambda: places.InDotenv(job.terminal.here),
    }

    def make(name: str) -> places.Place:
        place = made[name]()
        job.terminal.environ |= place.environ()
        return place

    return make
