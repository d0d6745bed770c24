"""`doppler:PROJECT/CONFIG#NAME=PROMPT`: secrets of a config of Doppler; its others stay."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from sealpipe.plugin import Context, Health, Locator, Mode, Sink, SinkField, WriteResult
from sealpipe_plugins.doppler.api import NAME, Doppler, DopplerSettings
from sealpipe_plugins.doppler.configs import MANAGED, ConfigName, parse_config
from sealpipe_plugins.doppler.source import check_token
from sealpipe_plugins.doppler.writing import ConfigWrite
from sealpipe_plugins.raw_values import refuse_references
from sealpipe_plugins.sink_values import variable_values

_NAME: Final = re.compile(rf"(?!(?:{'|'.join(MANAGED)})$)[A-Z_][A-Z0-9_]{{0,199}}")
_RULE: Final = (
    "use capital letters, digits and _, and begin with no digit; DOPPLER_CONFIG and the like "
    "are taken"
)


class DopplerSink(Sink):
    """Secrets of a config: masked if they are new, otherwise as visible as before."""

    def __init__(self, settings: DopplerSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._doppler = Doppler(settings, context)

    def describe(self, locator: Locator, mode: Mode) -> str:
        """Describe the write."""
        name = self._parse_target(locator)
        config = f"{name.project}/{name.config}" if name.project else "the service token's config"
        existing = "if none has this name" if mode == "create" else "replacing any with this name"
        return f"store secrets in {config} at Doppler, {existing}; its other secrets stay"

    def put(
        self, locator: Locator, fields: Sequence[SinkField], *, mode: Mode, marker: str
    ) -> WriteResult:
        """Store the secrets in one request, read them back, and add the marker to their notes."""
        values = variable_values(locator, fields, _NAME, _RULE)
        refuse_references(values, NAME, locator)
        writing = ConfigWrite(self._doppler, self._parse_target(locator), values, marker)
        content, known, already = writing.store(locator, mode)
        if not writing.add_markers(content):
            self.context.logger.info("%s: stored, without the marker of its submission", locator)
        return WriteResult(locator, known=known, already=already)

    def check(self) -> Health:
        """Check that the token is valid."""
        return check_token(self._doppler)

    def close(self) -> None:
        """Revoke the token of a login."""
        self._doppler.close()

    def _parse_target(self, locator: Locator) -> ConfigName:
        return parse_config(locator, has_service_token=self._doppler.has_service_token)
