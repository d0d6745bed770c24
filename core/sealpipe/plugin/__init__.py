"""Everything that the author of a plugin imports.

    from sealpipe.plugin import Document, Locator, SecretNotFoundError, Source, SourceInfo, hookimpl

    @hookimpl
    def sealpipe_sources(register):
        register(SourceInfo("attic", "boxes in the attic", factory="my_package.attic:AtticSource"))

An entry point of the group `sealpipe` names the module with the hook. That module is imported for
every listing and completion, so it must not import an SDK. Import the SDK in the module of the
factory, and pydantic in the module of the settings (`sealpipe.plugin.settings`).

Descriptors describe a plugin without importing it. `factory` and `settings` are import strings,
`module:name`: the plugin's class, and the class of its settings (a `PluginSettings` of
`sealpipe.plugin.settings`; if empty, the plugin gets None). `needs` are the requirements that must
be installed; `extra` names the extra of sealpipe that installs them. `api` is the version of the
contract.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from sealpipe.api.responses import parse_retry_after
from sealpipe.ci_systems import ADD_MASK, SET_SECRET, CISystem, RunnerCommand, detect_ci_system
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
from sealpipe.parsing import is_cleartext, is_loopback
from sealpipe.permissions import (
    find_file_flaw,
    has_content,
    open_file,
    read_file,
    refuse_process_file,
)
from sealpipe.plugin.backends import (
    Channel,
    Delivery,
    Document,
    Health,
    Locator,
    Message,
    Mode,
    Sink,
    SinkField,
    Source,
    WriteResult,
    merge_fields,
)
from sealpipe.plugin.context import CI, Context, Level, Network, OutgoingAction, Run, VetoError
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
    "TEXT",
    "TEXT_UNDER_KEYS",
    "AccessDeniedError",
    "BackendAuthError",
    "CIInfo",
    "CISystem",
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
    "detect_ci_system",
    "find_file_flaw",
    "format_output",
    "has_content",
    "hookimpl",
    "is_cleartext",
    "is_loopback",
    "is_stderr_readable",
    "make_annotation",
    "matches_name",
    "merge_fields",
    "open_file",
    "parse_retry_after",
    "read_file",
    "refuse_process_file",
    "select_maskable_lines",
    "write_stderr",
]

API: Final = 1
"""The version of this contract."""

FRESH: Final = "fresh"
"""The capability of a source that generates its documents: each mention in a run is fetched
separately.

Mentions that select different keys are parts of one document (the two halves of a key pair). So are
mentions with the same value of the parameter `name`, which such a source declares.
"""

ASKS: Final = "asks"
"""The capability of a source that prompts a person: it is read before all others, one prompt at a
time, without a deadline, and in the caller's thread, so that a signal interrupts it."""

CONFIRMS: Final = "confirms"
"""The capability of a channel that checks whether a message was already delivered, and never sends
it twice. After a kill, `resume` then finishes the delivery without `--resend`.
"""

BLIND: Final = "blind"
"""The capability of a sink that cannot read back what it stored: only the ledger knows of an
earlier run.
"""

TEXT: Final = "text"
"""The capability of a sink that stores text only: `decode=` in its targets is refused before
anything is sent.
"""

TEXT_UNDER_KEYS: Final = "text-under-keys"
"""The capability of a sink that stores any bytes as a whole value, and only text under a key, such
as a member of a JSON object.
"""

SEGMENTS: Final = "segments"
"""The capability of a channel whose target is a path or a URL: a value from `--param` must be one
plain segment.
"""


class SourceInfo(NamedTuple):
    """A source.

    `params` maps its own parameters of references to their help; `capabilities` may hold FRESH,
    ASKS.

    `format` (json, yaml, dotenv) is how its documents are parsed if the reference names no format.
    `backend` names the plugin whose settings it shares (by default its own name), so that one store
    serves reading and writing.
    """

    name: str
    summary: str
    factory: str
    settings: str = ""
    needs: tuple[str, ...] = ()
    params: Mapping[str, str] = MappingProxyType({})
    capabilities: tuple[str, ...] = ()
    format: str = ""
    backend: str = ""
    extra: str = ""
    api: int = API


class SinkInfo(NamedTuple):
    """A sink.

    `params` maps its own parameters of targets to their help; `capabilities` may hold BLIND, and
    TEXT or TEXT_UNDER_KEYS if it does not store every value byte for byte.
    """

    name: str
    summary: str
    factory: str
    settings: str = ""
    needs: tuple[str, ...] = ()
    params: Mapping[str, str] = MappingProxyType({})
    capabilities: tuple[str, ...] = ()
    backend: str = ""
    extra: str = ""
    api: int = API


class ChannelInfo(NamedTuple):
    """A channel. `to` describes the text after its colon, for people."""

    name: str
    summary: str
    factory: str
    settings: str = ""
    needs: tuple[str, ...] = ()
    to: str = ""
    capabilities: tuple[str, ...] = ()
    backend: str = ""
    extra: str = ""
    api: int = API


class CIInfo(NamedTuple):
    """A CI system. `sign` is a variable that is set on it."""

    name: str
    summary: str
    factory: str
    sign: str
    settings: str = ""
    needs: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    backend: str = ""
    extra: str = ""
    api: int = API


Info = SourceInfo | SinkInfo | ChannelInfo | CIInfo
"""The descriptor of any plugin."""


if TYPE_CHECKING:
    import pluggy

    from sealpipe.ci_commands import (
        format_output,
        is_stderr_readable,
        make_annotation,
        select_maskable_lines,
        write_stderr,
    )
    from sealpipe.wildcards import matches_name

    hookimpl = pluggy.HookimplMarker("sealpipe")
    """Marks a function as a hook of sealpipe."""

_RARE: Final[Mapping[str, str]] = {
    "format_output": "ci_commands",
    "is_stderr_readable": "ci_commands",
    "make_annotation": "ci_commands",
    "select_maskable_lines": "ci_commands",
    "write_stderr": "ci_commands",
    "matches_name": "wildcards",
}
"""What only the plugin of a CI system or a policy needs, and its module."""


if not TYPE_CHECKING:  # hidden from type checkers, which would take every misspelled name for Any

    def __getattr__(name):
        """Import what most commands do not need on first use.

        pluggy costs 90 million instructions.
        """
        if name == "hookimpl":
            import pluggy

            value = pluggy.HookimplMarker("sealpipe")
        elif name in _RARE:
            value = getattr(import_module(f"sealpipe.{_RARE[name]}"), name)
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = value
        return value
