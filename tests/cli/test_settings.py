"""Where a setting comes from: flag, environment, the user's config file, default; and never the working directory."""

from __future__ import annotations

import json

import pytest

from sealpipe_rehearsal.running_service import RunningService
from support.terminal import Terminal, created

SECRET = {"DB_PASSWORD": "s3cret"}


def title(user: Terminal, service: RunningService, *words: str, **environ: str | None) -> str | None:
    """The title that a share arrives with."""
    before = len(created(service))
    done = user.sealpipe("share", "-f", "env:DB_PASSWORD", *words, **{**SECRET, **environ})
    assert done.code == 0, done
    return created(service)[before].get("title")


def test_a_flag_stands_before_the_environment_the_config_file_and_the_default(
    user: Terminal, service: RunningService
) -> None:
    assert title(user, service) is None
    user.file(f"{user.home}/.config/sealpipe/config.toml", '[share]\ntitle = "from the file"\n')
    assert title(user, service) == "from the file"
    assert title(user, service, SEALPIPE_SHARE_TITLE="from the environment") == "from the environment"
    both = {"SEALPIPE_SHARE_TITLE": "from the environment"}
    assert title(user, service, "--title", "from the flag", **both) == "from the flag"


def test_an_empty_variable_counts_as_unset(user: Terminal, service: RunningService) -> None:
    user.file(f"{user.home}/.config/sealpipe/config.toml", '[share]\ntitle = "from the file"\n')
    assert title(user, service, SEALPIPE_SHARE_TITLE="") == "from the file"
    assert title(user, service, SEALPIPE_SHARE_EXPIRES_IN="", SEALPIPE_SHARE_VIEWS="") == "from the file"
    assert created(service)[-1]["access_counts_left"] == 1


def test_every_option_can_come_from_the_environment(user: Terminal, service: RunningService) -> None:
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
    assert (done.code, body["access_counts_left"], body["expired_at"]) == (0, 3, "2099-01-02T03:04:05Z")
    assert (body["notify_on"], "item_key_wrap" in body) == (["viewed", "denied"], False)
    fields = service.recipient().open_link(done.json["link"])
    assert [field.key for field in fields] == ["Root password", "User name"]


def test_an_expiry_from_the_command_line_beats_another_kind_from_the_environment(
    user: Terminal, service: RunningService
) -> None:
    title(user, service, "--no-expiry", SEALPIPE_SHARE_EXPIRES_IN="1h")
    title(user, service, "--expires-at", "2099-01-01T00:00:00Z", SEALPIPE_SHARE_EXPIRES_IN="1h")
    assert [body.get("expired_at") for body in created(service)] == [None, "2099-01-01T00:00:00Z"]


def test_the_config_file_holds_the_global_settings_too(user: Terminal) -> None:
    key = user.environ.pop("SEALPIPE_API_KEY")
    user.file("key", key)
    lines = {
        "base_url": user.environ.pop("SEALPIPE_BASE_URL"),
        "link_base_url": user.environ.pop("SEALPIPE_LINK_BASE_URL"),
        "api_key_file": str(user.here / "key"),
        "output": "json",
    }
    user.file("elsewhere.toml", "".join(f"{name} = {json.dumps(value)}\n" for name, value in lines.items()))
    done = user.sealpipe("share", "-f", "text:x", SEALPIPE_CONFIG=str(user.here / "elsewhere.toml"))
    assert (done.code, done.json["outcome"]) == (0, "created")
    listed = user.sealpipe("shares", "list", SEALPIPE_CONFIG=str(user.here / "elsewhere.toml"))
    assert [row["short_code"] for row in listed.json["shares"]] == [done.json["short_code"]]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('api_key = "svc_sk_live_x"', "contains a credential"),
        ('api_key_previous = "svc_sk_live_x"', "contains a credential"),
        ('titel = "x"', "sets 'titel', which is not a setting"),
        ('[share]\ntitel = "c4nary"', "sets 'share.titel', which is not a setting"),
        ("[share]\ntitle = c4nary", "is not valid TOML at line 2, column 9"),
        ('title = """c4nary', "is not valid TOML at the end of the file"),
        ('# c4nary\n\n\xff = "c4nary"', "is not valid TOML at line 3: not UTF-8"),
        ('titel = "c4nary"', "did you mean title, below [share]?"),
        ('[share]\ntitel = "c4nary"', "did you mean title?"),
        ('[shar]\ntitle = "c4nary"', "did you mean share?"),
        ('[share]\ndeadline = "c4nary"', "move deadline above the first table"),
        ('titel = "c4nary"\n[share]\nxyz = 1\nveiws = 3', "run `sealpipe doctor` to see 2 more"),
        ('share = "c4nary"', "sets 'share', which is not a table"),
        ("deadline = ['c4nary']", "sets 'deadline', which is not a single value"),
        ("[base_url]\nx = 'c4nary'", "sets 'base_url', which is not a single value"),
        ('[share]\nfield = "env:c4nary"', "sets 'share.field', which is not a list of strings"),
        ('[share]\nexpires_in = "soon"', "the config file's expires_in: 'soon' is not a duration"),
        ('[share]\nexpires_in = "c4nary-much-too-long-for-a-duration-and-so-cut"', "is not a duration"),
        ("\xff", "is not valid TOML"),
    ],
)
def test_a_config_file_that_is_wrong_is_told_and_nothing_is_sent(
    user: Terminal, service: RunningService, content: str, says: str
) -> None:
    user.file(f"{user.home}/.config/sealpipe/config.toml", content.encode("latin-1"))
    done = user.sealpipe("share", "-f", "env:DB_PASSWORD", **SECRET)
    assert (done.code, done.out, service.seen()) == (2, "", [])
    assert says in done.err
    assert "svc_sk_live_x" not in done.err
    assert "c4nary" not in done.err or "is not a duration" in says


_COUNTS_READS = """
import os, sys

def count(event, arguments):
    if event == "open" and str(arguments[0]) == os.environ["SEALPIPE_CONFIG"]:
        os.write(2, b"read the config file\\n")

sys.addaudithook(count)
"""


@pytest.mark.parametrize("ci", [{}, {"CI": "true"}])
@pytest.mark.parametrize("words", [["share", "-f", "env:DB_PASSWORD", "--print"], ["doctor"], ["unknown"], ["share"]])
def test_a_run_reads_the_config_file_once(bare: Terminal, words: list[str], ci: dict[str, str]) -> None:
    bare.file("site/sitecustomize.py", _COUNTS_READS)
    config = bare.file("config.toml", 'base_url = "http://127.0.0.1:9/v1"\n')
    done = bare.sealpipe(*words, PYTHONPATH=str(bare.here / "site"), SEALPIPE_CONFIG=str(config), **SECRET, **ci)
    assert done.err.count("read the config file") == 1, done


def test_a_config_file_that_is_named_must_be_there(user: Terminal, service: RunningService) -> None:
    done = user.sealpipe("share", "-f", "env:DB_PASSWORD", SEALPIPE_CONFIG="nowhere.toml", **SECRET)
    assert (done.code, done.out, service.seen()) == (2, "", [])
    assert "nowhere.toml cannot be read" in done.err


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("SEALPIPE_APIKEY", "SEALPIPE_API_KEY"),
        ("SEALPIPE_BASE_ULR", "SEALPIPE_BASE_URL"),
        ("SEALPIPE_SHARE_EXPIRE_IN", "SEALPIPE_SHARE_EXPIRES_IN"),
    ],
)
def test_an_unknown_name_warns_with_the_nearest_known_one_and_never_with_its_value(
    user: Terminal, name: str, near: str
) -> None:
    done = user.sealpipe("share", "-f", "env:DB_PASSWORD", **{**SECRET, name: "c4nary"})
    assert done.code == 0
    assert f"sealpipe: unknown variable {name}; did you mean {near}?\n" in done.err
    assert "c4nary" not in done.err + done.out


def test_names_of_plugins_and_stores_are_not_warned_of(user: Terminal) -> None:
    names = {"SEALPIPE_PLUGIN_VAULT__ADDR": "x", "SEALPIPE_STORE__PROD__ADDR": "x", "SEALPIPE_API_KEY_PREVIOUS": "x"}
    assert "unknown variable" not in user.sealpipe("share", "-f", "env:DB_PASSWORD", **SECRET, **names).err


def test_nothing_in_the_working_directory_is_read_on_its_own(user: Terminal, service: RunningService) -> None:
    elsewhere = 'base_url = "https://evil.example/v1"\napi_key_file = "evil"\n[share]\ntitle = "evil"\n'
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
    for module in ("sealpipe.py", "httpx.py", "click.py", "sealpipe_plugins.py", "sitecustomize.py"):
        user.file(module, "raise SystemExit('evil')\n")
    here = {"XDG_CONFIG_HOME": ".", "XDG_STATE_HOME": "state"}
    # `python -m` looks in the working directory first: the installed command is what a pipeline runs.
    command = ["sealpipe", "share", "-f", "env:DB_PASSWORD"]
    planted = {path.relative_to(user.here) for path in user.here.rglob("*")}
    done = user.run(command, environ={**SECRET, **here})
    assert done.code == 0, done
    assert "evil" not in done.err + json.dumps(created(service)[0])
    assert {path.relative_to(user.here) for path in user.here.rglob("*")} == planted, "and nothing is left there"


def test_without_a_home_no_config_is_looked_for_in_the_working_directory(
    user: Terminal, service: RunningService
) -> None:
    user.file(".config/sealpipe/config.toml", '[share]\ntitle = "evil"\n')
    assert title(user, service, HOME=None, SEALPIPE_STATE_DIR=str(user.tmp / "state")) is None


def test_loopback_never_goes_through_a_proxy(user: Terminal, service: RunningService) -> None:
    dead = "http://127.0.0.1:9"
    proxies = dict.fromkeys(("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"), dead)
    assert title(user, service, "--title", "x", **proxies) == "x"


def test_the_state_folder_is_where_it_is_said_to_be(user: Terminal, service: RunningService) -> None:
    # A service that cannot be reached after the bytes were put away: the entry ends, its folder stays.
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
    "words", [["resume"], ["resume", "--list"], ["shares", "list"], ["requests", "list"], ["doctor"]]
)
def test_a_config_for_one_command_leaves_the_others_as_they_are(user: Terminal, words: list[str]) -> None:
    user.file("config.toml", 'deadline = "20s"\n[share]\nviews = "2"\n')
    assert user.sealpipe(*words, SEALPIPE_CONFIG=str(user.here / "config.toml")).code == 0


def test_a_groups_table_reaches_the_commands_of_a_group_in_it(user: Terminal, service: RunningService) -> None:
    user.file("config.toml", f'[rehearsal]\nport = "{service.address.port}"\n')
    done = user.sealpipe("rehearsal", "key", "list", SEALPIPE_CONFIG=str(user.here / "config.toml"))
    assert (done.code, len(done.out.splitlines())) == (0, 1)
