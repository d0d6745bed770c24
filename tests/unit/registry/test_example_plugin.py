"""The example plugin of the docs: built, installed beside sealpipe, held to the kit, used; and
broken on purpose.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from sealpipe_rehearsal.running_service import RunningService
from support.parts import ROOT, load_module
from support.terminal import Done, Terminal, opened

EXAMPLE = ROOT / "docs/how-to/example-plugin"
PAGE = (ROOT / "docs/how-to/write-a-plugin.md").read_text(encoding="utf-8")
SECRET = "c4nary-on-the-shelf"

# What an author could get wrong: the file, what is right there, what is wrong, and the tests of the
# kit that say so.
BREAKS = {
    "the module with the hooks imports the HTTP library": (
        "__init__.py",
        "from collections.abc import Callable\n",
        "from collections.abc import Callable\n\nimport httpx\n",
        {"test_the_module_with_the_hook_imports_no_sdk"},
    ),
    "values are logged": (
        "source.py",
        "        is_map =",
        "        self.context.logger.debug('got %s', response.text)\n        is_map =",
        {"test_a_value_shows_in_no_repr_error_or_log"},
    ),
    "bytes are read as text": (
        "source.py",
        "else response.content)",
        "else response.text)",
        {"test_bytes_come_back_exactly_up_to_64_kib"},
    ),
    "denied reads as missing": (
        "shelf.py",
        "403: (AccessDeniedError,",
        "403: (SecretNotFoundError,",
        {"test_what_may_not_be_read_is_denied_and_not_missing"},
    ),
    "what is to be tried again is not told so": (
        "shelf.py",
        "in (429, 503)",
        "in (429,)",
        {
            "test_a_backend_that_does_not_answer_is_unavailable[503]",
            "test_a_message_that_was_not_accepted_may_be_sent_again[503]",
        },
    ),
    "a redirect is followed": (
        "shelf.py",
        "json=json)",
        "json=json, follow_redirects=True)",
        {
            "test_a_redirect_to_another_host_is_an_error_and_not_followed[307]",
            "test_a_redirected_write_is_not_followed[307]",
            "test_a_redirect_is_not_followed[302]",
            "test_a_redirect_is_not_followed[307]",
        },
    ),
    "what somebody changed since is overwritten": (
        "sink.py",
        "marked=before.label == marker",
        "marked=False",
        {"test_what_was_rotated_since_is_left_alone"},
    ),
    "the mode is not asked": (
        "sink.py",
        "wanted, mode=mode,",
        'wanted, mode="merge",',
        {
            "test_a_value_shows_in_no_repr_error_or_log",
            "test_create_never_replaces",
            "test_replace_leaves_nothing_else_and_merge_leaves_everything_else",
        },
    ),
    "a recipient is matched at its beginning only": (
        "channel.py",
        "re.fullmatch",
        "re.match",
        {"test_what_is_not_exactly_one_recipient_is_refused"},
    ),
}


class Installed:
    """A virtual environment with sealpipe and the example, both from their wheels."""

    def __init__(self, folder: Path) -> None:
        self.python = folder / "venv/bin/python"
        self.packages = Path(sysconfig.get_path("purelib", vars={"base": str(folder / "venv")}))
        venv.EnvBuilder(symlinks=True).create(folder / "venv")
        # All else comes from the environment around us, whose own sealpipe stands behind the one
        # installed here.
        (self.packages / "around_us.pth").write_text(sysconfig.get_path("purelib") + "\n")
        wheels = [self._wheel(project, folder / "wheels") for project in (ROOT, EXAMPLE)]
        pip = [
            sys.executable,
            "-m",
            "pip",
            "--python",
            self.python,
            "install",
            "--quiet",
            "--no-deps",
            "--no-index",
        ]
        subprocess.run(
            [*pip, "--disable-pip-version-check", *wheels], check=True, capture_output=True
        )

    def _wheel(self, project: Path, folder: Path) -> Path:
        before = set(folder.glob("*.whl"))
        command = [
            sys.executable,
            "-m",
            "build",
            "--wheel",
            "--no-isolation",
            "--outdir",
            folder,
            project,
        ]
        subprocess.run(command, check=True, capture_output=True)
        (wheel,) = set(folder.glob("*.whl")) - before
        return wheel

    def tests(self, folder: Path, *named: str) -> tuple[int, str, set[str]]:
        """Run the example's own tests there, or those that are named: exit code, output, and the
        names of those that failed.
        """
        tests = shutil.copytree(
            EXAMPLE, folder / "tests", ignore=shutil.ignore_patterns("sealpipe_shelf")
        )
        command = [self.python, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider"]
        command += ["-k", " or ".join(name.partition("[")[0] for name in named)]
        environ = {
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PATH": os.defpath,
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        done = subprocess.run(
            command, cwd=tests, env=environ, capture_output=True, text=True, check=False
        )
        return (
            done.returncode,
            done.stdout,
            set(re.findall(r"^FAILED \S+::(\S+)", done.stdout, re.MULTILINE)),
        )

    def sealpipe(self, terminal: Terminal, *words: str, **environ: str) -> Done:
        """Run its `sealpipe WORDS`."""
        return terminal.run([str(self.python.with_name("sealpipe")), *words], environ=environ)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(tmp_path_factory.mktemp("example"))


@pytest.fixture(scope="module")
def service_of_shelf() -> ModuleType:
    return load_module("shelf_service", EXAMPLE / "tests/shelf_service.py")


@pytest.fixture
def shelf(service_of_shelf: ModuleType) -> Iterator[Any]:
    with service_of_shelf.start() as started:
        yield started


@pytest.fixture
def at_shelf(shelf: Any, service_of_shelf: ModuleType) -> dict[str, str]:
    return {"SHELF_URL": shelf.url, "SHELF_TOKEN": service_of_shelf.TOKEN}


def test_its_own_tests_pass_where_it_is_installed(installed: Installed, tmp_path: Path) -> None:
    code, out, failed = installed.tests(tmp_path)
    assert (code, failed) == (0, set()), out
    assert re.search(r"^[1-9]\d+ passed in", out, re.MULTILINE), "some, and none of them skipped"


@pytest.mark.parametrize("how", BREAKS)
def test_the_kit_notices_what_an_author_gets_wrong(
    installed: Installed, tmp_path: Path, how: str
) -> None:
    file, right, wrong, caught = BREAKS[how]
    path = installed.packages / "sealpipe_shelf" / file
    before = path.read_text()
    assert before.count(right) == 1
    path.write_text(before.replace(right, wrong))
    try:
        code, out, failed = installed.tests(tmp_path, *caught)
    finally:
        path.write_text(before)
    assert code == 1, out
    assert caught <= failed


def test_it_is_listed_with_its_distribution(installed: Installed, bare: Terminal) -> None:
    done = installed.sealpipe(bare, "plugins")
    rows = [line.split() for line in done.out.splitlines() if "shelf" in line]
    assert (done.code, done.err) == (0, "")
    assert [row[:4] for row in rows] == [
        ["channel", "shelf", "sealpipe-shelf", "1.0"],
        ["sink", "shelf", "sealpipe-shelf", "1.0"],
        ["source", "shelf", "sealpipe-shelf", "1.0"],
    ]


def test_the_doctor_checks_it(
    installed: Installed, bare: Terminal, at_shelf: dict[str, str]
) -> None:
    fine = installed.sealpipe(bare, "doctor", "shelf", **at_shelf)
    assert (fine.code, fine.err) == (0, "")
    assert f"{at_shelf['SHELF_URL']} accepts the token" in fine.out
    bad = installed.sealpipe(bare, "doctor", "shelf", **at_shelf | {"SHELF_TOKEN": SECRET})
    assert bad.code == 14
    assert "Shelf refused the token" in bad.err
    unset = installed.sealpipe(bare, "doctor", "shelf", SHELF_URL=at_shelf["SHELF_URL"])
    assert unset.code == 2
    assert "set SEALPIPE_PLUGIN_SHELF__TOKEN or SHELF_TOKEN" in unset.err
    assert SECRET not in bad.out + bad.err


def test_a_share_takes_from_it_and_leaves_its_link_there(
    installed: Installed,
    user: Terminal,
    service: RunningService,
    shelf: Any,
    at_shelf: dict[str, str],
) -> None:
    name = shelf.put({"user": b"deploy", "password": SECRET.encode()})
    config = user.file("config.toml", f'[stores.my-shelf]\nplugin = "shelf"\nurl = "{shelf.url}"\n')
    environ = {
        **at_shelf,
        "SEALPIPE_CONFIG": str(config),
        "SEALPIPE_STORE__MY_SHELF__TOKEN": at_shelf["SHELF_TOKEN"],
    }
    fields = ["-f", f"Password=shelf:{name}#password", "-f", f"my-shelf:{name}#user"]
    done = installed.sealpipe(user, "share", *fields, **environ)
    assert done.code == 0, done
    assert opened(service, done.out) == {"Password": SECRET, "user": "deploy"}

    sent = installed.sealpipe(
        user, "share", *fields, "--send", "shelf:{to}", "--param", "to=text:ada", **environ
    )
    assert sent.code == 0, sent
    ((person, note),) = shelf.notes
    link = re.search(rf"{re.escape(service.link_base_url)}\S+", note)
    assert person == "ada"
    assert link is not None
    assert opened(service, link[0]) == {"Password": SECRET, "user": "deploy"}
    assert SECRET not in sent.out + sent.err + note


def test_what_it_says_when_it_fails_names_the_reference_and_no_value(
    installed: Installed, user: Terminal, at_shelf: dict[str, str]
) -> None:
    done = installed.sealpipe(user, "share", "-f", "shelf:nothing", "--output", "json", **at_shelf)
    assert done.code == 14
    error = done.error
    assert (error["type"], error["reference"], error["remedy"]) == (
        "SecretNotFoundError",
        "shelf:nothing",
        "check the name",
    )


def test_the_page_shows_the_example_as_it_is() -> None:
    files = [*EXAMPLE.glob("*.toml"), *EXAMPLE.glob("*/*.py")]
    code = "\n".join(file.read_text(encoding="utf-8") for file in files)
    shown = re.findall(
        r"```(?:python|toml)\n(.*?)```", PAGE.partition("## Beyond the example")[0], re.DOTALL
    )
    assert len(shown) >= 5
    for block in shown:
        for part in re.split(r"\n\n\n|\n    \.\.\.\n|\n\.\.\.\n", block):
            assert part.strip("\n") in code, part
