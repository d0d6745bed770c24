"""What others see of a running command: other processes of the same user, its own children, and who
reads cores.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from sealpipe_rehearsal.running_service import RunningService
from support.terminal import Done, Terminal, opened

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="by /proc")

NOBODY = 65534


@pytest.fixture
def somebody(user: Terminal) -> Terminal:
    """A user who is not root: root reads everything, of everybody."""
    if os.geteuid() != 0:
        return user
    for path in (user.here, *user.here.rglob("*"), user.home, *user.home.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    for parent in user.here.parents:
        if parent.stat().st_uid == os.geteuid() and not parent.stat().st_mode & 0o001:
            parent.chmod(parent.stat().st_mode | 0o011)
    return user


# What a process keeps that is nobody's and still starts this Python, wherever root has put it: it
# may read every file, and nothing of another process's.
READS_FILES = [
    "setpriv",
    f"--reuid={NOBODY}",
    f"--regid={NOBODY}",
    "--clear-groups",
    *(f"--{which}=-all,+dac_read_search" for which in ("inh-caps", "ambient-caps", "bounding-set")),
]


def run(terminal: Terminal, *words: str, root: bool = False, **environ: str) -> Done:
    """As the terminal does it, by that user."""
    as_nobody = READS_FILES if not root and os.geteuid() == 0 else []
    done = subprocess.run(
        [*as_nobody, sys.executable, "-m", "sealpipe", *words],
        env=terminal.with_environ(environ),
        cwd=terminal.here,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def exec_source(terminal: Terminal, script: str) -> Mapping[str, str]:
    """A config file with a command `look`, which runs a script."""
    config = terminal.file(
        "config.toml", f'[plugins.exec.commands.look]\nargv = ["sh", "-c", """{script}"""]\n'
    )
    if os.geteuid() == 0:
        os.chown(config, NOBODY, NOBODY)
    return {"SEALPIPE_CONFIG": str(config)}


@pytest.mark.parametrize("what", ["environ", "mem", "maps", "auxv"])
def test_an_exec_child_reads_nothing_of_its_parent(
    somebody: Terminal, service: RunningService, what: str
) -> None:
    script = f"cat /proc/$PPID/{what} 2>/dev/null || echo denied"
    done = run(somebody, "share", "-f", "Seen=exec:look", **exec_source(somebody, script))
    assert done.code == 0, done
    assert opened(service, done.out.strip()) == {"Seen": "denied\n"}


@pytest.mark.parametrize("name", ["SEALPIPE_API_KEY", "SEALPIPE_API_KEY_PREVIOUS"])
def test_the_credential_is_no_more_among_the_variables_that_root_reads(
    user: Terminal, service: RunningService, name: str
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root reads them")
    config = exec_source(user, "tr '\\\\0' '\\\\n' < /proc/$PPID/environ")
    both = {**config, "SEALPIPE_API_KEY_PREVIOUS": user.environ["SEALPIPE_API_KEY"]}
    done = run(user, "share", "-f", "Seen=exec:look", root=True, **both)
    assert done.code == 0, done
    seen = opened(service, done.out.strip())["Seen"]
    lines = dict(line.partition("=")[::2] for line in seen.splitlines() if "=" in line)
    assert lines[name] == ""
    # The others are as they were.
    assert lines["SEALPIPE_BASE_URL"] == user.environ["SEALPIPE_BASE_URL"]
    assert user.environ["SEALPIPE_API_KEY"] not in seen


@pytest.mark.parametrize("closed", [True, False])
def test_a_command_that_crashes_leaves_no_core(tmp_path: Path, *, closed: bool) -> None:
    """And it would: where the system makes cores at all, one is made of a process that is not
    closed.
    """
    code = (
        "import os, resource, signal\n"
        "from sealpipe.hardening import harden\n"
        "resource.setrlimit(resource.RLIMIT_CORE, "
        "(resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)\n"
        f"{closed} and harden()\n"
        "os.kill(os.getpid(), signal.SIGABRT)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path)
    status = os.waitpid(process.pid, 0)[1]
    process.returncode = 0
    assert os.WTERMSIG(status) == signal.SIGABRT
    if not closed and not os.WCOREDUMP(status):
        pytest.skip("this system makes no core of anything")
    assert os.WCOREDUMP(status) is not closed
    if closed:
        assert not list(tmp_path.iterdir())


def test_the_process_says_that_it_is_closed(user: Terminal) -> None:
    code = (
        "import ctypes\n"
        "from sealpipe.hardening import harden\n"
        "libc = ctypes.CDLL(None)\n"
        "before = libc.prctl(3, 0, 0, 0, 0); harden(); print(before, libc.prctl(3, 0, 0, 0, 0))\n"
    )
    assert user.run([sys.executable, "-c", code]).out == "1 0\n"


def test_what_others_start_in_this_process_is_given_nothing_of_ours(user: Terminal) -> None:
    """As AWS's SDK starts a profile's credential_process: with the variables that the process
    has.
    """
    code = (
        "import os, subprocess\nfrom sealpipe.hardening import harden\nharden(); "
        "subprocess.run(['env'])"
    )
    done = user.run(
        [sys.executable, "-c", code], environ={"SEALPIPE_PLUGIN_WEBHOOK__SECRET": "s3cret"}
    )
    assert "HOME=" in done.out
    assert "SEALPIPE_" not in done.out


def test_where_the_kernel_has_no_such_thing_cores_are_off_all_the_same(user: Terminal) -> None:
    code = (
        "import resource, sys\n"
        "sys.modules['_ctypes'] = None\n"
        "from sealpipe.hardening import harden\n"
        "harden(); print(resource.getrlimit(resource.RLIMIT_CORE)[0])\n"
    )
    assert user.run([sys.executable, "-c", code]).out == "0\n"


def test_the_library_leaves_the_program_as_it_is(user: Terminal) -> None:
    code = (
        "import ctypes, os, pathlib\n"
        "from sealpipe import Client\n"
        "Client.from_settings().close()\n"
        "block = pathlib.Path('/proc/self/environ').read_text()\n"
        "print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0), os.environ['SEALPIPE_API_KEY'] in block)\n"
    )
    assert user.run([sys.executable, "-c", code]).out == "1 True\n"


def test_what_a_rehearsal_runs_has_its_credential(somebody: Terminal) -> None:
    done = run(somebody, "rehearse", "--", "sh", "-c", 'test -n "$SEALPIPE_API_KEY" && echo there')
    assert done.out.endswith("there\n"), done


@pytest.mark.usefixtures("service")
def test_the_state_is_kept_though_proc_is_roots(somebody: Terminal) -> None:
    """Files get their names by /proc/self/fd, which is root's now: the process itself may still go
    there.
    """
    done = run(somebody, "share", "-f", "A=env:HOME")
    assert done.code == 0, done
    assert somebody.outbox() == []
    assert Path(somebody.home).exists()
