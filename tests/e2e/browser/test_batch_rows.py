"""Two vendors of a batch submit in the browser: by the link in their mail, and by the one that
`batch link` prints.
"""

from __future__ import annotations

from pathlib import Path
from unittest import mock

from e2e.browser.chrome import Browser
from sealpipe.batch.database.records import SECOND
from sealpipe.batch.database.sqlite import SqliteDatabase
from support.job import Job
from support.mailbox import Mailbox
from support.terminal import Done

FILE = """
name = "vendors"
kind = "request"
rows = "vendors.csv"
key = "name"
[request]
ask = ["Staging password", "user=User name:text"]
title = "Access to {system}"
send = ["email:{email}"]
[collect]
to = ["file:{name}.password#staging_password", "file:{name}.user#user"]
"""
ROWS = "name,email,system\nacme,ann@acme.example,CRM\nbolt,bob@bolt.example,Billing\n"
TYPED = {"acme": "hünter2 <b>&amp;", "bolt": 'correct "horse"'}


def batch(job: Job, *words: str, later: float = 0) -> Done:
    """Run a command, so many seconds later by the database's clock."""
    read_clock = SqliteDatabase.read_clock
    with mock.patch.object(
        SqliteDatabase, "read_clock", lambda self: read_clock(self) + round(later * SECOND)
    ):
        return job.run("batch", *words)


def test_what_vendors_type_is_stored_by_the_next_run(
    browser: Browser, job: Job, tmp_path: Path
) -> None:
    job.terminal.file("vendors.toml", FILE)
    job.terminal.file("vendors.csv", ROWS)
    with Mailbox(tmp_path) as mailbox:
        job.terminal.environ |= mailbox.environ()
        assert batch(job, "run", "vendors.toml").out == "vendors\t2 rows: 2 waiting\n"
        mails = {
            received.recipients[0]: str(received.mail.get_body(("plain",)))
            for received in mailbox.received
        }
        links = {
            "acme": next(
                word for word in mails["ann@acme.example"].split() if word.startswith("http")
            )
        }
        links["bolt"] = batch(job, "link", "vendors", "bolt").out.strip()
        assert links["bolt"] in mails["bob@bolt.example"]
        for name, system in (("acme", "CRM"), ("bolt", "Billing")):
            browser.open(links[name])
            browser.says(f"Access to {system}")
            browser.press("Open the form")
            browser.type("Staging password", TYPED[name])
            browser.type("User name", name)
            browser.press("Seal and send")
            browser.says("Sent, and only they can read it")
        done = batch(job, "run", "vendors.toml", later=120)
        assert (done.code, done.out) == (0, "vendors\t2 rows: 2 done\n"), done
        assert len(mailbox.received) == 2
    for name, typed in TYPED.items():
        assert (job.terminal.here / f"{name}.password").read_text() == typed
        assert (job.terminal.here / f"{name}.user").read_text() == name
        assert typed.encode() not in browser.heard()
        assert typed not in done.err
    rows = batch(job, "status", "vendors", "--output", "json").json["rows"]
    told = {row["key"]: (row["state"], row["outcome"], row["stored"]) for row in rows}
    assert told == dict.fromkeys(TYPED, ("done", "collected", 1))
