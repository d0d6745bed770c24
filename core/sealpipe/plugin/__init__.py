"""All that the author of a plugin imports (DESIGN section 5).

    from sealpipe.plugin import Document, Locator, SecretNotFoundError, Source, SourceInfo, hookimpl

    @hookimpl
    def sealpipe_sources(register):
        register(SourceInfo("attic", "boxes in the attic", factory="my_package.attic:AtticSource"))

The module with the hook is named by an entry point of the group `sealpipe`. It is imported for every listing
and completion: it imports no SDK; the module of the factory does, and the settings' (`sealpipe.plugin.settings`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sealpipe.api.refusals import retry_after
from sealpipe.ci_systems import (
    ADD_MASK,
    SET_SECRET,
    RunnerCommand,
    ci_system,
    lines_to_mask,
    runner_reads_stderr,
    write_stderr,
)
from sealpipe.errors import (
    AccessDeniedError,
    BackendAuthError,
    NotConfiguredError,
    PayloadTooLargeError,
    PluginError,
    ReferenceValueError,
    SecretNotFoundError,
    UnavailableError,
    UnknownOutcomeError,
    UnsupportedError,
    WriteConflictError,
)
from sealpipe.loopback import in_clear, is_loopback
from sealpipe.permissions import file_flaw
from sealpipe.plugin.context import CI, Context, Level, Network, Run
from sealpipe.plugin.info import (
    API,
    ASKS,
    BLIND,
    CONFIRMS,
    FRESH,
    SEGMENTS,
    ChannelInfo,
    CIInfo,
    Info,
    SinkInfo,
    SourceInfo,
)
from sealpipe.plugin.outgoing import Channel, Delivery, Message, OutgoingAction, VetoError
from sealpipe.plugin.stores import (
    Document,
    Health,
    Locator,
    Mode,
    Sink,
    SinkField,
    Source,
    WriteResult,
    merge_fields,
    open_file,
    refuse_process_file,
)
from sealpipe.secret import Secret
from sealpipe.wire.encoding import PLAINTEXT_LIMIT

__all__ = [
    "ADD_MASK",
    "API",
    "ASKS",
    "BLIND",
    "CI",
    "CONFIRMS",
    "FRESH",
    "PLAINTEXT_LIMIT",
    "SEGMENTS",
    "SET_SECRET",
    "AccessDeniedError",
    "BackendAuthError",
    "CIInfo",
    "Channel",
    "ChannelInfo",
    "Context",
    "Delivery",
    "Document",
    "Health",
    "Info",
    "Level",
    "Locator",
    "Message",
    "Mode",
    "Network",
    "NotConfiguredError",
    "OutgoingAction",
    "PayloadTooLargeError",
    "PluginError",
    "ReferenceValueError",
    "Run",
    "RunnerCommand",
    "Secret",
    "SecretNotFoundError",
    "Sink",
    "SinkField",
    "SinkInfo",
    "Source",
    "SourceInfo",
    "UnavailableError",
    "UnknownOutcomeError",
    "UnsupportedError",
    "VetoError",
    "WriteConflictError",
    "WriteResult",
    "ci_system",
    "file_flaw",
    "hookimpl",
    "in_clear",
    "is_loopback",
    "lines_to_mask",
    "merge_fields",
    "open_file",
    "refuse_process_file",
    "retry_after",
    "runner_reads_stderr",
    "write_stderr",
]

if TYPE_CHECKING:
    import pluggy

    hookimpl = pluggy.HookimplMarker("sealpipe")
    """Marks a function as a hook of sealpipe."""


def __getattr__(name: str) -> Any:
    """`hookimpl`, for those who have a hook: pluggy is 90 million instructions, and most commands call no plugin."""
    if name != "hookimpl":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import pluggy

    globals()[name] = marker = pluggy.HookimplMarker("sealpipe")
    return marker
