"""Functions of PostgreSQL, each with a statement as its body: a connection plans it once, also
behind a pooler, where nothing can be prepared. Planning costs more than most of these do.

They are made with the tables. A name has a hash of the body, so that programs before and after an
upgrade find their own; who finds none runs the statement as it is.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy.dialects import postgresql

from .statements import Statement, make

PLANNED: Final = (
    *("now", "caller", "take", "replay", "add_share", "count_new", "record"),
    *("share", "share_at_link", "open_share", "count_view", "add_access"),
    *("request", "request_at_link", "receive", "stored", "add_submission", "submissions"),
)
"""The statements that calls are made of."""
DIALECT: Final = postgresql.dialect(paramstyle="pyformat")  # type: ignore[no-untyped-call]
_VALUE = re.compile(r"%\((\w+)\)s")


@dataclass(frozen=True)
class Function:
    """A function: its name, the statement that makes it, and the one that calls it."""

    name: str
    definition: str
    call: bytes


def make_function(name: str, statement: Statement) -> Function:
    """Return the function of a statement."""
    compiled = statement.core.compile(dialect=DIALECT, column_keys=statement.columns)
    text = " ".join(str(compiled).split())
    values = list(dict.fromkeys(_VALUE.findall(text)))
    types = [compiled.binds[each].type.compile(DIALECT) for each in values]
    body = _VALUE.sub(lambda match: f"${values.index(match[1]) + 1}", text).replace("%%", "%")
    columns = statement.core.exported_columns
    quote = DIALECT.identifier_preparer.quote
    returned = [f"{quote(each.name)} {each.type.compile(DIALECT)}" for each in columns]
    kind = f"TABLE ({', '.join(returned)})" if returned else "void"
    run = f"RETURN QUERY {body}" if returned else body
    rest = (
        f"({', '.join(types)}) RETURNS {kind} LANGUAGE plpgsql AS "
        f"$$\n#variable_conflict use_column\nBEGIN {run}; END $$"
    )
    full_name = f"sealpipe_{name}_{hashlib.sha256(rest.encode()).hexdigest()[:8]}"
    call = f"{full_name}({', '.join(f'%({each})s' for each in values)})"
    return Function(
        full_name,
        f"CREATE OR REPLACE FUNCTION {full_name}{rest}",
        f"SELECT {'* FROM ' if returned else ''}{call}".encode(),  # noqa: S608  # our own names
    )


def make_functions() -> Mapping[str, Function]:
    """Return all functions, by their statements' names."""
    statements = make(postgresql.insert)
    return {name: make_function(name, statements[name]) for name in PLANNED}


def find_calls(functions: Mapping[str, Function], known: Sequence[str]) -> Mapping[str, bytes]:
    """Return how the functions that a database has are called, by their statements' names."""
    return {name: each.call for name, each in functions.items() if each.name in known}
