"""`doppler:PROJECT/CONFIG#NAME`: the secrets of a config of Doppler, all in one request."""

from __future__ import annotations

import re

from sealpipe.plugin import Context, Document, Health, Locator, Source
from sealpipe_plugins.doppler.api import Doppler, DopplerSettings
from sealpipe_plugins.doppler.configs import parse_config, read_config
from sealpipe_plugins.raw_values import hidden_remark, is_raw


class DopplerSource(Source):
    """The computed values of a config as a map; with raw=1, values as they were written.

    No leases are issued.
    """

    concurrency = 8

    def __init__(self, settings: DopplerSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._doppler = Doppler(settings, context)

    def fetch(self, locator: Locator) -> Document:
        """Fetch a config. Values that are hidden from the token are left out."""
        name = parse_config(locator, has_service_token=self._doppler.has_service_token)
        raw = is_raw(locator)
        secrets = read_config(self._doppler, name).secrets
        values = {key: each.raw if raw else each.computed for key, each in secrets.items()}
        visible = {key: value for key, value in values.items() if value is not None}
        remark = hidden_remark(
            len(values) - len(visible), "a service token or a service account can read them"
        )
        return Document(visible, remark=remark)

    def check(self) -> Health:
        """Check that the token is valid."""
        return check_token(self._doppler)

    def close(self) -> None:
        """Revoke the token of a login."""
        self._doppler.close()


def check_token(doppler: Doppler) -> Health:
    """Ask Doppler what the token is."""
    kind = str(doppler.request("GET", "/v3/me").member("type"))
    detail = (
        f"a token of the type {kind}"
        if re.fullmatch(r"[a-z_]{1,40}", kind)
        else "the token is valid"
    )
    return Health(ok=True, detail=f"{detail}; what it may read cannot be checked")
