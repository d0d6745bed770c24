"""Records every call of an assistant, refused ones, too, for the observers of both config files.

Where neither file names an audit log, the server keeps one of its own in the state directory:
`mcp/audit.jsonl`. It is required: an action that cannot be recorded is not done.
"""

from __future__ import annotations

from asyncio import CancelledError
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sealpipe.errors import PolicyError, SealpipeError
from sealpipe.policy import PolicyContext, notify_observers
from sealpipe.registry.stores import PolicyHook
from sealpipe.state.files import make_private_directory

if TYPE_CHECKING:
    from collections.abc import Sequence


class UnconfirmedError(SealpipeError):
    """A call waits for a person's yes: so far nothing was done."""


class WithheldError(SealpipeError):
    """The answer of a call, or the reason of its failure, held a secret."""


AUDIT: Final = "audit"
_OUTCOMES: Final = (
    (PolicyError, "refused"),
    (CancelledError, "cancelled"),
    (UnconfirmedError, "asked"),
    (WithheldError, "withheld"),
)
_MAX_REASON: Final = 300


def add_audit_log(hooks: Sequence[PolicyHook], folder: Path) -> tuple[PolicyHook, ...]:
    """Return the hooks with an audit log in the server's folder, unless they have one.

    Creates the folder (0700) for it. Raises StateError.
    """
    if any(hook.name == AUDIT for hook in hooks):
        return tuple(hooks)
    file = make_private_directory(folder) / "audit.jsonl"
    return (*hooks, PolicyHook(AUDIT, {"file": str(file), "required": True}))


def report_call(
    context: PolicyContext, tool: str, client_name: str, error: BaseException | None = None
) -> tuple[str, ...]:
    """Record how a call of a tool ended: done, or with an error.

    Blocks. Returns a warning for an observer that fails.

    `client_name` is what the client calls itself, escaped.
    """
    known = (outcome for kind, outcome in _OUTCOMES if isinstance(error, kind))
    outcome = "done" if error is None else next(known, type(error).__name__)
    event = {"event": "mcp", "tool": tool, "mcp_client": client_name, "outcome": outcome}
    if isinstance(error, PolicyError):
        event["reason"] = error.message[:_MAX_REASON]
    return notify_observers(context, event)
