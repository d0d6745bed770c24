"""Writes `sqlite_text.py`: the statements and tables as text for sqlite3.

python -m sealpipe_service.database.compiling
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path

from sqlalchemy import Dialect
from sqlalchemy.dialects import sqlite
from sqlalchemy.schema import CreateIndex, CreateTable, DDLElement

from .statements import Statement, make
from .tables import METADATA

FILE = Path(__file__).with_name("sqlite_text.py")
_HEAD = '''"""Tables and statements for sqlite3: generated, see `compiling`."""

from __future__ import annotations

from collections.abc import Mapping
'''


def compile_schema(dialect: Dialect) -> list[str]:
    """Return the statements that create all tables and indexes."""
    tables = METADATA.sorted_tables
    indexes = sorted(
        (index for table in tables for index in table.indexes), key=lambda each: str(each.name)
    )
    made: list[DDLElement] = [*map(CreateTable, tables), *map(CreateIndex, indexes)]
    return [_tidy(str(each.compile(dialect=dialect))) for each in made]


def compile_statements(statements: Mapping[str, Statement], dialect: Dialect) -> dict[str, str]:
    """Return the text of each statement, with its values by name."""
    return {
        name: _tidy(str(each.core.compile(dialect=dialect, column_keys=each.columns)))
        for name, each in statements.items()
    }


def make_module() -> str:
    """Return the text of `sqlite_text.py`."""
    dialect = sqlite.dialect(paramstyle="named")
    schema = "\n".join(f"    {_literal(each)}," for each in compile_schema(dialect))
    statements = "\n".join(
        f'    "{name}": {_literal(each)},'
        for name, each in compile_statements(make(sqlite.insert), dialect).items()
    )
    return (
        f"{_HEAD}\nSCHEMA: tuple[str, ...] = (\n{schema}\n)\n\n"
        f"STATEMENTS: Mapping[str, str] = {{\n{statements}\n}}\n"
    )


def _tidy(text: str) -> str:
    return " ".join(text.split())


def _literal(text: str) -> str:
    """Return text as a literal of lines that fit."""
    lines = textwrap.wrap(text, 72, break_long_words=False, break_on_hyphens=False)
    parts = [*(f"{line} " for line in lines[:-1]), lines[-1]]
    if len(parts) == 1:
        return _quoted(text)
    return "(\n" + "\n".join(f"        {_quoted(part)}" for part in parts) + "\n    )"


def _quoted(part: str) -> str:
    return f"'{part}'" if '"' in part and "'" not in part else f'"{part}"'


if __name__ == "__main__":
    FILE.write_text(make_module(), encoding="utf-8")
