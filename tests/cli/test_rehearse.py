"""`sealpipe rehearse` and `sealpipe rehearsal`: the main job without an account, in real
processes.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from sealpipe_rehearsal.control_client import send_request
from sealpipe_rehearsal.running_service import RunningService
from support.ports import free_port, silent_port
from support.terminal import PATIENCE, Done, Terminal, addresses

# -- the tour -----------------------------------------------------------------------------------


def test_the_tour_shows_both_views_and_ends_with_0(bare: Terminal) -> None:
    done = bare.sealpipe("rehearse")
    assert done.code == 0, done
    assert re.match(r"THE SERVICE +\| THE RECIPIENT\nPOST /v1/shares", done.out)
    left, right = zip(*(line.partition("| ")[::2] for line in done.out.splitlines()), strict=True)
    password = next(line for line in right if line.startswith("Password: ")).removeprefix(
        "Password: "
    )
    assert "User: deploy" in right
    assert any(line.startswith("data: ") for line in left)
    assert password not in "".join(left) + done.err
    assert list(bare.home.iterdir()) + list(bare.here.iterdir()) + list(bare.tmp.iterdir()) == []


def test_the_tour_as_json_is_one_object(bare: Terminal) -> None:
    told = bare.sealpipe("rehearse", "--output", "json").json
    assert list(told) == ["schema", "link", "service_saw", "recipient_saw"]
    assert told["recipient_saw"]["User"] == "deploy"
    assert told["recipient_saw"]["Password"] not in json.dumps(told["service_saw"])


@pytest.mark.parametrize(
    "environ",
    [{"GITLAB_CI": "true"}, {"HTTP_PROXY": f"http://127.0.0.1:{silent_port()}"}, {"HOME": ""}],
)
def test_the_tour_runs_in_any_environment(bare: Terminal, environ: dict[str, str]) -> None:
    assert bare.sealpipe("rehearse", **environ).code == 0


def test_the_tour_runs_beside_the_settings_of_a_real_service(
    bare: Terminal, service: RunningService
) -> None:
    bare.at(service).file(
        f"{bare.home}/.config/sealpipe/config.toml", '[share]\ntitle = "real"\nviews = 7\n'
    )
    done = bare.sealpipe("rehearse", SEALPIPE_SHARE_EXPIRES_IN="1s", SEALPIPE_OUTPUT="text")
    assert done.code == 0
    assert "real" not in done.out
    assert service.seen() == []


# -- rehearse -- COMMAND ------------------------------------------------------------------------


def test_a_command_works_as_on_a_real_service(bare: Terminal) -> None:
    both = "link=$(sealpipe share -f env:DB_PASSWORD) && echo ${link%%#*} && sealpipe shares list"
    done = bare.sealpipe("rehearse", "--", "sh", "-c", both, DB_PASSWORD="s3cret")
    link, listed = done.out.splitlines()
    assert done.code == 0
    assert link.rpartition("/")[2] == listed.partition("\t")[0]


def test_the_users_own_settings_do_not_reach_the_command(
    bare: Terminal, service: RunningService
) -> None:
    mine = service.create_key().reveal()
    environ = {
        **addresses(service),
        "SEALPIPE_API_KEY": mine,
        "SEALPIPE_SHARE_TITLE": "mine",
        "OTHER": "stays",
    }
    done = bare.sealpipe("rehearse", "--", "env", **environ)
    seen = dict(line.partition("=")[::2] for line in done.out.splitlines())
    ours = {name: value for name, value in seen.items() if name.startswith("SEALPIPE_")}
    assert set(ours) == {
        "SEALPIPE_API_KEY",
        "SEALPIPE_BASE_URL",
        "SEALPIPE_LINK_BASE_URL",
        "SEALPIPE_CONFIG",
        "SEALPIPE_STATE_DIR",
    }
    assert not set(environ.values()) & set(ours.values())
    assert seen["OTHER"] == "stays"
    assert service.seen() == []


def test_a_command_that_was_found_may_not_be_replaced_by_an_option(bare: Terminal) -> None:
    done = bare.sealpipe("rehearse", "--", "echo", "--keep", "--output", "json")
    assert (done.code, done.out) == (0, "--keep --output json\n")


def test_nothing_of_a_rehearsal_is_left_behind(bare: Terminal) -> None:
    command = "sealpipe share -f text:x --output json; exec sealpipe share -f text:x >&-"
    assert bare.sealpipe("rehearse", "--", "sh", "-c", command).code == 11
    assert list(bare.home.rglob("*")) + list(bare.tmp.rglob("*")) == []


def test_what_interrupts_us_interrupts_the_command_and_the_code_tells_which_signal(
    bare: Terminal,
) -> None:
    script = (
        "trap 'echo ended; exit 0' TERM; sleep 0.2; echo ready; for n in $(seq 999); do sleep "
        "0.05; done"
    )
    process = bare.start("rehearse", "--", "sh", "-c", script)
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (143, "ended\n")


def test_a_command_that_has_only_just_begun_is_not_left_behind(bare: Terminal) -> None:
    script = "trap 'echo ended; exit 0' TERM; echo ready; for n in $(seq 60); do sleep 0.05; done"
    begun = [bare.start("rehearse", "--", "sh", "-c", script) for _ in range(12)]
    for process in begun:
        assert process.stdout
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
    assert {process.communicate(timeout=PATIENCE)[0] for process in begun} == {"ended\n"}


def test_keep_goes_on_serving_until_interrupted(bare: Terminal) -> None:
    process = bare.start("rehearse", "--keep", "--", "true")
    assert process.stderr
    told = [process.stderr.readline() for _ in range(4)]
    base_url = told[1].partition("SEALPIPE_BASE_URL=")[2].strip()
    assert send_request(base_url, "GET", "/rehearsal")[0] == 200
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 130


# -- rehearsal serve and key --------------------------------------------------------------------


@contextmanager
def serving(user: Terminal, *words: str) -> Iterator[subprocess.Popen[str]]:
    """`rehearsal serve`, from the moment it says that it answers; killed if the test did not end
    it.
    """
    process = user.start("rehearsal", "serve", *words)
    try:
        assert process.stderr
        assert process.stderr.readline().startswith("serving on ")
        yield process
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE)


def end(process: subprocess.Popen[str], number: int) -> int:
    """Send a signal and wait; the exit code."""
    process.send_signal(number)
    return process.wait(PATIENCE)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_service_ends_in_good_order_and_remembers_with_a_state(
    bare: Terminal, number: int, code: int
) -> None:
    words = ["--port", str(free_port()), "--state", "state.db"]
    scope = ["--scope", "all"]
    with serving(bare, *words) as process:
        key = bare.sealpipe(
            "rehearsal", "key", "create", *words[:2], *scope, "--output", "json"
        ).json
        assert list(key) == ["schema", "api_key", "base_url", "scopes"]
        bare.environ |= {"SEALPIPE_API_KEY": key["api_key"], "SEALPIPE_BASE_URL": key["base_url"]}
        bare.environ["SEALPIPE_LINK_BASE_URL"] = key["base_url"].removesuffix("/v1") + "/s"
        made = bare.sealpipe("share", "-f", "text:x", "--output", "json").json
        assert end(process, number) == code
    with serving(bare, *words):
        assert bare.sealpipe("shares", "show", made["short_code"]).code == 0
        assert send_request(key["base_url"], "GET", f"/links/shares/{made['short_code']}")[0] == 200


def test_without_a_state_a_service_forgets(bare: Terminal) -> None:
    words = ["--port", str(free_port())]
    for _ in range(2):
        with serving(bare, *words) as process:
            base_url = f"http://127.0.0.1:{words[1]}/v1"
            assert send_request(base_url, "GET", "/rehearsal/keys") == (200, {"keys": []})
            credential = bare.sealpipe("rehearsal", "key", "create", *words).out
            assert re.fullmatch(r"svc_sk_live_[\w-]{16}\.[\w-]{43}\.[\w-]{43}\n", credential)
            assert end(process, signal.SIGTERM) == 143


def test_what_serve_prints_is_what_a_shell_can_take(bare: Terminal) -> None:
    with serving(bare, "--port", str(free_port())) as process:
        assert process.stderr
        exports = "".join(process.stderr.readline() for _ in range(3))
        done = bare.run(["sh", "-ec", f"{exports}\nsealpipe share -f text:x"])
        assert (done.code, len(done.out.splitlines())) == (0, 1)


def test_a_key_has_the_name_scopes_and_custody_that_were_asked_for(
    bare: Terminal, service: RunningService
) -> None:
    port = ["--port", str(service.address.port)]
    words = ["--name", "reader", "--scope", "shares:read", "--custody", "none", "--output", "json"]
    told = bare.sealpipe("rehearsal", "key", "create", *port, *words).json
    (key,) = send_request(service.origin, "GET", "/rehearsal/keys")[1]["keys"]
    assert told["scopes"] == ["shares:read"]
    assert (key["name"], key["scopes"], key["custody_effective"]) == (
        "reader",
        ["shares:read"],
        "none",
    )
    assert (
        bare.at(service).sealpipe("share", "-f", "text:x", SEALPIPE_API_KEY=told["api_key"]).code
        == 4
    )


def test_a_key_starts_as_the_form_does_and_can_have_every_scope(
    bare: Terminal, service: RunningService
) -> None:
    create = ["rehearsal", "key", "create", "--port", str(service.address.port), "--output", "json"]
    assert bare.sealpipe(*create).json["scopes"] == ["shares:write"]
    assert len(bare.sealpipe(*create, "--scope", "all").json["scopes"]) == 6
    form, _ = send_request(service.origin, "GET", "/rehearsal/keys")[1]["keys"]
    assert (form["scopes"], form["custody_effective"]) == (["shares:write"], "self")


def test_keys_are_listed_granted_and_revoked(bare: Terminal, service: RunningService) -> None:
    port = ["--port", str(service.address.port)]

    def key(*words: str) -> Done:
        return bare.sealpipe("rehearsal", "key", *words, *port)

    key("create", "--name", "held back", "--no-register")
    key("create", "--name", "team", "--org", "acme", "--custody", "account")
    one, two = key("list", "--output", "json").json["keys"]
    assert (one["custody_effective"], one["last_used_at"]) == ("none", "never used")
    assert (two["organization"], two["custody_effective"]) == ("acme", "self")
    assert "custody_effective: account" in key("grant", two["key_id"]).out
    assert key("grant", one["key_id"]).code == 2
    assert key("revoke", two["key_id"]).code == 0
    first, second = key("list").out.splitlines()
    assert first.split("\t")[1:] == ["held back", "shares:write", "none", "last used never used"]
    assert second.split("\t")[-2:] == ["self", "revoked"]
    assert key("revoke", "unknown").code == 2


def test_an_account_is_readable_text(bare: Terminal, service: RunningService) -> None:
    account = ["rehearsal", "account", "--port", str(service.address.port)]
    assert bare.sealpipe(*account).out == (
        "account: default\nplan: business\nAPI access: yes\nrequests per minute: 100\nAPI "
        "keys: no limit\n"
        "webhook endpoints: 3\nactive shares: no limit\nview protection: yes\naccess log: 90 days\n"
        "zero-knowledge enrolled: yes\nzero-knowledge feature: yes\n"
    )
    changed = bare.sealpipe(
        *account, "--org", "acme", "--rate", "unset", "--shares", "1", "--view-protection", "off"
    ).out
    lines = changed.splitlines()
    assert lines[0] == "account: org:acme"
    assert {
        "API access: no",
        "requests per minute: unset",
        "active shares: 1",
        "view protection: no",
    } <= {*lines}


def test_the_operator_changes_what_an_account_may_do(
    bare: Terminal, service: RunningService
) -> None:
    port = ["--port", str(service.address.port)]
    account = ["rehearsal", "account", *port, "--output", "json"]
    assert bare.sealpipe(*account).json["limits"]["api_keys"] is None
    assert bare.sealpipe(*account, "--account", "acme").json["limits"]["api_keys"] == 5
    changed = bare.sealpipe(
        *account, "--plan", "enterprise", "--keys", "1", "--view-protection", "off"
    ).json
    assert (changed["limits"]["api_keys"], changed["limits"]["view_protection"]) == (1, False)
    create = ["rehearsal", "key", "create", *port]
    assert [bare.sealpipe(*create).code for _ in range(2)] == [0, 4]
    bare.sealpipe(*account, "--org", "acme", "--plan", "none")
    refused = bare.sealpipe(*create, "--org", "acme")
    assert (refused.code, refused.out) == (4, "")
    assert "API access" in refused.err
    assert bare.sealpipe(*account, "--rate", "unset").json["api_access"] is False


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--scope", "shares:delete"], "shares:delete"),
        (["--custody", "all"], "--custody"),
    ],
)
def test_a_key_that_cannot_be_is_refused(
    bare: Terminal, service: RunningService, words: list[str], says: str
) -> None:
    done = bare.sealpipe("rehearsal", "key", "create", "--port", str(service.address.port), *words)
    assert (done.code, done.out) == (2, "")
    assert says in done.err or "must be" in done.err


def test_a_key_where_no_service_runs_is_refused_with_the_next_step(bare: Terminal) -> None:
    port = str(free_port())
    done = bare.sealpipe("rehearsal", "key", "create", "--port", port)
    assert (done.code, done.out) == (2, "")
    assert f"is `sealpipe rehearsal serve --port {port}` running?" in done.err


def test_a_port_that_is_taken_ends_with_2(bare: Terminal, service: RunningService) -> None:
    done = bare.sealpipe("rehearsal", "serve", "--port", str(service.address.port))
    assert (done.code, done.out) == (2, "")
    assert "cannot listen" in done.err
    assert "--port" in done.err


@pytest.mark.parametrize("words", [["--port", "0"], ["--port", "65536"], ["--service-tag", "NO!"]])
def test_a_port_or_tag_that_is_none_ends_with_2(bare: Terminal, words: list[str]) -> None:
    done = bare.sealpipe("rehearsal", "serve", *words)
    assert (done.code, done.out) == (2, "")
    assert words[0] in done.err


def test_a_state_that_is_no_state_ends_with_2_and_stays_as_it_is(bare: Terminal) -> None:
    file = bare.file("state.db", "precious notes, no database")
    done = bare.sealpipe("rehearsal", "serve", "--port", str(free_port()), "--state", "state.db")
    assert (done.code, done.out) == (2, "")
    assert "the state file cannot be used" in done.err
    assert file.read_text() == "precious notes, no database"


# -- without its packages -----------------------------------------------------------------------

BLOCKER = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocker())
"""


@pytest.mark.parametrize("blocked", ["starlette", "uvicorn"])
@pytest.mark.parametrize("command", ["rehearse", "rehearsal serve"])
def test_without_the_extra_the_error_names_the_pip_command(
    bare: Terminal, blocked: str, command: str
) -> None:
    site = bare.file("site/sitecustomize.py", BLOCKER.format(blocked={blocked}))
    done = bare.sealpipe(*command.split(), PYTHONPATH=str(site.parent))
    assert (done.code, done.out) == (2, "")
    assert f"the rehearsal needs {blocked}, which is not installed" in done.err
    assert "pip install 'sealpipe[rehearsal]'" in done.err


def test_the_rest_works_without_the_extra(user: Terminal) -> None:
    site = user.file(
        "site/sitecustomize.py", BLOCKER.format(blocked={"starlette", "uvicorn", "anyio"})
    )
    path = {"PYTHONPATH": str(site.parent), "PATH": os.environ["PATH"]}
    assert user.sealpipe("share", "-f", "text:x", **path).code == 0
    assert user.sealpipe("rehearse", "--help", **path).code == 0
