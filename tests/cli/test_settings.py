"""Where a setting comes from: flag, environment, the user's config file, default; and never the
working directory.
"""

from __future__ import annotations

import json

import pytest

from sealpipe_rehearsal.running_service import RunningService
from support.ports import silent_port
from support.terminal import Terminal, created

SECRET = {"DB_PASSWORD": "s3cret"}


def title(
    user: Terminal, service: RunningService, *words: str, **environ: str | None
) -> str | None:
    """The title that a share arrives with."""
    before = len(created(service))
    done = user.sealpipe("share", "-f", "env:DB_PASSWORD", *words, **{**SECRET, **environ})
    assert done.code == 0, done
    return created(service)[before].get("title")


def test_every_option_can_come_from_the_environment(
    user: Terminal, service: RunningService
) -> None:
    done = user.sealpipe(
        "share",
        **SECRET,
        SEALPIPE_SHARE_FIELD="Root password=env:DB_PASSWORD\nUser name=text:deploy bot",
        SEALPIPE_SHARE_EXPIRES_AT="2099-01-02T03:04:05Z",
        SEALPIPE_SHARE_VIEWS="3",
        SEALPIPE_SHARE_NOTIFY_ON="viewed,denied",
        SEALPIPE_SHARE_CUSTODY="off",
        SEALPIPE_OUTPUT="json",
    )
    (body,) = created(service)
    assert (done.code, body["access_counts_left"], body["expired_at"]) == (
        0,
        3,
        "2099-01-02T03:04:05Z",
    )
    assert (body["notify_on"], "item_key_wrap" in body) == (["viewed", "denied"], False)
    fields = service.recipient().open_link(done.json["link"])
    assert [field.key for field in fields] == ["Root password", "User name"]


def test_the_config_file_holds_the_global_settings_too(user: Terminal) -> None:
    key = user.environ.pop("SEALPIPE_API_KEY")
    user.file("key", key)
    lines = {
        "base_url": user.environ.pop("SEALPIPE_BASE_URL"),
        "link_base_url": user.environ.pop("SEALPIPE_LINK_BASE_URL"),
        "api_key_file": str(user.here / "key"),
        "output": "json",
    }
    user.file(
        "elsewhere.toml",
        "".join(f"{name} = {json.dumps(value)}\n" for name, value in lines.items()),
    )
    done = user.sealpipe("share", "-f", "text:x", SEALPIPE_CONFIG=str(user.here / "elsewhere.toml"))
    assert (done.code, done.json["outcome"]) == (0, "created")
    listed = user.sealpipe("shares", "list", SEALPIPE_CONFIG=str(user.here / "elsewhere.toml"))
    assert [row["short_code"] for row in listed.json["shares"]] == [done.json["short_code"]]


_COUNTS_READS = """
import os, sys

def count(event, arguments):
    if event == "open" and str(arguments[0]) == os.environ["SEALPIPE_CONFIG"]:
        os.write(2, b"read the config file\\n")

sys.addaudithook(count)
"""


@pytest.mark.parametrize("ci", [{}, {"CI": "true"}])
@pytest.mark.parametrize(
    "words", [["share", "-f", "env:DB_PASSWORD", "--print"], ["doctor"], ["unknown"], ["share"]]
)
def test_a_run_reads_the_config_file_once(
    bare: Terminal, words: list[str], ci: dict[str, str]
) -> None:
    bare.file("site/sitecustomize.py", _COUNTS_READS)
    config = bare.file("config.toml", f'base_url = "http://127.0.0.1:{silent_port()}/v1"\n')
    done = bare.sealpipe(
        *words, PYTHONPATH=str(bare.here / "site"), SEALPIPE_CONFIG=str(config), **SECRET, **ci
    )
    assert done.err.count("read the config file") == 1, done


def test_nothing_in_the_working_directory_is_read_on_its_own(
    user: Terminal, service: RunningService
) -> None:
    elsewhere = (
        'base_url = "https://evil.example/v1"\napi_key_file = "evil"\n[share]\ntitle = "evil"\n'
    )
    for name in (
        "config.toml",
        "sealpipe.toml",
        ".sealpipe.toml",
        "sealpipe/config.toml",
        ".config/sealpipe/config.toml",
    ):
        user.file(name, elsewhere)
    dotenv = "SEALPIPE_BASE_URL=https://evil.example/v1\nSEALPIPE_SHARE_TITLE=evil\n"
    for name in (".env", "sealpipe.env", ".envrc"):
        user.file(name, dotenv)
    user.file("pyproject.toml", '[tool.sealpipe]\nbase_url = "https://evil.example/v1"\n')
    for module in (
        "sealpipe.py",
        "httpx.py",
        "click.py",
        "sealpipe_plugins.py",
        "sitecustomize.py",
    ):
        user.file(module, "raise SystemExit('evil')\n")
    here = {"XDG_CONFIG_HOME": ".", "XDG_STATE_HOME": "state"}
    # `python -m` looks in the working directory first: the installed command is what a pipeline
    # runs.
    command = ["sealpipe", "share", "-f", "env:DB_PASSWORD"]
    planted = {path.relative_to(user.here) for path in user.here.rglob("*")}
    done = user.run(command, environ={**SECRET, **here})
    assert done.code == 0, done
    assert "evil" not in done.err + json.dumps(created(service)[0])
    assert {path.relative_to(user.here) for path in user.here.rglob("*")} == planted, (
        "and nothing is left there"
    )


def test_without_a_home_no_config_is_looked_for_in_the_working_directory(
    user: Terminal, service: RunningService
) -> None:
    user.file(".config/sealpipe/config.toml", '[share]\ntitle = "evil"\n')
    assert title(user, service, HOME=None, SEALPIPE_STATE_DIR=str(user.tmp / "state")) is None


def test_the_state_folder_is_where_it_is_said_to_be(
    user: Terminal, service: RunningService
) -> None:
    # A service that cannot be reached after the bytes were put away: the entry ends, its folder
    # stays.
    places = {
        "SEALPIPE_STATE_DIR": user.tmp / "said",
        "XDG_STATE_HOME": user.tmp / "xdg",
        "HOME": user.tmp / "home",
    }
    found = {
        "SEALPIPE_STATE_DIR": user.tmp / "said/outbox",
        "XDG_STATE_HOME": user.tmp / "xdg/sealpipe/outbox",
        "HOME": user.tmp / "home/.local/state/sealpipe/outbox",
    }
    for name, folder in found.items():
        title(user, service, **{name: str(places[name])})
        assert folder.is_dir(), name
        assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "words",
    [["resume"], ["resume", "--list"], ["shares", "list"], ["requests", "list"], ["doctor"]],
)
def test_a_config_for_one_command_leaves_the_others_as_they_are(
    user: Terminal, words: list[str]
) -> None:
    user.file("config.toml", 'deadline = "20s"\n[share]\nviews = "2"\n')
    assert user.sealpipe(*words, SEALPIPE_CONFIG=str(user.here / "config.toml")).code == 0


def test_a_groups_table_reaches_the_commands_of_a_group_in_it(
    user: Terminal, service: RunningService
) -> None:
    user.file("config.toml", f'[rehearsal]\nport = "{service.address.port}"\n')
    done = user.sealpipe("rehearsal", "key", "list", SEALPIPE_CONFIG=str(user.here / "config.toml"))
    assert (done.code, len(done.out.splitlines())) == (0, 1)
