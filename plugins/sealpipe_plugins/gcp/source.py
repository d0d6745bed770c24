"""`gcp-sm:PROJECT/SECRET`: Google Secret Manager.

Text that is a JSON object becomes a map; with `?raw=1` it stays.
"""

from __future__ import annotations

from typing import ClassVar

from sealpipe.plugin import Context, Document, Health, Locator, Source
from sealpipe_plugins.gcp.client import SecretManager
from sealpipe_plugins.gcp.settings import GcpSettings, parse_secret, parse_version
from sealpipe_plugins.secret_documents import as_stored, make_source_document


class GcpSource(Source):
    """Secrets, by project and name."""

    concurrency: ClassVar[int] = 8

    def __init__(self, settings: GcpSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._manager = SecretManager(settings, context)

    def fetch(self, locator: Locator) -> Document:
        """Fetch the newest value, or that of a version."""
        project, name = parse_secret(locator, self.settings, self.context.store)
        path = f"projects/{project}/secrets/{name}/versions/{parse_version(locator)}"
        return make_source_document(as_stored(self._manager.access(path, locator).data), locator)

    def check(self) -> Health:
        """Check the login. Reads no secret."""
        return self._manager.check()
