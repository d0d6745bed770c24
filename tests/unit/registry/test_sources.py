"""The built-in sources on real files, pipes and environments."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from sealpipe.errors import (
    AccessDeniedError,
    PayloadTooLargeError,
    PluginError,
    ReferenceValueError,
    SecretNotFoundError,
    UnsupportedError,
    WriteConflictError,
)
from sealpipe.plugin import PLAINTEXT_LIMIT, Context, Locator
from sealpipe.registry import Registry
from sealpipe_plugins.local.sources import StdinSource
from support.backends import as_nobody, fetched, opened, value_of

CANARY = "Canary-5e1d"

# Prints the value of each reference given, as bytes, to standard output.
PROGRAM = """
import sys
from support.backends import opened
from sealpipe.sources.resolve import resolve
from sealpipe.reference import parse_field
from sealpipe.registry import Registry
registry = Registry()
for field in resolve([parse_field(text) for text in sys.argv[1:]], lambda: registry):
    sys.stdout.buffer.write(opened(field))
"""


def in_a_process(*texts: str, **more: object) -> bytes:
    """The values of references, fetched by a process of its own."""
    tests = str(Path(__file__).resolve().parents[2])
    env = {**os.environ, "PYTHONPATH": tests, **more.pop("env", {})}  # type: ignore[dict-item]
    command = [sys.executable, "-c", PROGRAM, *texts]
    done = subprocess.run(  # type: ignore[call-overload]
        command, env=env, check=True, capture_output=True, **more
    )
    return bytes(done.stdout)


class TestEnv:
    """env:NAME"""

    def test_a_variable_is_taken_exactly(self) -> None:
        assert in_a_process("env:A_B", env={"A_B": " é\n\t= "}) == " é\n\t= ".encode()

    def test_a_missing_variable_says_how_to_set_it(self) -> None:
        with pytest.raises(
            SecretNotFoundError, match="the environment variable DB_PASSWORD is not set"
        ) as caught:
            value_of("env:DB_PASSWORD", {})
        assert "export DB_PASSWORD" in caught.value.remedy
        assert (caught.value.locator, caught.value.exit_code) == ("env:DB_PASSWORD", 14)

    def test_an_empty_variable_says_so_and_why_that_may_be(self) -> None:
        with pytest.raises(SecretNotFoundError, match="DB_PASSWORD is set but empty") as caught:
            value_of("env:DB_PASSWORD", {"DB_PASSWORD": ""})
        assert "fork" in caught.value.remedy

    @pytest.mark.parametrize("expanded", [CANARY, "hunter2", "p@ss w0rd", "ghp0123456789"])
    def test_what_the_shell_has_expanded_is_not_shown(self, expanded: str) -> None:
        with pytest.raises(SecretNotFoundError) as caught:
            value_of(f"env:{expanded}", {})
        error = caught.value
        assert expanded not in f"{error} {error.remedy} {error.locator}"
        assert "without $" in error.remedy

    @pytest.mark.parametrize(
        "name", ["SEALPIPE_API_KEY", "SEALPIPE_API_KEY_FILE", "SEALPIPE_API_KEY_PREVIOUS"]
    )
    def test_our_own_credential_is_never_shared(self, name: str) -> None:
        with pytest.raises(ReferenceValueError, match="own credential") as caught:
            value_of(f"env:{name}", {name: CANARY})
        assert caught.value.exit_code == 2
        assert CANARY not in f"{caught.value} {caught.value.remedy}"

    @pytest.mark.parametrize("text", ["env:", "env:A=B"])
    def test_a_name_that_is_none_is_refused(self, text: str) -> None:
        with pytest.raises(ReferenceValueError):
            value_of(text, {})

    def test_a_variable_that_is_not_utf8_is_refused_and_can_be_decoded(self) -> None:
        with pytest.raises(PluginError, match="env:RAW is not UTF-8"):
            value_of("env:RAW", {"RAW": os.fsdecode(b"\xff")})


class TestFile:
    """file:PATH"""

    @pytest.mark.parametrize("data", [b"x", b"\xef\xbb\xbfa\r\n\x00\n", "é\n".encode() * 100_000])
    def test_a_file_is_taken_exactly(self, tmp_path: Path, data: bytes) -> None:
        (tmp_path / "a b").write_bytes(data)
        (field,) = fetched(f"file:{tmp_path}/a b")
        assert (field.key, opened(field)) == ("a b", data)

    def test_a_path_begins_at_the_working_directory(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "c").write_text("d")
        assert value_of("file:c") == "d"
        assert value_of("file://c") == "d"

    def test_missing_unreadable_and_directory_read_differently(self, tmp_path: Path) -> None:
        (tmp_path / "locked").write_text(CANARY)
        (tmp_path / "locked").chmod(0)
        with pytest.raises(SecretNotFoundError, match="does not exist") as missing:
            value_of(f"file:{tmp_path}/none")
        with pytest.raises(SecretNotFoundError, match="does not exist"):
            value_of(f"file:{tmp_path}/locked/under")
        with as_nobody(), pytest.raises(AccessDeniedError, match="may not be read") as denied:
            value_of(f"file:{tmp_path}/locked")
        with pytest.raises(PluginError, match="is a directory") as directory:
            value_of(f"file:{tmp_path}")
        with pytest.raises(PluginError, match="cannot be read: File name too long"):
            value_of("file:" + "x" * 300)
        assert [e.value.exit_code for e in (missing, denied, directory)] == [14, 14, 14]
        assert missing.value.locator == f"file:{tmp_path}/none"

    def test_a_tilde_gets_advice(self) -> None:
        with pytest.raises(SecretNotFoundError) as caught:
            value_of("file:~/no/such/thing")
        assert "$HOME" in caught.value.remedy

    def test_a_path_is_needed(self) -> None:
        with pytest.raises(ReferenceValueError, match="file: needs a path"):
            value_of("file:")

    def test_sixteen_mebibytes_are_read_and_one_byte_more_is_not(self, tmp_path: Path) -> None:
        big = tmp_path / "big"
        big.write_bytes(b"a" * PLAINTEXT_LIMIT)
        (field,) = fetched(f"file:{big}")
        assert len(opened(field)) == PLAINTEXT_LIMIT
        with big.open("ab") as stream:
            stream.write(b"a")
        with pytest.raises(PayloadTooLargeError, match=r"file:.*big has more than 16 MiB"):
            fetched(f"file:{big}")

    def test_an_endless_file_ends(self) -> None:
        with pytest.raises(PayloadTooLargeError):
            fetched("file:/dev/zero")

    def test_a_fifo_is_read_to_its_end(self, tmp_path: Path) -> None:
        fifo = tmp_path / "fifo"
        os.mkfifo(fifo)
        data = b"0123456789" * 30_000
        writer = threading.Thread(target=fifo.write_bytes, args=(data,))
        writer.start()
        (field,) = fetched(f"file:{fifo}")
        writer.join()
        assert opened(field) == data

    def test_a_pipe_in_dev_fd_is_read(self) -> None:
        assert in_a_process("file:/dev/stdin", input=b"piped\n") == b"piped\n"


class TestStdin:
    """stdin:"""

    def test_a_pipe_is_read_to_its_end_exactly(self) -> None:
        data = b" a\r\n\xc3\xa9\n" * 50_000
        assert in_a_process("stdin:", input=data) == data

    def test_it_is_read_once_for_all_references(self) -> None:
        fields = fetched("stdin:", "Again=stdin:?trim=1", stdin=b"x\n")
        assert [opened(field) for field in fields] == [b"x\n", b"x"]

    def test_a_second_reading_is_refused_rather_than_empty(self) -> None:
        source = StdinSource(None, Context("stdin", stdin=io.BytesIO(b"x")))
        source.fetch(Locator("stdin", ""))
        with pytest.raises(WriteConflictError):
            source.fetch(Locator("stdin", ""))

    def test_a_terminal_is_refused(self) -> None:
        leader, terminal = os.openpty()
        try:
            with (
                os.fdopen(terminal, "rb") as stream,
                pytest.raises(UnsupportedError, match="is a terminal"),
            ):
                StdinSource(None, Context("stdin", stdin=stream)).fetch(Locator("stdin", ""))
        finally:
            os.close(leader)

    def test_a_closed_one_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdin", None)
        with pytest.raises(SecretNotFoundError, match="is closed"):
            StdinSource(None, Context("stdin")).fetch(Locator("stdin", ""))

    def test_nothing_piped_in_is_an_empty_value(self) -> None:
        with pytest.raises(SecretNotFoundError, match="stdin: is empty"):
            fetched("stdin:")

    def test_nothing_follows_its_colon(self) -> None:
        with pytest.raises(ReferenceValueError):
            fetched("stdin:x", stdin=b"x")

    def test_too_much_is_refused(self) -> None:
        with pytest.raises(PayloadTooLargeError):
            fetched("stdin:", stdin=b"x" * (PLAINTEXT_LIMIT + 1))


def test_text_is_itself_and_no_secret() -> None:
    (field,) = fetched("User=text:deploy-bot?type=text")
    assert (field.key, field.value, field.type) == ("User", "deploy-bot", "text")
    with pytest.raises(SecretNotFoundError, match="text: is empty"):
        fetched("text:")


class TestDotenv:
    """dotenv:PATH#KEY"""

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        """A dotenv file."""
        path = tmp_path / "prod.env"
        path.write_text("# a comment\nexport USER_NAME=bob\nDB_PASSWORD='s3 $USER_NAME # x'\n")
        return path

    def test_a_key_is_taken_and_nothing_expanded(self, path: Path) -> None:
        fields = fetched(f"dotenv:{path}#USER_NAME,Password=DB_PASSWORD")
        assert [(f.key, opened(f)) for f in fields] == [
            ("USER_NAME", b"bob"),
            ("Password", b"s3 $USER_NAME # x"),
        ]

    def test_without_a_key_it_names_the_keys(self, path: Path) -> None:
        with pytest.raises(ReferenceValueError) as caught:
            fetched(f"dotenv:{path}")
        assert '"USER_NAME", "DB_PASSWORD"' in caught.value.remedy
        assert "bob" not in f"{caught.value} {caught.value.remedy}"

    def test_a_missing_key_or_file_is_named(self, path: Path) -> None:
        with pytest.raises(SecretNotFoundError, match='no key "NOPE"'):
            fetched(f"dotenv:{path}#NOPE")
        with pytest.raises(SecretNotFoundError, match=r"dotenv:/nowhere does not exist"):
            fetched("dotenv:/nowhere#A")
        with pytest.raises(ReferenceValueError, match="dotenv: needs a path"):
            fetched("dotenv:#A")

    def test_its_format_can_be_another(self, tmp_path: Path) -> None:
        (tmp_path / "a.json").write_text('{"k": "v"}')
        assert value_of(f"dotenv:{tmp_path}/a.json?format=json#k") == "v"


def test_the_sources_stay_unimported_until_one_is_used() -> None:
    code = (
        "import sys; from sealpipe.registry import Registry; r = Registry(); "
        "r.source_info('file');"
        "print([m for m in sys.modules if m.startswith('sealpipe_plugins.local.') or m in"
        " ('importlib.metadata', 'dotenv', 'logging', 'difflib')])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"


def test_what_is_known_can_be_listed_without_importing_it() -> None:
    info = Registry().source_info("dotenv")
    assert (info.api, info.format, info.needs) == (1, "dotenv", ())
    assert info.summary
