"""What `file:` and `dir:` never do: follow a link, write over what is no file, leave a file open to
others.
"""

from __future__ import annotations

import os
import socket
import stat
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from plugins.local.putting import Putting, put
from sealpipe.client_base import create_file, replace_file
from sealpipe.errors import (
    PluginError,
    ReferenceValueError,
    SecretNotFoundError,
    UnavailableError,
    UnsupportedError,
    WriteConflictError,
)
from sealpipe.plugin import Context, Locator, Mode, SinkField
from sealpipe.registry import Registry
from sealpipe.secret import Secret
from sealpipe.state.files import make_temporary_path
from sealpipe_plugins.local.file_sinks import FileSink
from support.parts import fill, make_read_only, make_writable, tmpfs

MODES: tuple[Mode, ...] = ("create", "replace", "merge")
BYTES = b"\x00\xff\r\n" * 3 + "ü '\"$(id)".encode()


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def obstacles(place: Path) -> dict[str, Path]:
    """What may have a file's name without being one."""
    (place / "precious").write_text("precious")
    (place / "link").symlink_to("precious")
    (place / "hanging").symlink_to("nowhere")
    (place / "folder").mkdir()
    os.mkfifo(place / "pipe")
    return {name: place / name for name in ("link", "hanging", "folder", "pipe")} | {
        "device": Path("/dev/null")
    }


@pytest.mark.parametrize(
    ("what", "words"), [("folder", "is a folder"), ("pipe", "is not a regular file")]
)
def test_a_refusal_says_what_is_in_the_way(what: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(WriteConflictError, match=words):
        put("file", str(obstacles(tmp_path)[what]), {"K": "v"}, "replace")


@pytest.mark.parametrize("sink", ["file", "dotenv", "dir"])
@pytest.mark.parametrize("what", ["link", "hanging", "folder", "pipe", "device"])
def test_nothing_but_a_plain_file_is_ever_written_over(
    sink: str, what: str, tmp_path: Path
) -> None:
    there = obstacles(tmp_path)[what]
    if sink == "dir" and what in ("folder", "device"):
        there = tmp_path / "pipe"
    before = os.lstat(there)
    for mode in MODES:
        with pytest.raises(WriteConflictError) as refused:
            put(sink, str(there), {"K": "v"}, mode)
        assert refused.value.remedy
        if sink == "dir":
            with pytest.raises(WriteConflictError):
                put("dir", str(tmp_path), {what if what != "device" else "pipe": "v"}, mode)
    assert os.lstat(there)[:2] == before[:2]
    assert (tmp_path / "precious").read_text() == "precious"
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("sink", ["file", "dir"])
def test_any_bytes_are_kept_exactly(sink: str, tmp_path: Path) -> None:
    put(sink, str(tmp_path / "it"), {"K": BYTES}, "create")
    assert (tmp_path / "it" / ("K" if sink == "dir" else "")).read_bytes() == BYTES


def test_what_takes_the_place_of_a_file_keeps_nothing_of_its_mode_or_its_other_names(
    tmp_path: Path,
) -> None:
    old = tmp_path / "old"
    old.write_text("old")
    old.chmod(0o666)
    (tmp_path / "other name").hardlink_to(old)
    put("file", str(old), {"K": "new"}, "replace")
    assert (old.read_text(), mode_of(old)) == ("new", 0o600)
    assert (tmp_path / "other name").read_text() == "old"


def test_the_same_value_where_others_can_read_it_is_not_taken_for_stored(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.write_text("v")
    there.chmod(0o644)
    with pytest.raises(WriteConflictError, match="other users can read it"):
        put("file", str(there), {"K": "v"}, "create")
    assert not put("file", str(there), {"K": "v"}, "replace").already
    assert mode_of(there) == 0o600


@pytest.mark.parametrize("sink", ["file", "dotenv", "dir"])
@pytest.mark.parametrize("body", ["", " ", "a\nb", "a\0b", "\x1b[31m"])
def test_a_body_that_is_no_path_is_refused(sink: str, body: str) -> None:
    made = Registry(environ={}).sink(sink)
    for mode in MODES:
        with pytest.raises(ReferenceValueError):
            made.describe(Locator(sink, body), mode)
        with pytest.raises(ReferenceValueError):
            made.put(Locator(sink, body), [SinkField("K", Secret("v"))], mode=mode, marker="m")


@pytest.mark.parametrize("body", ["a/", ".", "..", "a/.", "a/.."])
def test_a_body_that_names_a_folder_is_no_file(body: str) -> None:
    for sink in ("file", "dotenv"):
        with pytest.raises(ReferenceValueError):
            put(sink, body, {"K": "v"}, "create")


def test_a_folder_that_is_not_there_is_named_and_not_made(tmp_path: Path) -> None:
    for body, said in (
        (f"{tmp_path}/no/file", "create the folder"),
        ("~/no/file", "~ is not expanded"),
    ):
        with pytest.raises(SecretNotFoundError) as refused:
            put("file", body, {"K": "v"}, "create")
        assert said in refused.value.remedy
    assert list(tmp_path.iterdir()) == []


def test_a_file_takes_one_value(tmp_path: Path) -> None:
    with pytest.raises(ReferenceValueError):
        put("file", str(tmp_path / "x"), {"a": "1", "b": "2"}, "create")
    assert put("file", str(tmp_path / "x"), {"": "1"}, "create")


@pytest.mark.parametrize(
    "key",
    [
        "",
        ".",
        "..",
        "../x",
        "a/b",
        "/etc/passwd",
        ".hidden",
        "-rf",
        "a b",
        "a\n",
        "a\0",
        "ä",
        "a" * 101,
        "~",
        "*",
    ],
)
def test_a_key_that_is_no_plain_file_name_is_refused_with_nothing_written(
    key: str, tmp_path: Path
) -> None:
    with pytest.raises(ReferenceValueError) as refused:
        put("dir", str(tmp_path / "f"), {"good": "1", key: "2"}, "merge")
    assert refused.value.remedy
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_refused_where_others_write_or_that_is_a_link(tmp_path: Path) -> None:
    shared, link = tmp_path / "shared", tmp_path / "link"
    shared.mkdir()
    for mode in (0o770, 0o777, 0o1777, 0o702):
        shared.chmod(mode)
        with pytest.raises(WriteConflictError, match="other users can write"):
            put("dir", str(shared), {"K": "v"}, "merge")
    shared.chmod(0o755)
    link.symlink_to("shared")
    for body in (str(link), f"{link}/"):
        with pytest.raises(WriteConflictError, match="symbolic link"):
            put("dir", body, {"K": "v"}, "merge")
    assert list(shared.iterdir()) == []
    put("dir", f"{link}/own", {"K": "v"}, "merge")  # a link further up is followed, as everywhere
    assert mode_of(shared / "own") == 0o700


def test_a_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may give a folder away")
    os.chown(tmp_path, 12345, 12345)
    with pytest.raises(WriteConflictError, match="another user"):
        put("dir", str(tmp_path), {"K": "v"}, "create")


def test_a_conflict_in_one_file_of_a_folder_writes_none(tmp_path: Path) -> None:
    put("dir", str(tmp_path / "f"), {"b": "old"}, "create")
    with pytest.raises(WriteConflictError):
        put("dir", str(tmp_path / "f"), {"a": "1", "b": "new"}, "create")
    assert {path.name: path.read_text() for path in (tmp_path / "f").iterdir()} == {"b": "old"}


def racing(act: Callable[[], None]) -> FileSink:
    """A sink whose writes come a moment after somebody else's deed."""

    def late_new(path: Path, content: bytes) -> None:
        act()
        create_file(path, content)

    def late_replace(path: Path, content: bytes, was: bytes | None) -> bool:
        act()
        return replace_file(path, content, was)

    return FileSink(None, Context("file", new_file=late_new, replace_file=late_replace))


@pytest.mark.parametrize("exists", [True, False])
def test_a_link_that_appears_after_the_look_is_not_followed(
    tmp_path: Path, *, exists: bool
) -> None:
    path, precious = tmp_path / "file", tmp_path / "precious"
    precious.write_text("old")
    if exists:
        path.write_text("old")

    def plant() -> None:
        path.unlink(missing_ok=True)
        path.symlink_to("precious")

    with pytest.raises(WriteConflictError, match="symbolic link"):
        racing(plant).put(
            Locator("file", str(path)), [SinkField("", Secret("new"))], mode="replace", marker="m"
        )
    assert path.is_symlink()
    assert precious.read_text() == "old"


def become_a_link(path: Path) -> None:
    path.symlink_to("precious")


def become_a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(path))


SWAPS = {
    "a link": become_a_link,
    "a socket": become_a_socket,
    "a pipe": os.mkfifo,
    "a folder": Path.mkdir,
}


@pytest.mark.parametrize("look", ["lstat", "stat"])
@pytest.mark.parametrize("swap", SWAPS)
def test_what_a_file_becomes_between_a_look_and_its_opening_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, swap: str, look: str
) -> None:
    """The sink looks by lstat, the replacing beneath it by stat with a folder's descriptor."""
    path, real, swapped = tmp_path / "file", getattr(os, look), False
    (tmp_path / "precious").write_text("old")
    path.write_text("old")

    def then_swap(name: Path | str, **more: Any) -> os.stat_result:
        nonlocal swapped
        about: os.stat_result = real(name, **more)
        if Path(name).name == "file" and not swapped:
            swapped = True
            path.unlink()
            SWAPS[swap](path)
        return about

    monkeypatch.setattr(os, look, then_swap)
    with pytest.raises(
        WriteConflictError, match=r"is (a symbolic link|not a regular file|a folder)"
    ):
        put("file", str(path), {"": "new"}, "replace")
    assert swapped
    assert not path.is_file() or path.is_symlink()
    assert (tmp_path / "precious").read_text() == "old"
    assert {each.name for each in tmp_path.iterdir()} == {"file", "precious"}


def test_the_first_creator_of_a_file_keeps_it(tmp_path: Path) -> None:
    path = tmp_path / "file"

    def be_faster() -> None:
        path.write_text("theirs")

    sink = racing(be_faster)
    with pytest.raises(WriteConflictError):
        sink.put(
            Locator("file", str(path)), [SinkField("", Secret("ours"))], mode="create", marker="m"
        )
    assert path.read_text() == "theirs"


def test_a_link_that_comes_and_goes_is_never_written_through(tmp_path: Path) -> None:
    path, precious, done = tmp_path / "file", tmp_path / "precious", threading.Event()
    precious.write_text("precious")

    def flip() -> None:
        while not done.is_set():
            (tmp_path / "planted").symlink_to("precious")
            (tmp_path / "planted").rename(path)
            (tmp_path / "plain").write_text("x")
            (tmp_path / "plain").rename(path)

    flipper = threading.Thread(target=flip)
    flipper.start()
    try:
        for number in range(150):
            with suppress(WriteConflictError, UnavailableError):
                put("file", str(path), {"": f"secret {number}"}, "replace")
    finally:
        done.set()
        flipper.join()
    assert precious.read_text() == "precious"
    assert {each.name for each in tmp_path.iterdir()} == {"file", "precious"}


def test_what_is_left_with_the_other_name_is_cleared_and_a_planted_one_is_not_used(
    tmp_path: Path,
) -> None:
    path, precious = tmp_path / ("n" * 255), tmp_path / "precious"
    precious.write_text("precious")
    for plant in (
        lambda: make_temporary_path(path).write_text("left"),
        lambda: make_temporary_path(path).symlink_to(precious),
    ):
        path.write_text("old")
        plant()
        put("file", str(path), {"": "new"}, "replace")
        assert path.read_text() == "new"
        assert {each.name for each in tmp_path.iterdir()} == {path.name, "precious"}
    assert precious.read_text() == "precious"


def test_a_locked_folder_is_waited_for_and_then_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    monkeypatch.setattr("sealpipe.state.files.LOCK_TIMEOUT", 0.05)
    (tmp_path / "file").write_text("old")
    folder = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    with pytest.raises(UnavailableError):
        put("file", str(tmp_path / "file"), {"": "new"}, "replace")
    os.close(folder)
    put("file", str(tmp_path / "file"), {"": "new"}, "replace")


@pytest.mark.parametrize("sink", ["file", "dotenv"])
def test_a_full_or_read_only_disk_leaves_the_old_content(sink: str, tmp_path: Path) -> None:
    value = "v" * 40_000
    with tmpfs(tmp_path / "small") as small:
        there = small / "there"
        there.write_text("A=1\n")
        there.chmod(0o600)
        filler = fill(small)
        for body in (small / "new", there):
            with pytest.raises(PluginError, match="no room"):
                put(sink, str(body), {"K": value}, "replace")
        filler.unlink()
        make_read_only(small)
        for body in (small / "new", there):
            with pytest.raises(PluginError, match="read-only"):
                put(sink, str(body), {"K": value}, "replace")
        make_writable(small)
        assert {path.name: path.read_text() for path in small.iterdir()} == {"there": "A=1\n"}


def test_a_value_with_a_lone_surrogate_is_refused(tmp_path: Path) -> None:
    for sink in ("file", "dir", "dotenv"):
        with pytest.raises(UnsupportedError) as refused:
            put(sink, str(tmp_path / sink), {"K": "a\ud800"}, "create")
        assert refused.value.__context__ is None


def test_processes_that_merge_into_one_file_at_once_lose_nothing(tmp_path: Path) -> None:
    place, wanted = tmp_path / "here", {}
    place.mkdir()
    started = [Putting(tmp_path, "dotenv", "merge", warm=f"warm-{number}") for number in range(8)]
    for number, putting in enumerate(started):
        values = {f"K{number}_{index}": f"v{number}.{index}" for index in range(5)}
        wanted |= values
        putting.tell(place / "env", values)
    assert [putting.ended() for putting in started] == [(0, "stored")] * 8
    lines = (place / "env").read_text().splitlines()
    assert sorted(lines) == sorted(f"{key}={value}" for key, value in wanted.items())
    assert [path.name for path in place.iterdir()] == ["env"]


def test_threads_do_neither(tmp_path: Path) -> None:
    threads = [
        threading.Thread(
            target=put, args=("dotenv", str(tmp_path / "env"), {f"K{number}": "v"}, "merge")
        )
        for number in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted((tmp_path / "env").read_text().splitlines()) == sorted(
        f"K{number}=v" for number in range(16)
    )
