"""The Actions secrets of a repository, an environment or an organisation.

GitHub never returns a value.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from nacl.public import PublicKey, SealedBox

from sealpipe.plugin import (
    AccessDeniedError,
    BackendAuthError,
    PluginError,
    SecretNotFoundError,
    UnavailableError,
    UnknownOutcomeError,
    UnsupportedError,
)
from sealpipe_plugins.github.api import GitHub
from sealpipe_plugins.http_errors import Refusals, explain_redirects
from sealpipe_plugins.http_reply import Reply

PAGE: Final = 100
PAGES: Final = 50
"""Maximum pages of an organisation secret's repositories: 5,000 repositories."""


class SecretOwner(NamedTuple):
    """The owner of secrets.

    `path` is the API path, `what` is for messages, `needs` is the token's permission.
    """

    path: str
    what: str
    needs: str
    is_organisation: bool = False


class SealingKey(NamedTuple):
    """The public key of an owner's secrets."""

    id: str
    public: bytes

    def seal(self, value: bytes) -> str:
        """Return libsodium's sealed box (crypto_box_seal) in base64."""
        return base64.b64encode(SealedBox(PublicKey(self.public)).encrypt(value)).decode()


class ActionsSecrets:
    """An owner's secrets."""

    def __init__(self, github: GitHub, owner: SecretOwner) -> None:
        self.owner = owner
        self._github = github
        self._key = self.newest_key()

    def newest_key(self) -> SealingKey:
        """Fetch the current key.

        Raises SecretNotFoundError for an owner that the token cannot see.
        """
        reply = self._github.get(f"{self.owner.path}/public-key", _explain_refusals(self.owner))
        number, text = reply.member("key_id"), reply.member("key")
        try:
            public = base64.b64decode(text, validate=True) if isinstance(text, str) else b""
        except (ValueError, binascii.Error):
            public = b""
        if (
            isinstance(number, bool)
            or not isinstance(number, str | int)
            or len(public) != PublicKey.SIZE
        ):
            raise PluginError(
                "the response is not GitHub's: it has no public key for the secrets of "
                f"{self.owner.what}"
            )
        return SealingKey(str(number), public)

    def read(self, name: str) -> Mapping[str, Any] | None:
        """Read a secret's metadata, or return None."""
        try:
            metadata = self._github.get(
                f"{self.owner.path}/{name}", _explain_refusals(self.owner)
            ).json
        except SecretNotFoundError:
            return None
        if not isinstance(metadata, dict) or str(metadata.get("name")).upper() != name:
            raise PluginError(
                f"the response is not GitHub's: it has no {name} of {self.owner.what}"
            )
        return metadata

    def visibility_members(
        self, name: str, metadata: Mapping[str, Any] | None, default: str
    ) -> dict[str, Any]:
        """Return the members that preserve the list of repositories of an organisation's secret."""
        if not self.owner.is_organisation:
            return {}
        visibility = default if metadata is None else str(metadata.get("visibility"))
        return {"visibility": visibility} | (
            {"selected_repository_ids": self._selected_repositories(name)}
            if visibility == "selected"
            else {}
        )

    def write(
        self, name: str, value: bytes, extra_members: Mapping[str, Any], *, once: bool
    ) -> bool:
        """Store a value and return whether the secret is new.

        With `once`, raises UnknownOutcomeError if the outcome is unknown.
        """
        try:
            return self._put(name, value, extra_members, once=once)
        except UnsupportedError as error:
            rejection = error
        # If the owner's key has changed since we fetched it, GitHub stored nothing.
        previous, self._key = self._key, self.newest_key()
        if self._key == previous:
            raise rejection
        return self._put(name, value, extra_members, once=once)

    def _put(
        self, name: str, value: bytes, extra_members: Mapping[str, Any], *, once: bool
    ) -> bool:
        members = {
            **extra_members,
            "encrypted_value": self._key.seal(value),
            "key_id": self._key.id,
        }
        refusals = _explain_refusals(self.owner, name, once=once)
        return (
            self._github.put(f"{self.owner.path}/{name}", members, refusals, once=once).status
            == 201
        )

    def _selected_repositories(self, name: str) -> list[int]:
        ids: list[int] = []
        for page in range(1, PAGES + 1):
            path = f"{self.owner.path}/{name}/repositories?per_page={PAGE}&page={page}"
            rows = _repository_ids(self._github.get(path, _explain_refusals(self.owner)), name)
            ids += rows
            if len(rows) < PAGE:
                return ids
        raise UnsupportedError(
            f"{name} of {self.owner.what} is selected for more than {PAGE * PAGES} repositories",
            remedy="store it manually, or make it visible to all private repositories",
        )


def _repository_ids(reply: Reply, name: str) -> list[int]:
    rows = reply.member("repositories")
    ids = (
        [row.get("id") if isinstance(row, dict) else None for row in rows]
        if isinstance(rows, list)
        else [None]
    )
    if not all(isinstance(each, int) for each in ids):
        raise PluginError(f"the response is not GitHub's: it has no repositories of {name}")
    return [each for each in ids if each is not None]


def _explain_refusals(owner: SecretOwner, name: str = "", *, once: bool = False) -> Refusals:
    what, needs = owner.what, owner.needs
    unknown_outcome = (UnknownOutcomeError, "failed after the secret was sent", "")
    return {
        401: (
            BackendAuthError,
            "refused the token",
            "check that it is complete, not expired, and for this GitHub",
        ),
        403: (
            AccessDeniedError,
            f"does not let this token write the secrets of {what}",
            f"give it {needs}; a job's own GITHUB_TOKEN can never have that",
        ),
        404: (
            SecretNotFoundError,
            f"does not find {what}, or hides it from this token",
            f"check the name, and that the token has {needs}",
        ),
        409: (UnavailableError, f"is already changing {name or 'the secrets'} of {what}", ""),
        413: (
            UnsupportedError,
            f"rejects the value for {name} as too long",
            "a secret has at most 48 KB",
        ),
        422: (
            UnsupportedError,
            f"does not take {name or 'that'} as a secret of {what}",
            (
                "a repository or an environment holds 100 secrets, an organisation 1,000: "
                "delete some, or check the name"
            ),
        ),
        **({503: unknown_outcome} if once else {}),
        **explain_redirects(what, PluginError),
    }
