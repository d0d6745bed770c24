"""Functions of PostgreSQL, each with a statement as its body: a connection plans it once, also
behind a pooler, where nothing can be prepared. Planning costs more than most of these do.

They are made with the tables. A name has a hash of the body, so that programs before and after an
upgrade find their own; who finds none runs the statement as it is. Only those of the tables' owner
count, and a call says their schema and each type: what others make under a name is never meant.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
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
KNOWN: Final = (
    "SELECT proname, pronamespace::regnamespace::text AS schema FROM pg_proc "
    "JOIN pg_class ON pg_class.oid = to_regclass('shares') AND relnamespace = pronamespace "
    "WHERE proname ^@ 'sealpipe_' GROUP BY proname, pronamespace "
    "HAVING bool_and(proowner = relowner AND has_function_privilege(pg_proc.oid, 'EXECUTE'))"
)
"""Finds the functions that a database has, and their schema as a statement has it. A name that
somebody else has used too is left out: its calls could become ambiguous.
"""
_VALUE = re.compile(r"%\((\w+)\)s")


@dataclass(frozen=True)
class Function:
    """A function: its name, the statement that makes it, and the parts of one that calls it."""

    name: str
    definition: str
    begin: str
    values: str

    def call(self, schema: str) -> bytes:
        """Return the statement that calls it in a schema."""
        return f"{self.begin} {schema.replace('%', '%%')}.{self.name}({self.values})".encode()


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
    return Function(
        full_name,
        f"CREATE OR REPLACE FUNCTION {full_name}{rest}",
        "SELECT * FROM" if returned else "SELECT",
        ", ".join(f"%({each})s::{type_}" for each, type_ in zip(values, types, strict=True)),
    )


def make_functions() -> Mapping[str, Function]:
    """Return all functions, by their statements' names."""
    statements = make(postgresql.insert)
    return {name: make_function(name, statements[name]) for name in PLANNED}


def find_calls(functions: Mapping[str, Function], known: Mapping[str, str]) -> Mapping[str, bytes]:
    """Return how the functions that a database has are called, by their statements' names.

    `known` has the schema of each, by its own name.
    """
    return {
        name: each.call(known[each.name]) for name, each in functions.items() if each.name in known
    }
