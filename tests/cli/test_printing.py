"""`--print` in CI: masks go to stderr first, and the value follows once the runner knows them
(DESIGN 6.7).
"""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from sealpipe.ci_systems import CISystem
from sealpipe.cli.disclosure import MASK_DELAY
from sealpipe.wire import encoding, fields, sealed_box
from sealpipe_rehearsal.running_service import RunningService
from support.ci_jobs import MASKING, ROWS, SHARE, job, redirected, titled
from support.commands import SEALPIPE
from support.faults import holds
from support.faulty import Faulty
from support.github_log import TwoReaders, read_azure, read_github
from support.terminal import PATIENCE, Terminal

DEAF = ("2>err.log", "2>&-", "2>/dev/null", "2>/dev/full", ">all.log 2>&1")


@pytest.mark.parametrize(
    ("row", "streams"),
    [*((ROWS["github"], each) for each in DEAF), (ROWS["azure"], DEAF[0])],
    ids=titled,
)
def test_where_no_runner_reads_stderr_print_refuses(
    user: Terminal,
    service: RunningService,
    commands: dict[str, tuple[str, ...]],
    row: CISystem,
    streams: str,
) -> None:
    before = len(service.seen())
    for words in commands.values():
        done = redirected(user, streams, *words, "--print", **job(row))
        assert (done.code, done.out) == (2, ""), done
    assert len(service.seen()) == before
    for log in user.here.glob("*.log"):
        text = log.read_text()
        assert not any(
            each in text for each in ("add-mask", "setsecret", "canary", "share.example")
        ), text


@pytest.mark.parametrize("streams", ["2>err.log", "2>&-", "2>/dev/null"])
def test_where_nothing_can_be_masked_print_needs_no_stderr(user: Terminal, streams: str) -> None:
    done = redirected(user, streams, *SHARE, "--print", **job(ROWS["jenkins"]))
    assert done.code == 0
    assert done.out.startswith("https://share.example/")


def test_a_pipe_without_a_reader_is_not_a_runner(user: Terminal, service: RunningService) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    environ = user.with_environ(job(ROWS["github"]))
    command = [*SEALPIPE, *SHARE, "--print"]
    done = subprocess.run(
        command, env=environ, cwd=user.here, stdout=-1, stderr=writer, timeout=PATIENCE, check=False
    )
    os.close(writer)
    assert (done.returncode, done.stdout) == (2, b"")
    assert service.seen() == []


def test_a_mask_that_gets_lost_at_the_last_moment_keeps_the_link_back(
    user: Terminal, service: RunningService
) -> None:
    """Whoever reads stderr goes when the share is made already: nothing is printed, and nothing is
    lost.
    """
    with Faulty(service.address, then=holds) as server:
        environ = job(ROWS["github"]) | {"SEALPIPE_BASE_URL": server.base_url}
        with subprocess.Popen(
            [*SEALPIPE, *SHARE, "--print"],
            env=user.with_environ(environ),
            cwd=user.here,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            assert server.committed.wait(PATIENCE)
            assert process.stdout
            assert process.stderr
            process.stderr.close()
            server.released.set()
            assert (process.stdout.read(), process.wait(PATIENCE)) == (b"", 11)
        done = user.sealpipe("resume", "--print", **environ)
        assert done.out.startswith("https://share.example/")
    assert sum(seen.method == "POST" for seen in service.seen()) == 1


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("row", MASKING, ids=titled)
def test_masks_go_to_stderr_alone_and_cover_what_is_printed(
    user: Terminal, commands: dict[str, tuple[str, ...]], row: CISystem, form: str
) -> None:
    assert row.mask
    read = read_azure if row.name == "azure" else read_github
    for words in commands.values():
        done = user.sealpipe(*words, "--print", "--output", form, **job(row))
        assert done.code == 0, done
        masked = [value for value in map(read, done.err.splitlines()) if value]
        assert row.mask.prefix not in done.out
        shown = done.out
        for value in masked:
            shown = shown.replace(value, "***")
        assert not any(each in shown for each in ("canary-of-the-gate", "#1", "share.example/")), (
            shown
        )
        assert "***" in shown


@pytest.mark.parametrize("plugin", ["plain", "vault", "gitlab"])
@pytest.mark.parametrize("row", MASKING, ids=titled)
def test_a_store_with_the_name_of_a_ci_system_does_not_stand_in_for_it(
    user: Terminal, row: CISystem, plugin: str
) -> None:
    """Neither does the link go out unmasked, nor does the share fail once it is made."""
    store = {f"SEALPIPE_STORE__{row.plugin.upper()}__PLUGIN": plugin}
    done = user.sealpipe(*SHARE, "--print", **job(row), **store)
    assert done.code == 0, done
    assert row.mask
    assert row.mask.format(done.out.strip()).rstrip("\n") in done.err.splitlines()


def test_azure_gets_what_it_unescapes(user: Terminal, service: RunningService) -> None:
    made = user.sealpipe("request", "-a", "Key:multiline", "--output", "json").json
    service.submitter().submit(made["collect_link"], {"Key": "100%0A of it\nnext line"})
    done = user.sealpipe("collect", made["short_code"], "--print", TF_BUILD="True")
    assert "##vso[task.setsecret]100%AZP250A of it%0Anext line" in done.err.splitlines()
    masked = [read_azure(line) for line in done.err.splitlines()]
    assert {"100%0A of it\nnext line", "100%0A of it", "next line"} <= set(masked)


def test_unknown_members_are_masked_too(user: Terminal, service: RunningService) -> None:
    made = user.sealpipe("request", "-a", "Key", "--output", "json").json
    form = service.submitter().open_form(made["collect_link"])
    extra = {"note": "canary-note", "more": {"codes": ["canary-in-a-list", 20260101, True, None]}}
    sent = fields.dump([fields.Field("Key", "canary-value", "password", extra=extra)])
    public_key = encoding.decode_base64url(form["public_key"])
    service.submitter().send(made["collect_link"], sealed_box.seal(public_key, sent))
    done = user.sealpipe(
        "collect", made["short_code"], "--print", "--output", "json", **job(ROWS["github"])
    )
    masked = [value for value in map(read_github, done.err.splitlines()) if value]
    assert masked == ["canary-value", "canary-note", "canary-in-a-list", "20260101"]
    assert all(value in done.out for value in masked)


# -- the race --------------------------------------------------------------------------------------

REPLAY = "import os, sys; os.write(2, sys.argv[1].encode()); os.write(1, sys.argv[2].encode())"
"""Masks, then the link, and no wait between them."""


@pytest.mark.parametrize("row", [ROWS["github"], ROWS["azure"]], ids=titled)
def test_a_late_reader_shows_a_link_that_does_not_wait_and_none_that_does(
    user: Terminal, commands: dict[str, tuple[str, ...]], row: CISystem
) -> None:
    read = read_azure if row.name == "azure" else read_github
    words = (*commands["unseal"], "--print")
    done = user.sealpipe(*words, **job(row))
    link = done.out.strip()
    environ = user.with_environ(job(row))
    hasty = TwoReaders(0.05, read).run(
        [sys.executable, "-Ic", REPLAY, done.err, done.out], {}, user.here
    )
    assert link in hasty.log, "this is what the wait is for"
    real = TwoReaders(0.05, read).run([*SEALPIPE, *words], environ, user.here)
    assert real.code == 0
    assert "***" in real.log
    assert not any(link.partition("#")[2] in line for line in real.log)


def test_the_link_stays_hidden_in_many_runs(
    user: Terminal, commands: dict[str, tuple[str, ...]]
) -> None:
    environ = user.with_environ(job(ROWS["github"]))
    command = [*SEALPIPE, *commands["unseal"], "--print"]

    def run(_: int) -> TwoReaders:
        return TwoReaders().run(command, environ, user.here)

    counted: list[TwoReaders] = []
    with ThreadPoolExecutor(2) as pool:
        while len(counted) < 20:
            # Where the readers themselves got no time for so long, a run says nothing of who is
            # first.
            counted += [each for each in pool.map(run, range(10)) if each.stalled < MASK_DELAY / 2]
    assert {each.code for each in counted} == {0}
    assert all(each.log == ["***"] for each in counted), [
        each.log for each in counted if each.log != ["***"]
    ]
