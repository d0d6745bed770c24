"""`infisical:PROJECT/ENVIRONMENT/FOLDER#NAME`: the secrets of a folder of Infisical, all in one
request.
"""

from __future__ import annotations

from sealpipe.plugin import Context, Document, Health, Locator, SecretNotFoundError, Source
from sealpipe_plugins.infisical.api import Infisical, InfisicalSettings
from sealpipe_plugins.infisical.folders import parse_folder, read_folder
from sealpipe_plugins.raw_values import hidden_remark, is_raw


class InfisicalSource(Source):
    """The secrets of a folder as a map, with those that it imports.

    With raw=1, only its own, as they were written.
    """

    concurrency = 8

    def __init__(self, settings: InfisicalSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._infisical = Infisical(settings, context)

    def fetch(self, locator: Locator) -> Document:
        """Fetch a folder. Values that are hidden from the identity are left out."""
        folder = parse_folder(locator)
        secrets = read_folder(self._infisical, folder, is_expanded=not is_raw(locator))
        if not secrets:
            raise SecretNotFoundError(
                f"{locator}: this folder has no secrets, or does not exist",
                remedy="check the folder, and the environment's slug",
            )
        visible = {key: each.value for key, each in secrets.items() if each.value is not None}
        remark = hidden_remark(
            len(secrets) - len(visible), "give the identity the permission to read values"
        )
        return Document(visible, remark=remark)

    def check(self) -> Health:
        """Log in, or check that Infisical responds."""
        return Health(ok=True, detail=self._infisical.check())

    def close(self) -> None:
        """Revoke the token of a login."""
        self._infisical.close()
