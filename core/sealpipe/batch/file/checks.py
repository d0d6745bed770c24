"""Checks every row of a batch by the commands' options, and finds the cells that they refuse.

A row that its options accept is checked once as a whole. Only of another one each part is checked
alone, to tell all that is wrong with it. What is wrong with every row in the same way is a mistake
of the batch file, and told once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from sealpipe.batch.file.definition import BatchDefinition
from sealpipe.batch.file.mistakes import Mistake, MistakeCollector, Place
from sealpipe.batch.file.options import Option, Options, write_name
from sealpipe.batch.file.patterns import Values
from sealpipe.batch.file.render import (
    CHANNELS,
    RenderedRow,
    fill_options,
    list_channel_cells,
    make_arguments,
    render_row,
)
from sealpipe.batch.file.rows import Row
from sealpipe.batch.file.targets import PlaceRegister, TargetKeys, read_keys
from sealpipe.collect.options import plan_collect
from sealpipe.delivery.messages import parse_message_template
from sealpipe.errors import NotConfiguredError, PluginError, SettingError, UsageError
from sealpipe.prompts import Prompt
from sealpipe.request.options import parse_address, parse_domain, plan_request
from sealpipe.share.options import plan_share
from sealpipe.state.receipt import Receipt

PLANNERS: Final[Mapping[str, Any]] = {"request": plan_request, "share": plan_share}
"""What checks the options of the command, by the kind of batch."""

_DELIVERY: Final = (
    "send",
    "param",
    "passcode_to",
    "message_template",
    "passcode_from",
    "passcode_generate",
)
_EXPIRY: Final = ("expires_in", "expires_at", "no_expiry")
_GROUPS: Final = (("views", "send", "param"), _EXPIRY, _DELIVERY)
"""Options that are checked together, because they can contradict each other.

Any other is a group of its own.
"""
_SMALLEST: Final[Mapping[str, Mapping[str, Any]]] = {
    "request": {"prompts": (Prompt("x", "x"),)},
    "share": {"fields": ("text:x",), "views": None},
}
"""The least that the options accept, to check a group alone."""
_ONE_BY_ONE: Final[Mapping[str, Callable[[str], object]]] = {
    "restrict_domain": parse_domain,
    "restrict_address": parse_address,
}
_OPTION: Final = re.compile(r"--(?=[a-z])")


class Check(NamedTuple):
    """A place in the batch file, its columns, and a function of a row's cells that checks it.

    `prefix` names the option of a single value; it is empty for a group of options.
    """

    place: Place
    prefix: str
    columns: tuple[str, ...]
    run: Callable[[Values], object]


class Findings:
    """What is wrong with rows.

    The same problem of all rows, apart from their cells, is one of the batch file.
    """

    def __init__(self, rows: int, mistakes: MistakeCollector) -> None:
        self._rows = rows
        self._mistakes = mistakes
        self._found: dict[tuple[Place, str, str, str], list[Mistake]] = {}

    def run(self, checks: Iterable[Check], row: Row) -> bool:
        """Run checks for a row, and return whether all pass."""
        found: set[str] = set()
        passes = True
        for check in checks:
            try:
                check.run(row.values)
            except (UsageError, PluginError) as error:
                passes = False
                # Groups overlap, single values do not.
                if check.prefix or error.message not in found:
                    self._add(check, row, error)
                found.add(error.message)
        return passes

    def _add(self, check: Check, row: Row, error: UsageError | PluginError) -> None:
        # Lacking on this machine, whatever the row.
        if isinstance(error, SettingError | NotConfiguredError):
            self._mistakes.add(check.place, f"{check.prefix}{error.message}", error.remedy)
            return
        # Messages of the commands name options as on the command line.
        texts = [_OPTION.sub("", text) for text in (error.message, error.remedy)]
        mistake = Mistake(
            row.place._replace(name=", ".join(check.columns)), check.prefix + texts[0], texts[1]
        )
        for column in check.columns:
            if cell := row.values.get(column):
                texts = [text.replace(cell, f"{{{column}}}") for text in texts]
        self._found.setdefault((check.place, check.prefix, texts[0], texts[1]), []).append(mistake)

    def report(self) -> None:
        """Turn everything into mistakes."""
        for (place, prefix, problem, remedy), found in self._found.items():
            columns = found[0].place.name if prefix else ""
            if len(found) == self._rows and (self._rows > 1 or not columns):
                in_rows = (
                    f" in each row ({columns})"
                    if columns and problem.startswith("the cell")
                    else ""
                )
                self._mistakes.add(place, f"{prefix}{problem}{in_rows}", remedy)
                continue
            for mistake in found:
                if not self._mistakes.has(mistake.place):  # of a cell, the first mistake is enough
                    self._mistakes.add(*mistake)


def check_rows(definition: BatchDefinition, mistakes: MistakeCollector) -> None:
    """Check all rows, without plugins; without rows, what does not depend on one."""
    columns = set(definition.columns or ())
    # A column that does not exist has been told.
    parts, groups = (
        [check for check in checks if columns.issuperset(check.columns)]
        for checks in (_list_parts(definition), _list_groups(definition))
    )
    fixed = Findings(1, mistakes)
    fixed.run(
        [check for check in (*parts, *groups) if not check.columns],
        Row("", {}, Place(mistakes.file)),
    )
    fixed.report()
    findings, register = Findings(len(definition.rows), mistakes), PlaceRegister()
    is_broken = len(mistakes) > 0
    stages = [[each for each in parts if each.columns], [each for each in groups if each.columns]]
    for row in definition.rows:
        targets = None if is_broken else _make_row(definition, row)
        if targets is None:
            # Of single values, else of groups of options, else of everything together.
            whole = [] if is_broken else [_make_whole_check(definition, row)]
            all(findings.run(checks, row) for checks in (*stages, whole))
        elif first := register.claim(row, targets):
            mistakes.add(
                row.place._replace(name=", ".join(_list_target_columns(definition))),
                f"it would be stored in the same place as line {first.place.line}",
                "name a column that differs in the target, or let both add keys with ?mode=merge",
            )
    findings.report()


def _list_options(definition: BatchDefinition) -> Iterator[Option]:
    yield from definition.options.values()
    yield from (definition.collect or {}).values()


def _list_target_columns(definition: BatchDefinition) -> tuple[str, ...]:
    targets = {**_only(definition.collect or {}, "to"), **_only(definition.options, "also_to")}
    return _list_columns(targets)


def _make_row(definition: BatchDefinition, row: Row) -> list[TargetKeys] | None:
    """Return the targets of a row; None if something of it is refused."""
    try:
        for cell in list_channel_cells(definition.options, row.values).values():
            _check_address(cell)
        return make_all(definition, render_row(definition, row))
    except (UsageError, PluginError):
        return None


def make_all(definition: BatchDefinition, rendered: RenderedRow) -> list[TargetKeys]:
    """Make everything that the engine will make of a row, and return its targets.

    Raises UsageError.
    """
    if rendered.reminder is not None:
        parse_message_template(rendered.reminder)
    if definition.kind == "share":
        return [read_keys(target) for target in rendered.make_share().targets]
    prompts = rendered.make_request().prompts
    if rendered.collect is None:
        return []
    (job,) = rendered.make_collect(make_sample(prompts)).jobs
    return [TargetKeys(target, tuple(each.key for each in keys)) for target, keys in job.mappings]


def make_sample(prompts: Iterable[Prompt]) -> Receipt:
    """Return the receipt of a request that does not exist, to check how it would be collected."""
    return Receipt("sample", "", tuple(prompts))


def _make_whole_check(definition: BatchDefinition, row: Row) -> Check:
    place = definition.document.place(definition.kind)
    return Check(place, "", (), lambda _: make_all(definition, render_row(definition, row)))


def _list_parts(definition: BatchDefinition) -> Iterator[Check]:
    """Yield the check of each single value."""
    for option in _list_options(definition):
        name = option.setting.name
        if name in CHANNELS:
            columns = tuple(
                list_channel_cells({name: option, **_only(definition.options, "param")}, {})
            )
            yield from (
                Check(
                    option.places[0],
                    f"{write_name(name)}: ",
                    (column,),
                    partial(_check_cell, column),
                )
                for column in columns
            )
            continue
        for pattern, place in zip(option.patterns, option.places, strict=False):
            check = _ONE_BY_ONE.get(name, id)
            yield Check(
                place,
                f"{write_name(name)}: ",
                pattern.columns,
                partial(_fill_and_check, pattern.fill, check),
            )
    template = None if definition.remind is None else definition.remind.template
    if template is not None and not template.is_broken:
        fill = template.fill
        yield Check(
            template.places[0],
            "message-template: ",
            template.columns,
            partial(_fill_and_check, fill, parse_message_template),
        )


def _fill_and_check(
    fill: Callable[[Values], Any], check: Callable[[Any], object], cells: Values
) -> None:
    check(fill(cells))


def _check_cell(column: str, cells: Values) -> None:
    _check_address(cells.get(column, ""))


def _check_address(cell: str) -> None:
    if not cell:
        raise UsageError(
            "the cell is empty, so there is no recipient", remedy="fill it in, or remove the row"
        )
    if not cell.isprintable():
        raise UsageError(
            "the cell contains a line break or a control character",
            remedy="write the address as one line",
        )


def _only(options: Options, *names: str) -> dict[str, Option]:
    return {name: options[name] for name in names if name in options}


def _list_groups(definition: BatchDefinition) -> Iterator[Check]:
    """Yield the check of each group of options that is given and could be read."""
    place = definition.document.place
    single = definition.options.keys() - {name for names in _GROUPS for name in names}
    for names in (*((name,) for name in definition.options if name in single), *_GROUPS):
        options = _only(definition.options, *names)
        if options and not any(option.is_broken for option in options.values()):
            first = next(iter(options.values()))
            where = (
                first.places[0]
                if first.places
                else place(definition.kind, write_name(first.setting.name))
            )
            yield Check(
                where, "", _list_columns(options), partial(_make_group, definition.kind, options)
            )
    yield from _list_collect_groups(definition)


def _list_collect_groups(definition: BatchDefinition) -> Iterator[Check]:
    """Yield the checks of [collect].

    Of its targets one by one, of which submission to pick, and of all of it.
    """
    place, asked = definition.document.place, definition.options.get("ask")
    collect = {
        name: option for name, option in (definition.collect or {}).items() if not option.is_broken
    }
    if "pick" in collect:
        pick = collect["pick"]
        yield Check(pick.places[0], "pick: ", (), partial(_make_collect, {"pick": pick}, None))
    if asked is None or asked.is_broken or definition.collect is None:
        return
    targets = definition.collect.get("to")
    for number, pattern in enumerate(targets.patterns if targets else ()):
        assert targets is not None  # noqa: S101 - it has patterns
        one = targets._replace(patterns=(pattern,))
        run = partial(_make_collect, {**_only(collect, "mode"), "to": one}, asked)
        yield Check(targets.places[number], "to: ", _list_columns({"to": one, "ask": asked}), run)
    if len(collect) == len(definition.collect):
        run = partial(_make_collect, collect, asked)
        yield Check(place("collect"), "", _list_columns({**collect, "ask": asked}), run)


def _list_columns(options: Mapping[str, Option]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for option in options.values() for name in option.columns))


def _make_group(kind: str, options: Options, cells: Values) -> None:
    arguments = make_arguments(options, fill_options(options, cells), cells)
    PLANNERS[kind](**{**_SMALLEST[kind], **arguments})


def _make_collect(collect: Options, asked: Option | None, cells: Values) -> None:
    request = "sample" if asked is None else make_sample(asked.fill(cells))
    plan_collect([request], **fill_options(collect, cells))
