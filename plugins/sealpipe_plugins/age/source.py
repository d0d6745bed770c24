"""`age:PATH`: a file encrypted with age, decrypted here with the identities of the settings."""

from __future__ import annotations

from sealpipe.plugin import Context, Document, Health, Locator, NotConfiguredError, Source
from sealpipe_plugins.age.decrypt import decrypt
from sealpipe_plugins.age.file_format import SIZE_LIMIT
from sealpipe_plugins.age.keys import load_identities
from sealpipe_plugins.age.settings import AgeSettings
from sealpipe_plugins.local.sources import read_path


class AgeSource(Source):
    """Encrypted files on this machine. The value is only in memory."""

    def __init__(self, settings: AgeSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._identities = load_identities(settings, context)
        if not self._identities and not settings.has_recipients():
            raise self._lacks_identity()

    def fetch(self, locator: Locator) -> Document:
        """Return the decrypted bytes of a file, binary or armored.

        Raises NotConfiguredError without an identity.
        """
        if not self._identities:
            raise self._lacks_identity()
        return Document(decrypt(read_path(locator, SIZE_LIMIT), self._identities, locator))

    def check(self) -> Health:
        """Check that the identities can be used. Reads no secret."""
        if not self._identities:
            return Health(ok=True, detail="no identity: this machine only encrypts")
        return Health(ok=True, detail=f"identities: {len(self._identities)}")

    def _lacks_identity(self) -> NotConfiguredError:
        return NotConfiguredError(
            f"{self.context.store} has no identity to decrypt with",
            remedy=(
                "set identity_file (made by age-keygen, or an SSH key), or identity in the "
                "environment"
            ),
        )
