"""`sealpipe run` and `sealpipe read`: secrets for a command on this machine. The service is not called.

`variables` says which names a secret may have, `child` and `terminal` run the command, `redaction` searches its output.
This module resolves references under the policies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from sealpipe.errors import Note, PluginError, ReferenceValueError, UsageError
from sealpipe.flows import Do, Flow
from sealpipe.flows.policy import LocalContext, check_policies, run_under_policy
from sealpipe.flows.resolve import Value, resolve_bytes
from sealpipe.plugin import OutgoingAction
from sealpipe.reference import Reference
from sealpipe.run.variables import Variable

T = TypeVar("T")


def use_values(
    context: LocalContext,
    kind: str,
    sink: str,
    variables: Sequence[Variable],
    use: Callable[[Mapping[str, Value]], T],
    describe: Callable[[T], Mapping[str, object]],
) -> Flow[T]:
    """Resolve all variables, then `use` their values; an optional one that is missing is left out.

    Policies are asked before anything is read, and again, with names and types, before the values are used; `describe`
    gives the outcome that observers are told. Raises PolicyError, PluginError for everything that cannot be read, and
    UsageError for a value that is the credential.
    """
    refs = [each.ref for each in variables]
    plan = yield Do(partial(_describe, context, kind, sink, refs))
    yield from check_policies(context, plan._replace(complete=False))
    results = yield from resolve_bytes(refs, context.registry)
    values = _collect(variables, results)
    _refuse_credential(context, values)
    labels = tuple((name, value.type) for name, value in values.items()) if kind == "run" else ()
    return (yield from run_under_policy(context, plan._replace(labels=labels), _do(partial(use, values)), describe))


def _do(work: Callable[[], T]) -> Flow[T]:
    result: T = yield Do(work)
    return result


def _describe(context: LocalContext, kind: str, sink: str, refs: Sequence[Reference]) -> OutgoingAction:
    registry = context.registry()
    sources = dict.fromkeys(registry.identify("source", ref.name) for ref in refs)
    return OutgoingAction(kind, sources=tuple(sources), sinks=(sink,))


def _collect(variables: Sequence[Variable], results: Sequence[Value | PluginError | None]) -> dict[str, Value]:
    """Return the values by name. Raises what was wrong: alone as it is, several in one error."""
    pairs = list(zip([each.name for each in variables], results, strict=True))
    errors = [(name, each) for name, each in pairs if isinstance(each, PluginError)]
    if len(errors) == 1:
        raise errors[0][1]
    if errors:
        is_usage = all(isinstance(error, ReferenceValueError) for _, error in errors)
        message = f"{len(errors)} of {len(variables)} values cannot be read"
        failure = (ReferenceValueError if is_usage else PluginError)(message)
        for name, error in errors:
            failure.add_note(Note(f"{name}: {error.message}" + (f"; {error.remedy}" if error.remedy else "")))
        raise failure
    return {name: value for name, value in pairs if isinstance(value, Value)}


def _refuse_credential(context: LocalContext, values: Mapping[str, Value]) -> None:
    for value in values.values():
        if context.gate.holds(value.data.reveal_bytes()):
            raise UsageError(
                "a value holds sealpipe's own credential, which is never handed on",
                remedy="check its reference; to hand over a key, create a separate one",
            )
