"""In any CI system a link or a value reaches stdout only with --print (DESIGN 6.7)."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from sealpipe.ci_systems import CISystem
from sealpipe_rehearsal.running_service import RunningService
from support.ci_jobs import ROWS, SHARE, SIGNS, SOME, job, redirected, titled
from support.terminal import ABROAD, Done, Terminal

WAYS = {
    "share": ("--send", "--link-file", "--seal-link", "--print"),
    "collect": ("--to", "--dir", "--print"),
    "unseal": ("--link-file", "--print"),
}
"""What the refusal of each names."""


def refused(done: Done, row: CISystem, command: str) -> None:
    assert (done.code, done.out) == (2, ""), done
    assert row.title in done.err
    for way in WAYS[command]:
        assert way in done.err


# -- without --print ------------------------------------------------------------------------------


@pytest.mark.parametrize(("row", "sign"), SIGNS, ids=titled)
def test_no_link_is_printed_in_any_ci(
    user: Terminal, service: RunningService, row: CISystem, sign: str
) -> None:
    refused(user.sealpipe(*SHARE, **job(row, sign)), row, "share")
    assert service.seen() == []
    assert user.outbox() == []


@pytest.mark.parametrize(
    "name", ["BUILD_NUMBER", "CONTINUOUS_INTEGRATION", "HUDSON_URL", "TASKCLUSTER_ROOT_URL"]
)
def test_one_variable_that_a_job_hands_into_a_container_is_enough(
    user: Terminal, service: RunningService, name: str
) -> None:
    done = user.sealpipe(*SHARE, **{name: "42"}, **ABROAD)
    assert (done.code, done.out, service.seen()) == (2, "", [])


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("row", SOME, ids=titled)
def test_nothing_secret_is_printed_without_leave(
    user: Terminal,
    service: RunningService,
    commands: dict[str, tuple[str, ...]],
    row: CISystem,
    form: str,
) -> None:
    before = len(service.seen())
    for command, words in commands.items():
        refused(user.sealpipe(*words, "--output", form, **job(row)), row, command)
        assert user.sealpipe(*words, "--output", form, "--print", **job(row)).code == 0
    assert len(service.seen()) > before


def test_a_refusal_sends_nothing_and_fetches_nothing(
    user: Terminal, service: RunningService, commands: dict[str, tuple[str, ...]]
) -> None:
    before = len(service.seen())
    for words in commands.values():
        assert user.sealpipe(*words, CI="true", **ABROAD).code == 2
    assert len(service.seen()) == before


@pytest.mark.parametrize("off", ["", "0", "false", "False", "no", "off"])
def test_who_switched_ci_off_is_in_none(user: Terminal, off: str) -> None:
    assert user.sealpipe(*SHARE, CI=off, **ABROAD).code == 0


@pytest.mark.parametrize("row", SOME, ids=titled)
def test_a_rehearsals_link_and_a_collect_link_need_no_leave(user: Terminal, row: CISystem) -> None:
    local = {name: value for name, value in job(row).items() if name not in ABROAD}
    assert user.sealpipe(*SHARE, **local).out.startswith("http://127.0.0.1")
    assert user.sealpipe("request", "-a", "Password", **job(row)).out.startswith(
        "https://share.example/r/"
    )


def test_a_loopback_link_to_a_service_elsewhere_is_no_rehearsals(
    user: Terminal, service: RunningService
) -> None:
    done = user.sealpipe(*SHARE, CI="true", SEALPIPE_BASE_URL="https://api.example/v1")
    refused(done, ROWS["other"], "share")
    assert service.seen() == []


def test_other_ways_out_need_no_leave(user: Terminal) -> None:
    assert user.sealpipe(*SHARE, "--link-file", "link", CI="true", **ABROAD).out == ""
    assert user.sealpipe(*SHARE, "--send", "file:sent", CI="true", **ABROAD).out == ""
    sealed = user.sealpipe(*SHARE, "--seal-link", CI="true", **ABROAD).out
    assert sealed.startswith("sealpipe-link.")
    assert user.sealpipe("unseal", sealed.strip(), "--link-file", "unsealed", CI="true").out == ""
    for name in ("link", "sent", "unsealed"):
        assert "https://share.example/" in (user.here / name).read_text()


def test_a_dry_run_tells_that_the_run_itself_would_be_refused(
    user: Terminal, commands: dict[str, tuple[str, ...]]
) -> None:
    for name in ("share", "collect"):
        done = user.sealpipe(*commands[name], "--dry-run", CI="true", **ABROAD)
        assert done.code == 0
        assert "without --dry-run this is an error" in done.err
        assert "canary-of-the-gate" not in done.out
        done = user.sealpipe(*commands[name], "--dry-run", "--print", CI="true", **ABROAD)
        assert (done.code, "without --dry-run this is an error" in done.err) == (0, False)


@pytest.mark.parametrize("value", ["1", "true"])
def test_leave_can_be_given_by_the_environment(user: Terminal, value: str) -> None:
    assert user.sealpipe(*SHARE, CI="true", SEALPIPE_SHARE_PRINT=value, **ABROAD).code == 0
    assert user.sealpipe(*SHARE, CI="true", SEALPIPE_SHARE_PRINT="false", **ABROAD).code == 2


# -- resume ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", SOME, ids=titled)
def test_a_resumed_share_needs_leave_of_its_own(
    user: Terminal, service: RunningService, row: CISystem
) -> None:
    done = redirected(user, ">&-", *SHARE, "--print", **job(row))
    assert done.code == 11, done
    assert "resume" in done.err
    assert "--print" in done.err
    before = len(service.seen())
    for form in ("text", "json"):
        done = user.sealpipe("resume", "--output", form, **job(row))
        assert (done.code, done.out) == (2, ""), done
        assert "--print" in done.err
    assert len(service.seen()) == before
    assert user.outbox() != []
    done = user.sealpipe("resume", "--output", "json", "--print", **job(row))
    assert done.code == 0, done
    assert "https://share.example/" in done.out
    assert user.outbox() == []


def test_a_share_made_outside_ci_is_not_resumed_into_a_log(user: Terminal) -> None:
    assert redirected(user, ">&-", *SHARE, **ABROAD).code == 11
    done = user.sealpipe("resume", "--all", CI="true")
    assert (done.code, done.out) == (2, ""), "the link's address is the entry's, not the job's"
    assert user.sealpipe("resume", "--all", "--print", CI="true").out.startswith(
        "https://share.example/"
    )


# -- everything at once ----------------------------------------------------------------------------


def test_the_first_command_of_the_readme_runs_in_any_ci(user: Terminal) -> None:
    def rehearse(row: CISystem) -> int:
        return user.sealpipe(
            "rehearse", **{name: value for name, value in job(row).items() if name not in ABROAD}
        ).code

    with ThreadPoolExecutor(len(SOME)) as pool:
        assert list(pool.map(rehearse, SOME)) == [0] * len(SOME)
    done = user.sealpipe(
        "rehearse",
        "--",
        "sh",
        "-c",
        "sealpipe share -f env:HOME && sealpipe shares list",
        CI="true",
    )
    assert (done.code, done.out.startswith("http://127.0.0.1")) == (0, True)


def test_a_link_of_many_commands_is_json_all_the_same(user: Terminal) -> None:
    done = user.sealpipe(*SHARE, "--print", "--output", "json", **job(ROWS["github"]))
    assert json.loads(done.out)["link"].startswith("https://share.example/")
