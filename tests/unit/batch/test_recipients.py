"""What only a plugin knows is checked for every row before anything is sent: addresses, sinks,
sources.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from sealpipe.batch.file.reading import inspect_definition
from sealpipe.batch.file.recipients import check_recipients
from support.backends import registry
from unit.batch.batches import REQUEST, ROWS, SHARE, write

ENVIRON = {
    "SEALPIPE_PLUGIN_EMAIL__HOST": "mail.example.com",
    "SEALPIPE_PLUGIN_EMAIL__SENDER": "vault@example.com",
}


def checked(
    folder: Path,
    tables: str,
    rows: str = ROWS,
    *,
    kind: str = "request",
    environ: Mapping[str, str] = ENVIRON,
) -> list[str]:
    """Check a batch by the built-in plugins, and return its mistakes as lines."""
    definition, mistakes = inspect_definition(write(folder, tables, rows, kind=kind))
    assert (definition is not None, [*mistakes]) == (True, [])
    if definition is not None:
        check_recipients(definition, registry(environ), mistakes)
    return sorted(map(str, mistakes))


def test_addresses_that_the_channel_accepts(tmp_path: Path) -> None:
    assert checked(tmp_path, REQUEST) == []


@pytest.mark.parametrize(
    "cell", ["nobody", "a@example.com,b@example.com", "{email}", "a@b@example.com"]
)
def test_an_address_that_the_channel_refuses_is_told_with_its_row(
    tmp_path: Path, cell: str
) -> None:
    rows = f'name,email\nacme,ann@example.com\nbeta,"{cell}"\n'
    (line,) = checked(tmp_path, REQUEST, rows)
    assert line.startswith("rows.csv:3, email: send: ")


def test_an_unknown_channel_is_told_once(tmp_path: Path) -> None:
    (line,) = checked(tmp_path, REQUEST.replace("email:", "emial:"))
    assert line.startswith("batch.toml:7:9: send: ")
    assert "did you mean email?" in line


def test_every_row_that_is_wrong_is_told(tmp_path: Path) -> None:
    rows = "name,email\n" + "".join(f"row{n},wrong{n}\n" for n in range(30)) + "ok,a@example.com\n"
    assert len(checked(tmp_path, REQUEST, rows)) == 30


def test_two_recipients_that_are_the_same_are_told(tmp_path: Path) -> None:
    tables = REQUEST.replace('["email:{email}"]', '["email:{email}", "email:{copy}"]')
    (line,) = checked(
        tmp_path,
        tables,
        "name,email,copy\na,a@example.com,A@example.com\nb,b@example.com,c@example.com\n",
    )
    assert line.startswith("rows.csv:2: ")
    assert "twice" in line


def test_a_channel_with_a_path_takes_only_plain_cells(tmp_path: Path) -> None:
    tables = REQUEST.replace("email:{email}", f"file:{tmp_path}/{{name}}.txt")
    (line,) = checked(tmp_path, tables, "name\nacme\n../x\n")
    assert line.startswith("rows.csv:3, name: send: ")
    assert "is not one plain name" in line


def test_a_sink_refuses_its_target(tmp_path: Path) -> None:
    tables = (
        REQUEST
        + "[collect]\nto = ['github-secret:a/b/c/{name}/d/e#x=password', 'valut:x/{name}']\n"
    )
    found = checked(tmp_path, tables)
    assert any("did you mean vault" in line and line.startswith("batch.toml:") for line in found)


def test_bytes_for_a_sink_of_text_are_refused(tmp_path: Path) -> None:
    tables = REQUEST + "[collect]\nto = ['vault:x/{name}?decode=base64#x=password']\n"
    found = checked(tmp_path, tables)
    assert any("vault stores only text, and decode= gives bytes" in line for line in found)


def test_an_unknown_source_or_parameter_is_told_once(tmp_path: Path) -> None:
    tables = SHARE.replace(
        '"Password=env:PASSWORD"', '"a=evn:X", "b=env:X?versoin=1", "c=file:{name}"'
    )
    found = checked(tmp_path, tables, kind="share")
    assert [line.partition(": ")[0] for line in found] == ["batch.toml:6:11", "batch.toml:6:22"]


def test_link_and_passcode_do_not_go_to_one_recipient(tmp_path: Path) -> None:
    tables = SHARE + "passcode-generate = true\npasscode-to = ['email:{email}']\n"
    (line,) = checked(tmp_path, tables, kind="share")
    assert "link and passcode would go to the same recipient" in line


def test_the_team_of_a_notification_is_checked(tmp_path: Path) -> None:
    (line,) = checked(
        tmp_path, REQUEST + "[notify]\nsend = ['email:x@example.com', 'email:nobody']\n"
    )
    assert line.startswith("batch.toml:9:32: send: ")


def test_a_lacking_setting_is_told_once_beside_what_rows_lack(tmp_path: Path) -> None:
    tables = REQUEST + "[collect]\nto = ['github-secret:acme/web/{name}', 'valut:x/{name}']\n"
    found = checked(
        tmp_path, tables, "name,email\na,a@example.com\nb,nobody\nc,c@example.com\n", environ={}
    )
    places = [line.partition(": ")[0] for line in found]
    assert places.count("batch.toml:7:9") == 1
    assert len(places) == len(set(places))


def test_a_param_can_name_a_file_of_each_row(tmp_path: Path) -> None:
    tables = REQUEST.replace("{email}", "{who}") + f"param = ['who=file:{tmp_path}/{{name}}']\n"
    assert checked(tmp_path, tables) == []
    (line,) = checked(tmp_path, tables.replace("file:", "flie:"))
    assert line.startswith("batch.toml:8:10: param: ")
