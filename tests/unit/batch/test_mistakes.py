"""All mistakes of a batch are told at once, each with its place and its remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from sealpipe.batch.file.mistakes import BatchFileError, Mistake, Place
from unit.batch.batches import REQUEST, SHARE, lines, mistakes_of, read

THIRTY = Path(__file__).with_name("thirty")


def test_thirty_mistakes_give_thirty_lines() -> None:
    expected = (THIRTY / "expected.txt").read_text(encoding="utf-8").splitlines()
    found = mistakes_of(THIRTY / "vendors.toml")
    assert [str(each) for each in found] == expected
    assert len(found) == 30


def test_every_mistake_has_a_line_and_a_remedy() -> None:
    for mistake in mistakes_of(THIRTY / "vendors.toml"):
        assert mistake.place.line, mistake
        assert mistake.remedy, mistake


def test_the_message_has_one_line_for_each_mistake() -> None:
    place = Place("a\nb.toml", 2, 3)
    error = BatchFileError(
        "a\nb.toml", [Mistake(place, "x\ny", "z"), Mistake(place, "\x1b[2J\udc80", "")]
    )
    assert error.message.splitlines() == [
        r"a\nb.toml: 2 mistakes; nothing was sent",
        r"a\nb.toml:2:3: x\ny; z",
        r"a\nb.toml:2:3: \x1b[2J\udc80",
    ]


def test_a_mistake_of_every_row_is_told_once(tmp_path: Path) -> None:
    tables = (
        '[request]\nask = ["Password"]\nrestrict-domain = ["{email}"]\nsend = ["email:{email}"]\n'
    )
    (line,) = lines(tmp_path, tables, "name,email\na,x\nb,x\n")
    assert line.startswith("batch.toml:7:20: restrict-domain: '{email}' is not a domain; write")


def test_values_that_contradict_each_other_are_told_at_the_first(tmp_path: Path) -> None:
    tables = '[request]\nask = [\n  "Password",\n  "User",\n  "Password",\n]\n'
    (line,) = lines(tmp_path, tables)
    assert line.startswith("batch.toml:7:3: two prompts have the id 'password'")


def test_a_mistake_of_one_row_names_row_and_column(tmp_path: Path) -> None:
    (line,) = lines(tmp_path, REQUEST, 'name,email\nacme,"a\nb"\nbeta,bob@example.com\n')
    assert line.startswith("rows.csv:2, email: send: the cell contains a line break")


def test_a_long_name_is_not_shown(tmp_path: Path) -> None:
    secret = "s3cret" * 12
    (line,) = lines(tmp_path, REQUEST + f'"{secret}" = 1\n')
    assert secret not in line
    assert "a name of 72 characters" in line


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ("[share]\nfields = ['text:a']\n", "[share] has no send"),
        (
            SHARE + "views = 1\n[collect]\nto = ['vault:x']\n",
            'a share has no [collect]; remove it, or write kind = "re',
        ),
        (
            SHARE + "expires-in = '1d'\nno-expiry = true\n",
            "expires-in and no-expiry exclude each other",
        ),
        (SHARE + "seal-link = true\n", "seal-link does not apply to a batch"),
        (
            SHARE + "field = ['text:a']\n",
            "'field' is not an option of [share]; did you mean fields?",
        ),
        (
            SHARE + "passcode-generate = true\n",
            "the generated passcode has no recipient; add passcode-to CHANNEL",
        ),
        (
            SHARE + "passcode-to = ['sms:1']\n",
            "there is no passcode to send; add passcode-generate or",
        ),
        (SHARE + "passcode-from = 'text:1234'\n", "do not use text:"),
        (SHARE + "notify-on = 'opened'\n", "'opened' is not an event; choose from viewed"),
        (SHARE + "also-to = ['vault:x/{name}?trim=2']\n", "parameter trim has an invalid value"),
        (SHARE + "also-to = ['vault:x']\n", "it would be stored in the same place as line 2"),
        (SHARE + "[reissue]\ntimes = 0\n", "times: 0 is too small"),
        (
            SHARE + "[remind]\nafter = ['1d']\n",
            "'after' is not an option of [remind]; its options are",
        ),
        (
            SHARE + "[remind]\nunopened-after = ['3d']\n",
            "the reminder would come after the link has expired",
        ),
        (
            SHARE + "no-expiry = true\n[remind]\nbefore-expiry = '1d'\n",
            "before-expiry and no-expiry exclude each other",
        ),
        (SHARE + "[remind]\nunopened-after = ['2d', '1d']\n", "the reminders are not in order"),
        (SHARE + "[remind]\n", "[remind] never reminds"),
        (SHARE + "[notify]\nrows = true\n", "[notify] has no recipient"),
        (
            SHARE + "[notify]\nsend = 'slack:#x'\n",
            'send is not a list of texts; write send = ["..."]',
        ),
        (SHARE + "title = ['x']\n", 'title is not a single value; write title = "..."'),
        (SHARE + "title = '{'\n", "there is a { in the text that is not part of a placeholder"),
        (SHARE.replace("env:PASSWORD", "env:{email}"), "the cell is not one plain name"),
    ],
)
def test_contradictions_and_wrong_values_of_shares(tmp_path: Path, tables: str, words: str) -> None:
    (line,) = lines(tmp_path, tables, kind="share")
    assert words in line


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ("", "there is no [request]; write [request]"),
        ("[request]\n", "[request] has no ask"),
        (REQUEST + "key = 'new'\n", "key does not apply to a batch; leave it out: each request"),
        (REQUEST + "expires_in = '1d'\n", "did you mean expires-in?"),
        (REQUEST + "param = ['email=text:x']\n", "{email} is both a column and a param"),
        (REQUEST + "param = ['other=text:x']\n", "no channel uses param other"),
        (REQUEST.replace('"Password"', '"A", "A"'), "two prompts have the id 'a'"),
        (REQUEST.replace('"Password"', '"For {name}", "x=For acme"'), "two prompts have the text"),
        (REQUEST + "[share]\n", 'a request has no [share]; remove it, or write kind = "share"'),
        (
            REQUEST + "[collect]\nto = ['vault:x/{name}#nothing']\n",
            "the request has no prompt 'nothing'",
        ),
        (
            REQUEST + "[collect]\nto = ['vault:x/{name}', 'vault:x/{name}']\n",
            "two targets contradict each other",
        ),
        (
            REQUEST + "[collect]\nto = ['vault:x']\n",
            "it would be stored in the same place as line 2",
        ),
        (
            REQUEST + "[collect]\nto = ['vault:x']\npick = 'each'\n",
            "add {submission} to the target",
        ),
        (
            REQUEST + "[collect]\nto = ['vault:x?mode=merge#y=password']\n",
            "in the same place as line 2",
        ),
        (REQUEST + "[collect]\ndir = 'x'\n", "dir does not apply to a batch; write to"),
        (
            REQUEST + "[remind]\nafter = ['30d']\n",
            "the reminder would come after the link has expired",
        ),
        (
            '[request]\nask = ["Password"]\n[remind]\nafter = ["1d"]\n',
            "[remind] has no recipient: [request] has no send",
        ),
    ],
)
def test_contradictions_and_wrong_values_of_requests(
    tmp_path: Path, tables: str, words: str
) -> None:
    (line,) = lines(tmp_path, tables)
    assert words in line


@pytest.mark.parametrize("column", ["link", "title", "expires", "views"])
def test_a_column_named_like_a_placeholder_is_ambiguous(tmp_path: Path, column: str) -> None:
    (tmp_path / "note.txt").write_text(f"{{link}} {{{column}}}" if column != "link" else "{link}")
    tables = REQUEST + "[remind]\nafter = ['1d']\nmessage-template = 'note.txt'\n"
    (line,) = lines(tmp_path, tables, f"name,email,{column}\na,a@example.com,x\n")
    assert f"{{{column}}} is both a column and a placeholder" in line


def test_a_column_with_a_space_in_its_name_cannot_be_filled_in(tmp_path: Path) -> None:
    tables = REQUEST + "title = 'For {Vendor name}'\n"
    (line,) = lines(tmp_path, tables, "name,email,Vendor name\na,a@example.com,x\n")
    assert "batch.toml:8:1: title: there is a { in the text" in line


@pytest.mark.parametrize(
    "template", ["no link", "{link} {link}", "{link} {nothing}", "{link} \x07"]
)
def test_a_reminder_is_a_message_with_one_link(tmp_path: Path, template: str) -> None:
    (tmp_path / "note.txt").write_text(template)
    (line,) = lines(tmp_path, REQUEST + "[remind]\nafter = ['1d']\nmessage-template = 'note.txt'\n")
    assert line.startswith("batch.toml:10:1: message-template: ")


def test_two_rows_may_add_their_own_keys_to_one_place(tmp_path: Path) -> None:
    tables = REQUEST + "[collect]\nto = ['vault:x?mode=merge#{name}=password']\n"
    assert len(read(tmp_path, tables).rows) == 2
    (line,) = lines(tmp_path, tables.replace("?mode=merge", "?mode=replace"))
    assert "it would be stored in the same place as line 2" in line


def test_places_that_differ_in_case_only_are_the_same(tmp_path: Path) -> None:
    tables = REQUEST + "[collect]\nto = ['vault:x/{name}']\n"
    (line,) = lines(tmp_path, tables, "name,email\nAcme,a@example.com\nacme,b@example.com\n")
    assert line.startswith("rows.csv:3, name: it would be stored in the same place as line 2")
