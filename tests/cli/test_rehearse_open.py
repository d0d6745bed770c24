"""`sealpipe rehearse --open`: a browser shows the tour's link, and no process's arguments have its
key.
"""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from sealpipe_rehearsal.people import Recipient
from support.commands import SEALPIPE
from support.leaks import Detector
from support.terminal import PATIENCE, Terminal

BROWSER = """#!/bin/sh
cd "$HERE" && tr '\\0' '\\n' < /proc/$$/cmdline > arguments && env > environ
stat -c %a "${1#file://}" > mode && cat "${1#file://}" > page
echo "$1" > told.tmp && mv told.tmp told
"""
"""A browser that keeps what it is told and what it reads."""


@pytest.fixture
def opened(bare: Terminal) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The command at a terminal, and the terminal's other end."""
    program = bare.file("browser", BROWSER)
    program.chmod(0o755)
    person, terminal = pty.openpty()
    environ = bare.with_environ(
        {"BROWSER": f"{program} %s", "HERE": str(bare.here), "SEALPIPE_SHARE_TITLE": "canary"}
    )
    process = subprocess.Popen(
        [*SEALPIPE, "rehearse", "--open", "--output", "json"],
        stdin=terminal, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environ, cwd=bare.here,
        text=True,
    )  # fmt: skip
    os.close(terminal)
    try:
        yield process, person
    finally:
        os.close(person)
        process.kill()
        process.communicate()


def read_until(process: subprocess.Popen[str], said: str) -> None:
    """Read what the command says, up to a line."""
    assert process.stderr
    assert any(said in line for line in process.stderr), said


def arguments_of_all_processes() -> bytes:
    found = b""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += file.read_bytes()
        except OSError:
            continue  # it has ended, or is another user's
    return found


def test_a_browser_reads_the_link_from_a_private_file(
    bare: Terminal, opened: tuple[subprocess.Popen[str], int]
) -> None:
    process, person = opened
    read_until(process, "The service runs until you press Enter.")
    (link,) = re.findall(r'href="([^"]+)"', (bare.here / "page").read_text())
    fragment = link.partition("#")[2]
    assert len(fragment) == 44
    key = Detector({"the key": fragment[1:].encode()})
    assert key.find((bare.here / "page").read_bytes()), "it is there to be found"
    told = Path(urlsplit((bare.here / "told").read_text().strip()).path)
    assert (told.exists(), (bare.here / "mode").read_text()) == (True, "600\n")
    environ = (bare.here / "environ").read_bytes()
    assert (
        key.find(arguments_of_all_processes() + (bare.here / "arguments").read_bytes() + environ)
        == set()
    )
    assert b"SEALPIPE_" not in environ
    shown = {field.key: field.value for field in Recipient().open_link(link)}
    assert list(shown) == ["Password", "User"], "the link is still open after the tour"
    os.write(person, b"\n")
    out, _ = process.communicate(timeout=PATIENCE)
    assert (process.returncode, link in out) == (0, True)
    assert not told.parent.exists()


def test_who_interrupts_leaves_nothing_behind(
    bare: Terminal, opened: tuple[subprocess.Popen[str], int]
) -> None:
    process, _ = opened
    read_until(process, "The service runs until you press Enter.")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert list(bare.tmp.iterdir()) == []


def test_without_a_browser_nothing_is_started(bare: Terminal) -> None:
    done = bare.sealpipe("rehearse", "--open", PATH="/no/such/folder", BROWSER=None, DISPLAY=None)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(
        "sealpipe: --open: Python finds no browser\n  run `sealpipe rehearse --keep`"
    )
