"""`actions/_setup/setup.sh` sets sealpipe up, by uv and by pip, on the runners that there are."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import cache_from_source
from pathlib import Path

import pytest

import sealpipe
from e2e.actions.setup.setting_up import PARTS, Done, SetUp
from support.parts import make_read_only, program, tmpfs

Make = Callable[..., SetUp]

INSTALLERS = pytest.mark.parametrize("installer", ["uv", "pip"])
VERSION = f"sealpipe {sealpipe.__version__}"


@INSTALLERS
def test_the_first_step_installs_the_extras_and_the_second_takes_what_is_there(
    set_up: Make, checkout: Path, installer: str
) -> None:
    job = set_up("uv", "python3", checkout=checkout)
    first = job("yaml,vault", installer)
    assert said(first.executable) == VERSION
    assert f"{VERSION} is set up by {installer}" in first.text
    assert importable(first.executable, "hvac", "yaml", "hatchling", "botocore") == ["hvac", "yaml"]
    for name in ("sealpipe", "hvac"):
        (source,) = (first.executable.parents[1] / "lib").glob(
            f"*/site-packages/{name}/__init__.py"
        )
        assert Path(cache_from_source(str(source))).is_file(), f"{name} is byte-compiled"
    left = job.left()
    assert len(left) == 2, "a place, and the name that leads there"
    # Whatever installs is gone: what the second step takes is there already.
    for tool in ("uv", "pip"):
        job.add(tool, "exit 1")
    second = job("yaml,vault", installer)
    assert (second.executable, job.left()) == (first.executable, left)
    assert "is set up already" in second.text


def test_other_extras_installers_pythons_and_checkouts_have_other_places(
    set_up: Make, light: Path, tmp_path: Path
) -> None:
    other = shutil.copytree(light, tmp_path / "other")
    module = other / "core/sealpipe/__init__.py"
    module.write_text(module.read_text() + "\nOTHER = True\n")
    job, theirs = set_up(), set_up(checkout=other, place=tmp_path / "second")
    for each in (job, theirs):
        each.environ |= {"RUNNER_TEMP": str(job.temp), "RUNNER_DEBUG": "1"}
        each.add("uv", "exit 1")
        each.add("python3", _python_that_cannot_install())
    places = [
        _place(done)
        for done in (job(), job("yaml"), job("yaml,vault"), job(installer="pip"), theirs())
    ]
    job.add("python3", _python_that_cannot_install("3.13.0"))
    places.append(_place(job()))
    assert len(set(places)) == len(places)
    assert _place(job()) == places[-1]


def test_two_steps_at_once_use_the_same(set_up: Make) -> None:
    job = set_up("quick:uv", "python3")
    started = [
        job.start(installer="uv", GITHUB_OUTPUT=str(job.home / f"output{n}")) for n in range(2)
    ]
    for process in started:
        with process:
            text, _ = process.communicate(timeout=240)
        assert process.returncode == 0, text
    one, other = ((job.home / f"output{n}").read_text() for n in range(2))
    assert one == other
    assert said(Path(one.strip().removeprefix("executable="))) == VERSION
    assert len(job.left()) == 2, "the one that came second has cleared its own away"


def test_a_place_that_is_gone_is_made_again(set_up: Make) -> None:
    job = set_up("quick:uv", "python3")
    executable = job().executable
    shutil.rmtree(executable.resolve().parents[2])
    assert job().executable == executable
    assert said(executable) == VERSION


def test_files_of_the_workspace_choose_nothing(set_up: Make) -> None:
    job = set_up("quick:uv", "python3")
    (job.work / "uv.toml").write_text(
        'no-index = true\nfind-links = ["/nowhere"]\ncache-dir = "evil"\n'
    )
    (job.work / "pyproject.toml").write_text("this is no TOML")
    (job.work / ".python-version").write_text("2.7\n")
    (job.work / "sealpipe.py").write_text("raise SystemExit('of the workspace')")
    assert said(job().executable) == VERSION
    assert not (job.work / "evil").exists()


@INSTALLERS
def test_the_checkout_and_the_home_may_be_read_only(
    set_up: Make, light: Path, tmp_path: Path, installer: str
) -> None:
    with tmpfs(tmp_path / "sealed", size="16m") as sealed:
        for part in PARTS:
            source = light / part
            (shutil.copytree if source.is_dir() else shutil.copy)(source, sealed / part)
        (sealed / "home").mkdir()
        make_read_only(sealed)
        job = set_up("quick:uv", "python3", checkout=sealed)
        assert said(job(installer=installer, HOME=str(sealed / "home")).executable) == VERSION


def test_without_a_python_uv_finds_or_fetches_one(set_up: Make) -> None:
    job = set_up()
    asked = job.home / "asked"
    # uv looks in more places than PATH; which Python it takes is its own affair.
    instead = f"printf '%s\\n' \"$*\" > '{asked}'; set -- venv --python '{sys.executable}' venv"
    script = f"if [ $1 = venv ]; then {instead}; fi\nexec '{program('uv')}' \"$@\""
    job.add("uv", script)
    assert said(job(HOME="-").executable) == VERSION
    assert "--python >=3.11,<3.14 venv" in asked.read_text()


def test_a_python_that_is_too_old_is_passed_over(set_up: Make) -> None:
    job = set_up("quick:uv", "old:python3.13", "old:python3", "python")
    assert said(job().executable) == VERSION


@pytest.mark.parametrize(
    "tools", [(), ("old:python3.13", "old:python3", "old:python")], ids=["none", "old"]
)
def test_without_a_python_it_says_what_to_do(set_up: Make, tools: tuple[str, ...]) -> None:
    job = set_up(*tools)
    error = job().error
    assert "there is no Python 3.11 or newer with pip here, and no uv" in error
    assert "setup-python" in error
    assert job.left() == []


def test_without_uv_installer_uv_is_refused(set_up: Make) -> None:
    assert "uv is not installed" in set_up("python3")(installer="uv").error


PIP_ONLY = {"UV_FIND_LINKS": "-"}
NEITHER = {**PIP_ONLY, "PIP_NO_INDEX": "-", "PIP_FIND_LINKS": "-"}
BOTH: dict[str, str] = {}


@pytest.mark.parametrize(
    ("environ", "pip_conf", "uv_toml", "expected"),
    [
        (PIP_ONLY, "", "", "pip"),
        (BOTH, "", "", "uv"),
        (NEITHER, "", "", "uv"),
        (
            NEITHER,
            "[global]\nindex-url = https://user:hunter2-canary@index.example/simple\n",
            "",
            "pip",
        ),
        (
            NEITHER,
            "[global]\nindex-url = https://a.example\n",
            '[[index]]\nurl = "https://b.example"\n',
            "uv",
        ),
        (NEITHER, "[global]\ntimeout = 60\n", "", "uv"),
        (NEITHER, "[global]\ncert = /etc/ca.pem\n", "", "pip"),
        ({**NEITHER, "SSL_CERT_FILE": "/etc/ca.pem"}, "[global]\ncert = /etc/ca.pem\n", "", "uv"),
        ({**PIP_ONLY, "UV_INDEX_COMPANY_URL": "https://b.example"}, "", "", "uv"),
        (
            {**NEITHER, "PIP_CONFIG_FILE": os.devnull},
            "[global]\nindex-url = https://a.example\n",
            "",
            "uv",
        ),
    ],
    ids=[
        "pip-only",
        "both",
        "neither",
        "pip.conf",
        "both-files",
        "pip.conf-without",
        "pip-ca",
        "both-ca",
        "uv-named",
        "none-read",
    ],
)
def test_auto_uses_pip_if_only_pip_has_an_index(
    set_up: Make, environ: dict[str, str], pip_conf: str, uv_toml: str, expected: str
) -> None:
    job = set_up()
    # Neither gets far: which of the two is started is all that is asked.
    job.add("uv", "echo this is uv; exit 7")
    job.add("python3", _python_that_cannot_install())
    for folder, name, text in (("pip", "pip.conf", pip_conf), ("uv", "uv.toml", uv_toml)):
        (job.home / ".config" / folder).mkdir(parents=True)
        (job.home / ".config" / folder / name).write_text(text)
    # What the machine that runs the tests has in /etc is no part of this.
    job.add(
        "grep",
        (
            'for word; do shift; case $word in /etc/*) ;; *) set -- "$@" "$word" ;; esac; '
            'done; exec $GREP "$@"'
        ),
    )
    job.environ |= {
        "SEALPIPE_SETUP_KEEP": "GREP, OTHER",
        "GREP": str(shutil.which("grep")),
        "RUNNER_DEBUG": "1",
    }
    done = job(**{"PIP_CONFIG_FILE": "-", **environ})
    assert f"::debug::installer {expected}," in done.text
    assert f"{expected} ended with exit code" in done.error
    assert "hunter2-canary" not in done.text


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"installer": "conda"}, "installer is auto, uv or pip, and not conda"),
        ({"extras": "vault,nosuch"}, "there is no extra of that name in: vault,nosuch"),
        ({"extras": "../../../etc/passwd"}, "there is no extra"),
        ({"extras": "build"}, "there is no extra"),
        ({"extras": "x\n::add-mask::e"}, "x\n::add-mask::e"),
        ({"RUNNER_TEMP": "-"}, "RUNNER_TEMP"),
    ],
    ids=["installer", "extra", "path", "backend", "line-break", "no-temp"],
)
def test_what_is_wrong_is_refused_before_anything_is_made(
    set_up: Make, given: dict[str, str], expected: str
) -> None:
    job = set_up("python3")
    assert expected in job(**given).error
    assert job.left() == []


def test_windows_is_refused(set_up: Make) -> None:
    job = set_up("python3")
    job.add("uname", "echo MINGW64_NT-10.0")
    assert "sealpipe runs on Linux and macOS" in job().error


def said(executable: Path) -> str:
    return subprocess.run(
        [executable, "--version"], capture_output=True, text=True, check=True
    ).stdout.strip()


def importable(executable: Path, *names: str) -> list[str]:
    code = (
        "import sys; from importlib.util import find_spec; print(*filter(find_spec, sys.argv[1:]))"
    )
    command = [executable.with_name("python"), "-I", "-c", code, *names]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def _place(done: Done) -> str:
    return re.findall(r"::debug::installer .*, in (.*)", done.text)[0]


def _python_that_cannot_install(version: str = "3.12.0") -> str:
    return f"printf '/bin/false\\n{version}\\npip\\n'"
