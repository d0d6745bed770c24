"""`gcp-sm:PROJECT/SECRET`: Google Secret Manager.

Without a key the value is the whole secret; keys are members.
"""

from __future__ import annotations

from sealpipe.plugin import Context, Health, Locator
from sealpipe_plugins.cloud import Job, VersionedSink
from sealpipe_plugins.gcp.client import SYSTEM, SecretManager
from sealpipe_plugins.gcp.settings import GcpSettings, parse_secret
from sealpipe_plugins.gcp.writing import SecretUpdate


class GcpSink(VersionedSink):
    """Secrets, by project and name. The marker is in an annotation."""

    def __init__(self, settings: GcpSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._manager = SecretManager(settings, context)

    def name_secret(self, locator: Locator) -> tuple[str, str]:
        """Return the name, and the project."""
        project, name = parse_secret(locator, self.settings, self.context.store)
        return name, f"{SYSTEM}, project {project}"

    def open_secret(self, job: Job) -> SecretUpdate:
        """Return a write to the secret."""
        return SecretUpdate(
            self._manager, parse_secret(job.locator, self.settings, self.context.store), job
        )

    def check(self) -> Health:
        """Check the login. Changes nothing."""
        return self._manager.check()
