"""`dotenv:PATH#KEY`: a key of a dotenv file. Its descriptor names the format, and the core reads it."""

from __future__ import annotations

from sealpipe_plugins.local.file_source import FileSource


class DotenvSource(FileSource):
    """A file whose format need not be said."""
