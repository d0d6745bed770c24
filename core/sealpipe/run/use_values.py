"""`sealpipe run` and `sealpipe read`: secrets for a command on this machine.

The service is not called.

`variables` says which names a secret may have; `child` and `terminal` run the command, `capture`
runs one for a program; `redaction` searches its output. This module resolves references under the
policies.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import NamedTuple, TypeVar

from sealpipe.errors import Note, PluginError, SealpipeError, UsageError
from sealpipe.plugin import OutgoingAction
from sealpipe.policy import PolicyContext, check_policies, run_under_policy
from sealpipe.reference import Reference
from sealpipe.run.variables import (
    Variable,
    check_holdable,
    check_key_name,
    check_name,
    check_once,
)
from sealpipe.sources.resolve import Value, check_number, resolve_bytes

T = TypeVar("T")


def use_values(
    context: PolicyContext,
    kind: str,
    sink: str,
    variables: Sequence[Variable],
    use: Callable[[Mapping[str, Value]], T],
    describe: Callable[[T], Mapping[str, object]],
) -> T:
    """Resolve all variables, then call `use` with their values, which may block.

    An optional one that is missing is left out. Policies are asked before anything is read, and
    again, with names and types, before the values are used; `describe` gives the outcome that
    observers are told. Tells everything at once:
    references that are wrong, stores that are not set up, then values that cannot be read. Raises
    PolicyError, PluginError and UsageError.
    """
    refs = [each.ref for each in variables]
    _check_each(variables, lambda ref: context.registry().locate(ref))
    plan = _describe(context, kind, sink, refs)
    check_policies(context, lambda: plan._replace(complete=False))
    _check_each(variables, lambda ref: context.registry().source(ref.name))
    found = _read(context, variables, {})
    errors = [(each.name, error) for each, error in found if isinstance(error, SealpipeError)]
    _raise_together(errors, len(found))
    values = {each.name: value for each, value in found if isinstance(value, Value)}
    labels = tuple((name, value.type) for name, value in values.items()) if kind == "run" else ()
    return run_under_policy(context, plan._replace(labels=labels), lambda _: use(values), describe)


class Checked(NamedTuple):
    """A variable, and why its value cannot be read; without an error, whether it has one."""

    variable: Variable
    error: SealpipeError | None
    has_value: bool


def check_values(context: PolicyContext, sink: str, variables: Sequence[Variable]) -> list[Checked]:
    """Read all variables for nobody, and tell what became of each.

    Policies are asked, and observers told, as if a command got them. Raises PolicyError.
    """
    errors = _find_errors(variables, lambda ref: context.registry().locate(ref))
    sound = [each for each in variables if each not in errors]
    plan = _describe(context, "run", sink, [each.ref for each in sound])
    check_policies(context, lambda: plan._replace(complete=False))
    errors |= _find_errors(sound, lambda ref: context.registry().source(ref.name))
    found = [_check_holdable(each, result) for each, result in _read(context, variables, errors)]
    labels = tuple((each.name, value.type) for each, value in found if isinstance(value, Value))
    run_under_policy(
        context,
        plan._replace(labels=labels),
        lambda _: None,
        lambda _: {"outcome": "checked"},
    )
    return [
        Checked(
            each, result if isinstance(result, SealpipeError) else None, isinstance(result, Value)
        )
        for each, result in found
    ]


_Result = Value | SealpipeError | None
"""A value, why it cannot be had, or None if it is optional and missing."""


def _read(
    context: PolicyContext,
    variables: Sequence[Variable],
    errors: Mapping[Variable, SealpipeError],
) -> list[tuple[Variable, _Result]]:
    """Read all variables but those with an error, the values of a pattern one by one."""
    sound = [each for each in variables if each not in errors]
    values = resolve_bytes([each.ref for each in sound], context.registry)
    results = dict(zip(sound, values, strict=True))
    found: list[tuple[Variable, _Result]] = []
    names: set[str] = set()
    for variable in variables:
        check = check_key_name if variable.is_pattern else check_name
        for each, result in _name_values(variable, errors.get(variable) or results[variable]):
            found.append((each, _find_misuse(context, each, result, check, names) or result))
            names.add(each.name)
    return found


def _name_values(
    variable: Variable, result: Sequence[Value] | SealpipeError
) -> list[tuple[Variable, _Result]]:
    if isinstance(result, SealpipeError):
        return [(variable, result)]
    if variable.is_pattern and result:
        return [(variable.name_value(value.label), value) for value in result]
    try:
        check_number(variable.ref, len(result))
    except PluginError as error:
        return [(variable, error)]
    return [(variable, result[0] if result else None)]


def _find_misuse(
    context: PolicyContext,
    variable: Variable,
    result: _Result,
    check: Callable[[str], None],
    others: Container[str],
) -> UsageError | None:
    """Return why a value that was read may not be used under this name."""
    if isinstance(result, Value):
        try:
            check_once(variable.name, others)
            check(variable.name)
            _refuse_credential(context, result)
        except UsageError as error:
            return error
    return None


def _check_holdable(variable: Variable, result: _Result) -> tuple[Variable, _Result]:
    """Return an error in place of a value that no variable can hold."""
    if isinstance(result, Value) and not variable.is_file:
        try:
            check_holdable(variable.name, result.data.reveal_bytes())
        except UsageError as error:
            return variable, error
    return variable, result


def raise_unreadable(checked: Sequence[Checked]) -> None:
    """Raise what is wrong with all of them, if anything is."""
    errors = [(each.variable.name, each.error) for each in checked if each.error is not None]
    _raise_together(errors, len(checked))


def _describe(
    context: PolicyContext, kind: str, sink: str, refs: Sequence[Reference]
) -> OutgoingAction:
    registry = context.registry()
    sources = dict.fromkeys(registry.identify("source", ref.name) for ref in refs)
    return OutgoingAction(kind, sources=tuple(sources), sinks=(sink,))


def _check_each(variables: Sequence[Variable], check: Callable[[Reference], object]) -> None:
    """Check every reference, and raise what is wrong with all of them."""
    errors = _find_errors(variables, check)
    _raise_together([(each.name, error) for each, error in errors.items()], len(variables))


def _find_errors(
    variables: Sequence[Variable], check: Callable[[Reference], object]
) -> dict[Variable, SealpipeError]:
    errors: dict[Variable, SealpipeError] = {}
    for each in variables:
        try:
            check(each.ref)
        except SealpipeError as error:
            errors[each] = error
    return errors


def _raise_together(errors: Sequence[tuple[str, SealpipeError]], total: int) -> None:
    """Raise an error alone as it is; several as one that names all of them."""
    names_by_text: dict[str, list[str]] = {}
    for name, error in errors:
        text = error.message + (f"; {error.remedy}" if error.remedy else "")
        names_by_text.setdefault(text, []).append(name)
    if len(names_by_text) == 1:
        raise errors[0][1]
    if errors:
        is_usage = all(error.exit_code == UsageError.exit_code for _, error in errors)
        failure = (UsageError if is_usage else PluginError)(
            f"{len(errors)} of {total} values cannot be read"
        )
        for text, names in names_by_text.items():
            failure.add_note(Note(f"{', '.join(names)}: {text}"))
        raise failure


def _refuse_credential(context: PolicyContext, value: Value) -> None:
    if context.gate.owns(value.data):
        raise UsageError(
            "a value holds sealpipe's own credential, which is never handed on",
            remedy="check its reference; to hand over a key, create a separate one",
        )
