"""A key is rotated from beginning to end, as docs/how-to/rotate-a-key.md tells it, on the command
line alone.
"""

from __future__ import annotations

import re
from pathlib import Path

from sealpipe_rehearsal.running_service import RunningService
from support.faults import reset_after, unauthorized
from support.faulty import Faulty
from support.job import Job
from support.terminal import Done, Terminal, addresses, opened

PAGE = Path(__file__).resolve().parents[3] / "docs/how-to/rotate-a-key.md"


class Account:
    """Somebody who types commands, with whatever keys are set at the moment."""

    def __init__(self, place: Path, service: RunningService, name: str) -> None:
        self.service, self.name = service, name
        self.terminal = Terminal(place, **addresses(service))
        self.port = ("--port", str(service.address.port))
        self.said: list[str] = []

    def mint(self) -> str:
        words = ("rehearsal", "key", "create", "--scope", "all", "--account", self.name, *self.port)
        return self.terminal.sealpipe(*words).out.strip()

    def revoke(self, api_key: str) -> Done:
        return self.terminal.sealpipe("rehearsal", "key", "revoke", key_id(api_key), *self.port)

    def use(self, api_key: str, previous: str | None = None) -> None:
        self.terminal.environ |= {
            "SEALPIPE_API_KEY": api_key,
            "SEALPIPE_API_KEY_PREVIOUS": previous or "",
        }

    def __call__(self, words: str, **environ: str) -> Done:
        self.said.append(f"sealpipe {words}")
        return self.terminal.sealpipe(*words.split(), **environ)


def key_id(api_key: str) -> str:
    return api_key.partition("_sk_live_")[2].partition(".")[0]


def test_a_key_is_rotated_and_nothing_is_lost(extended: RunningService, tmp_path: Path) -> None:
    service = extended
    account = Account(tmp_path, service, "rotating")
    one = account.mint()
    account.use(one)
    asked = account("request -a Password --receipt answered.json --output json").json
    waiting = account("request -a Password --receipt waiting.json --output json").json
    service.submitter().submit(asked["collect_link"], {"Password": "from the vendor"})

    two = account.mint()
    account.use(two, previous=one)
    assert account("doctor").code == 0
    done = account("requests list --sealed-to previous")
    assert done.code == 15
    assert {line.split("\t")[0] for line in done.out.splitlines()} == {
        asked["short_code"],
        waiting["short_code"],
    }

    done = account("collect answered.json --to file:vendor --after expire")
    assert done.code == 0, done
    assert (account.terminal.here / "vendor").read_text() == "from the vendor"
    assert account("requests list --sealed-to previous").out.split("\t")[0] == waiting["short_code"]
    assert (
        account("requests list --sealed-to previous --status expired").out.split("\t")[0]
        == asked["short_code"]
    )

    # The old key may go before the last answer is there: its third part stays with us, and opens
    # what comes.
    assert account("resume --list --all").out == ""
    assert account.revoke(one).code == 0
    service.submitter().submit(waiting["collect_link"], {"Password": "late"})
    assert account("collect waiting.json --to file:late --after expire").code == 0
    assert (account.terminal.here / "late").read_text() == "late"
    assert account("requests list --sealed-to previous").code == 0

    for code in (asked["short_code"], waiting["short_code"]):
        assert account(f"requests purge {code} --confirm {code}").code == 0
    assert account("requests list --sealed-to previous --status expired").code == 0
    account.use(two)
    done = account("share -f Password=gen:password")
    assert len(opened(service, done.out)["Password"]) > 15

    account.use(one)
    assert account("share -f Password=gen:password").code == 3, (
        "the old key is worth nothing any more"
    )


def test_an_entry_of_the_old_key_must_be_finished_before_revoking(
    service: RunningService, tmp_path: Path
) -> None:
    with Faulty(service.address, reset_after, then=unauthorized) as server:
        job = Job(tmp_path, service, server.base_url)
        assert job.share().code == 9
        server.mend()
        two = service.create_key(account=job.account).reveal()
        rotated = {"SEALPIPE_API_KEY": two, "SEALPIPE_API_KEY_PREVIOUS": job.api_key}
        done = job.resume(**rotated)
        assert (done.code, done.out, len(job.entries())) == (2, "", 1), done
        assert f"was created with the API key {key_id(job.api_key)}, not with this one" in done.err
        assert f"key {key_id(job.api_key)}" in job.resume("--list", "--all", **rotated).out
        done = job.resume()
        assert (done.code, job.opens(done.out), job.left()) == (0, True, [])


def test_the_page_names_the_commands_that_are_tested_here(
    service: RunningService, tmp_path: Path
) -> None:
    blocks = "".join(re.findall(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL))
    commands = [
        line.partition("#")[0].split()
        for line in blocks.splitlines()
        if line.startswith("sealpipe ")
    ]
    assert len(commands) > 6
    account = Account(tmp_path, service, "reading")
    for words in commands:
        # Each is one that there is, with options that it has: --help is read after they are
        # checked.
        done = account(" ".join([*words[1:], "--help"]))
        assert done.code == 0, (words, done)
