"""`sealpipe run` and `sealpipe read`: secrets for a command on this machine.

The service is not called.

`variables` says which names a secret may have; `child` and `terminal` run the command, `capture`
runs one for a program; `redaction` searches its output. This module resolves references under the
policies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from sealpipe.errors import Note, PluginError, SealpipeError, UsageError
from sealpipe.plugin import OutgoingAction
from sealpipe.policy import PolicyContext, check_policies, run_under_policy
from sealpipe.reference import Reference
from sealpipe.run.variables import Variable
from sealpipe.sources.resolve import Value, resolve_bytes

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
    results = resolve_bytes(refs, context.registry)
    values = _collect(variables, results)
    _refuse_credential(context, values)
    labels = tuple((name, value.type) for name, value in values.items()) if kind == "run" else ()
    return run_under_policy(context, plan._replace(labels=labels), lambda _: use(values), describe)


def _describe(
    context: PolicyContext, kind: str, sink: str, refs: Sequence[Reference]
) -> OutgoingAction:
    registry = context.registry()
    sources = dict.fromkeys(registry.identify("source", ref.name) for ref in refs)
    return OutgoingAction(kind, sources=tuple(sources), sinks=(sink,))


def _check_each(variables: Sequence[Variable], check: Callable[[Reference], object]) -> None:
    """Check every reference, and raise what is wrong with all of them."""
    errors: list[tuple[str, SealpipeError]] = []
    for each in variables:
        try:
            check(each.ref)
        except SealpipeError as error:
            errors.append((each.name, error))
    _raise_together(errors, len(variables))


def _collect(
    variables: Sequence[Variable], results: Sequence[Value | PluginError | None]
) -> dict[str, Value]:
    """Return the values by name. Raises what is wrong with all of them."""
    pairs = list(zip([each.name for each in variables], results, strict=True))
    _raise_together(
        [(name, each) for name, each in pairs if isinstance(each, PluginError)], len(variables)
    )
    return {name: value for name, value in pairs if isinstance(value, Value)}


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


def _refuse_credential(context: PolicyContext, values: Mapping[str, Value]) -> None:
    for value in values.values():
        if context.gate.owns(value.data):
            raise UsageError(
                "a value holds sealpipe's own credential, which is never handed on",
                remedy="check its reference; to hand over a key, create a separate one",
            )
