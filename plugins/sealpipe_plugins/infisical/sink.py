"""`infisical:PROJECT/ENVIRONMENT/FOLDER#NAME=PROMPT`: secrets of a folder of Infisical; its others
stay.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from sealpipe.plugin import (
    Context,
    Health,
    Locator,
    Mode,
    Sink,
    SinkField,
    UnsupportedError,
    WriteResult,
)
from sealpipe_plugins.infisical.api import NAME, Infisical, InfisicalSettings
from sealpipe_plugins.infisical.folders import parse_folder
from sealpipe_plugins.infisical.writing import FolderWrite
from sealpipe_plugins.raw_values import refuse_references
from sealpipe_plugins.sink_values import variable_values

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,199}")
_RULE: Final = "use letters, digits and _.-, and begin with a letter or _"
_TRIMMED: Final = (
    "\t\n\v\f\r "
    "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
"""What Infisical removes from both ends of a value, but for one final newline."""


class InfisicalSink(Sink):
    """Shared secrets of a folder."""

    def __init__(self, settings: InfisicalSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._infisical = Infisical(settings, context)

    def describe(self, locator: Locator, mode: Mode) -> str:
        """Describe the write."""
        existing = "if none has this name" if mode == "create" else "replacing any with this name"
        return (
            f"store secrets in {parse_folder(locator)} at {NAME}, {existing}; its other "
            "secrets stay"
        )

    def put(
        self, locator: Locator, fields: Sequence[SinkField], *, mode: Mode, marker: str
    ) -> WriteResult:
        """Store each secret with the marker in one request, and read all back."""
        values = variable_values(locator, fields, _NAME, _RULE)
        refuse_references(values, NAME, locator)
        _refuse_white_space(values, locator)
        writing = FolderWrite(self._infisical, parse_folder(locator), values, marker)
        known, already = writing.store(locator, mode)
        return WriteResult(locator, known=known, already=already)

    def check(self) -> Health:
        """Log in, or check that Infisical responds."""
        return Health(ok=True, detail=self._infisical.check())

    def close(self) -> None:
        """Revoke the token of a login."""
        self._infisical.close()


def _refuse_white_space(values: Mapping[str, str], locator: Locator) -> None:
    """Refuse a value that Infisical would not keep exactly."""
    for key, value in values.items():
        if value != value.strip(_TRIMMED) + ("\n" if value.endswith("\n") else ""):
            raise UnsupportedError(
                (
                    f"the value for {key} of {locator} begins or ends with white space, which "
                    f"{NAME} removes"
                ),
                remedy="ask for it as base64, or store it elsewhere",
            )
