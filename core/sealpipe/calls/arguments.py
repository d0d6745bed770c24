"""Checks the arguments of a call from Python: that they are known and complete, and each by its rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from inspect import Parameter, Signature, signature
from typing import Any

from sealpipe.errors import UsageError


def check_arguments(
    function: Callable[..., Any], args: Sequence[Any], options: Mapping[str, Any], skip: int = 0
) -> None:
    """Check the arguments of a call. UsageError names the argument, never its value: it may be a secret.

    `skip` is the number of leading parameters that the caller does not pass.
    """
    from sealpipe.calls.rules import check_argument  # commands check their values when they parse them

    name, parameters = function.__name__, _read_signature(function)
    name = "Client" if name == "__init__" else name
    parameters_list = list(parameters.parameters.values())
    positional = [each.name for each in parameters_list if each.kind is Parameter.POSITIONAL_OR_KEYWORD][
        : skip + len(args)
    ]
    if len(positional) < skip + len(args):
        raise UsageError(f"{name}() was given too many arguments by position", remedy="give them by their names")
    arguments = dict(zip(positional[skip:], args, strict=True))
    for option in options:
        if option in arguments or option not in parameters.parameters or option in positional[:skip]:
            raise _make_unexpected_error(
                name, option, [each.name for each in parameters_list[skip:]], is_repeated=option in arguments
            )
    arguments.update(options)
    missing = [
        each.name for each in parameters_list[skip:] if each.default is Parameter.empty and each.name not in arguments
    ]
    if missing:
        hint = ", or use Client.from_settings()" if name == "Client" else ""
        raise UsageError(f"{name}() lacks {' and '.join(missing)}", remedy=f"give {', '.join(missing)}{hint}")
    for argument, value in arguments.items():
        parameter = parameters.parameters[argument]
        if value is not None or not _accepts_none(parameter):
            check_argument(name, parameter, value)


def _accepts_none(parameter: Parameter) -> bool:
    """Return whether None is allowed: `views=None` means no limit, `expires_in=None` no expiry."""
    return parameter.default is None or str(parameter.annotation).endswith("| None")


@cache
def _read_signature(function: Callable[..., Any]) -> Signature:
    return signature(function)


def _make_unexpected_error(name: str, option: str, known: Sequence[str], *, is_repeated: bool) -> UsageError:
    if is_repeated:
        return UsageError(f"{name}() was given {option} twice", remedy="give it once")
    from difflib import get_close_matches  # for an error only

    matches = get_close_matches(option, known, n=1)
    hint = f"did you mean {matches[0]}?" if matches else f"it takes {', '.join(known) or 'none'}"
    return UsageError(f"{name}() takes no argument {option[:60]}", remedy=hint)
