"""KeePass databases on both sides: what pykeepass and KeePassXC write is read, and they read what
is written here.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lxml import etree

from plugins.keepass.databases import PASSWORD, Databases, P, keepassxc
from sealpipe.errors import (
    PluginError,
    SecretNotFoundError,
    SettingError,
    UnsupportedError,
)
from sealpipe.plugin import Mode
from sealpipe.registry import Registry
from sealpipe_plugins.keepass import database as plugin_database
from sealpipe_plugins.keepass import entries
from sealpipe_plugins.keepass.entries import read_file_numbers
from support.backends import at_once, fetched, put, put_by, put_refused, registry, values

VALUE = "canary-in-an-entry-5f1e"


@pytest.fixture
def team(tmp_path: Path) -> Databases:
    return Databases(tmp_path)


class Opened:
    """Counts how often a database is opened: each takes about a second in real life."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count, real = 0, plugin_database.Opener.open

        def count(opener: Any, content: bytes) -> Any:
            self.count += 1
            return real(opener, content)

        monkeypatch.setattr(plugin_database.Opener, "open", count)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Opened:
    return Opened(monkeypatch)


class TestReading:
    def test_fields_go_by_keepass_names_in_any_case(self, team: Databases) -> None:
        team.add(
            "Servers/Prod/db",
            VALUE,
            username="app",
            url="https://db",
            custom={"API key": "k", "password 2": "2"},
        )
        at = "keepass:Servers/Prod/db"
        assert values(team.environ(), f"{at}#password,UserName,url,API key") == [
            VALUE.encode(), b"app", b"https://db", b"k",
        ]  # fmt: skip
        names = [field.key for field in fetched(f"{at}#*", environ=team.environ())]
        assert sorted(names) == ["API key", "Password", "URL", "UserName", "password 2"]

    def test_names_that_xpath_would_read_as_its_own_work(self, team: Databases) -> None:
        team.add("it's/a & b <c>", VALUE, custom={"x'y": "1"})
        assert values(team.environ(), "keepass:it's/a & b <c>#password,x'y") == [
            VALUE.encode(),
            b"1",
        ]

    def test_an_attachment_is_read_by_its_name(self, team: Databases) -> None:
        team.add("tls", "x", files={"other.bin": b"\xff\x00", "tls.pem": b"-----\r\n"})
        assert values(team.environ(), "keepass:tls#tls.pem") == [b"-----\r\n"]
        assert [
            field.key for field in fetched("keepass:tls#*,tls.pem", environ=team.environ())
        ] == [
            "Password",
            "tls.pem",
        ]

    @pytest.mark.parametrize("number", ["1", "99", "-1", "x", ""])
    def test_an_attachment_that_the_database_lacks_is_none(
        self, team: Databases, number: str
    ) -> None:
        team.add("db", VALUE, files={"tls.pem": b"x"})
        kp = team.open()
        (entry,) = kp.entries
        entry._element.find("Binary/Value").set("Ref", number)
        kp.save()
        assert values(team.environ(), "keepass:db#password") == [VALUE.encode()]
        assert [field.key for field in fetched("keepass:db#*", environ=team.environ())] == [
            "Password"
        ]
        with pytest.raises(SecretNotFoundError):
            values(team.environ(), "keepass:db#tls.pem")

    def test_a_reference_to_another_entry_is_followed(self, team: Databases) -> None:
        team.add("db", VALUE)
        number = team.entry("db").uuid.hex.upper()
        team.add("other", f"{{REF:P@I:{number}}}")
        assert values(team.environ(), "keepass:other#password") == [VALUE.encode()]

    def test_fifty_references_open_the_database_once(self, team: Databases, opened: Opened) -> None:
        kp = team.open()
        for number in range(50):
            kp.add_entry(kp.root_group, f"entry {number}", "", f"value {number}")
        kp.save()
        texts = [f"keepass:entry {number}#password" for number in range(50)]
        assert values(team.environ(), *texts) == [
            f"value {number}".encode() for number in range(50)
        ]
        assert opened.count == 1

    def test_what_keepassxc_makes_is_read(self, team: Databases) -> None:
        keepassxc("mkdir", "-q", team.file, "Servers")
        keepassxc(
            "add", "-q", "-u", "app", "-p", team.file, "Servers/db", given=f"{PASSWORD}\n{VALUE}"
        )
        assert values(team.environ(), "keepass:Servers/db#UserName,Password") == [
            b"app",
            VALUE.encode(),
        ]


class TestOpening:
    def test_a_key_file_opens_alone_and_with_the_password(
        self, team: Databases, tmp_path: Path
    ) -> None:
        key = tmp_path / "key"
        key.write_bytes(bytes(range(32)))
        team.add("db", VALUE)
        for password in (PASSWORD, None):
            kp = team.open()
            kp.keyfile, kp.password = str(key), password
            file = tmp_path / f"{password}.kdbx"
            kp.save(file)
            login = {} if password is None else {f"{P}PASSWORD": password}
            environ = {f"{P}DATABASE": str(file), f"{P}KEY_FILE": str(key), **login}
            assert values(environ, "keepass:db#password") == [VALUE.encode()]

    def test_the_password_in_the_config_file_is_refused(self, team: Databases) -> None:
        table = {"database": str(team.file), "password": PASSWORD}
        found = Registry(environ={}, config=lambda: {"plugins": {"keepass": table}})
        with pytest.raises(SettingError, match="password in plain text"):
            found.source("keepass")


class TestWriting:
    def test_keepassxc_reads_what_is_written(self, team: Databases) -> None:
        team.add("Servers/db", "old", username="app")
        put(team.environ(), "keepass:Vendors/Acme/token", {"": VALUE, "url": "https://acme"})
        put(team.environ(), "keepass:Servers/db", {"password": VALUE}, "merge")
        words = (
            "show",
            "-q",
            "-s",
            "-a",
            "Title",
            "-a",
            "UserName",
            "-a",
            "Password",
            "-a",
            "URL",
            team.file,
        )
        assert keepassxc(*words, "Vendors/Acme/token").splitlines() == [
            "token",
            "",
            VALUE,
            "https://acme",
        ]
        assert keepassxc(*words, "Servers/db").splitlines() == ["db", "app", VALUE, ""]
        assert team.file.stat().st_mode & 0o777 == 0o600

    def test_what_is_not_text_is_an_attachment(self, team: Databases, tmp_path: Path) -> None:
        """A field of that name goes, and KeePassXC exports it byte for byte."""
        team.add("Vendors/tls", "x", custom={"tls.p12": "", "note": "ours"})
        for number, data in enumerate((bytes(range(256)), b"\xff" * 100_000, b"bell\x07")):
            put(
                team.environ(),
                "keepass:Vendors/tls",
                {"tls.p12": data, "user": "app"},
                "merge",
                marker=f"m{number}",
            )
            assert team.files("Vendors/tls") == {"tls.p12": data}
            exported = tmp_path / f"exported {number}"
            keepassxc("attachment-export", "-q", team.file, "Vendors/tls", "tls.p12", exported)
            assert exported.read_bytes() == data
            assert values(team.environ(), "keepass:Vendors/tls?encode=hex#tls.p12") == [
                data.hex().encode()
            ]
        assert team.entry("Vendors/tls").get_custom_property("note") == "ours"

    def test_no_database_becomes_larger_than_is_read(
        self, team: Databases, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("sealpipe_plugins.keepass.sink.SIZE_LIMIT", 50_000)
        put(team.environ(), "keepass:a", {"f": os.urandom(30_000)})
        before = team.file.read_bytes()
        values, words = {"f": os.urandom(30_000)}, "the database would be larger than"
        put_refused(team.environ(), "keepass:b", values, UnsupportedError, words)
        assert team.file.read_bytes() == before

    def test_an_attachment_stays_one_whatever_it_gets(self, team: Databases) -> None:
        team.add("tls", "x", files={"tls.pem": b"old", "other": b"stays"})
        put(team.environ(), "keepass:tls", {"tls.pem": "new"}, "replace")
        assert team.files("tls") == {"tls.pem": b"new", "other": b"stays"}
        assert values(team.environ(), "keepass:tls#tls.pem") == [b"new"]

    def test_what_no_entry_has_any_more_leaves_the_database(self, team: Databases) -> None:
        """Not before the history has forgotten it; other attachments keep their content."""
        team.add("first", "x", files={"a": b"of the first"})
        for number in range(14):
            put(team.environ(), "keepass:tls", {"f": b"\xff%d" % number}, "replace", f"m{number}")
        team.add("last", "x", files={"z": b"of the last"})
        put(team.environ(), "keepass:tls", {"f": b"\xffend"}, "replace", "end")
        assert team.files("first") == {"a": b"of the first"}
        assert team.files("last") == {"z": b"of the last"}
        assert team.files("tls") == {"f": b"\xffend"}
        binaries, history = team.open().binaries, team.entry("tls").history
        kept = [read_file_numbers(each._element) for each in history]
        assert [binaries[each["f"]] for each in kept] == [b"\xff%d" % n for n in range(4, 14)]
        assert len(binaries) == 13

    def test_what_is_made_has_the_time_of_its_making(self, team: Databases) -> None:
        begin = datetime.now(UTC).replace(microsecond=0)
        put(team.environ(), "keepass:Vendors/db", {"": VALUE})
        entry = team.entry("Vendors/db")
        for made in (entry, entry.group):
            for moment in (made.ctime, made.mtime, made.atime, made.expiry_time):
                assert begin <= moment.replace(tzinfo=UTC) <= datetime.now(UTC)
            assert not made.expires

    def test_what_it_was_stays_in_the_history(self, team: Databases) -> None:
        team.add("db", "value 0", username="app", files={"tls.pem": b"x"})
        for number in range(1, 14):
            put(
                team.environ(),
                "keepass:db",
                {"password": f"value {number}"},
                "replace",
                marker=f"m{number}",
            )
        entry = team.entry("db")
        # ten.
        assert [each.password for each in entry.history] == [
            f"value {number}" for number in range(3, 13)
        ]
        assert (entry.password, entry.username, [each.filename for each in entry.attachments]) == (
            "value 13", None, ["tls.pem"],
        )  # fmt: skip
        assert entry.mtime >= entry.history[-1].mtime

    def test_the_encryption_keeps_its_settings_with_new_seeds(self, team: Databases) -> None:
        def settings() -> dict[str, Any]:
            header = team.open().kdbx.header.value
            kdf = {
                name: each.value
                for name, each in header.dynamic_header.kdf_parameters.data.dict.items()
            }
            return {
                "version": (header.major_version, header.minor_version),
                "seed": kdf.pop("S"),
                **kdf,
            }

        before = settings()
        put(team.environ(), "keepass:db", {"": VALUE})
        after = settings()
        assert before.pop("seed") != after.pop("seed")
        assert before == after

    def test_a_write_opens_twice_and_the_next_one_once(
        self, team: Databases, opened: Opened
    ) -> None:
        found = registry(team.environ())
        put_by(found, "keepass:a", {"": "1"})
        assert opened.count == 2  # the old one, and the new one before it replaces that
        put_by(found, "keepass:b", {"": "2"})
        assert opened.count == 3

    @pytest.mark.parametrize("mode", ["create", "merge"])
    def test_a_change_in_between_is_kept(
        self, mode: Mode, team: Databases, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real, done = plugin_database.dump, list[int]()

        def dump(found: Any) -> bytes:
            content = real(found)
            if not done:
                done.append(1)
                team.add("by somebody else", "theirs")
            return content

        monkeypatch.setattr("sealpipe_plugins.keepass.sink.dump", dump)
        put(team.environ(), "keepass:ours", {"": VALUE}, mode)
        assert (team.entry("by somebody else").password, team.entry("ours").password) == (
            "theirs",
            VALUE,
        )

    def test_six_writers_at_once_lose_no_entry(self, team: Databases) -> None:
        def writer(number: int) -> Any:
            return lambda: put(team.environ(), f"keepass:Group/entry {number}", {"": str(number)})

        outcomes = at_once(*(writer(number) for number in range(6)))
        assert [each for each in outcomes if isinstance(each, PluginError)] == []
        assert [team.entry(f"Group/entry {number}").password for number in range(6)] == [
            str(n) for n in range(6)
        ]

    def test_a_database_that_would_lose_something_is_discarded(
        self, team: Databases, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        team.add("db", "kept")
        before = team.file.read_bytes()
        monkeypatch.setattr("sealpipe_plugins.keepass.sink.dump", lambda _: before)
        put_refused(team.environ(), "keepass:other", {"": VALUE}, PluginError, "was discarded")
        assert team.file.read_bytes() == before

    def test_braces_that_mean_nothing_to_keepass_are_stored(self, team: Databases) -> None:
        text = '{"a": 1} {REF} ${NAME} {name} cmd://x'
        put(team.environ(), "keepass:a", {"": text})
        assert values(team.environ(), "keepass:a#password") == [text.encode()]

    def test_an_older_format_is_only_read(
        self, team: Databases, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("pykeepass.PyKeePass.version", (3, 1))
        put_refused(
            team.environ(), "keepass:a", {"": "1"}, UnsupportedError, "has the format KDBX 3"
        )


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("", "{REF:P@T:db}"),
        ("", "x {ref:p@t:db}"),
        ("note", "{CMD:/id/}"),
        ("note", "{T-REPLACE-RX:/{REF/x/y/}"),
        ("", "{S:one}{S:two}"),
        ("", "{USERNAME}{NOTES}"),
        ("url", " CMD://{DB_DIR}/x"),
    ],
)
def test_a_value_that_keepass_would_act_on_is_refused(
    field: str, text: str, team: Databases
) -> None:
    team.add("db", "of somebody else")
    put_refused(
        team.environ(), "keepass:a", {field: text}, UnsupportedError, "which KeePass would act on"
    )


TEXT = st.text(st.characters(blacklist_categories=("Cs",)), max_size=20)


@given(TEXT)
def test_a_text_is_writable_if_xml_holds_it(text: str) -> None:
    element = etree.Element("Value")
    try:
        element.text = text
        holds = (etree.fromstring(etree.tostring(element)).text or "") == text
    except ValueError:
        holds = False
    assert entries.is_writable(text) is holds


@given(st.dictionaries(TEXT, TEXT), st.dictionaries(TEXT, st.binary(max_size=4)))
@example({"TITLE": "a field of its own", "Title": "the title"}, {})
@example({"PASSWORD": "a field of its own", "Password": "the password"}, {"TITLE": b""})
def test_an_entry_lists_what_holds_something(
    fields: dict[str, str], files: dict[str, bytes]
) -> None:
    held = entries.EntryFields(fields, files)
    assert len(held) == len(list(held)) == len({name for name in held if held[name]})
    assert all(name in held for name in files)
    assert {entries.TITLE, entries.MARKER}.isdisjoint(held)
