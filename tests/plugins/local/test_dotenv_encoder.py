"""What a dotenv file can hold: found by asking those who read it, each character in each
position.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plugins.local import env_readers
from plugins.local.putting import put
from sealpipe.errors import PluginError, ReferenceValueError, UnsupportedError
from sealpipe.testing.contract import CANARY, error_text
from sealpipe_plugins.local.dotenv_lines import (
    LINE_LIMIT,
    NEVER_READ_BACK,
    QUOTES,
    find_unwritable,
    is_plain,
)
from support.backends import value_of

PRINTABLE = [chr(code) for code in range(0x21, 0x7F)]
ENDING = frozenset("'\"`\\$();|&<>")
"""What a shell ends a word with, or takes for more than itself: each could spoil the lines after
it.
"""
ON_PURPOSE = re.compile(r"#|(?:^|:)~[^/+r]")
"""What all readers here take as it is, and is refused: others cut at #, and ~x is the home of a
user x elsewhere.
"""
FORMS = (
    "{}", "{}x", "x{}", "x{}y", "{0}{0}", "x:{}y", "x={}y", "x/{}/y", "{}/y", "{}root", "x:{}root",
    "x={}root", "{}+", "{}-", "x:{}", "[x{}y]", "{{x{}y}}", "1{0}{0}3",
)  # fmt: skip


def all_read(values: Mapping[str, str], file: Path) -> dict[str, bool]:
    """Of each key, whether every reader gives back its value."""
    file.write_text("".join(f"{key}={value}\n" for key, value in values.items()), newline="")
    found = [read(file, list(values)) for read in env_readers.readers().values()]
    return {key: all(each[key] == value for each in found) for key, value in values.items()}


def test_each_printable_character_is_taken_exactly_where_all_readers_agree(tmp_path: Path) -> None:
    values = {
        f"K{ord(char)}_{number}": form.format(char)
        for char in PRINTABLE if char not in ENDING for number, form in enumerate(FORMS)
    }  # fmt: skip
    for key, agreed in all_read(values, tmp_path / "env").items():
        assert is_plain(values[key]) == (agreed and not ON_PURPOSE.search(values[key])), values[key]


@pytest.mark.parametrize("char", [*sorted(ENDING), " ", "\t", "\n", "\r"])
def test_what_ends_a_word_is_refused_for_some_reader_gets_it_wrong(
    char: str, tmp_path: Path
) -> None:
    value = f"x{char}y"
    assert not is_plain(value)
    try:
        agreed = all_read({"K": value}, tmp_path / "env")["K"]
    except AssertionError:  # a shell complains
        agreed = False
    assert not agreed


def test_beyond_ascii_only_blanks_and_control_characters_are_refused(tmp_path: Path) -> None:
    """U+FEFF, too, which is a blank to JavaScript only: one of its readers drops it at the ends."""
    codes = [*range(0xA0, 0x3100), *range(0x3100, 0x110000, 487), 0xFEFF]
    chars = [chr(code) for code in codes if not 0xD800 <= code < 0xE000]
    taken = [char for char in chars if is_plain(char)]
    assert [char for char in chars if not is_plain(char)] == [
        c for c in chars if c.isspace() or c == "\ufeff"
    ]
    values = {f"K{ord(char)}": f"{char}x{char}" for char in taken}
    assert all(all_read(values, tmp_path / "env").values())
    for name, read in env_readers.node_readers().items():
        assert read(tmp_path / "env", list(values)) == values, name
    assert not any(is_plain(f"x{chr(code)}y") for code in [*range(0x21), *range(0x7F, 0xA0)])


QUOTED = sorted({"single", "double"})
WITHOUT_DOCKER = {name: read for name, read in env_readers.readers().items() if name != "docker"}
"""Docker's --env-file knows no quotes: it takes them for a part of the value."""


@pytest.mark.parametrize("quote", QUOTED)
def test_in_quotes_each_character_that_is_taken_is_read_alike(quote: str, tmp_path: Path) -> None:
    mark, _ = QUOTES[quote]
    around = [
        *FORMS,
        " {} ",
        "x {}",
        "{} x",
        "#{}",
        "x #{}",
        "x{}(id)",
        "x{}{{a}}",
        "{}n",
        "{}'",
        '{}"',
    ]
    every = {
        f"K{ord(char)}_{number}": form.format(char)
        for char in [" ", *PRINTABLE, "é", "\u202e", "\U0001f511", "\u3000"] for number,
        form in enumerate(around)
    }  # fmt: skip
    taken = {key: value for key, value in every.items() if find_unwritable(value, quote) is None}
    assert len({key.partition("_")[0] for key in taken}) > 90
    put("dotenv", str(tmp_path / "env"), taken, "create", quote=quote)
    for name, read in {**WITHOUT_DOCKER, **env_readers.node_readers()}.items():
        assert read(tmp_path / "env", list(taken)) == taken, name
    assert env_readers.fake_docker(tmp_path / "env", ["K97_0"]) == {"K97_0": f"{mark}a{mark}"}


@pytest.mark.parametrize(
    ("quote", "value"),
    [("single", value) for value in ("x'y", "x\\\\y", "x\\", "x${HOME}y")]
    + [
        ("double", value)
        for value in ('x"y', "x\\\\y", "x\\", "x$HOME", "x${HOME}y", "x$(id)", "x`id`")
    ],
)
def test_what_quotes_do_not_take_some_reader_gets_wrong(
    quote: str, value: str, tmp_path: Path
) -> None:
    mark, _ = QUOTES[quote]
    (tmp_path / "env").write_text(f"K={mark}{value}{mark}\n")

    def reads(read: env_readers.Reader) -> bool:
        try:
            return read(tmp_path / "env", ["K"]) == {"K": value}
        except (AssertionError, PluginError):
            return False

    assert find_unwritable(value, quote)
    if (quote, value) == ("single", "x\\") and reads(env_readers.python_dotenv):
        pytest.skip("the python-dotenv here reads it, as no later one does")
    assert not all(map(reads, {**WITHOUT_DOCKER, **env_readers.node_readers()}.values()))


NAMED = {
    ("none", "c4n$ary"): "has $ (dollar sign), which",
    ("none", "c4n ary"): "has a blank, which",
    ("none", "c4n\nary"): "has a line end, which",
    ("none", "c4nary\0"): "has a control character, which",
    ("none", "c4n#ary"): "has # (number sign), which",
    ("none", "c4n\u2003ary"): "has em space, which",
    ("none", "c4nary:~"): "has ~ (tilde), which",
    ("single", "c4n'ary"): "has ' (apostrophe), which",
    ("single", "c4n${'ary"): "has ${ (dollar sign and brace), which",
    ("double", 'c4n"ary'): 'has " (quotation mark), which',
    ("double", "c4n${ary"): "has $ (dollar sign), which",
}


@pytest.mark.parametrize(("quote", "value"), NAMED)
def test_the_character_is_named_and_nothing_else_of_the_value(
    quote: str, value: str, tmp_path: Path
) -> None:
    with pytest.raises(UnsupportedError) as refused:
        put("dotenv", str(tmp_path / "env"), {"K": value}, "create", quote=quote)
    assert NAMED[quote, value] in refused.value.message
    assert "c4n" not in error_text(refused.value)
    assert not {"c4", "ary"} & set(error_text(refused.value).replace(",", " ").split())
    fits = [each for each in QUOTED if find_unwritable(value, each) is None]
    assert not fits or f"?quote={fits[-1]}" in refused.value.remedy
    assert "file: or dir:" in refused.value.remedy
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("quote", ["", "backtick", "SINGLE"])
def test_a_quote_that_is_none_is_refused(quote: str, tmp_path: Path) -> None:
    with pytest.raises(ReferenceValueError) as refused:
        put("dotenv", str(tmp_path / "env"), {"K": "v"}, "create", quote=quote)
    assert "none, single, double" in refused.value.remedy


@pytest.mark.parametrize("quote", QUOTED)
def test_in_quotes_it_is_merged_and_found_again(quote: str, tmp_path: Path) -> None:
    (tmp_path / "env").write_text("# mine\nexport K=old\nL=1\n")
    (tmp_path / "env").chmod(0o600)
    mark, _ = QUOTES[quote]
    for already in (False, True):
        receipt = put("dotenv", str(tmp_path / "env"), {"K": "a {b,c} *"}, "merge", quote=quote)
        assert receipt.already == already
        assert (tmp_path / "env").read_text() == f"# mine\nexport K={mark}a {{b,c}} *{mark}\nL=1\n"
    for name, read in WITHOUT_DOCKER.items():
        assert read(tmp_path / "env", ["K", "L"]) == {"K": "a {b,c} *", "L": "1"}, name


@pytest.mark.parametrize(
    "mention", ["gen:password", "gen:password?symbols=0", "gen:passphrase", "gen:hex", "gen:uuid"]
)
def test_what_is_drawn_fits_as_it_comes(mention: str, tmp_path: Path) -> None:
    """Forty of forty, by every reader, Docker and Node too; of passwords of all symbols, none
    did.
    """
    drawn = {f"K{number}": str(value_of(mention)) for number in range(40)}
    put("dotenv", str(tmp_path / "env"), drawn, "create")
    for name, read in {**env_readers.readers(), **env_readers.node_readers()}.items():
        assert read(tmp_path / "env", list(drawn)) == drawn, name


VALUES = st.text(
    st.one_of(
        st.sampled_from(PRINTABLE),
        st.sampled_from("~:/=root+-{},[]*?!^%"),
        st.characters(codec="utf-8"),
    ),
    max_size=40,
)
TAKEN = st.text(
    st.sampled_from(
        [c for c in PRINTABLE if is_plain(f"x{c}")] + ["é", "✓", "\u202e", "\U0001f511"]
    ),
    max_size=60,
)


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(VALUES, min_size=20, max_size=60), st.lists(TAKEN, min_size=20, max_size=60))
def test_what_is_stored_is_what_every_reader_gets(any_values: list[str], taken: list[str]) -> None:
    kept: dict[str, str] = {}
    for number, value in enumerate([*any_values, *taken]):
        if is_plain(value):
            kept[f"K{number}"] = value
        else:
            with pytest.raises(UnsupportedError):
                put("dotenv", "nowhere/env", {"K": value}, "create")
    with TemporaryDirectory() as folder:
        file = Path(folder) / "env"
        put("dotenv", str(file), {"FIRST": "", **kept}, "create")
        for name, read in env_readers.readers().items():
            assert read(file, list(kept)) == kept, name


def test_a_refusal_says_what_to_do_and_nothing_of_the_value(tmp_path: Path) -> None:
    for value in (CANARY, CANARY.encode() + b"\xff", "x" * LINE_LIMIT):
        with pytest.raises(UnsupportedError) as refused:
            put("dotenv", str(tmp_path / "env"), {"K": value}, "create")
        assert "file:" in refused.value.remedy
        assert "c4nary" not in error_text(refused.value)
        assert refused.value.__context__ is None
    assert list(tmp_path.iterdir()) == []


def test_the_longest_line_is_one_that_every_reader_takes(tmp_path: Path) -> None:
    value = "x" * (LINE_LIMIT - len("K="))
    put("dotenv", str(tmp_path / "env"), {"K": value, "L": "1"}, "create")
    for name, read in env_readers.readers().items():
        assert read(tmp_path / "env", ["K", "L"]) == {"K": value, "L": "1"}, name
    with pytest.raises(UnsupportedError):
        put("dotenv", str(tmp_path / "env"), {"K": f"{value}x"}, "replace")


@pytest.mark.parametrize(
    "key", ["", "1A", "A-B", "A.B", "A B", "A=B", "A\n", "Ä", "#A", "export A", "A+", "A[0]", "$A"]
)
def test_a_key_that_is_no_variable_is_refused(key: str, tmp_path: Path) -> None:
    with pytest.raises(ReferenceValueError) as refused:
        put("dotenv", str(tmp_path / "env"), {"GOOD": "1", key: "v"}, "create")
    assert refused.value.remedy
    assert list(tmp_path.iterdir()) == []


def test_names_that_shells_keep_are_refused_and_no_others(tmp_path: Path) -> None:
    names = subprocess.run(
        ["bash", "--norc", "-c", "compgen -v; compgen -k"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    more = ["LD_PRELOAD", "PATH", "IFS", "BASH_ENV", "ENV", "PS4", "CDPATH", "GITHUB_TOKEN",
        "OPTARG", "TMOUT", "_",
            "HISTFILE", "HISTSIZE", "PROMPT_COMMAND", "POSIXLY_CORRECT", "BASH_COMPAT",
            "BASH_XTRACEFD", "GLOBIGNORE",
            "FUNCNAME", "FUNCNEST", "EPOCHREALTIME", "REPLY", "MAIL", "COLUMNS", "KEY"]  # fmt: skip
    wrong = []
    for name in sorted({name for name in names if name.replace("_", "a").isalnum()} | set(more)):
        kept = True
        for value in ("abc-1", "/x:y"):
            (tmp_path / "env").write_text(f"{name}={value}\nZZ=1\n")
            for shell in (["dash"], ["bash", "--norc"]):
                try:
                    found = env_readers.shell(shell, tmp_path / "env", [name, "ZZ"])
                    kept &= found == {name: value, "ZZ": "1"}
                except AssertionError:
                    kept = False
        if kept == (name in NEVER_READ_BACK):
            wrong.append(name)
    assert wrong == []


def test_a_client_of_docker_is_found_in_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = shutil.which("docker")
    if client is None:
        pytest.skip("docker's client is not installed: its place is taken by the fake")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/docker").symlink_to(client)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(os, "defpath", str(tmp_path))
    file = tmp_path / "env"
    file.write_text("A=1\n")
    assert env_readers.readers()["docker"](file, ["A"]) == {"A": "1"}


def test_the_fake_of_docker_reads_as_docker_does(tmp_path: Path) -> None:
    if not shutil.which("docker"):
        pytest.skip("docker's client is not installed: its place is taken by the fake")
    file = tmp_path / "env"
    file.write_bytes(
        (
            b"\xef\xbb\xbfA=1\n  B= two \t\n#C=3\nD='q'\nE=\"\n\nF\nG=a=b\nH=\r\nI=x # y\nA=2\n"
            b"\tJ=\xc3\xa9\n =\n"
        )[:-3]
    )
    keys = list("ABCDEFGHIJ")
    assert env_readers.docker(file, keys) == env_readers.fake_docker(file, keys)
    for bad in (
        b"A B=1\n",
        b"A =1\n",
        b"export A=1\n",
        b"=1\n",
        b"A=\xff\n",
        b"A=" + b"x" * 65_534 + b"\n",
    ):
        file.write_bytes(bad)
        for read in (env_readers.docker, env_readers.fake_docker):
            with pytest.raises((AssertionError, UnicodeDecodeError)):
                read(file, ["A"])
