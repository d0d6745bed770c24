"""Batch files of a test: written into its folder, read, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from sealpipe.batch.file.definition import BatchDefinition
from sealpipe.batch.file.mistakes import BatchFileError, Mistake
from sealpipe.batch.file.reading import read_definition
from sealpipe.batch.file.render import RenderedRow, render_row

HEAD = 'name = "vendors"\nkind = "{kind}"\nrows = "rows.csv"\nkey = "name"\n'
ROWS = "name,email\nacme,ann@example.com\nbeta,bob@example.com\n"
REQUEST = '[request]\nask = ["Password"]\nsend = ["email:{email}"]\n'
SHARE = '[share]\nfields = ["Password=env:PASSWORD"]\nsend = ["email:{email}"]\n'


def write(folder: Path, tables: str, rows: str | bytes = ROWS, *, kind: str = "request") -> Path:
    """Write a batch file with these tables, and its rows."""
    (folder / "rows.csv").write_bytes(rows if isinstance(rows, bytes) else rows.encode())
    file = folder / "batch.toml"
    file.write_text(HEAD.replace("{kind}", kind) + tables, encoding="utf-8")
    return file


def read(
    folder: Path, tables: str, rows: str | bytes = ROWS, *, kind: str = "request"
) -> BatchDefinition:
    """Read a batch that is right."""
    return read_definition(write(folder, tables, rows, kind=kind))


def rendered(
    folder: Path, tables: str, rows: str | bytes = ROWS, *, kind: str = "request"
) -> RenderedRow:
    """Render the first row of a batch that is right."""
    definition = read(folder, tables, rows, kind=kind)
    return render_row(definition, definition.rows[0])


def mistakes_of(file: Path) -> list[Mistake]:
    """Return the mistakes of a batch file that has some."""
    with pytest.raises(BatchFileError) as caught:
        read_definition(file)
    assert caught.value.exit_code == 2
    return list(caught.value.mistakes)


def lines(
    folder: Path, tables: str, rows: str | bytes = ROWS, *, kind: str = "request"
) -> list[str]:
    """Return the mistakes of a batch as lines."""
    return [str(each) for each in mistakes_of(write(folder, tables, rows, kind=kind))]
