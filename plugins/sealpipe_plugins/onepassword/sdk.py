"""1Password's own SDK, for a service account. Its native core connects to 1password.com by itself.

Exception texts are untrusted: known ones are mapped to our messages, others are never shown.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Final

from sealpipe.plugin import (
    AccessDeniedError,
    BackendAuthError,
    NotConfiguredError,
    PluginError,
    ReferenceValueError,
    Secret,
    SecretNotFoundError,
    UnavailableError,
    UnsupportedError,
)

_ErrorKind = type[PluginError]

_BY_TYPE: Final[Mapping[str, tuple[_ErrorKind, str, str]]] = {
    "parsing": (
        ReferenceValueError,
        "is not a 1Password reference",
        "write op://Vault/Item/field, or .../section/field",
    ),
    "vaultNotFound": (
        SecretNotFoundError,
        "names a vault that does not exist or is hidden from this account",
        "check the vault",
    ),
    "itemNotFound": (
        SecretNotFoundError,
        "names an item that does not exist",
        "check the item's title",
    ),
    "noMatchingSections": (
        SecretNotFoundError,
        "names a section that does not exist",
        "check the section's name",
    ),
    "fieldNotFound": (
        SecretNotFoundError,
        "names a field that does not exist",
        "check the field's name",
    ),
    "tooManyVaults": (ReferenceValueError, "names several vaults", "name the vault by its id"),
    "tooManyItems": (ReferenceValueError, "names several items", "name the item by its id"),
    "tooManyMatchingFields": (
        ReferenceValueError,
        "names several fields",
        "name the section as well, or use ids",
    ),
    "incompatibleTOTPQueryParameterField": (
        ReferenceValueError,
        "is not a one-time password",
        "leave attribute= out",
    ),
    "unableToGenerateTotpCode": (
        PluginError,
        "has no usable one-time password",
        "fix the field in 1Password",
    ),
    "sSHKeyMetadataNotFound": (ReferenceValueError, "is not an SSH key", "leave ssh-format= out"),
    "incompatibleSshKeyQueryParameterField": (
        ReferenceValueError,
        "is not an SSH key",
        "leave ssh-format= out",
    ),
    "unableToParsePrivateKey": (PluginError, "is not a readable SSH key", "leave ssh-format= out"),
    "unableToFormatPrivateKeyToOpenSsh": (
        PluginError,
        "has no OpenSSH form",
        "leave ssh-format= out",
    ),
    "unsupportedFileFormat": (
        UnsupportedError,
        "is a file that is not text",
        "use Connect, which gives a file's bytes",
    ),
}


class ConflictError(PluginError):
    """Another client changed the vault since it was read."""


_BY_TEXT: Final[tuple[tuple[str, _ErrorKind, str, str], ...]] = (
    (
        r"token was not specified|had invalid format|base64 decoding failed|deserialization failed",
        NotConfiguredError,
        "the token of 1Password's service account is invalid",
        "set OP_SERVICE_ACCOUNT_TOKEN to the whole token; it begins with ops_",
    ),
    (
        r"\bconflict",
        ConflictError,
        "another client changed the vault of 1Password meanwhile",
        "run it again",
    ),
    (
        r"rate limit|too many requests|RateLimit",
        UnavailableError,
        "1Password asks to try again later: the account's rate limit is reached",
        "wait, or use a Connect server, which has no limit",
    ),
    (
        r"unauthori[sz]ed|authentication|invalid service account|\b401\b|deleted|expired",
        BackendAuthError,
        "1Password refused the service account's token",
        "check that it is valid, not expired, and for this account",
    ),
    (
        r"forbidden|permission|\b403\b",
        AccessDeniedError,
        "1Password does not let this service account do that",
        "grant it",
    ),
    (
        r"network|connect|timed? ?out|dns|unreachable|request|internet",
        UnavailableError,
        "1Password could not be reached",
        "check the network; the SDK connects by itself, without sealpipe's CA and proxy settings",
    ),
)


class SdkClient:
    """A service account. Each call logs in again: the SDK's client belongs to one event loop."""

    def __init__(self, token: Secret, version: str, timeout: float) -> None:
        # a missing package is reported when the source is created
        self._client = import_module("onepassword.client").Client
        self._token = token
        self._version = version
        self._timeout = timeout

    def resolve(self, references: Sequence[str]) -> dict[str, str | PluginError]:
        """Return the value or error of each reference, in one request.

        Raises PluginError if that request fails.
        """

        async def resolve(client: Any) -> Any:
            return await client.secrets.resolve_all(list(references)) if references else None

        return map_responses(self.run(resolve), references)

    def run(self, work: Callable[[Any], Awaitable[Any]]) -> Any:
        """Log in, and return what `work` returns for the SDK's client. Raises PluginError."""
        failure: PluginError | None = None
        try:
            return asyncio.run(asyncio.wait_for(self._log_in_and(work), self._timeout))
        except PluginError as error:
            failure = error
        except TimeoutError:
            failure = UnavailableError(
                f"1Password did not respond within {self._timeout:g} s", remedy="try again later"
            )
        except Exception as error:  # noqa: BLE001 - whatever it is, its text stays here
            failure = map_exception(error)
        raise failure

    def check(self) -> None:
        """Log in. Raises the errors of `resolve`."""
        self.resolve(())

    async def _log_in_and(self, work: Callable[[Any], Awaitable[Any]]) -> Any:
        return await work(
            await self._client.authenticate(self._token.reveal(), "sealpipe", self._version)
        )


def map_responses(response: Any, references: Sequence[str]) -> dict[str, str | PluginError]:
    """Map the SDK's responses to values and our errors. No I/O."""
    responses = {} if response is None else response.individual_responses
    results: dict[str, str | PluginError] = {}
    for reference in references:
        item = responses.get(reference)
        if item is not None and item.content is not None:
            results[reference] = item.content.secret
            continue
        kind_of_error = getattr(getattr(item, "error", None), "type", None)
        name = getattr(kind_of_error, "value", "other")
        kind, what, remedy = _BY_TYPE.get(
            name, (PluginError, "could not be resolved by 1Password", "try `op read`")
        )
        results[reference] = kind(f"{reference} {what}", remedy=remedy)
    return results


def map_exception(error: BaseException) -> PluginError:
    """Map an exception of the SDK to an error of the contract. No I/O."""
    text = f"{type(error).__name__} {error}"
    for pattern, kind, what, remedy in _BY_TEXT:
        if re.search(pattern, text, re.IGNORECASE):
            return kind(what, remedy=remedy)
    return PluginError(
        f"1Password's SDK failed ({type(error).__name__})",
        remedy="check the token with `op whoami`",
    )
