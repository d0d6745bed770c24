"""What `actions/_setup/setup.sh` refuses to install, and what it keeps to itself."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import sealpipe
from e2e.actions.setup.setting_up import SetUp
from support.parts import program
from support.ports import silent_port
from support.terminal import readable

Make = Callable[..., SetUp]

INSTALLERS = pytest.mark.parametrize("installer", ["uv", "pip"])
SECRETS = {
    "SEALPIPE_API_KEY": "one-canary",
    "SEALPIPE_API_KEY_PREVIOUS": "two-canary",
    "DB_PASSWORD": "three-canary",
    "VAULT_TOKEN": "four-canary",
    "GITHUB_TOKEN": "five-canary",
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "six-canary",
    "SEALPIPE_ACTION_FIELDS": "seven-canary",
}


@INSTALLERS
def test_a_wheel_that_is_not_the_locked_one_is_refused(
    set_up: Make, light: Path, tmp_path: Path, installer: str
) -> None:
    changed = shutil.copytree(light, tmp_path / "changed")
    lock = changed / "actions/_setup/locks/base.txt"
    head, click, rest = re.split(r"(?m)^(click==.*\n(?: .*\n)*)", lock.read_text())
    lock.write_text(head + re.sub(r"sha256:..", "sha256:00", click) + rest)
    job = set_up("uv", "python3", checkout=changed)
    done = job(installer=installer)
    assert f"{installer} ended with exit code" in done.error
    assert "click" in done.text
    assert "hash" in done.text.lower()
    assert job.left() == [], "nothing is left of what was installed before it"


@INSTALLERS
def test_a_requirement_without_a_hash_is_refused(
    set_up: Make, light: Path, tmp_path: Path, installer: str
) -> None:
    changed = shutil.copytree(light, tmp_path / "changed")
    with (changed / "actions/_setup/locks/build.txt").open("a") as lock:
        lock.write("six==1.17.0\n")
    done = set_up("uv", "python3", checkout=changed)(installer=installer)
    assert f"{installer} ended with exit code" in done.error
    assert "hash" in done.text.lower()


@INSTALLERS
def test_no_secret_of_the_step_reaches_what_it_starts_nor_stands_in_what_started_it(
    set_up: Make, installer: str
) -> None:
    """Whatever runs as the same user reads its parent's environment as it was when that started."""
    job = set_up()
    own, above = job.home / "own", job.home / "above"
    # The bit that answers for itself is Python: what it says is where it is really found.
    for name, real in {"uv": program("uv"), "python3": sys.executable}.items():
        # Its own environment and words; and the environment, names and all, of every process above
        # it up to the test's.
        walk = f"p=$$; while [ $p -ne {os.getpid()} ] && [ $p -gt 1 ]; do /bin/cat /proc/$p/environ"
        walk += (
            " | /usr/bin/tr '\\0' '\\n'; p=$(/bin/sed 's/.*) //' /proc/$p/stat | /usr/bin/cut "
            "-d ' ' -f 2); done"
        )
        job.add(
            name,
            f"/usr/bin/env >> '{own}'\nprintf '%s\\n' \"$*\" >> '{own}'\n"
            f"{{ {walk}; }} >> '{above}'\nexec '{real}' \"$@\"",
        )
    odd = {
        "my-token": "eight-canary",
        "with.dot": "nine-canary",
        "BASH_FUNC_sed%%": "() { : ten-canary; }",
    }
    done = job(
        "yaml",
        installer,
        RUNNER_DEBUG="1",
        SEALPIPE_SETUP_KEEP="KEPT",
        KEPT="two\nlines 'and' \"quotes\" $x",
        **odd,
        **SECRETS,
    )
    assert done.executable.is_file()
    known = own.read_text()
    assert "PIP_FIND_LINKS=" in known
    assert "::debug::installer" in done.text
    assert re.findall(r"^(?:SEALPIPE|GITHUB|RUNNER|ACTIONS)_\w+", known, re.MULTILINE) == []
    for text in (known, above.read_text()):
        assert "KEPT=two\nlines 'and' \"quotes\" $x\n" in text
        assert "canary" not in text
    assert "canary" not in done.text


@INSTALLERS
def test_an_index_password_is_not_shown(set_up: Make, installer: str) -> None:
    job = set_up("uv", "python3")
    address = f"http://user:hunter2-canary@127.0.0.1:{silent_port()}/simple"
    index = {
        "PIP_INDEX_URL": address,
        "PIP_NO_INDEX": "-",
        "PIP_FIND_LINKS": "-",
        "PIP_RETRIES": "0",
    }
    index |= {
        "UV_DEFAULT_INDEX": address,
        "UV_OFFLINE": "-",
        "UV_FIND_LINKS": "-",
        "UV_HTTP_RETRIES": "0",
    }
    done = job(installer=installer, RUNNER_DEBUG="1", **index)
    assert f"{installer} ended with exit code" in done.error
    assert "canary" not in done.text
    assert job.left() == []


def test_what_an_installer_says_is_no_command_to_the_runner(set_up: Make) -> None:
    job = set_up("python3")
    said = r"::set-env name=A::b\n##[add-path]/evil\n##vso[x]y\nfetch https://u:p-canary@h/\n"
    # A runner ends a line at a carriage return, too; and there are passwords with an @ in them.
    said += (
        r"10 percent\r::add-mask::e\r  ::stop-commands::x\n\033[2Kfetch https://u:p@w-canary@h/\n"
    )
    job.add("uv", f"printf '{said}'; exit 1")
    done = job(installer="uv")
    assert "uv ended with exit code 1" in done.error
    assert "\nuv: # #[add-path]/evil\nuv: # #vso[x]y\nuv: fetch https://***@h/\n" in done.text
    assert "canary" not in done.text
    lines = done.text.splitlines()
    assert [
        line
        for line in lines
        if line.lstrip().startswith("::") and "::error title=sealpipe" not in line
    ] == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_job_that_is_cancelled_leaves_nothing(set_up: Make, number: signal.Signals) -> None:
    job = set_up("python3")
    pipe = job.home / "alive"
    os.mkfifo(pipe)
    # As pip does, it starts another process; both hold the pipe, and would go on for long.
    job.add("uv", f"PATH=/usr/bin:/bin\nexec 9> '{pipe}'\nsleep 600 &\necho started >&9\nwait")
    with job.start(installer="uv") as process, pipe.open("rb", buffering=0) as alive:
        assert alive.read(8) == b"started\n"
        process.send_signal(number)
        process.communicate(timeout=20)
        assert readable([alive], 20), "what it has started goes on"
        assert alive.read() == b""
    assert process.returncode == 128 + number
    assert job.left() == []


def test_a_sealpipe_that_is_there_is_used_as_it_is(set_up: Make) -> None:
    job = set_up()
    own = job.home / "bin" / "sealpipe"
    own.parent.mkdir()
    own.symlink_to(Path(sys.executable).with_name("sealpipe"))
    done = job(executable=str(own))
    assert done.executable == own
    assert f"sealpipe {sealpipe.__version__} is there already" in done.text
    assert "::warning" not in done.text
    assert job.left() == []
    (job.tools / "sealpipe").symlink_to(own)
    assert job(executable="sealpipe").executable == job.tools / "sealpipe"
    (job.work / "sealpipe").symlink_to(own)
    assert job(executable="./sealpipe").executable.resolve() == own.resolve()


def test_another_version_is_used_with_a_warning(set_up: Make) -> None:
    job = set_up()
    own = job.add("other", "echo sealpipe 9.9.9")
    done = job(executable=str(own))
    assert done.executable == own
    assert (
        f"executable is sealpipe 9.9.9, and this action is made for {sealpipe.__version__}"
        in done.text
    )
    assert "::warning" in done.text


@pytest.mark.parametrize(
    "script",
    [
        "exit 1",
        "echo hello",
        "echo sealpipe of old",
        "printf 'sealpipe 1.0\\n::add-mask::x\\n'",
        "echo sealpipe 1 >&2",
    ],
    ids=["fails", "another", "no-version", "more-lines", "stderr"],
)
def test_an_executable_that_is_no_sealpipe_is_refused(set_up: Make, script: str) -> None:
    job = set_up()
    own = job.add("other", script)
    assert f"executable: {own} is no sealpipe" in job(executable=str(own)).error


@pytest.mark.parametrize(
    "name", ["nowhere/sealpipe", "sealpipe", "-c", "x\n::stop-commands::y", "."]
)
def test_an_executable_that_is_not_there_is_refused(set_up: Make, name: str) -> None:
    assert "executable: there is no program" in set_up()(executable=name).error
