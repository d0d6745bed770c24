"""Checks a batch against the installed plugins.

Recipients by their channels, references by their sources and sinks.

Nothing is sent, read or written, and no backend is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from sealpipe.batch.file.checks import Check, Findings
from sealpipe.batch.file.definition import BatchDefinition
from sealpipe.batch.file.mistakes import MistakeCollector
from sealpipe.batch.file.options import Options, write_name
from sealpipe.batch.file.patterns import Values
from sealpipe.batch.file.render import list_channel_cells
from sealpipe.batch.file.rows import Row
from sealpipe.collect.options import PLACEHOLDERS
from sealpipe.delivery.recipients import ChannelTarget, Content, check_targets, parse_channel
from sealpipe.errors import PluginError, UsageError
from sealpipe.plugin import Mode
from sealpipe.reference import FieldSpec, Reference
from sealpipe.registry import Registry
from sealpipe.registry.sinks import describe_write
from sealpipe.sinks.targets import check_decode, parse_targets

_CONTENTS: Final[Mapping[str, Content]] = {"send": "link", "passcode_to": "passcode"}
"""What each option of channels delivers."""


def check_recipients(
    definition: BatchDefinition, registry: Registry, mistakes: MistakeCollector
) -> None:
    """Check the channels, sources and sinks of a batch, for each row, and add their mistakes.

    A value or a cell that has a mistake already is left out.
    """
    if definition.notify is not None:
        for number, target in enumerate(definition.notify.delivery.targets):
            with mistakes.catch(definition.document.place("notify", "send", number), "send: "):
                check_targets([target], {}, lambda: registry)
    columns = set(definition.columns or ())

    def can_run(check: Check) -> bool:
        return columns.issuperset(check.columns) and not mistakes.has(check.place)

    channels = {
        target: check for target, check in _list_channels(definition, registry) if can_run(check)
    }
    locations = [check for check in _list_locations(definition, registry) if can_run(check)]
    fixed = Findings(1, mistakes)
    fixed.run(
        [check for check in locations if not check.columns],
        Row("", {}, definition.document.place()),
    )
    fixed.report()
    alone = [*channels.values(), *(check for check in locations if check.columns)]
    # All channels of a row together, because no two recipients may be the same. Only if that fails,
    # each alone.
    run = partial(_check_channels, definition.options, registry, [*channels])
    together = Check(definition.document.place(definition.kind), "", (), run)
    findings = Findings(len(definition.rows), mistakes)
    for row in definition.rows:
        if not _passes([together, *alone[len(channels) :]], row) and findings.run(alone, row):
            findings.run([together], row)
    findings.report()


def _passes(checks: Sequence[Check], row: Row) -> bool:
    try:
        for check in checks:
            check.run(row.values)
    except (UsageError, PluginError):
        return False
    return True


def _list_channels(
    definition: BatchDefinition, registry: Registry
) -> Iterator[tuple[ChannelTarget, Check]]:
    """Yield each channel with its check.

    Not one that names a --param, whose value is not known yet.
    """
    options = definition.options
    params = (
        {pattern.name for pattern in options["param"].patterns} if "param" in options else set()
    )
    for name, content in _CONTENTS.items():
        for fill, check in _list_values(options, name):
            if params.isdisjoint(check.columns):
                target = parse_channel(content, fill({}))
                yield (
                    target,
                    check._replace(run=partial(_check_channels, options, registry, [target])),
                )


def _list_locations(definition: BatchDefinition, registry: Registry) -> Iterator[Check]:
    """Yield the check of each source and each sink."""
    for fill, check in _list_values(definition.options, "field", "passcode_from", "param"):
        yield check._replace(run=partial(_check_source, fill, registry))
    collect = definition.collect or {}
    mode: Mode = (collect["mode"].fill({}) if "mode" in collect else None) or "create"
    for fill, check in (*_list_values(collect, "to"), *_list_values(definition.options, "also_to")):
        yield check._replace(run=partial(_check_sink, fill, mode, registry))


def _list_values(options: Options, *names: str) -> Iterator[tuple[Callable[[Values], Any], Check]]:
    """Yield each value of some options: how it is filled in, and a check that has its place."""
    for name in names:
        option = options.get(name)
        for pattern, place in zip(option.patterns, option.places, strict=True) if option else ():
            yield pattern.fill, Check(place, f"{write_name(name)}: ", pattern.columns, pattern.fill)


def _check_channels(
    options: Options, registry: Registry, targets: Sequence[ChannelTarget], cells: Values
) -> None:
    check_targets(targets, list_channel_cells(options, cells), lambda: registry)


def _check_source(fill: Callable[[Values], Any], registry: Registry, cells: Values) -> None:
    match fill(cells):
        case FieldSpec(ref=ref) | (str(), Reference() as ref) | (Reference() as ref):
            registry.locate(ref)


def _check_sink(
    fill: Callable[[Values], Any], mode: Mode, registry: Registry, cells: Values
) -> None:
    (target,) = parse_targets([fill(cells)], mode, PLACEHOLDERS)
    check_decode(target, registry.sink_info(target.ref.name).capabilities)
    ref = target.fill(dict.fromkeys(PLACEHOLDERS, "sample"))
    describe_write(registry, ref.name, registry.locate(ref, "sink"), target.mode)
