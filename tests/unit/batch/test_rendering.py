"""A row fills in columns as data: no cell changes who gets what, what is read, or where something
is stored.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealpipe.batch.file.definition import BatchDefinition
from sealpipe.batch.file.mistakes import MistakeCollector, Place
from sealpipe.batch.file.patterns import Dialect, escape_braces, make_pattern
from sealpipe.batch.file.reading import read_definition
from sealpipe.batch.file.render import RenderedRow, render_row
from sealpipe.batch.file.rows import Row
from sealpipe.collect.options import plan_sample_writes
from sealpipe.errors import UsageError
from sealpipe.prompts import Prompt
from sealpipe.reference import Key, Pointer, Reference, parse, parse_field, parse_target
from sealpipe.reference.text import parse_template
from sealpipe.state.receipt import Receipt
from sealpipe.wire import keys
from unit.batch.batches import REQUEST, SHARE, lines, read, rendered, write

ALL_REQUEST = """
[request]
ask = ["For {x}:text", "user=User of {x}"]
title = "Access to {x}"
description = "{{{x}}}"
send = ["email:{x}", "slack:#fixed"]
[remind]
after = ["1d"]
message-template = "note.txt"
[collect]
to = ["vault:secret/{plain}/{submission}?mode=merge#{x}=user"]
"""
ALL_SHARE = """
[share]
fields = ["For {x}=text:{x}", "vault:secret/{plain}#{x}", "json=file:{plain}.json#/a/{x}"]
title = "{x}"
send = ["email:{x}"]
views = 2
also-to = ["vault:copy/{plain}?mode=merge#{x}=json"]
"""
HOSTILE = [
    "a,b",
    "#x",
    "{plain}",
    "{submission}",
    "%2F",
    "a?mode=replace",
    "x:text",
    "=y",
    "*",
    "/",
    '"q"',
    "a\\b",
    "é ~",
]


def defined(folder: Path, tables: str, kind: str) -> BatchDefinition:
    (folder / "note.txt").write_text("Hello {x}, {{link}}: {link} until {expires}")
    return read(folder, tables, "name,x,plain\na,y,p\n", kind=kind)


def row(**cells: str) -> Row:
    return Row("a", cells, Place("rows.csv", 2))


def assert_data_in_request(done: RenderedRow, cell: str) -> None:
    asked = done.make_request()
    assert asked.prompts == (
        Prompt("for_x", f"For {cell}", "text"),
        Prompt("user", f"User of {cell}"),
    )
    assert (asked.title, asked.description) == (f"Access to {cell}", f"{{{cell}}}")
    assert asked.delivery is not None
    assert [(each.target.name, each.target.to) for each in asked.delivery.targets] == [
        ("email", "{x}"),
        ("slack", "#fixed"),
    ]
    assert dict(asked.delivery.params) == {"x": Reference("text", cell)}
    (job,) = done.make_collect(Receipt("code", "", asked.prompts)).jobs
    (made,) = plan_sample_writes(job)
    assert (made.ref, made.keys, made.mode) == (
        Reference("vault", "secret/p/submission"),
        (cell,),
        "merge",
    )
    assert done.reminder is not None
    note = parse_template(done.reminder, "").fill({"link": "LINK", "expires": "THEN"})
    assert note == f"Hello {cell}, {{link}}: LINK until THEN"


def assert_data_in_share(done: RenderedRow, cell: str) -> None:
    options = done.make_share()
    specs: list[Any] = list(options.fields)
    assert [(each.label, each.ref) for each in specs] == [
        (f"For {cell}", Reference("text", cell)),
        (None, Reference("vault", "secret/p", (), (Key(cell),))),
        ("json", Reference("file", "p.json", (), (Pointer(("a", cell)),))),
    ]
    assert options.title == cell
    (target,) = options.targets
    assert target.fill({}) == Reference("vault", "copy/p")
    assert target.ref.selector == (Key("json", cell),)


@pytest.mark.parametrize("cell", HOSTILE)
def test_a_hostile_cell_is_data_in_a_request(tmp_path: Path, cell: str) -> None:
    assert_data_in_request(
        render_row(defined(tmp_path, ALL_REQUEST, "request"), row(x=cell, plain="p")), cell
    )


@pytest.mark.parametrize("cell", HOSTILE)
def test_a_hostile_cell_is_data_in_a_share(tmp_path: Path, cell: str) -> None:
    assert_data_in_share(
        render_row(defined(tmp_path, ALL_SHARE, "share"), row(x=cell, plain="p")), cell
    )


@pytest.fixture(scope="module")
def request_batch(tmp_path_factory: pytest.TempPathFactory) -> BatchDefinition:
    return defined(tmp_path_factory.mktemp("request"), ALL_REQUEST, "request")


@pytest.fixture(scope="module")
def share_batch(tmp_path_factory: pytest.TempPathFactory) -> BatchDefinition:
    return defined(tmp_path_factory.mktemp("share"), ALL_SHARE, "share")


# Characters that mean something somewhere meet often.
OBEYED = (".bashrc", "-rf", "~root")
_any_text = st.text('{}%?#&=,*/"\\~:. -aé\u2028\n\0', min_size=1, max_size=8) | st.text(
    min_size=1, max_size=8
)


@given(_any_text)
def test_no_cell_changes_the_structure_of_a_request(
    request_batch: BatchDefinition, cell: str
) -> None:
    try:
        done = render_row(request_batch, row(x=cell, plain="p"))
        done.make_request()
    except UsageError:
        assert not cell.isprintable()
    else:
        assert_data_in_request(done, cell)


@given(_any_text)
def test_no_cell_changes_the_structure_of_a_share(share_batch: BatchDefinition, cell: str) -> None:
    try:
        done = render_row(share_batch, row(x=cell, plain="p"))
        done.make_share()
    except UsageError:
        assert not cell.isprintable()
    else:
        assert_data_in_share(done, cell)


@given(_any_text)
def test_a_cell_in_a_path_is_one_plain_name(request_batch: BatchDefinition, cell: str) -> None:
    try:
        done = render_row(request_batch, row(x="y", plain=cell))
    except UsageError:
        return
    assert done.collect is not None
    (target,) = done.collect["to"]
    assert target.body == f"secret/{cell}/{{submission}}"
    assert not set(cell) & set("/{}%?#\\ ")
    assert not cell.startswith((".", "-", "~"))


@pytest.mark.parametrize(
    "cell",
    [*OBEYED, "", ".", "..", "a/b", "../x", "a b", "a%2Fb", "a\\b", "é", "a\n", "a#b", "a?b"],
)
@pytest.mark.parametrize("value", ["vault:x/{c}", "vault:x?version={c}", "exec:{c}"])
def test_a_path_accepts_only_plain_names(cell: str, value: str) -> None:
    with pytest.raises(UsageError, match="not one plain name"):
        make_pattern(parse(value), Dialect()).fill({"c": cell})


@pytest.mark.parametrize("cell", OBEYED)
def test_a_name_that_programs_obey_may_end_a_part(cell: str) -> None:
    """Only at the beginning of a part of a path is it obeyed."""
    assert (
        make_pattern(parse("file:out/app{c}"), Dialect()).fill({"c": cell}).body == f"out/app{cell}"
    )
    assert (
        make_pattern(parse("file:out/{a}{c}"), Dialect()).fill({"a": "x", "c": cell}).body
        == f"out/x{cell}"
    )


@pytest.mark.parametrize(
    "value", ["vault:x#{c}", "vault:x#a={c}", "vault:x#{c}=a", "vault:x#/a/{c}"]
)
def test_an_empty_cell_names_no_key(value: str) -> None:
    with pytest.raises(UsageError, match="the cell is empty"):
        make_pattern(parse(value), Dialect()).fill({})


def test_a_cell_never_chooses_a_store_or_a_channel() -> None:
    for parse_it in (parse, parse_field, parse_target):
        with pytest.raises(UsageError, match="not a reference"):
            parse_it("{c}:x")


@given(_any_text)
def test_escaped_braces_read_back(text: str) -> None:
    assert parse_template(escape_braces(text), "").pieces == (text,)


def test_what_a_plain_batch_renders(tmp_path: Path) -> None:
    done = rendered(
        tmp_path, REQUEST + "expires-in = '10d'\nmax-submissions = 1\n[collect]\nafter = 'expire'\n"
    )
    pair = keys.from_seed(bytes(32))
    job = done.make_request(key=pair)
    assert (job.key_pair, job.max_submissions) == (pair, 1)
    assert job.expires_at is not None
    assert (
        timedelta(0)
        <= datetime.now(UTC) + timedelta(days=10) - job.expires_at
        < timedelta(minutes=1)
    )
    assert done.collect == {"after": "expire"}
    assert done.make_collect("code", key=pair).after == "expire"
    assert done.reminder is None


def test_no_expiry_is_a_share_without_end(tmp_path: Path) -> None:
    assert (
        rendered(tmp_path, SHARE + "no-expiry = true\n", kind="share").make_share().expires_at
        is None
    )


def test_a_param_and_a_column_stand_in_one_channel(tmp_path: Path) -> None:
    tables = REQUEST.replace("email:{email}", "teams:{team}/{name}") + "param = ['team=env:TEAM']\n"
    delivery = rendered(tmp_path, tables).make_request().delivery
    assert delivery is not None
    assert dict(delivery.params) == {
        "team": Reference("env", "TEAM"),
        "name": Reference("text", "acme"),
    }


DIGEST = "ef02146d7fafb824809aaae4fd6a2b412c0f0640ce40eee9c77565b41ccb20cd"


def test_the_digest_is_the_same_in_every_version(tmp_path: Path) -> None:
    tables = REQUEST + "title = 'For {name}'\nexpires-in = '10d'\n"
    assert rendered(tmp_path, tables).digest == DIGEST
    assert rendered(tmp_path, tables.replace("10d", "240h")).digest == DIGEST
    assert rendered(tmp_path, tables + "[remind]\nafter = ['1d']\n").digest == DIGEST
    assert rendered(tmp_path, tables, "email,name,more\nann@example.com,acme,x\n").digest == DIGEST


@pytest.mark.parametrize(
    ("old", "new"),
    [("Password", "Passwort"), ("email:{", "slack:{"), ("name}", "email}"), ("10d", "11d")],
)
def test_the_digest_changes_with_what_is_sent(tmp_path: Path, old: str, new: str) -> None:
    tables = REQUEST + "title = 'For {name}'\nexpires-in = '10d'\n"
    assert rendered(tmp_path, tables).digest != rendered(tmp_path, tables.replace(old, new)).digest


def test_the_digest_changes_with_the_cells_that_are_used(tmp_path: Path) -> None:
    first, second = (
        rendered(tmp_path, REQUEST, f"name,email\nacme,{each}@example.com\n") for each in "ab"
    )
    assert first.digest != second.digest


def test_no_cell_shows_in_the_text_of_a_rendered_rows_options(tmp_path: Path) -> None:
    definition = read(tmp_path, REQUEST)
    done = render_row(definition, definition.rows[0])
    options = done.make_request()
    assert "ann@" not in repr((definition.rows[0], done, options))
    assert "ann@" not in str(options.delivery and options.delivery.targets)


def test_a_definition_knows_its_tables(tmp_path: Path) -> None:
    tables = SHARE + (
        "[remind]\nunopened-after = ['1d', '2d']\nbefore-expiry = '1h'\n"
        "[reissue]\nwhen = 'expired-unopened'\ntimes = 2\n[notify]\nsend = ['slack:#x']\n"
        "rows = true\n"
    )
    definition = read_definition(write(tmp_path, tables, kind="share"))
    assert (definition.name, definition.kind, definition.key) == ("vendors", "share", "name")
    assert definition.remind is not None
    assert definition.remind.after == (timedelta(days=1), timedelta(days=2))
    assert definition.remind.before_expiry == timedelta(hours=1)
    assert definition.reissue is not None
    assert (definition.reissue.when, definition.reissue.times) == ("expired-unopened", 2)
    assert definition.notify is not None
    assert (str(definition.notify.delivery.targets[0].target), definition.notify.rows) == (
        "slack:#x",
        True,
    )
    assert [each.key for each in definition.rows] == ["acme", "beta"]
    assert definition.columns == ("name", "email")


def test_a_message_of_a_share_is_filled_in(tmp_path: Path) -> None:
    (tmp_path / "m.txt").write_text("Dear {name}: {link} {views}")
    done = rendered(
        tmp_path,
        SHARE + "message-template = 'm.txt'\n",
        "name,email\n{link},a@example.com\n",
        kind="share",
    )
    assert done.make_share().message_template == "Dear {{link}}: {link} {views}"


def test_hostile_rows_are_checked_when_the_batch_is_read(tmp_path: Path) -> None:
    tables = REQUEST + "[collect]\nto = ['vault:x/{name}']\n"
    found = lines(
        tmp_path, tables, "name,email\n../x,a@example.com\na/b,b@example.com\nok,c@example.com\n"
    )
    assert [each.partition(": ")[0] for each in found] == ["rows.csv:2, name", "rows.csv:3, name"]


def test_mistakes_of_a_collector_count_once() -> None:
    mistakes = MistakeCollector("a.toml")
    for _ in range(2):
        mistakes.add(Place("a.toml", 1), "x")
    assert len(mistakes) == 1
