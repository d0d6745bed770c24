"""Files of age on both sides: what Debian's `age` writes is read, and it reads what is written
here.
"""

from __future__ import annotations

import base64
import textwrap
from pathlib import Path

import pyrage
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyrage import x25519

from plugins.age.keys import PASSWORD, Keys, age, ssh_key
from sealpipe.errors import (
    AccessDeniedError,
    NotConfiguredError,
    PayloadTooLargeError,
    PluginError,
    ReferenceValueError,
    SettingError,
    UnsupportedError,
    WriteConflictError,
)
from sealpipe.plugin import PLAINTEXT_LIMIT
from sealpipe_plugins.age import file_format
from sealpipe_plugins.age.settings import split_recipients
from support.backends import at_once, put, put_refused, refused, registry, value_of, values
from support.damage import flipped

P = "SEALPIPE_PLUGIN_AGE__"
WITH_PASSPHRASE = b"age-encryption.org/v1\n-> scrypt wybSKgCbT7HxsFrJ0aOJKw 18\n" + b"x" * 300


def armored(content: bytes) -> bytes:
    """A file in age's armor."""
    lines = textwrap.wrap(base64.b64encode(content).decode(), 64)
    begin, end = (f"-----{word} AGE ENCRYPTED FILE-----" for word in ("BEGIN", "END"))
    return "\n".join([begin, *lines, end, ""]).encode()


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return Keys(tmp_path)


class TestReading:
    @pytest.mark.parametrize("armor", [[], ["--armor"]], ids=["binary", "armored"])
    def test_files_of_debians_age_are_read(
        self, armor: list[str], keys: Keys, tmp_path: Path
    ) -> None:
        file = tmp_path / "token.age"
        file.write_bytes(age(*armor, "-r", keys.recipient, given=PASSWORD.encode()))
        assert value_of(f"age:{file}", keys.environ()) == PASSWORD
        assert value_of(f"age:{file}", {f"{P}IDENTITY": keys.private}) == PASSWORD

    @pytest.mark.parametrize("kind", ["ed25519", "rsa"])
    def test_ssh_keys_work_in_both_directions(self, kind: str, tmp_path: Path) -> None:
        key = ssh_key(tmp_path, kind)
        file = tmp_path / "token.age"
        file.write_bytes(age("-R", f"{key}.pub", given=PASSWORD.encode()))
        ours = {
            f"{P}IDENTITY_FILE": str(key),
            f"{P}RECIPIENTS": key.with_suffix(".pub").read_text().rpartition(" ")[0],
        }
        assert value_of(f"age:{file}", ours) == PASSWORD
        put(ours, f"age:{tmp_path}/ours.age", {"": PASSWORD})
        assert age("-d", "-i", key, tmp_path / "ours.age") == PASSWORD.encode()

    def test_a_file_for_several_keys_opens_by_each(self, keys: Keys, tmp_path: Path) -> None:
        others, file = Keys(tmp_path, "theirs"), tmp_path / "token.age"
        file.write_bytes(age("-r", keys.recipient, "-r", others.recipient, given=b"x"))
        both = f"{keys.private}\n{others.private}"
        assert [
            value_of(f"age:{file}", {f"{P}IDENTITY": each})
            for each in (keys.private, others.private, both)
        ] == ["x"] * 3

    def test_the_core_selects_keys_by_format(self, keys: Keys, tmp_path: Path) -> None:
        contents = {
            "json": '{"db": {"password": "%s"}}',
            "yaml": "db:\n  password: %s\n",
            "dotenv": "password=%s\n",
        }
        for form, content in contents.items():
            file = tmp_path / form
            file.write_bytes(age("-r", keys.recipient, given=(content % PASSWORD).encode()))
            selector = "password" if form == "dotenv" else "/db/password"
            assert values(keys.environ(), f"age:{file}?format={form}#{selector}") == [
                PASSWORD.encode()
            ]

    def test_as_much_as_a_share_holds_is_read_and_no_more(self, keys: Keys, tmp_path: Path) -> None:
        recipients = [x25519.Recipient.from_str(keys.recipient)]
        for more, armor in ((0, True), (1, False), (PLAINTEXT_LIMIT, False)):
            file = tmp_path / str(more)
            file.write_bytes(pyrage.encrypt(bytes(PLAINTEXT_LIMIT + more), recipients, armor))
            if more:
                with pytest.raises(PayloadTooLargeError, match="more than"):
                    value_of(f"age:{file}", keys.environ())
            else:
                assert len(value_of(f"age:{file}", keys.environ()) or "") == PLAINTEXT_LIMIT

    def test_damage_is_never_read_as_a_value(self, keys: Keys, tmp_path: Path) -> None:
        whole = age("-r", keys.recipient, given=PASSWORD.encode() * 10)
        file = tmp_path / "token.age"
        for damaged in (whole[:-1], flipped(whole), whole[:90], whole + b"x"):
            file.write_bytes(damaged)
            refused(keys.environ(), f"age:{file}", PluginError, "is damaged, or cut off")
        file.write_bytes(whole.replace(b"/v1", b"/v9", 1))
        refused(keys.environ(), f"age:{file}", UnsupportedError, "has a newer format of age")

    def test_a_passphrase_is_told_apart_from_another_key(self, keys: Keys, tmp_path: Path) -> None:
        file, others = tmp_path / "token.age", Keys(tmp_path, "theirs")
        for content in (WITH_PASSPHRASE, armored(WITH_PASSPHRASE)):
            file.write_bytes(content)
            refused(
                keys.environ(), f"age:{file}", UnsupportedError, "is encrypted with a passphrase"
            )
        for armor in ([], ["--armor"]):
            file.write_bytes(age(*armor, "-r", others.recipient))
            refused(
                keys.environ(),
                f"age:{file}",
                AccessDeniedError,
                "for keys that are not available here",
            )


class TestKeys:
    @pytest.mark.parametrize(
        ("identity", "words"),
        [
            ("", "has no identity to decrypt with"),
            ("# only a comment\n", "has no identity"),
            ("AGE-SECRET-KEY-1QQPQYZ", "has an identity that is not complete"),
            ("AGE-PLUGIN-YUBIKEY-17DD5", "has a line that is no identity"),
            ("age-encryption.org/v1\n-> scrypt x 18\n", "is protected by a passphrase"),
            ("-----BEGIN OPENSSH PRIVATE KEY-----\nxx\n", "is not an SSH key that age can use"),
        ],
    )
    def test_an_identity_that_cannot_be_used_says_why(self, identity: str, words: str) -> None:
        refused({f"{P}IDENTITY": identity}, "age:x", NotConfiguredError, words)

    def test_a_locked_ssh_key_is_told_apart_from_another_kind(self, tmp_path: Path) -> None:
        for kind, passphrase_, words in (
            ("ed25519", "words", "with a passphrase"),
            ("ecdsa", "", "age can use"),
        ):
            key = ssh_key(tmp_path, kind, passphrase_)
            refused({f"{P}IDENTITY_FILE": str(key)}, "age:x", NotConfiguredError, words)

    def test_doctor_is_content_with_a_machine_that_only_reads_or_writes(
        self, keys: Keys, tmp_path: Path
    ) -> None:
        file, reading = tmp_path / "x.age", {f"{P}IDENTITY": keys.private}
        file.write_bytes(age("-r", keys.recipient, given=b"x"))
        for kind, environ, detail in (
            ("source", keys.writing(), "no identity: this machine only encrypts"),
            ("sink", keys.writing(), "recipients: 1; this machine cannot decrypt"),
            ("sink", reading, "no recipients: this machine only decrypts"),
            ("sink", keys.environ(), "recipients: 1; this machine can decrypt"),
        ):
            health = registry(environ).check(kind, "age")
            assert (health.ok, health.detail) == (True, detail)
        refused(
            keys.writing(), f"age:{file}", NotConfiguredError, "has no identity to decrypt with"
        )
        for environ in (reading, {}):
            put_refused(
                environ, f"age:{tmp_path}/y.age", {"": "v"}, NotConfiguredError, "has no recipients"
            )

    def test_a_missing_identity_file_is_named(self, tmp_path: Path) -> None:
        environ = {f"{P}IDENTITY_FILE": str(tmp_path / "none")}
        refused(
            environ,
            "age:x",
            NotConfiguredError,
            "the identity_file of age cannot be read: no such file",
        )

    def test_an_identity_in_the_config_file_is_refused(self, keys: Keys) -> None:
        found = registry({})
        found = type(found)(
            environ={}, config=lambda: {"plugins": {"age": {"identity": keys.private}}}
        )
        with pytest.raises(SettingError, match="identity in plain text"):
            found.source("age")

    @pytest.mark.parametrize(
        "recipients",
        [
            "age1qqqq",
            "age1yubikey1q2w7u3vpya",
            "ssh-ed25519",
            "ecdsa-sha2-nistp256 AAAA",
            "AGE-SECRET",
        ],
    )
    def test_what_is_no_recipient_is_refused(self, recipients: str) -> None:
        error = put_refused(
            {f"{P}RECIPIENTS": recipients},
            "age:x",
            {"": "v"},
            NotConfiguredError,
            "not a recipient",
        )
        assert "AGE-SECRET" not in error.message

    def test_recipients_stand_in_a_list_a_text_or_a_file(self, keys: Keys, tmp_path: Path) -> None:
        others, key = Keys(tmp_path, "theirs"), ssh_key(tmp_path, "ed25519").with_suffix(".pub")
        file = tmp_path / "recipients"
        file.write_text(f"# the team\n{keys.recipient}\n\n{key.read_text()}")
        file.chmod(0o644)
        put(
            {f"{P}RECIPIENTS_FILE": str(file), f"{P}RECIPIENTS": others.recipient},
            f"age:{tmp_path}/x",
            {"": PASSWORD},
        )
        for identity in (keys.file, others.file, key.with_suffix("")):
            assert age("-d", "-i", identity, tmp_path / "x") == PASSWORD.encode()

    def test_a_recipients_file_that_others_write_is_refused(
        self, keys: Keys, tmp_path: Path
    ) -> None:
        file = tmp_path / "recipients"
        file.write_text(keys.recipient)
        file.chmod(0o666)
        put_refused(
            {f"{P}RECIPIENTS_FILE": str(file)},
            "age:x",
            {"": "v"},
            NotConfiguredError,
            "any user can write",
        )

    @given(
        st.lists(st.sampled_from(["age1abc", "ssh-ed25519 AAAA", "ssh-rsa BBBB"])),
        st.sampled_from([" ", "\n"]),
    )
    def test_a_text_of_recipients_is_the_list(self, recipients: list[str], blank: str) -> None:
        assert split_recipients(blank.join(recipients)) == tuple(recipients)


class TestWriting:
    @pytest.mark.parametrize("armor", ["", "?armor=1"])
    def test_debians_age_reads_what_is_written(
        self, armor: str, keys: Keys, tmp_path: Path
    ) -> None:
        assert not put(keys.writing(), f"age:{tmp_path}/new.age{armor}", {"": PASSWORD}).already
        file = tmp_path / "new.age"
        assert file.stat().st_mode & 0o777 == 0o600
        assert file.read_bytes().startswith(
            b"-----BEGIN AGE" if armor else b"age-encryption.org/v1\n"
        )
        assert age("-d", "-i", keys.file, file) == PASSWORD.encode()

    def test_who_can_only_encrypt_never_replaces_unseen(self, keys: Keys, tmp_path: Path) -> None:
        target = f"age:{tmp_path}/new.age"
        put(keys.writing(), target, {"": "first"})
        put_refused(keys.writing(), target, {"": "first"}, WriteConflictError, "has other content")
        assert not put(keys.writing(), target, {"": "second"}, "replace").already
        assert value_of(target, keys.environ()) == "second"
        assert put(keys.environ(), target, {"": "second"}, "create").already

    def test_a_file_in_clear_with_the_same_value_is_not_stored(
        self, keys: Keys, tmp_path: Path
    ) -> None:
        file = tmp_path / "new.age"
        file.write_text(PASSWORD)
        put_refused(
            keys.environ(), f"age:{file}", {"": PASSWORD}, WriteConflictError, "other content"
        )
        assert not put(keys.environ(), f"age:{file}", {"": PASSWORD}, "replace").already
        assert PASSWORD.encode() not in file.read_bytes()

    def test_an_identity_that_is_no_recipient_confirms_the_bytes(
        self, keys: Keys, tmp_path: Path
    ) -> None:
        others = Keys(tmp_path, "theirs")
        environ = {**others.environ(), **keys.writing()}
        assert not put(environ, f"age:{tmp_path}/new.age", {"": PASSWORD}).already
        assert age("-d", "-i", keys.file, tmp_path / "new.age") == PASSWORD.encode()

    def test_eight_writers_at_once_leave_one_whole_file(self, keys: Keys, tmp_path: Path) -> None:
        def writer(number: int) -> object:
            return lambda: put(keys.environ(), f"age:{tmp_path}/new.age", {"": f"value {number}"})

        outcomes = at_once(*(writer(number) for number in range(8)))  # type: ignore[arg-type]
        won = [number for number, each in enumerate(outcomes) if not isinstance(each, PluginError)]
        assert value_of(f"age:{tmp_path}/new.age", keys.environ()) == f"value {won[0]}"
        assert {type(each) for each in outcomes if isinstance(each, PluginError)} == {
            WriteConflictError
        }
        assert len(won) == 1

    def test_as_much_as_a_share_holds_is_written_armored(self, keys: Keys, tmp_path: Path) -> None:
        large = bytes(PLAINTEXT_LIMIT)
        put(keys.environ(), f"age:{tmp_path}/new.age?armor=1", {"": large})
        assert put(keys.environ(), f"age:{tmp_path}/new.age?armor=1", {"": large}).already

    @pytest.mark.parametrize(
        ("target", "kind", "words"),
        [
            ("age:x?armor=yes", ReferenceValueError, "armor= must be 0 or 1"),
            ("age:", ReferenceValueError, "names no file"),
        ],
    )
    def test_a_target_that_is_none_is_refused(
        self, target: str, kind: type[PluginError], words: str, keys: Keys
    ) -> None:
        put_refused(keys.writing(), target, {"": "v"}, kind, words)

    def test_two_values_are_refused(self, keys: Keys) -> None:
        put_refused(
            keys.writing(), "age:x", {"a": "v", "b": "w"}, ReferenceValueError, "holds one value"
        )


@given(st.binary(max_size=300))
def test_no_beginning_of_a_file_breaks_the_parser(content: bytes) -> None:
    for data in (
        content,
        b"-----BEGIN AGE ENCRYPTED FILE-----\n" + content,
        b"age-encryption.org/v1\n" + content,
    ):
        file_format.has_passphrase(data)
        assert file_format.is_age(data) or data == content
