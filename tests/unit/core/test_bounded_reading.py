"""A file of another's making is compared without waiting for it, and without reading it to its
end.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from sealpipe.cli.deliver import write_file
from sealpipe.expire.share import note_expired, was_expired
from sealpipe.permissions import has_content
from sealpipe.plugin import Context, Message, PluginError, Secret
from sealpipe.state.files import create_file, replace_file
from sealpipe_plugins.local.file_channel import FileChannel

CONTENT = b"a link\n"
HUGE = 1 << 40
"""Bytes of a file with holes: who reads it whole runs out of memory."""

BASE_URL, CODE = "https://service.example/v1", "abc"


pytestmark = pytest.mark.timeout(20)
"""Opening a pipe that nobody writes to waits forever."""


def _is_fine_as_link_file(path: Path) -> bool:
    try:
        write_file(path, CONTENT.decode())
    except FileExistsError:
        return False
    return True


def _is_fine_for_the_channel(path: Path) -> bool:
    context = Context(
        "file", environ={}, new_file=lambda new, content: create_file(new, lambda: [content])
    )
    secret = Secret(CONTENT.removesuffix(b"\n"))
    message = Message("share", secret, secret, "a subject")
    try:
        return FileChannel(None, context).send(message, str(path)).confirmed
    except PluginError:
        return False


READERS: dict[str, Callable[[Path], bool]] = {
    "itself": lambda path: has_content(path, CONTENT),
    "link file": _is_fine_as_link_file,
    "channel": _is_fine_for_the_channel,
    "replaced": lambda path: replace_file(path, CONTENT, CONTENT),
}


@pytest.fixture(params=READERS)
def reader(request: pytest.FixtureRequest) -> Callable[[Path], bool]:
    return READERS[request.param]


def test_the_same_content_is_found(reader: Callable[[Path], bool], tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(CONTENT)
    assert reader(path)


@pytest.mark.parametrize("content", [b"", CONTENT[:-1], CONTENT + b"\n", CONTENT.swapcase()])
def test_any_other_content_is_not(
    reader: Callable[[Path], bool], tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    assert not reader(path)
    assert path.read_bytes() == content


def test_a_pipe_is_not_waited_for(reader: Callable[[Path], bool], tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    assert not reader(path)
    assert path.is_fifo()


def test_a_huge_file_is_not_read_whole(reader: Callable[[Path], bool], tmp_path: Path) -> None:
    path = tmp_path / "huge"
    path.write_bytes(CONTENT)
    os.truncate(path, HUGE)
    assert not reader(path)
    assert path.stat().st_size == HUGE


def test_a_link_to_the_same_content_does_not_count(
    reader: Callable[[Path], bool], tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(CONTENT)
    (tmp_path / "link").symlink_to("file")
    assert not reader(tmp_path / "link")


@pytest.mark.parametrize("kind", ["pipe", "folder", "link"])
def test_what_takes_the_files_place_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    path, plain = tmp_path / kind, tmp_path / "file"
    plain.write_bytes(CONTENT)
    {"pipe": os.mkfifo, "folder": os.mkdir, "link": lambda new: new.symlink_to(plain)}[kind](path)
    found = plain.stat()
    with monkeypatch.context() as patch:
        patch.setattr(os, "stat", lambda *_args, **_named: found)
        assert not has_content(path, CONTENT)


@pytest.mark.parametrize("kind", ["pipe", "huge"])
def test_the_note_of_an_expired_share_is_read_so_too(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "notes"
    note_expired(folder, BASE_URL, CODE)
    assert was_expired(folder, BASE_URL, CODE)
    (path,) = folder.iterdir()
    if kind == "pipe":
        path.unlink()
        os.mkfifo(path)
    else:
        os.truncate(path, HUGE)
    assert not was_expired(folder, BASE_URL, CODE)
