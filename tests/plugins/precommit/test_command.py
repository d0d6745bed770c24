"""`sealpipe-hook` as pre-commit calls it: files in, `file:line rule` out, and never what was
found.
"""

from __future__ import annotations

import os
import quopri
import re
import subprocess
import sys
from pathlib import Path

import pytest

from plugins.precommit.conftest import Hook, found_by, key
from sealpipe_plugins.precommit.rules import HOOKS, RULES

HOOK_OF = {rule.name: rule.hook for rule in RULES}


@pytest.mark.parametrize("rule", HOOK_OF)
def test_it_tells_file_line_and_rule_and_not_the_match(
    hook: Hook, tmp_path: Path, rule: str
) -> None:
    texts = found_by()[rule]
    (tmp_path / "a.txt").write_text("first\n" + "\n".join(texts) + "\n")
    done = hook(HOOK_OF[rule], "a.txt")
    assert done.returncode == 1
    assert done.stdout.splitlines()[: len(texts)] == [
        f"a.txt:{number} {rule}" for number in range(2, len(texts) + 2)
    ]
    for text in texts:
        for part in text.replace("#1", " ").replace(".", " ").split():
            assert len(part) < 20 or part not in done.stdout + done.stderr


def test_of_a_credential_with_its_custody_part_it_says_rotate(hook: Hook, tmp_path: Path) -> None:
    (tmp_path / "a").write_text(found_by()["credential-with-custody"][0])
    assert "rotate" in hook("no-credentials", "a").stdout


def test_a_line_with_the_pragma_passes_and_the_next_does_not(hook: Hook, tmp_path: Path) -> None:
    links = found_by()["link-with-key"]
    (tmp_path / "a").write_text(f"{links[0]}  # sealpipe: allow\n{links[1]}\n")
    assert hook("no-links", "a").stdout.splitlines()[0] == "a:2 link-with-key"
    (tmp_path / "a").write_text(f"{links[0]}  # sealpipe: allow\n")
    assert hook("no-links", "a").returncode == 0


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"], ids=ascii)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le"])
def test_a_line_ends_as_any_system_ends_it(
    hook: Hook, tmp_path: Path, line_end: str, encoding: str
) -> None:
    """A file with \\r alone was one line: one pragma allowed all of it."""
    links = found_by()["link-with-key"]
    lines = ["first", f"{links[0]}  # sealpipe: allow", "", links[1], "last"]
    (tmp_path / "a").write_bytes(line_end.join(lines).encode(encoding))
    assert hook("no-links", "a").stdout.splitlines()[:2] == [
        "a:4 link-with-key",
        (
            "link-with-key: anyone with it can open the share: expire the share and remove the "
            "link from the history"
        ),
    ]


@pytest.mark.parametrize("line_end", ["\n", "\r\n"], ids=ascii)
def test_a_word_that_mail_breaks_is_read_whole(hook: Hook, tmp_path: Path, line_end: str) -> None:
    """Quoted-printable breaks after 75 characters; lines keep their numbers."""
    made = f"Open https://links.example/AbCdEfGhIj#1{key()} today, or LINK=#1{key()} tomorrow."
    mail = quopri.encodestring(
        f"Hello,\nsee below.\n{made}\n{'x' * 100}\n{made}\n".encode()
    ).decode()
    assert mail.count("=\n") >= 5
    mail = f"Content-Transfer-Encoding: Quoted-Printable\n\n{mail}"
    (tmp_path / "a.eml").write_bytes(mail.replace("\n", line_end).encode())
    lines = [mail.count("\n", 0, sign.start()) + 1 for sign in re.finditer("#", mail)]
    for name, rule, expected in (
        ("no-links", "link-with-key", lines[::2]),
        ("no-seeds", "lone-key", lines[1::2]),
    ):
        assert hook(name, "a.eml").stdout.splitlines()[:-2] == [
            f"a.eml:{line} {rule}" for line in expected
        ]


def test_it_reads_the_given_files_and_no_others(hook: Hook, tmp_path: Path) -> None:
    (tmp_path / "dirty").write_text(found_by()["link-with-key"][0])
    (tmp_path / "clean").write_text("nothing")
    assert hook("no-links", "clean").returncode == 0
    assert hook("no-links").returncode == 0


def test_binary_utf16_and_large_files_are_read_to_their_end(hook: Hook, tmp_path: Path) -> None:
    text = found_by()["link-with-key"][0]
    (tmp_path / "binary").write_bytes(os.urandom(100) + b"\x00" + text.encode() + b"\x00")
    (tmp_path / "utf16").write_text("first\n" + text, encoding="utf-16")
    with (tmp_path / "large").open("wb") as file:
        # Across the seam of two pieces, and at the very end.
        file.write(
            b"x\n" * (16 * 1024 * 1024 - 20) + text.encode() + b"\n" + b"y\n" * (20 * 1024 * 1024)
        )
        file.write(found_by()["link-with-key"][1].encode())
    done = hook("no-links", "binary", "utf16", "large")
    assert [
        line.split(":")[0] for line in done.stdout.splitlines() if " link-with-key" in line
    ] == [
        "binary",
        "utf16",
        "large",
        "large",
    ]
    assert f"large:{16 * 1024 * 1024 - 20 + 1} link-with-key" in done.stdout


@pytest.mark.parametrize("rule", HOOK_OF)
def test_what_git_keeps_in_another_unicode_is_read_with_a_mark_or_without(
    hook: Hook, tmp_path: Path, rule: str
) -> None:
    text = found_by()[rule][0]
    for encoding in ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"):
        (tmp_path / encoding).write_bytes(f"first\n{text}\n".encode(encoding))
        assert hook(HOOK_OF[rule], encoding).stdout.startswith(f"{encoding}:2 {rule}\n"), encoding
        (tmp_path / encoding).write_bytes(f"{text} sealpipe: allow\n".encode(encoding))
        assert hook(HOOK_OF[rule], encoding).returncode == 0, encoding
    for mark in (b"\xff\xfe", b"\xfe\xff", b"\xff\xfe\x00\x00"):
        (tmp_path / "lying").write_bytes(mark + f"\n{text}\n".encode())
        assert hook(HOOK_OF[rule], "lying").returncode == 1, mark


def test_a_large_file_in_utf16_is_read(hook: Hook, tmp_path: Path) -> None:
    with (tmp_path / "large").open("wb") as file:
        file.write(b"\xff\xfe" + "é\n".encode("utf-16-le") * (8 * 1024 * 1024 + 9))
        file.write(found_by()["link-with-key"][0].encode("utf-16-le"))
    assert hook("no-links", "large").stdout.startswith(
        f"large:{8 * 1024 * 1024 + 10} link-with-key"
    )


CHUNK = 64 * 1024


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of more than 64 KiB is large; it is 32 MiB otherwise."""
    monkeypatch.setattr("sealpipe_plugins.precommit.scanning._CHUNK", CHUNK)


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"], ids=ascii)
@pytest.mark.parametrize(
    "before", [0, 1, 2, 3, 40, 100, 150], ids=lambda before: f"{before} before"
)
def test_a_seam_of_a_large_file_cuts_no_line(
    hook: Hook, tmp_path: Path, line_end: bytes, before: int
) -> None:
    """A pragma on either side of it counts, a longer token is no key, and lines keep their
    numbers.
    """
    link = found_by()["link-with-key"][0].encode()
    lines = (CHUNK - before) // 100 - 2
    filler = (b"y" * (100 - len(line_end)) + line_end) * lines
    head = filler + b"x" * (CHUNK - before - len(filler) - len(line_end)) + line_end
    last = [
        link + b" sealpipe: allow",
        b"sealpipe: allow " + link,
        link + b"AbC",
        b"",
        link,
        b"end",
    ]
    for turn in range(3):
        (tmp_path / "large").write_bytes(
            head + line_end.join([*last[turn:3], *last[:turn], *last[3:]])
        )
        assert hook("no-links", "large").stdout.startswith(
            f"large:{lines + 1 + 5} link-with-key\nlink-with-key: "
        )


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-be", "utf-32-le"])
def test_a_line_larger_than_a_chunk_is_read_to_its_end(
    hook: Hook, tmp_path: Path, encoding: str
) -> None:
    link = found_by()["link-with-key"][0]
    for at in range(CHUNK - 20_000, CHUNK + 20, 370):
        content = "first\n" + " " * (at - 6) + link + " " * CHUNK + "\n\n" + link
        (tmp_path / "large").write_bytes(content.encode(encoding))
        assert hook("no-links", "large").stdout.startswith(
            "large:2 link-with-key\nlarge:4 link-with-key\n"
        ), at


@pytest.mark.usefixtures("small_chunks")
def test_a_longer_word_across_the_seam_of_one_line_is_no_key(hook: Hook, tmp_path: Path) -> None:
    link = found_by()["link-with-key"][0].encode()
    (tmp_path / "large").write_bytes(b" " * (CHUNK - len(link)) + link + b"AbC" + b" " * CHUNK)
    assert hook("no-links", "large").returncode == 0


def test_a_folder_is_named_and_nothing_but_folders_is_an_error(hook: Hook, tmp_path: Path) -> None:
    """`sealpipe-hook no-links .` ended with 0 and said nothing, as if nothing were found;
    submodules are folders.
    """
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "dirty").write_text(found_by()["link-with-key"][0])
    (tmp_path / "clean").write_text("nothing")
    told = "folder: is a folder, and was not scanned: name its files\n"
    for words, code in ((["folder"], 2), (["folder", "clean"], 0)):
        done = hook("no-links", *words)
        assert (done.returncode, done.stdout) == (code, told)


def test_of_a_symbolic_link_it_reads_where_it_points_and_not_what_is_there(
    hook: Hook, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.write_text(found_by()["link-with-key"][0])
    (tmp_path / "link").symlink_to(outside)
    assert hook("no-links", "link").returncode == 0
    (tmp_path / "telling").symlink_to(found_by()["lone-key"][0])
    assert hook("no-seeds", "telling").stdout.startswith("telling:1 lone-key")


def test_a_file_that_cannot_be_read_is_an_error_and_stops_no_other(
    hook: Hook, tmp_path: Path
) -> None:
    (tmp_path / "dirty").write_text(found_by()["link-with-key"][0])
    done = hook("no-links", "gone", "dirty")
    assert done.returncode == 2
    assert done.stdout.startswith("gone: cannot be read: No such file")
    assert "dirty:1 link-with-key" in done.stdout


def test_a_name_that_would_command_a_terminal_is_escaped(hook: Hook, tmp_path: Path) -> None:
    name = "a\x1b[31m\n::error::b"
    (tmp_path / name).write_text(found_by()["link-with-key"][0])
    done = hook("no-links", name)
    assert done.stdout.splitlines()[0] == "a\\x1b[31m\\n::error::b:1 link-with-key"


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["no-such-hook"],
        ["no-links", "--taag", "x"],
        ["no-links", "--tag", "UPPER", "f"],
        ["no-links", "--link-host", "a/b"],
    ],
)
def test_wrong_usage_says_what_is_right_and_repeats_nothing(hook: Hook, words: list[str]) -> None:
    done = hook(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert "usage: sealpipe-hook" in done.stderr
    assert "taag" not in done.stderr


STRANGE = [
    "--tag=zz",
    "--tag",
    "--link-host=other",
    "--link-host",
    "--",
    "-",
    "-h",
    "--help",
    "--no-such",
    "@list",
    "*",
    " ",
]
STRANGE += ["a\nb", "ü", os.fsdecode(b"\xff"), "no-links", "#1", "=", "~", "$HOME"]


@pytest.mark.parametrize("name", STRANGE, ids=ascii)
@pytest.mark.parametrize(
    "options", [[], ["--"], ["--tag=svc", "--link-host=links.example"]], ids=str
)
def test_a_file_is_a_file_whatever_it_is_called(
    hook: Hook, tmp_path: Path, name: str, options: list[str]
) -> None:
    """A tracked file called `--tag=zz` narrowed the rules to another service, for all files; `-h`
    was help, and 0.
    """
    parts = f"svc{found_by()['credential-with-custody'][1].removeprefix('API_KEY=acme')}"
    for file in ("a", "z"):
        (tmp_path / file).write_text(parts)
    for place, content, found in ((["a", name, "z"], parts, 3), ([name, "a", "z"], "nothing", 2)):
        (tmp_path / name).write_text(content)
        done = hook("no-credentials", *options, *place)
        assert done.returncode == 1, done
        assert done.stdout.count(" credential-with-custody\n") == found, done


@pytest.mark.parametrize("name", ["--tag=zz", "-h", "--help", "--no-such"])
def test_what_looks_like_an_option_among_files_and_is_not_there_lets_nothing_pass(
    hook: Hook, tmp_path: Path, name: str
) -> None:
    (tmp_path / "a").write_text(found_by()["credential"][0])
    done = hook("no-credentials", "a", name)
    assert (done.returncode, f"{name}: cannot be read" in done.stdout) == (2, True)
    assert "a:1 credential\n" in done.stdout
    assert hook("no-credentials", "--", name, "a").returncode == 2
    if name != "--tag=zz":
        assert hook("no-credentials", name, "a").returncode == 2


def test_help_is_printed_on_request(hook: Hook) -> None:
    for words in (["-h"], ["--help"], ["no-links", "-h"], ["no-seeds", "--help"]):
        done = hook(*words)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("usage: sealpipe-hook NAME")


def test_tags_and_hosts_are_set_by_arguments(hook: Hook, tmp_path: Path) -> None:
    (tmp_path / "a").write_text(f"https://mine.example/x#1{key()}\n")
    assert hook("no-links", "--link-host=other.example", "a").returncode == 0
    assert (
        hook(
            "no-links", "--link-host", "other.example", "--link-host", "mine.example", "a"
        ).returncode
        == 1
    )
    assert hook("no-links", "--", "a").returncode == 1


@pytest.mark.parametrize("name", HOOKS)
def test_as_a_process_it_ends_and_prints_the_same(
    hook: Hook, started_hook: Hook, tmp_path: Path, name: str
) -> None:
    found = "".join(f"{text}\n" for texts in found_by().values() for text in texts)
    strange = os.fsdecode(b"\xff \xc3\xbc\n")
    for file, text in (("clean", "nothing"), ("a", found), (strange, found)):
        (tmp_path / file).write_text(text)
    codes = []
    for words in (
        [name, "clean"],
        [name, "clean", "a", strange],
        [name, "a", "gone"],
        [name, "--no-such"],
        ["-h"],
        [],
    ):
        done, expected = started_hook(*words), hook(*words)
        assert (done.returncode, done.stdout, done.stderr) == (
            expected.returncode,
            expected.stdout,
            expected.stderr,
        )
        codes.append(done.returncode)
    assert codes == [0, 1, 2, 2, 0, 2]


@pytest.mark.parametrize("name", HOOKS)
def test_it_starts_with_little_more_than_re(name: str) -> None:
    code = (
        "import re, sys; before = set(sys.modules)\n"
        "from sealpipe_plugins.precommit import main\n"
        f"assert main.run([{name!r}]) == 0\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert not loaded & {
        "argparse",
        "pathlib",
        "json",
        "logging",
        "click",
        "httpx",
        "sealpipe",
        "pluggy",
    }
    assert {name.partition(".")[0] for name in loaded} <= {
        "sealpipe_plugins",
        *sys.stdlib_module_names,
    }
    assert len(loaded) <= 40, loaded
