"""`dotenv:` in a file that is there: its other lines stay as they are, for every reader, or nothing
is written.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plugins.local import env_readers
from plugins.local.putting import put
from sealpipe.errors import UnsupportedError, WriteConflictError

ORDINARY = """\
# settings, don't touch

export HOME_DIR=/srv/app
NAME='two words'   # a note with an it's
  INDENTED=1
EMPTY=
QUOTED="say \\"hi\\" to $NAME"
CERT="-----BEGIN-----
a=b
-----END-----"
URL=http://h/?a=1&b=2
SPACED = x
BARE
A=${NAME}
"""


def merged(text: str, tmp_path: Path, **values: str) -> str:
    file = tmp_path / "env"
    file.write_bytes(text.encode())
    put("dotenv", str(file), values, "merge")
    return file.read_bytes().decode()


def test_every_other_line_is_kept_byte_for_byte(tmp_path: Path) -> None:
    assert merged(ORDINARY, tmp_path, NEW="1", OTHER="2") == ORDINARY + "NEW=1\nOTHER=2\n"
    assert merged(ORDINARY[:-1], tmp_path, NEW="1") == ORDINARY + "NEW=1\n"
    crlf = "A=1\r\n# x\r\nB='a\r\nb'\r\n"
    assert merged(crlf, tmp_path, NEW="1") == crlf + "NEW=1\n"


@pytest.mark.parametrize(
    ("key", "line"),
    [("HOME_DIR", "export HOME_DIR=/srv/app"), ("EMPTY", "EMPTY="), ("INDENTED", "  INDENTED=1"),
        ("BARE", "BARE"),
     ("NAME", "NAME='two words'   # a note with an it's"), ("SPACED", "SPACED = x"),
     ("CERT", 'CERT="-----BEGIN-----\na=b\n-----END-----"')],
)  # fmt: skip
def test_a_key_is_changed_where_it_stands(key: str, line: str, tmp_path: Path) -> None:
    new = f"export {key}=new" if line.startswith("export") else f"{key}=new"
    assert merged(ORDINARY, tmp_path, **{key: "new"}) == ORDINARY.replace(
        f"{line}\n", f"{new}\n", 1
    )


def test_a_key_that_is_set_twice_is_changed_twice(tmp_path: Path) -> None:
    assert merged("K=1\nB=${K}\n\nexport K=2\n", tmp_path, K="3") == "K=3\nB=${K}\n\nexport K=3\n"


@pytest.mark.parametrize("line", ['K="v"', "K='v'", "K=v # note", "K= v", "K=v\r", "K=old\nK=v"])
def test_a_value_that_is_spelled_otherwise_is_not_the_same(line: str, tmp_path: Path) -> None:
    assert set(merged(f"{line}\nB=1\n", tmp_path, K="v").splitlines()) == {"K=v", "B=1"}
    (tmp_path / "env").write_bytes(f"{line}\n".encode())
    with pytest.raises(WriteConflictError):
        put("dotenv", str(tmp_path / "env"), {"K": "v"}, "create")


def test_the_same_values_among_comments_are_there_already(tmp_path: Path) -> None:
    file = tmp_path / "env"
    text = "# mine\n\nexport K=v\nL=w\n"
    file.write_text(text)
    file.chmod(0o600)
    for mode in ("create", "replace", "merge"):
        result = put("dotenv", str(file), {"L": "w", "K": "v"}, mode)  # type: ignore[arg-type]
        assert result.already
    assert file.read_text() == text


REFUSED = {
    "a quote that is not closed": ('A=1\nB="open\n', 2),
    "a quote in the midst of a word": ("A=1\n\n  B=it's\nC=1\n", 3),
    "a quote that only python-dotenv closes": ("B='it\\'s'\n", 1),
    "a line end that only a shell sees": ("B='a\\'\nK=evil\n\\''\n", 1),
    "a line that goes on": ("A=1\nB=a\\\n", 2),
    "a command": ("B=$(cat <<EOF\nK=1\nEOF\n)\n", 1),
    "a command in backticks": ("B=`id`\n", 1),
    "a command in quotes": ('B="`id`"\n', 1),
    "a second command": ("B=a; if true\n", 1),
    "a pipe": ("B=a |\n", 1),
    "the background": ("B=a &\n", 1),
    "a block in the background": ("B=a&{\n", 1),
    "words that are exported": ("export B=a b-c\n", 1),
    "a name that cannot be exported": ("export B.C=a\n", 1),
    "a shell's own variable": ("A=1\nUID=5\n", 2),
    "what a shell may stop at": ("B=${C?no}\n", 1),
    "an array's element": ("B= a[\n", 1),
    "an array": ("B=(a\nb)\n", 1),
    "a here-document": ("B=a <<EOF\nK=1\nEOF\n", 1),
    "a file that is read": ("A=1\nB=<\n", 2),
    "a file that is written": ("B=a>b\n", 1),
    "ANSI quotes": ("B=$'a\\'b'\n", 1),
    "braces that go on": ("B=${A:-\nK=1\n}\n", 1),
    "a shell keyword": ("A=1\nif\nB=1\n", 2),
    "no assignment": ("A=1\nsome words\n", 2),
    "a name that is none": ("A=1\n1B=2\n", 2),
    "a quoted name": ("'B'=2\n", 1),
    "what follows a quote": ('B="a"b\n', 1),
    "a line for Docker within a value": ('A=1\nB="x\n K =old\n"\n', 3),
    "a carriage return alone": ("A=1\rK=2\n", 1),
    "a null byte": ("A=1\nB=\0\n", 2),
    "a byte order mark": ("\ufeffA=1\n", 1),
    "a blank that is none": ("\u00a0B=1\n", 1),
    "a function": ("f() {\nK=1\n}\n", 1),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_file_that_readers_take_differently_is_refused_with_its_line(
    what: str, tmp_path: Path
) -> None:
    text, line = REFUSED[what]
    with pytest.raises(UnsupportedError, match=f"line {line} ") as refused:
        merged(text, tmp_path, K="new")
    assert refused.value.remedy
    assert (tmp_path / "env").read_bytes() == text.encode()
    assert [path.name for path in tmp_path.iterdir()] == ["env"]
    with pytest.raises(WriteConflictError):
        put("dotenv", str(tmp_path / "env"), {"K": "new"}, "create")
    put("dotenv", str(tmp_path / "env"), {"K": "new"}, "replace")
    assert (tmp_path / "env").read_text() == "K=new\n"


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "env").write_bytes(b"A=\xff\n")
    with pytest.raises(UnsupportedError) as refused:
        put("dotenv", str(tmp_path / "env"), {"K": "new"}, "merge")
    assert refused.value.__context__ is None


@pytest.mark.parametrize("value", ["{a,b}", "a*", "[x]", "a?", "x~y"])
def test_what_a_shell_would_expand_behind_export_is_refused_there(
    value: str, tmp_path: Path
) -> None:
    with pytest.raises(UnsupportedError, match=r"line 2 .*export"):
        merged("A=1\nexport K=old\n", tmp_path, K=value)
    assert merged("A=1\nK=old\n", tmp_path, K=value) == f"A=1\nK={value}\n"


GOOD = [
    *[f"{line}\n" for line in ORDINARY.replace("\na=b\n", "").splitlines()], 'CERT="x\nA=b\n"\n',
    "B='a\nb' # c\n", "C=x#y\n", "D=a$b\n", "E=$\n", "F=a\\ b\n", "G=~\n", "KEY=old\n",
    "export KEY=old\n", "  KEY=old # was\n", 'KEY="old\nold"\n', "KEY\n", "KEY = old\n",
    "KEY='it''s'\n", "J=x!y\n", "# a \\\n", "M='#'\n", 'N="#" # "\n', "P=a #'\n", "O=1\r\n", "\n\n",
    " \t\n",
]  # fmt: skip
CHUNKS = st.one_of(
    *[st.sampled_from(GOOD)] * 6, st.sampled_from([text for text, _ in REFUSED.values()])
)
NAMES = [
    *"ABCDEFGHIJLMNOP",
    "HOME_DIR",
    "NAME",
    "INDENTED",
    "EMPTY",
    "QUOTED",
    "CERT",
    "URL",
    "SPACED",
    "BARE",
]


WILD = st.text(st.sampled_from("KEYABx==''\"\"\\\\$`(){}[];|&<>#?:-~!*@ \t\n"), max_size=12).filter(
    lambda text: "$$" not in text  # the number of a process: another one each time
)
LINES = st.lists(
    st.tuples(st.sampled_from(["A=", "B=", "C='", 'D="', "KEY=", "#", "export A=", ""]), WILD),
    max_size=4,
)


def check_merging(text: str) -> None:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "env"
        file.write_bytes(text.encode())
        before = {name: env_readers.attempt(name, file, NAMES) for name in env_readers.READERS}
        try:
            put("dotenv", str(file), {"KEY": "new", "ZZ": "z"}, "merge")
        except UnsupportedError:
            assert file.read_bytes() == text.encode()
            return
        for name, there in before.items():
            if name == "docker" and there is None:
                continue  # it refused the file before, and does so still
            # A line within an old value of ours may be a key to Docker: that goes with the value.
            ours = before["our source"] or {}
            kept = {key: value for key, value in (there or {}).items() if ours.get(key) == value}
            now = env_readers.attempt(
                name, file, [*(kept if name == "docker" else NAMES), "KEY", "ZZ"]
            )
            assert now == {
                **(kept if name == "docker" else there or {}),
                "KEY": "new",
                "ZZ": "z",
            }, name


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(CHUNKS, max_size=5), st.booleans())
def test_any_file_is_refused_untouched_or_reads_the_same_but_for_our_keys(
    chunks: list[str],
    whole: bool,  # noqa: FBT001
) -> None:
    check_merging("".join(chunks) if whole else "".join(chunks).removesuffix("\n"))


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(LINES)
def test_so_is_one_of_wild_lines(lines: list[tuple[str, str]]) -> None:
    check_merging("\n".join(f"{start}{rest}" for start, rest in lines))
