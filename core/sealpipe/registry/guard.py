"""The one door through which plugins are called: what goes wrong in one stays there.

Only the type of an error that is not part of the contract is told, for its text may hold anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any, TypeVar

from sealpipe.errors import PayloadTooLargeError, PluginError
from sealpipe.plugin import Info

T = TypeVar("T")


def imported(spec: str) -> Any:
    """What an import string names."""
    module, _, name = spec.partition(":")
    return getattr(import_module(module), name)


def guarded(what: str, call: Callable[[], T], failed: Callable[[str], PluginError] | None = None) -> T:
    """Let a plugin do something. Only errors of the contract come out, without the errors behind them."""
    kept: PluginError | PayloadTooLargeError
    try:
        return call()
    except (PluginError, PayloadTooLargeError) as error:
        kept = error
    except (Exception, SystemExit) as error:  # noqa: BLE001  # whatever it is, its text stays inside
        kind = type(error).__name__
        kept = failed(kind) if failed else PluginError(f"{what} failed in a way it should not ({kind})")
    # Out here there is no context; and what a plugin's own error had behind it, or in its frames, is cut off.
    kept.__cause__ = kept.__context__ = None
    raise kept.with_traceback(None)


def pip_install(info: Info) -> str:
    """What installs the packages that a plugin needs; empty where it needs none."""
    wanted = [f"sealpipe[{info.extra}]"] if info.extra else list(info.needs)
    return "pip install " + " ".join(f"'{need}'" for need in wanted) if wanted else ""


def suggest(given: str, known: Iterable[str], what: str) -> str:
    """The nearest known names, or all of them."""
    from difflib import get_close_matches  # for an error only

    names = sorted(known)
    near = get_close_matches(given.lower(), names, n=2, cutoff=0.6)
    near = [name for name in near if sorted(name) == sorted(given.lower())] or near  # letters out of order
    return f"did you mean {' or '.join(near)}?" if near else f"known {what}: {', '.join(names)}"
