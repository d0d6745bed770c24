"""What the CI system around us is asked for: to hide what is about to be written, take outputs, show an error."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from sealpipe.cli import output
from sealpipe.errors import PluginError, SealpipeError, Unsupported
from sealpipe.secret import Secret

if TYPE_CHECKING:
    from sealpipe.plugin import CI
    from sealpipe.registry import Registry

_SIGNS = ("GITHUB_ACTIONS", "GITLAB_CI", "CI")
"""Where none of these is set there is no CI, and nothing is loaded to find that out."""


def hide(registry: Callable[[], Registry], values: Iterable[Secret]) -> None:
    """Mask them, before they are written anywhere."""
    ci = _ci(registry)
    if ci is not None:
        try:
            ci.mask(values)
        except PluginError as error:
            output.note(f"sealpipe: {error.message}")


def hide_link(registry: Callable[[], Registry], link: Secret) -> None:
    """Mask a link: whole, its fragment, and that without its leading `1`, which no mask of the others covers."""
    fragment = link.reveal().partition("#")[2]
    hide(registry, [link, *(Secret(part) for part in (fragment, fragment[1:]) if part)])


def hand_on(registry: Callable[[], Registry], outputs: Mapping[str, str]) -> None:
    """Set the step's outputs, where there are any."""
    ci = _ci(registry)
    if ci is None:
        return
    for name, value in outputs.items():
        try:
            ci.set_output(name, value)
        except Unsupported:
            return
        except (PluginError, OSError) as error:
            output.note(f"sealpipe: the output {name} could not be set ({type(error).__name__})")


def show_error(registry: Callable[[], Registry], error: SealpipeError) -> None:
    """Show what went wrong beside the log, where there is such a place. What fails here is passed over."""
    try:
        ci = _ci(registry)
        if ci is not None:
            remedy = f" ({output.printable(error.remedy)})" if error.remedy else ""
            ci.annotate("error", f"{output.printable(error.message)}{remedy}")
    except (SealpipeError, OSError):
        pass  # it is told on stderr all the same


def _ci(registry: Callable[[], Registry]) -> CI | None:
    return registry().ci() if any(os.environ.get(sign) for sign in _SIGNS) else None
