"""The audit log: one JSON line for each thing that happens, only ever added. No values, no fragments.

[audit]
file = "/var/log/sealpipe/audit.jsonl"
required = true      # nothing is sent that could not be written down before
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sealpipe.plugin import NotConfigured, PluginError, hookimpl

_KNOWN = {"file", "required"}


@hookimpl
def sealpipe_event(event: Mapping[str, Any], config: Mapping[str, Any]) -> None:
    """Add a line. Raises PluginError where that fails and `required` is set."""
    file, required = _settings(config)
    line = json.dumps(event, default=str, separators=(",", ":")).encode() + b"\n"
    try:
        _append(file, line)
    except OSError as error:
        if required:
            raise PluginError(
                f"the audit log {file} cannot be written: {error.strerror}",
                locator="audit:",
                remedy="mend that first: the audit is required, and nothing is sent without it",
            ) from None


def _settings(config: Mapping[str, Any]) -> tuple[Path, bool]:
    file, required = config.get("file"), config.get("required", False)
    if not isinstance(file, str) or not Path(file).is_absolute() or not isinstance(required, bool):
        raise NotConfigured(
            "the audit needs a file (an absolute path), and `required` is true or false", remedy="mend [audit]"
        )
    if strange := sorted(config.keys() - _KNOWN):
        raise NotConfigured(f"the audit has no setting {strange[0][:40]!r}", remedy="there are file and required")
    return Path(file), required


def _append(file: Path, line: bytes) -> None:
    """One write at the end, on disk before this returns: lines of several processes never mix."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(file, flags, 0o600)
    try:
        if os.write(descriptor, line) < len(line):
            raise OSError(28, "the disk is full")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
