"""Everything that a command lacks is reported at once.

Settings, the credential, and packages of its stores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from sealpipe.errors import NotConfiguredError, Note, SealpipeError, SettingError
from sealpipe.registry import Registry

Need = tuple[str, str]
"""The kind and the name of a store: `source`, `sink` or `channel`."""


def check_needs(registry: Callable[[], Registry], needs: Iterable[Need]) -> None:
    """Raise one error if several sources, sinks or channels lack something.

    A single one is left to its first use, whose error also names the reference.
    """
    errors = find_errors(registry, needs)
    if len(errors) > 1:
        raise join_errors(errors)


def find_errors(registry: Callable[[], Registry], needs: Iterable[Need]) -> list[SealpipeError]:
    """Return what the sources, sinks and channels lack. Makes each, and connects none."""
    errors: dict[str, SealpipeError] = {}
    for kind, name in needs:
        try:
            getattr(registry(), kind)(name)
        except (SettingError, NotConfiguredError) as error:
            errors[error.message] = error
        except SealpipeError:  # such as a name that nothing has: its use says more
            continue
    return list(errors.values())


def join_errors(errors: Sequence[SealpipeError]) -> SealpipeError:
    """Return one error that says all of several."""
    if len(errors) == 1:
        return errors[0]
    kind = (
        SettingError
        if any(isinstance(each, SettingError) for each in errors)
        else NotConfiguredError
    )
    remedies = [*dict.fromkeys(each.remedy for each in errors if each.remedy)]
    joined = kind("; ".join(each.message for each in errors), remedy="".join(remedies[:1]))
    for remedy in remedies[1:]:
        joined.add_note(Note(remedy))
    return joined
