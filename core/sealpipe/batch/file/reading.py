"""Reads the definition of a batch from its file and its rows, and checks all of it.

Nothing is sent before the whole file is right, so all mistakes are told at once. What only an
installed plugin knows, such as whether a channel accepts an address, is a step of its own with the
same collector: `check_recipients`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, cast

from sealpipe.batch.file.checks import PLANNERS, check_rows
from sealpipe.batch.file.definition import BatchDefinition, Kind, Notification, Reissue, Reminders
from sealpipe.batch.file.document import Document, read_document
from sealpipe.batch.file.mistakes import MistakeCollector, Place, name_text, suggest_name
from sealpipe.batch.file.options import (
    KINDS,
    TABLES,
    TOP,
    Options,
    list_names,
    read_table,
    write_name,
)
from sealpipe.batch.file.patterns import Pattern
from sealpipe.batch.file.render import CHANNELS
from sealpipe.batch.file.rows import read_rows
from sealpipe.delivery.recipients import DeliveryPlan, plan_delivery
from sealpipe.parsing import as_duration

_NAME: Final = re.compile(r"[a-z0-9-]{1,64}")
REQUIRED: Final[Mapping[str, Mapping[str, str]]] = {
    "request": {"ask": '"Staging password"'},
    "share": {"field": '"Password=vault:secret/{name}#password"', "send": '"email:{email}"'},
}
"""Options without which nothing can be done, with an example.

The link of a request can also be printed.
"""


def load_definition(dumped: Mapping[str, Any]) -> BatchDefinition:
    """Make a definition from what `dump` returned, with no rows.

    BatchFileError if this version refuses it.
    """
    document = Document(
        dumped["file"], Path(), dumped["members"], lambda _: (0, 0), dict(dumped["texts"])
    )
    mistakes = MistakeCollector(document.file)
    definition = _read(document, mistakes, with_rows=False)
    mistakes.raise_all()
    assert definition is not None  # noqa: S101 - without one there is a mistake
    return definition


def load_options(dumped: Mapping[str, Any], definition: BatchDefinition) -> BatchDefinition:
    """Return a definition with the options that `dump_options` returned.

    BatchFileError if they are refused now.
    """
    if dumped == definition.dump_options():
        return definition
    file, kind = definition.document.file, definition.kind
    document = Document(
        file, Path(), {kind: dumped["members"]}, lambda _: (0, 0), dict(dumped["texts"])
    )
    mistakes = MistakeCollector(file)
    options = read_table(document, kind, kind, mistakes)
    mistakes.raise_all()
    return replace(definition, options=options or {})


def read_definition(path: str | Path) -> BatchDefinition:
    """Read and check a batch file and its rows, without plugins.

    BatchFileError tells all mistakes.
    """
    definition, mistakes = inspect_definition(path)
    mistakes.raise_all()
    assert definition is not None  # noqa: S101 - without one there is a mistake
    return definition


def inspect_definition(path: str | Path) -> tuple[BatchDefinition | None, MistakeCollector]:
    """Return what could be read of a batch file and its rows, and the mistakes.

    None if its kind is not known.

    With mistakes, the definition is only good for finding more of them. BatchFileError if nothing
    can be read.
    """
    document = read_document(Path(path))
    mistakes = MistakeCollector(document.file)
    definition = _read(document, mistakes, with_rows=True)
    if definition is not None:
        check_rows(definition, mistakes)
    return definition, mistakes


def _read(
    document: Document, mistakes: MistakeCollector, *, with_rows: bool
) -> BatchDefinition | None:
    """Return the definition with as much as could be read; None if not even its kind is known."""
    members = document.members
    for name in members:
        if name not in TOP and name not in TABLES:
            _add_unknown(document, name, mistakes)
    title = _read_text(document, "name", mistakes)
    if title is not None and not _NAME.fullmatch(title):
        problem = f"name: {name_text(title)} is not a name of a batch"
        mistakes.add(document.place("name"), problem, "use 1 to 64 of a-z, 0-9 and -")
    kind = _read_text(document, "kind", mistakes)
    if kind is not None and kind not in KINDS:
        mistakes.add(
            document.place("kind"),
            f"kind: {name_text(kind)} is not a kind of batch",
            suggest_name(kind, KINDS, "choose from"),
        )
        kind = None
    key = _read_text(document, "key", mistakes)
    table = read_rows(document, key, mistakes) if with_rows else None
    if kind is None:
        return None
    tables = {
        name: read_table(document, name, kind, mistakes)
        for name in TABLES
        if name not in KINDS or name == kind
    }
    for other in KINDS:
        if other != kind and other in members:
            mistakes.add(
                document.place(other),
                f"a {kind} has no [{other}]",
                f'remove it, or write kind = "{other}"',
            )
    if kind not in members:
        mistakes.add(
            document.place(), f"there is no [{kind}]", f"write [{kind}], followed by its options"
        )
    places = {name: document.place(name) for name in TABLES}
    options = tables[kind] or {}
    if table is not None:
        _check_columns(tables, table.columns, mistakes)
    _check_expiry(options, places[kind], mistakes)
    for name, example in REQUIRED[kind].items() if tables[kind] is not None else ():
        if name not in options:
            mistakes.add(
                places[kind],
                f"[{kind}] has no {write_name(name)}",
                f"add {write_name(name)} = [{example}]",
            )
    return BatchDefinition(
        title or "",
        cast("Kind", kind),
        key or "",
        None if table is None else table.columns,
        options,
        tables["collect"],
        _read_reminders(document, tables["remind"], options, kind, mistakes),
        _read_reissue(tables["reissue"]),
        _read_notification(tables["notify"], places["notify"], mistakes),
        table.rows if table is not None else (),
        document,
    )


def _add_unknown(document: Document, name: str, mistakes: MistakeCollector) -> None:
    known = [*TOP, *TABLES]
    problem = f"{name_text(name)} is not an option or a table of a batch file"
    kind = document.members.get("kind")
    if isinstance(kind, str) and name in list_names(kind, kind):
        mistakes.add(document.place(name), problem, f"move it below [{kind}]")
    else:
        mistakes.add(document.place(name), problem, suggest_name(name, known, "a batch file has"))


def _read_text(document: Document, name: str, mistakes: MistakeCollector) -> str | None:
    value = document.members.get(name)
    if isinstance(value, str) and value:
        return value
    examples = {"name": "vendors-2026-q4", "kind": "request", "key": "name"}
    problem = f"there is no {name}" if value is None else f"{name} is not a text"
    mistakes.add(document.place(name), problem, f'write {name} = "{examples[name]}"')
    return None


def _check_columns(
    tables: Mapping[str, Options | None], columns: Sequence[str], mistakes: MistakeCollector
) -> None:
    """Check that each `{column}` exists, and that none has two meanings."""
    for table, options in tables.items():
        params = _list_params(options or {})
        for option in (options or {}).values():
            is_channel = option.setting.name in CHANNELS
            for pattern, place in zip(option.patterns, option.places, strict=True):
                own = params if is_channel else ()
                for problem, remedy in _check_pattern(
                    pattern, columns, own, has_rows=table != "notify"
                ):
                    mistakes.add(place, f"{write_name(option.setting.name)}: {problem}", remedy)


def _list_params(options: Options) -> tuple[str, ...]:
    option = options.get("param")
    return () if option is None else tuple(pattern.name for pattern in option.patterns)


def _check_pattern(
    pattern: Pattern, columns: Sequence[str], params: Sequence[str], *, has_rows: bool
) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the placeholders of a value, and what to do."""
    for name in pattern.columns:
        if not has_rows:
            yield f"{{{name}}} has no value here: a notification is about all rows", "remove it"
        elif name in params and name in columns:
            yield f"{{{name}}} is both a column and a param", "rename one of them"
        elif name not in columns and name not in params:
            yield (
                f"{{{name}}} is not a column",
                f"{suggest_name(name, columns, 'the columns are')}; write a brace as {{{{",
            )
    for name in pattern.kept:
        if name in columns:
            yield (
                f"{{{name}}} is both a column and a placeholder that sealpipe fills in",
                "rename the column",
            )


def _check_expiry(options: Options, place: Place, mistakes: MistakeCollector) -> None:
    given = [
        write_name(name) for name in ("expires_in", "expires_at", "no_expiry") if name in options
    ]
    if len(given) > 1:
        mistakes.add(place, f"{' and '.join(given)} exclude each other", "use only one of them")


def get_lifetime(options: Options, kind: str) -> timedelta | None:
    """Return how long a link works from its creation; None if it has no such limit."""
    if "expires_at" in options or "no_expiry" in options:
        return None
    option = options.get("expires_in")
    default: Any = PLANNERS[kind].__kwdefaults__["expires_in"]
    return as_duration(default) if option is None else option.fill({})


def _read_reminders(
    document: Document,
    table: Options | None,
    options: Options,
    kind: str,
    mistakes: MistakeCollector,
) -> Reminders | None:
    if table is None:
        return None
    place = document.place("remind")
    after = table.get("after") or table.get("unopened_after")
    times: tuple[timedelta, ...] = () if after is None else after.fill({})
    before = table["before_expiry"].fill({}) if "before_expiry" in table else None
    lifetime = get_lifetime(options, kind)
    if set(document.members["remind"]) <= {"message-template"}:
        name = "after" if kind == "request" else "unopened-after"
        mistakes.add(
            place, "[remind] never reminds", f'write {name} = ["3d"] or before-expiry = "1d"'
        )
    for number, time in enumerate(times):
        assert after is not None  # noqa: S101 - it has the times
        if lifetime is not None and time >= lifetime:
            mistakes.add(
                after.places[number],
                "the reminder would come after the link has expired",
                "give a shorter time",
            )
        if number and time <= times[number - 1]:
            mistakes.add(
                after.places[number],
                "the reminders are not in order",
                "give each a longer time than the last",
            )
    if before is not None:
        here = table["before_expiry"].places[0]
        if "no_expiry" in options:
            mistakes.add(
                here, "before-expiry and no-expiry exclude each other", "use only one of them"
            )
        elif lifetime is not None and before >= lifetime:
            mistakes.add(
                here, "the reminder would come before the link is created", "give a shorter time"
            )
    if "send" not in options:
        mistakes.add(
            place,
            f"[remind] has no recipient: [{kind}] has no send",
            'add send = ["email:{email}"] there',
        )
    return Reminders(times, before, table.get("message_template"))


def _read_reissue(table: Options | None) -> Reissue | None:
    if table is None:
        return None
    when, times = (table[name].fill({}) if name in table else None for name in ("when", "times"))
    return Reissue(when or "expired-unopened", times or 1)


def _read_notification(
    table: Options | None, place: Place, mistakes: MistakeCollector
) -> Notification | None:
    if table is None:
        return None
    send = table.get("send")
    if send is None or not (send.patterns or send.is_broken):
        mistakes.add(place, "[notify] has no recipient", 'add send = ["slack:#platform"]')
    if send is None or not send.patterns or send.columns:
        return None  # a mistake, which has been told
    delivery: DeliveryPlan | None = None
    with mistakes.catch(send.places[0], "send: "):
        delivery = plan_delivery(send.fill({}), (), (), None, with_passcode=False)
    rows = "rows" in table and table["rows"].fill({}) is True
    return None if delivery is None else Notification(delivery, rows)
