"""`sealpipe batch` at a service: a batch's whole life by its commands, what they print, and their
exit codes.
"""

from __future__ import annotations

import csv
import http.client
import json
import re
import socket
import subprocess
import sys
import time
from contextlib import closing
from datetime import datetime
from pathlib import Path
from unittest import mock

import pytest

from cli.batch.vendors import ROWS, VENDORS, count_creates
from sealpipe.api.operation import Credential
from sealpipe.batch.database.records import SECOND
from sealpipe.batch.database.sqlite import FILE_NAME, SqliteDatabase
from sealpipe.cli import render
from sealpipe.state.ledger import open_ledger
from sealpipe_rehearsal.running_service import RunningService
from support.ports import free_port
from support.terminal import Done, Terminal

THIRTY = Path(__file__).parents[2] / "unit" / "batch" / "thirty"
THIRTY_LISTS = ("expected", "plugins")


@pytest.fixture
def vendors(user: Terminal) -> Terminal:
    """A user with a batch file of two vendors."""
    user.file("vendors.toml", VENDORS)
    user.file("vendors.csv", ROWS)
    return user


def batch(user: Terminal, *words: str, later: float = 0, **environ: str | None) -> Done:
    """Run a command, so many seconds later by the database's clock."""
    read_clock = SqliteDatabase.read_clock
    with mock.patch.object(
        SqliteDatabase, "read_clock", lambda self: read_clock(self) + round(later * SECOND)
    ):
        return user.sealpipe("batch", *words, **environ)


def submit(user: Terminal, service: RunningService, name: str, value: str) -> None:
    """A vendor follows the link that was delivered to its file."""
    text = (user.here / f"{name}.link").read_text()
    collect_link = next(word for word in text.split() if word.startswith("http"))
    service.submitter().submit(collect_link, {"Password": value})


def test_a_submission_is_stored_by_the_next_run(vendors: Terminal, service: RunningService) -> None:
    assert batch(vendors, "run", "vendors.toml").code == 0
    submit(vendors, service, "acme", "canary-of-acme")
    done = batch(vendors, "run", "vendors.toml", later=120)
    assert done.code == 0, done
    assert done.out == "vendors\t2 rows: 1 waiting, 1 done\n"
    assert done.err == "acme: collected\n"
    assert (vendors.here / "acme.secret").read_text() == "canary-of-acme"
    told = batch(vendors, "status", "vendors", "--output", "json").json
    assert (told["counts"], told["stored"]) == ({"waiting": 1, "done": 1}, 1)
    assert [(row["key"], row["state"], row["outcome"]) for row in told["rows"]] == [
        ("bolt", "waiting", ""),
        ("acme", "done", "collected"),
    ]
    assert [event["what"] for event in told["rows"][1]["history"]] == [
        "created",
        "delivered",
        "collected",
    ]


def test_a_batch_is_rekeyed_and_goes_on(vendors: Terminal, service: RunningService) -> None:
    assert batch(vendors, "run", "vendors.toml").code == 0
    done = batch(vendors, "rekey", "vendors")
    assert (done.code, done.out) == (0, "")
    assert done.err == "vendors: 2 rows sealed under a new data key\n"
    done = batch(vendors, "rekey", "vendors", "--output", "json")
    assert done.json == {"schema": 1, "name": "vendors", "rows": 2}
    submit(vendors, service, "acme", "canary-of-acme")
    assert batch(vendors, "run", "vendors.toml", later=120).code == 0
    assert (vendors.here / "acme.secret").read_text() == "canary-of-acme"
    done = batch(vendors, "rekey", "vendor")
    assert (done.code, "did you mean vendors?" in done.err) == (2, True), done


def test_a_batch_in_a_file_is_not_rekeyed_beside_a_run(vendors: Terminal) -> None:
    assert batch(vendors, "run", "vendors.toml").code == 0
    database = vendors.home / ".local/state/sealpipe/batch" / FILE_NAME
    before = database.read_bytes()
    with closing(SqliteDatabase(database.parent)) as another, another.lock_runner():
        done = batch(vendors, "rekey", "vendors")
    assert done.code == 2, done
    assert "another `sealpipe batch run` or `worker` uses the SQLite file" in done.err
    assert database.read_bytes() == before


def test_collect_by_hand_names_the_batch_that_collects_a_request(
    vendors: Terminal, service: RunningService
) -> None:
    """A batch's requests have keys of their own, so the credential does not open them."""
    batch(vendors, "run", "vendors.toml")
    submit(vendors, service, "acme", "canary-of-acme")
    code = batch(vendors, "link", "vendors", "acme").out.strip().rpartition("/")[2]
    done = vendors.sealpipe("collect", code)
    assert (done.code, done.out) == (13, "")
    assert done.err.splitlines() == [
        (
            f"sealpipe: {code} is the request of row acme of the batch vendors, and has a key "
            "of its own"
        ),
        (
            "  `sealpipe batch run FILE --only acme` collects it when it is due; `sealpipe "
            "batch status vendors` says when"
        ),
    ]
    elsewhere = vendors.sealpipe("collect", code, SEALPIPE_BATCH_DATABASE="env:ELSEWHERE")
    assert "encrypted to a key that is not available" in elsewhere.err
    folder = vendors.home / ".local/state/sealpipe/batch"
    folder.rename(vendors.home / "elsewhere")
    assert (
        f"submissions to {code} are encrypted to a key that is not available"
        in vendors.sealpipe("collect", code).err
    )
    assert not folder.exists()


def test_the_name_of_a_file_is_no_name_of_a_batch(vendors: Terminal) -> None:
    batch(vendors, "run", "vendors.toml")
    vendors.file("other.toml", "name = 'vendors'\nkind = ''\n")
    for file in ("vendors.toml", "./other.toml"):
        done = batch(vendors, "status", file)
        assert (done.code, done.out) == (2, "")
        assert done.err.splitlines() == [
            f"sealpipe: {file} is the name of a file, and this command takes that of a batch",
            "  `sealpipe batch status vendors`",
        ]
    for file in ("missing.toml", "vendors.csv"):
        assert (
            batch(vendors, "cancel", file).err.splitlines()[1]
            == "  `sealpipe batch list` shows them"
        )


def test_a_command_without_its_row_lists_them_sorted(vendors: Terminal) -> None:
    vendors.file(
        "vendors.csv",
        "name,to\n" + "".join(f"{name},{name}.secret\n" for name in ("delta", "acme", "bolt")),
    )
    assert batch(vendors, "run", "vendors.toml").code == 0
    for words in (["link", "vendors"], ["link", "vendors", "zzz"], ["remind", "vendors", "zzz"]):
        done = batch(vendors, *words)
        assert (done.code, done.out) == (2, "")
        assert done.err.splitlines()[1] == "  the rows of vendors are acme, bolt, delta"
    assert batch(vendors, "link", "vendors").err.startswith("sealpipe: give the KEY of a row\n")
    for verb, done_to in (("remind", "reminded"), ("cancel", "cancelled")):
        lines = [f"{name}: {done_to}" for name in ("acme", "bolt", "delta")]
        if verb == "remind":  # the channel writes new files only
            for name in ("acme", "bolt", "delta"):
                (vendors.here / f"{name}.link").unlink()
        assert batch(vendors, verb, "vendors").err.splitlines() == lines


def test_json_of_a_run_has_changes_counts_and_calls(vendors: Terminal) -> None:
    done = batch(vendors, "run", "vendors.toml", "--output", "json")
    assert (done.code, done.err) == (0, "")
    told = done.json
    assert sorted((each["key"], each["what"]) for each in told["changes"]) == [
        ("acme", "created"),
        ("acme", "delivered"),
        ("bolt", "created"),
        ("bolt", "delivered"),
    ]
    assert (told["counts"], told["waiting"], told["failed"], told["troubled"]) == (
        {"waiting": 2},
        2,
        0,
        [],
    )
    assert told["calls"] >= 2
    assert told["next_due"].endswith("Z")


def test_a_second_run_sends_nothing(vendors: Terminal, service: RunningService) -> None:
    batch(vendors, "run", "vendors.toml")
    before = len(service.seen())
    done = batch(vendors, "run", "vendors.toml", "--detailed-exit-code", "--output", "json")
    assert (done.code, done.json["changes"], done.json["calls"]) == (15, [], 0)
    assert done.error["message"] == "2 rows still wait"
    assert len(service.seen()) == before


def test_on_a_terminal_a_run_has_one_line_of_progress(vendors: Terminal) -> None:
    with mock.patch.object(render, "is_terminal", return_value=True):
        done = batch(vendors, "run", "vendors.toml")
    assert (done.code, done.out) == (0, "vendors\t2 rows: 2 waiting\n")
    states = done.err.split("\r")
    assert states[-2] == "2 created, 2 delivered\x1b[K"
    assert re.fullmatch(r"\x1b\[Knext look at \S+Z; with --now at once\n", states[-1])


def test_only_the_named_rows_run(vendors: Terminal) -> None:
    done = batch(vendors, "run", "vendors.toml", "--only", "bolt")
    assert (done.code, done.out) == (0, "vendors\t2 rows: 1 new, 1 waiting\n")
    assert done.err == "bolt: created\nbolt: delivered\n"
    assert not (vendors.here / "acme.link").exists()
    unknown = batch(vendors, "run", "vendors.toml", "--only", "blot")
    assert (unknown.code, unknown.out) == (2, "")
    assert "did you mean bolt?" in unknown.err


def test_a_row_that_fails_stops_no_other(vendors: Terminal, service: RunningService) -> None:
    vendors.file("acme.secret", "of somebody else")
    assert batch(vendors, "run", "vendors.toml").code == 0
    submit(vendors, service, "acme", "canary-of-acme")
    submit(vendors, service, "bolt", "canary-of-bolt")
    done = batch(vendors, "run", "vendors.toml", "--output", "json", later=120)
    assert done.code == 18
    assert (vendors.here / "bolt.secret").read_text() == "canary-of-bolt"
    row = done.json["troubled"][0]
    assert (row["key"], row["state"], row["exit_code"]) == ("acme", "failed", 14)
    assert "acme.secret" in row["problem"]
    assert (done.error["type"], done.error["exit_code"]) == ("FailedRowsError", 18)
    again = batch(vendors, "run", "vendors.toml", later=120)
    assert again.code == 18
    assert again.err.startswith("acme: failed: ")
    assert "canary" not in again.err + done.err + done.out


def test_a_worker_does_what_becomes_due_until_it_is_stopped(
    vendors: Terminal, service: RunningService
) -> None:
    batch(vendors, "run", "vendors.toml")
    submit(vendors, service, "bolt", "canary-of-bolt")
    done = batch(vendors, "worker", "--for", "1s", later=120)
    assert (done.code, done.out) == (0, ""), done
    assert "vendors: bolt: collected\n" in done.err
    process = vendors.start("batch", "worker")
    assert process.stderr is not None
    assert process.stderr.readline().startswith("working on the batches in ")
    process.terminate()
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (0, "", "stopped\n")


def test_a_run_for_a_time_does_what_becomes_due_in_it(
    vendors: Terminal, service: RunningService
) -> None:
    first = batch(vendors, "run", "vendors.toml", "--output", "json")
    for name in ("acme", "bolt"):
        submit(vendors, service, name, "canary")
    due_at = datetime.fromisoformat(first.json["next_due"]).timestamp()
    begin: float | None = None

    def read_clock(_: SqliteDatabase) -> int:
        """A second before it, and going on from there once `begin` is known."""
        return round((due_at - 1 + (0 if begin is None else time.monotonic() - begin)) * SECOND)

    with mock.patch.object(SqliteDatabase, "read_clock", read_clock):
        assert (
            vendors.sealpipe("batch", "run", "vendors.toml", "--output", "json").json["changes"]
            == []
        )
        begin = time.monotonic()
        done = vendors.sealpipe("batch", "run", "vendors.toml", "--for", "60s", "--output", "json")
    assert done.json["counts"] == {"done": 2}
    assert (vendors.here / "acme.secret").read_text() == "canary"


def test_a_worker_serves_its_metrics_until_it_is_stopped(vendors: Terminal) -> None:
    batch(vendors, "run", "vendors.toml")
    address = f"127.0.0.1:{free_port()}"
    process = vendors.start("batch", "worker", "--metrics", address)
    assert process.stderr is not None
    assert process.stderr.readline().startswith("working on the batches in ")
    connection = http.client.HTTPConnection(address, timeout=60)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    process.terminate()
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "stopped\n")
    assert 'sealpipe_batch_rows{batch="vendors",state="waiting"} 2\n' in text
    assert "sealpipe_batch_calls_total 0\n" in text
    with pytest.raises(ConnectionRefusedError):
        http.client.HTTPConnection(address, timeout=60).request("GET", "/metrics")


def test_a_worker_whose_metrics_cannot_be_served_does_nothing(
    vendors: Terminal, service: RunningService
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = batch(vendors, "worker", "--metrics", f"127.0.0.1:{taken.getsockname()[1]}")
    assert (done.code, done.out) == (2, "")
    assert "metrics cannot be served at 127.0.0.1:" in done.err
    assert service.seen() == []


def test_all_mistakes_of_a_file_are_told_at_once(
    vendors: Terminal, service: RunningService
) -> None:
    vendors.file(
        "vendors.toml", VENDORS.replace("ask", "aks").replace("{name}.link", "{nmae}.link")
    )
    vendors.file("vendors.csv", ROWS + "acme,other.secret\n")
    for command in ("plan", "run"):
        done = batch(vendors, command, "vendors.toml")
        assert (done.code, done.out) == (2, "")
        assert "vendors.toml: 4 mistakes; nothing was sent" in done.err
        assert "did you mean name?" in done.err
        assert "vendors.csv:4, name: the key is the same as in line 2" in done.err
    mistakes = batch(vendors, "plan", "vendors.toml", "--output", "json").error["mistakes"]
    assert [each["place"] for each in mistakes][1:] == [
        "vendors.toml:8:1",
        "vendors.toml:9:9",
        "vendors.csv:4, name",
    ]
    assert service.seen() == []


def test_a_report_holds_no_secret_and_no_link(vendors: Terminal, service: RunningService) -> None:
    batch(vendors, "run", "vendors.toml")
    submit(vendors, service, "acme", "canary-of-acme")
    batch(vendors, "run", "vendors.toml", later=120)
    code = batch(vendors, "link", "vendors", "bolt").out.strip().rpartition("/")[2]
    done = batch(
        vendors, "report", "vendors", "--html", "r.html", "--csv", "r.csv", "--json", "r.json"
    )
    assert (done.code, done.out) == (0, "")
    for name in ("r.html", "r.csv", "r.json"):
        file = vendors.here / name
        assert file.stat().st_mode & 0o777 == 0o600
        text = file.read_text("utf-8")
        assert "acme" in text
        assert "canary" not in text
        assert code not in text
    assert json.loads((vendors.here / "r.json").read_text())["schema"] == 1
    with (vendors.here / "r.csv").open(encoding="utf-8-sig", newline="") as rows:
        assert [row["key"] for row in csv.DictReader(rows)] == ["bolt", "acme"]
    page = (vendors.here / "r.html").read_text("utf-8")
    assert "1 of 2 rows with a submission" in page


def test_a_key_that_looks_like_a_link_is_redacted(vendors: Terminal) -> None:
    key = "https://share.example/AbCdEfGhIjKl#1" + "Ab1" * 14 + "x"
    vendors.file("vendors.toml", VENDORS.replace("file:{name}.link", "file:{to}.link"))
    vendors.file("vendors.csv", f"name,to\n{key},acme.secret\n")
    batch(vendors, "run", "vendors.toml")
    batch(vendors, "report", "vendors", "--html", "r.html")
    assert "[withheld]" in (vendors.here / "r.html").read_text()
    assert (
        "Ab1Ab1"
        not in (vendors.here / "r.html").read_text() + batch(vendors, "status", "vendors").out
    )


def test_a_report_replaces_no_link_and_needs_its_folder(vendors: Terminal, tmp_path: Path) -> None:
    batch(vendors, "run", "vendors.toml")
    (vendors.here / "link.html").symlink_to(tmp_path / "elsewhere")
    for name, problem in (("link.html", "it is a link"), ("missing/r.html", "No such file")):
        done = batch(vendors, "report", "vendors", "--html", name)
        assert done.code == 2
        assert f"{name} cannot be written: {problem}" in done.err
    assert not (tmp_path / "elsewhere").exists()


def test_a_lost_database_is_adopted(vendors: Terminal, service: RunningService) -> None:
    batch(vendors, "run", "vendors.toml")
    for file in (vendors.home / ".local/state/sealpipe/batch").iterdir():
        file.unlink()
    creates = count_creates(service)
    done = batch(vendors, "adopt", "vendors.toml", "--output", "json")
    assert done.code == 0, done
    assert sorted(row["key"] for row in done.json["adopted"]) == ["acme", "bolt"]
    # The messages may not have been sent.
    assert all(row["is_blocked"] for row in done.json["adopted"])
    submit(vendors, service, "acme", "canary-of-acme")
    assert batch(vendors, "run", "vendors.toml", later=120).code == 18
    assert (vendors.here / "acme.secret").read_text() == "canary-of-acme"
    assert count_creates(service) == creates == 2


def test_other_commands_know_what_a_batch_has_expired(
    vendors: Terminal, service: RunningService
) -> None:
    batch(vendors, "run", "vendors.toml")
    code = batch(vendors, "link", "vendors", "acme").out.strip().rpartition("/")[2]
    assert batch(vendors, "cancel", "vendors", "acme").code == 0
    ledger = open_ledger(vendors.home / ".local/state/sealpipe/requests", service.base_url, code)
    assert ledger is not None
    assert ledger.is_expired
    ledger.close()


def test_another_credential_changes_nothing(vendors: Terminal, service: RunningService) -> None:
    batch(vendors, "run", "vendors.toml")
    other = service.create_key().reveal()
    for words in (("run", "vendors.toml"), ("status", "vendors"), ("cancel", "vendors")):
        done = batch(vendors, *words, SEALPIPE_API_KEY=other)
        assert (done.code, done.out) == (2, ""), words
    assert batch(vendors, "status", "vendors", "--output", "json").json["counts"] == {"waiting": 2}


def test_batches_of_another_key_are_told_and_taken_over(
    vendors: Terminal, service: RunningService
) -> None:
    old = vendors.environ["SEALPIPE_API_KEY"]
    batch(vendors, "run", "vendors.toml")
    key_id = Credential.parse(old).key_id
    vendors.environ["SEALPIPE_API_KEY"] = service.create_key().reveal()
    for words in (["list"], ["list", "--output", "json"], ["worker", "--for", "1s"]):
        done = batch(vendors, *words)
        assert done.code == 0, done
        (warning,) = (line for line in done.err.splitlines() if line.startswith("warning"))
        assert f"passed over 1 batch of another API key ({key_id})" in warning
        assert "SEALPIPE_API_KEY_PREVIOUS" in warning
    taken = batch(vendors, "list", SEALPIPE_API_KEY_PREVIOUS=old)
    assert (taken.err, taken.out.partition("\t")[0]) == ("", "vendors")
    submit(vendors, service, "acme", "canary-of-acme")
    assert batch(vendors, "run", "vendors.toml", later=120).code == 0
    assert (vendors.here / "acme.secret").read_text() == "canary-of-acme"


@pytest.mark.parametrize(
    ("reference", "code", "message"),
    [
        ("env:NOT_SET", 14, "the environment variable NOT_SET is not set"),
        ("text:postgresql://me:canary@db.example/x", 2, "do not use text:"),
    ],
)
def test_the_address_of_a_database_is_a_reference(
    vendors: Terminal, service: RunningService, reference: str, code: int, message: str
) -> None:
    for done in (
        batch(vendors, "run", "vendors.toml", "--database", reference),
        batch(vendors, "list", SEALPIPE_BATCH_DATABASE=reference),
        batch(vendors, "database", "init", "--database", reference),
    ):
        assert (done.code, done.out) == (code, "")
        assert message in done.err
        assert "canary" not in done.err
    assert service.seen() == []


def test_a_plan_tells_thirty_mistakes_and_what_plugins_refuse(
    user: Terminal, service: RunningService
) -> None:
    for name in ("vendors.toml", "vendors.csv"):
        user.file(name, (THIRTY / name).read_text(encoding="utf-8"))
    email = {
        "SEALPIPE_PLUGIN_EMAIL__HOST": "mail.example.com",
        "SEALPIPE_PLUGIN_EMAIL__SENDER": "vault@example.com",
    }
    done = batch(user, "plan", "vendors.toml", **email)
    head, *found, remedy = done.err.splitlines()
    read, refused = (
        (THIRTY / f"{name}.txt").read_text(encoding="utf-8").splitlines() for name in THIRTY_LISTS
    )
    assert head == "sealpipe: vendors.toml: 33 mistakes; nothing was sent"
    assert [line for line in found if line in read] == read
    assert [line for line in found if line not in read] == refused
    assert (done.code, len(found), remedy.strip()) == (
        2,
        33,
        "correct them, and run the command again",
    )
    assert service.seen() == []


def test_a_share_loads_nothing_of_batches(user: Terminal, service: RunningService) -> None:
    code = (
        "import sys; from sealpipe.cli import main; main.run(sys.argv[1:]); print('loaded', "
        "*sys.modules, file=sys.stderr)"
    )
    words = [sys.executable, "-c", code, "share", "-f", "env:LICENSE", "--print"]
    environ = {**user.environ, "LICENSE": "a value"}
    done = subprocess.run(words, env=environ, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(service.link_base_url)
    loaded = done.stderr.rpartition("loaded ")[2].split()
    assert "sealpipe.share.options" in loaded
    assert [name for name in loaded if "batch" in name or "sqlite" in name] == []


def test_a_channel_takes_a_value_from_a_source_of_each_row(
    vendors: Terminal, service: RunningService
) -> None:
    for name in ("acme", "bolt"):
        vendors.file(f"{name}.who", f"{name}-team")
    params = 'send = ["file:{who}.link"]\nparam = ["who=file:{name}.who"]'
    vendors.file("vendors.toml", VENDORS.replace('send = ["file:{name}.link"]', params))
    assert batch(vendors, "run", "vendors.toml").out == "vendors\t2 rows: 2 waiting\n"
    assert {each.name for each in vendors.here.glob("*.link")} == {
        "acme-team.link",
        "bolt-team.link",
    }
    assert count_creates(service) == 2
