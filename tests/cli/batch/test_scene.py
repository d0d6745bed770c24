"""A whole batch: twelve vendors from a spreadsheet, four weeks, two machines with one database,
mail and a vault.

docs/how-to/twelve-vendors.md tells it, with the same file and the same commands.

Eight submit, one of them twice; one sends junk, one asks for a new link, one never answers, one is
cancelled.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import pytest

from sealpipe.batch.database.postgres import PostgresDatabase
from sealpipe.batch.database.records import SECOND
from sealpipe.wire import keys, sealed_box
from sealpipe_rehearsal.people import LinkRefusedError
from sealpipe_rehearsal.running_service import RunningService
from support.mailbox import Mailbox
from support.openbao import Bao, dev_server
from support.parts import ROOT, Postgres, run_postgres
from support.terminal import Done, Terminal

DAY = 86400.0
PAGE = (ROOT / "docs/how-to/twelve-vendors.md").read_text(encoding="utf-8")
FILE = PAGE.partition("```toml\n")[2].partition("```")[0]
"""The batch file on the page that tells this story."""
STATUS = "vendors\t" + PAGE.partition("```text\nvendors\t")[2].partition("```")[0]
"""What `status` prints on the third day, as the page shows it."""
VENDORS = tuple(f"v{number}" for number in range(1, 13))
LINES = (
    "\ufeffName;E-mail;System",
    *(f'{each};{each}@vendor.example;"CRM; live"' for each in VENDORS),
)


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with run_postgres() as server:
        yield server


@pytest.fixture(scope="module")
def bao() -> Iterator[Bao]:
    with dev_server() as server:
        yield server


class Scene:
    """Two machines in turn, the vendors' mail, and a clock for the database and the service."""

    def __init__(
        self, machines: tuple[Terminal, Terminal], service: RunningService, mailbox: Mailbox
    ) -> None:
        self._machines = machines
        self._service = service
        self._mailbox = mailbox
        self._turn = 0
        self._seconds = 0.0
        self.typed: set[str] = set()

    def wait(self, seconds: float) -> None:
        self._seconds += seconds
        self._service.advance(seconds)

    def batch(self, *words: str) -> Done:
        """Run a command on the machine whose turn it is."""
        self._turn += 1
        self.typed.add(" ".join(words).removesuffix(" --output json"))
        with self._later():
            return self._machines[self._turn % 2].sealpipe("batch", *words)

    @property
    def here(self) -> Path:
        """The working directory of the machine that was used last."""
        return self._machines[self._turn % 2].here

    def run(self) -> Done:
        return self.batch("run", "vendors.toml", "--output", "json")

    @contextmanager
    def _later(self) -> Iterator[None]:
        read_clock, offset = PostgresDatabase.read_clock, round(self._seconds * SECOND)
        with mock.patch.object(
            PostgresDatabase, "read_clock", lambda self: read_clock(self) + offset
        ):
            yield

    def links(self, name: str) -> list[str]:
        """The links in all mails to a vendor, oldest first."""
        address = f"{name}@vendor.example"
        mails = [each for each in self._mailbox.received if address in each.recipients]
        return [re.findall(r"http\S+/r/\S+", mail.body())[0] for mail in mails]

    def submit(self, name: str, value: str = "", *, old: str = "") -> None:
        """A vendor fills in the form of its latest link, or of an old one."""
        form = {"Staging password": value or f"canary-of-{name}"}
        self._service.submitter().submit(old or self.links(name)[-1], form)

    def send_junk(self, name: str) -> None:
        stranger = keys.from_seed(b"\7" * 32)
        self._service.submitter().send(
            self.links(name)[-1], sealed_box.seal(stranger.public_key, b"[]")
        )

    def states(self) -> Mapping[str, str]:
        return {
            row["key"]: row["state"]
            for row in self.batch("status", "vendors", "--output", "json").json["rows"]
        }


@pytest.fixture
def scene(
    user: Terminal, service: RunningService, postgres: Postgres, bao: Bao, tmp_path: Path
) -> Iterator[Scene]:
    service.set_account(plan="enterprise", requests_per_minute=100_000)
    with Mailbox(tmp_path) as mailbox:
        user.environ |= {
            **mailbox.environ(),
            "VAULT_ADDR": bao.addr,
            "VAULT_TOKEN": bao.root,
            "DATABASE_URL": postgres.address,
            "SEALPIPE_BATCH_DATABASE": "env:DATABASE_URL",
        }
        other = Terminal(tmp_path / "other")
        other.environ |= {
            name: value for name, value in user.environ.items() if name not in ("HOME", "TMPDIR")
        }
        for machine in (user, other):
            machine.file("vendors.toml", FILE)
            machine.file("vendors.csv", "\r\n".join(LINES))
        scene = Scene((user, other), service, mailbox)
        assert scene.batch("database", "init").code == 0
        yield scene


def hide_times(text: str) -> str:
    return re.sub(r"\d{4}-\d\d-\d\dT[\d:]+Z", "TIME", text)


def test_twelve_vendors_in_four_weeks(scene: Scene, bao: Bao) -> None:
    assert scene.batch("plan", "vendors.toml").err == "12 rows: 12 create\n"
    assert scene.run().json["counts"] == {"waiting": 12}
    assert [len(scene.links(name)) for name in VENDORS] == [1] * 12
    assert scene.run().json["changes"] == []

    scene.wait(DAY)
    for name in ("v1", "v2", "v3", "v4"):
        scene.submit(name)
    assert sorted(each["key"] for each in scene.run().json["changes"]) == ["v1", "v2", "v3", "v4"]

    scene.wait(DAY)
    scene.submit("v5", "canary-too-early")
    scene.submit("v5")  # corrects it
    scene.send_junk("v6")
    failed = scene.run()
    assert (failed.code, [row["key"] for row in failed.json["troubled"]]) == (18, ["v6"])
    assert "sealpipe batch reissue vendors" in failed.json["troubled"][0]["remedy"]
    assert hide_times(scene.batch("status", "vendors").out) == hide_times(STATUS)
    old = scene.links("v7")[-1]
    assert scene.batch("reissue", "vendors", "v6", "v7").code == 0
    with pytest.raises(LinkRefusedError):
        scene.submit("v7", "canary-too-late", old=old)
    for name in ("v6", "v7"):
        assert len(scene.links(name)) == 2
        scene.submit(name)

    scene.wait(1.5 * DAY)
    reminded = scene.run().json["changes"]
    assert sorted(each["key"] for each in reminded if each["what"] == "reminded") == [
        "v10",
        "v11",
        "v12",
        "v8",
        "v9",
    ]
    assert sorted(each["key"] for each in reminded if each["what"] == "collected") == ["v6", "v7"]
    scene.submit("v8")
    assert scene.batch("cancel", "vendors", "v12").err == "v12: cancelled\n"

    scene.wait(4 * DAY)
    for name in ("v9", "v10"):
        scene.submit(name)
    scene.run()
    assert [len(scene.links(name)) for name in VENDORS] == [1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 2]

    scene.wait(20 * DAY)
    last = scene.run()
    assert (last.code, last.json["counts"]) == (0, {"done": 10, "expired": 1, "cancelled": 1})
    assert scene.states() == {
        **dict.fromkeys(VENDORS, "done"),
        "v11": "expired",
        "v12": "cancelled",
    }
    stored = {
        name: bao.call("GET", f"secret/data/vendors/{name}")["data"]["password"]
        for name in VENDORS[:10]
    }
    assert stored == {name: f"canary-of-{name}" for name in VENDORS[:10]}
    assert scene.run().json["changes"] == []
    assert sum(len(scene.links(name)) for name in VENDORS) == 20

    assert scene.batch("report", "vendors", "--html", "report.html").code == 0
    page = (scene.here / "report.html").read_text()
    assert "10 of 12 rows with a submission, and the batch has ended" in page
    assert "canary" not in page
    assert (
        scene.batch("purge", "vendors", "--older-than", "90d").err
        == "vendors: kept: its last change is more recent\n"
    )
    scene.wait(91 * DAY)
    assert scene.batch("purge", "vendors", "--older-than", "90d").err == "vendors: purged\n"
    assert set(re.findall(r"^\$ sealpipe batch (.+)$", PAGE, re.MULTILINE)) <= scene.typed
