"""`gcp-sm:PROJECT/SECRET`: Google Secret Manager. Without a key the value is the whole secret; keys are members."""

from __future__ import annotations

from collections.abc import Sequence

from sealpipe.plugin import Context, Health, Locator, Mode, Sink, SinkField, WriteResult
from sealpipe_plugins.confirm import has_marker, store_and_confirm
from sealpipe_plugins.gcp.client import SecretManager
from sealpipe_plugins.gcp.settings import GcpSettings, parse_secret
from sealpipe_plugins.gcp.writing import SecretUpdate, check_size
from sealpipe_plugins.secret_documents import document_values, make_document


class GcpSink(Sink):
    """Secrets, by project and name."""

    def __init__(self, settings: GcpSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._manager = SecretManager(settings, context)

    def describe(self, locator: Locator, mode: Mode) -> str:
        """Describe the write."""
        project, name = parse_secret(locator, self.settings, self.context.store)
        verb = {
            "create": "create the secret {} in Google Secret Manager, project {}",
            "replace": "add a version to the secret {} in Google Secret Manager, project {}, without its other keys",
            "merge": "add a version to the secret {} in Google Secret Manager, project {}, keeping its other keys",
        }
        return verb[mode].format(name, project)

    def put(self, locator: Locator, fields: Sequence[SinkField], *, mode: Mode, marker: str) -> WriteResult:
        """Store, read the version back, and keep the marker in an annotation."""
        project, name = parse_secret(locator, self.settings, self.context.store)
        wanted = document_values(fields, locator)
        check_size(make_document(None, wanted, locator), locator)  # before the first call
        secret = SecretUpdate(self._manager, locator, (project, name), wanted, mode, marker)
        outcome = store_and_confirm(secret.read, secret.write, wanted, locator, mode, marker)
        if not secret.is_new and not has_marker(outcome.snapshot.markers, marker):
            secret.add_marker()
        return WriteResult(locator, outcome.version, already=not outcome.is_written)

    def check(self) -> Health:
        """Check the login. Changes nothing."""
        return self._manager.check()
