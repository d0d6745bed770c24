"""What is never shared: what the kernel tells of processes, and the credential, whatever leads
there.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from sealpipe.errors import SettingError
from sealpipe.registry import Registry
from sealpipe_rehearsal.running_service import RunningService
from support.parts import tmpfs
from support.terminal import Done, Terminal

LOCKED = "is in /proc, which exposes processes"


def assert_nothing_left(done: Done, service: RunningService, says: str) -> None:
    assert (done.code, done.out) == (2, ""), done
    assert says in done.err
    assert service.seen() == []


WAYS = {
    "itself": "file:/proc/self/environ",
    "by its number": f"file:/proc/{os.getpid()}/environ",
    "its threads": "file:/proc/thread-self/environ",
    "by a way round": "file:/proc/self/root/proc/self/environ",
    "its words": "file:/proc/self/cmdline",
    "its memory": "file:/proc/self/mem",
    "by a link": "file:linked",
    "by a link to a folder": "file:folder/environ",
    "as dotenv": "dotenv:/proc/self/environ#PATH",
    "as sops": "sops:/proc/self/environ",
}


@pytest.mark.parametrize("way", WAYS)
def test_what_the_kernel_tells_of_processes_is_no_source(
    user: Terminal, service: RunningService, way: str
) -> None:
    (user.here / "linked").symlink_to("/proc/self/environ")
    (user.here / "folder").symlink_to("/proc/self")
    assert_nothing_left(user.sealpipe("share", "-f", WAYS[way]), service, LOCKED)


def test_an_open_descriptor_is_no_way_round(user: Terminal, service: RunningService) -> None:
    inner = shlex.join([sys.executable, "-m", "sealpipe", "share", "-f", "file:/dev/fd/3"])
    assert_nothing_left(
        user.run(["sh", "-c", f"exec 3</proc/self/environ; {inner}"]), service, LOCKED
    )


def test_standard_input_is_no_way_round(user: Terminal, service: RunningService) -> None:
    inner = shlex.join([sys.executable, "-m", "sealpipe", "share", "-f", "A=stdin:"])
    assert_nothing_left(user.run(["sh", "-c", f"{inner} </proc/self/environ"]), service, LOCKED)


def test_another_mount_of_it_is_no_way_round(user: Terminal, service: RunningService) -> None:
    with tmpfs(user.here / "elsewhere") as place:
        (place / "proc").mkdir()
        assert (
            subprocess.run(
                ["mount", "-t", "proc", "proc", str(place / "proc")], check=False
            ).returncode
            == 0
        )
        try:
            done = user.sealpipe("share", "-f", f"file:{place}/proc/self/environ")
            assert_nothing_left(done, service, LOCKED)
        finally:
            subprocess.run(["umount", "--lazy", str(place / "proc")], check=True)


def test_a_message_has_no_such_text(user: Terminal, service: RunningService) -> None:
    words = ("--send", "file:out", "--message-template", "/proc/self/environ")
    assert_nothing_left(user.sealpipe("share", "-f", "text:x", *words), service, LOCKED)


def test_what_is_on_no_disk_is_read_all_the_same(user: Terminal) -> None:
    """A secret in memory: /dev/shm, a pipe of the shell's."""
    place = Path("/dev/shm") / f"sealpipe-test-{os.getpid()}"
    place.write_text("s3cret")
    try:
        assert user.sealpipe("share", "-f", f"P=file:{place}").code == 0
    finally:
        place.unlink()
    inner = shlex.join([sys.executable, "-m", "sealpipe", "share", "-f", "P=file:/dev/fd/3"])
    assert user.run(["sh", "-c", f"printf s3cret | {inner} 3<&0"]).code == 0


@pytest.mark.parametrize(
    "words",
    [
        ["-f", "file:key"],
        ["-f", "file:key?trim=1"],
        ["-f", "dotenv:ci.env#KEY"],
        ["-f", "env:COPY"],
        ["-f", "text:x", "--passcode-from", "env:COPY"],
    ],
)
def test_the_credential_is_not_shared_whatever_names_it(
    user: Terminal, service: RunningService, words: list[str]
) -> None:
    api_key = user.environ.pop("SEALPIPE_API_KEY") or ""
    user.file("key", api_key + "\n")
    user.file("ci.env", f"KEY={api_key}\n")
    done = user.sealpipe(
        "share", *words, SEALPIPE_API_KEY_FILE=str(user.here / "key"), COPY=api_key
    )
    assert_nothing_left(done, service, "sealpipe's own credential, which is never shared")
    assert api_key not in done.err


PROGRAMS = {
    "SEALPIPE_PLUGIN_SOPS__PROGRAM": ("sops", {}),
    "SEALPIPE_PLUGIN_SOPS__Program": ("sops", {}),
    "SEALPIPE_PLUGIN_PASS__PROGRAM": ("pass", {}),
    "SEALPIPE_STORE__OURS__PROGRAM": ("ours", {"SEALPIPE_STORE__OURS__PLUGIN": "sops"}),
    "SEALPIPE_PLUGIN_EXEC__Commands": ("exec", {}),
}


@pytest.mark.parametrize("variable", PROGRAMS)
def test_the_environment_does_not_say_which_program_is_started(variable: str) -> None:
    name, more = PROGRAMS[variable]
    registry = Registry(environ={"PATH": os.defpath, variable: "/tmp/evil", **more})
    with pytest.raises(SettingError, match="the environment cannot set"):
        registry.source(name)


def test_the_config_file_says_which_program_is_started() -> None:
    registry = Registry(
        environ={"PATH": os.defpath}, config=lambda: {"plugins": {"sops": {"program": "/bin/true"}}}
    )
    assert registry.source("sops")
