"""What the CI system around us is asked for: to hide what is about to be written, take outputs, show an error."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from sealpipe.ci_systems import ci_system
from sealpipe.cli import render
from sealpipe.errors import PluginError, SealpipeError, UnsupportedError
from sealpipe.secret import Secret

if TYPE_CHECKING:
    from sealpipe.plugin import CI
    from sealpipe.registry import Registry


def hide(registry: Callable[[], Registry], values: Iterable[Secret]) -> bool:
    """Mask them, before they are written anywhere. Whether nothing went wrong."""
    ci = _ci(registry)
    if ci is not None:
        try:
            ci.mask(values)
        except (PluginError, OSError) as error:
            render.note(f"sealpipe: {error.message if isinstance(error, PluginError) else 'stderr cannot be written'}")
            return False
    return True


def parts_of(link: Secret) -> list[Secret]:
    """What is masked of a link: all, its fragment, and that without its leading `1`, which the others do not cover."""
    fragment = link.reveal().partition("#")[2]
    return [link, *(Secret(part) for part in (fragment, fragment[1:]) if part)]


def hand_on(registry: Callable[[], Registry], outputs: Mapping[str, str]) -> None:
    """Set the step's outputs, where there are any."""
    ci = _ci(registry)
    if ci is None:
        return
    for name, value in outputs.items():
        try:
            ci.set_output(name, value)
        except UnsupportedError:
            return
        except (PluginError, OSError) as error:
            render.note(f"sealpipe: the output {name} could not be set ({type(error).__name__})")


def show_error(registry: Callable[[], Registry], error: SealpipeError) -> None:
    """Show what went wrong beside the log, where there is such a place. What fails here is passed over."""
    try:
        ci = _ci(registry)
        if ci is not None:
            told = f"{error.message} ({error.remedy})" if error.remedy else error.message
            ci.annotate("error", render.printable(render.without_secrets(told)))
    except (SealpipeError, OSError):
        pass  # it is told on stderr all the same


def _ci(registry: Callable[[], Registry]) -> CI | None:
    return registry().ci() if ci_system(os.environ) is not None else None
