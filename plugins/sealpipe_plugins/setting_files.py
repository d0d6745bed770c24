"""Reads files that settings name."""

from __future__ import annotations

from pathlib import Path

from sealpipe.plugin import Context, NotConfiguredError, read_file


def read_setting_file(file: Path, setting: str, context: Context, limit: int) -> bytes:
    """Return the content of the file in a setting, of at most `limit` bytes.

    Raises NotConfiguredError.
    """
    try:
        return read_file(file.expanduser(), limit)
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
    except (RuntimeError, ValueError):
        reason = "its home folder does not exist, or it is no path"
    raise NotConfiguredError(
        f"the {setting} of {context.store} cannot be read: {reason}",
        remedy=f"check the setting {setting}",
    )
