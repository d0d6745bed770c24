"""Every exception of sealpipe: what happened, what to do next, and the exit code it ends with.

    SealpipeError                              1   a bug of ours where nothing finer fits
    ├── UsageError                             2   an option, a value or a call is wrong: nothing was sent
    │   ├── ReferenceSyntaxError               2   a reference does not follow the grammar, or names nothing
    │   ├── SettingError                       2   a setting is missing, wrong or contradicts another
    │   │   └── CredentialError                2   the API credential has not the form of one
    │   ├── PolicyError                        2   a policy does not allow it
    │   ├── StateError                         2   the state folder cannot be read or written
    │   └── PayloadTooLargeError               2   more than 16 MiB to seal
    ├── WireError                              13  bytes that do not follow the wire format (`.reason` says how)
    │   ├── EncodingError, FieldError, EnvelopeError, FragmentError, PointError, BoxError, SeedError
    │   └── PasscodeError, WebhookError, WrongKeyError
    ├── AuditError                             13  an audit log's chain is broken: lines were changed, removed or added
    ├── PluginError                            14  a source, sink or channel failed (carries the locator, never data)
    │   ├── SecretNotFoundError, AccessDeniedError, NotConfiguredError, BackendAuthError, UnavailableError
    │   └── ReferenceValueError, UnsupportedError, WriteConflictError, UnknownOutcomeError
    ├── ServiceError                           -   the service answered, or should have
    │   ├── AuthenticationError                3   401, or 403 without error_code
    │   ├── PermissionDeniedError              4   MissingScopeError 78, ViewProtectionError 53, QuotaExceededError 61,
    │   │                                           ApiAccessError 98, KeyAllowanceError 100, CustodyError
    │   ├── InvalidRequestError                5   19 44 104: refused as invalid
    │   ├── ToolError                          5   a tool, or the tool endpoint, answered with an error
    │   ├── NotFoundError                      6   1, 70: not on this account, or ended
    │   ├── RateLimitError                     7   429 to the end; nothing changed (`.retry_after` seconds)
    │   ├── RetriesExhaustedError              7   a read that never got an answer to use; nothing changed
    │   ├── IdempotencyConflictError           8   105: the key stands for another body
    │   ├── OutcomeUnknownError                9   may have happened; kept in the outbox (`.outbox_id`)
    │   ├── ConnectError                       10  provably nothing sent
    │   └── ProtocolError                      12  the answer breaks the protocol
    │       └── PublicKeyMismatchError         12  a request is under another public key than the one sent
    ├── CollectError                           -   what a request has, or has not, to give (`.short_code`)
    │   ├── UnreadableSubmissionError          13  what was submitted cannot be opened, or does not fit the prompts
    │   ├── PendingError                       15  nothing there yet
    │   ├── NoSubmissionError                  16  expired without a submission
    │   ├── TooManySubmissionsError            17  more submissions than `pick` allows: nothing was stored
    │   └── SubmissionNotFoundError            17  over, and no submission is the one that `pick` names
    └── DeliveryError                          11  done at the service, the result could not be put where it belongs

No message, attribute or cause of these ever holds a secret. Exit codes are DESIGN's contract (section 3).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar


class SealpipeError(Exception):
    """The root of every exception of sealpipe.

    `message` says what happened, `remedy` what to do next (may be empty).
    """

    exit_code: ClassVar[int] = 1
    default_remedy: ClassVar[str] = ""
    collected: Any = None
    """What `collect` has got all the same, where it ends with this error."""

    def __init__(self, message: str, *, remedy: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = self.default_remedy if remedy is None else remedy


class Note(str):
    """A line of ours on an exception (`add_note`). Anybody else's may hold a secret, and is not shown."""

    __slots__ = ()

    @staticmethod
    def on(error: BaseException) -> list[str]:
        """The lines of ours on an exception."""
        return [line for line in getattr(error, "__notes__", ()) if isinstance(line, Note)]


# -- before anything is sent ------------------------------------------------------------------


class UsageError(SealpipeError):
    """An option, a value or a call is wrong. Nothing was sent."""

    exit_code = 2


class ReferenceSyntaxError(UsageError):
    """A reference does not follow the grammar (DESIGN section 4), or names a source that is not there."""


class SettingError(UsageError):
    """A setting is missing, wrong, or contradicts another one."""


class CredentialError(SettingError):
    """The API credential has not the form of one (specification: Authentication)."""

    default_remedy = "set SEALPIPE_API_KEY or SEALPIPE_API_KEY_FILE to the credential as it was shown once"


class PolicyError(UsageError):
    """A policy of this machine or user does not allow it. Nothing was sent."""

    default_remedy = "change what is shared, with whom or for how long; the policy says what it allows"


class StateError(UsageError):
    """The state folder cannot be read or written."""

    default_remedy = "point SEALPIPE_STATE_DIR at a folder that you can write to, on a disk with free space"


class PayloadTooLargeError(UsageError):
    """More than 16 MiB of plaintext: refused before sealing."""

    default_remedy = "share a link to the file, or split it"


# -- the wire format --------------------------------------------------------------------------


class WireError(SealpipeError):
    """Bytes that do not follow the wire format, or that the key in hand does not open.

    `reason` is one short stable word for programs: `missing-key`, `malformed-key`, `too-short`, ...
    """

    exit_code = 13

    def __init__(self, reason: str, message: str, *, remedy: str | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.reason = reason


class EncodingError(WireError):
    """Not base64 or base64url as the wire format wants it (RFC 4648, canonical, no junk)."""


class FieldError(WireError):
    """Not a field array (specification: Plaintext field array)."""


class EnvelopeError(WireError):
    """Not an envelope, or not opened by this key (specification: Content key and data envelope)."""


class FragmentError(WireError):
    """A link's fragment without a usable key: `missing-key` or `malformed-key`."""


class PasscodeError(WireError):
    """A passcode that cannot be one: empty, or not encodable as UTF-8."""


class WebhookError(WireError):
    """A webhook that is not to be trusted: `missing-header`, `malformed-header`, `no-match` or `stale`."""


class WrongKeyError(WireError):
    """Submissions are encrypted to a key that is not available."""


class PointError(WireError):
    """Not an uncompressed P-256 point of 65 bytes on the curve."""


class SeedError(WireError):
    """Not a seed of 32 bytes, or not a custody secret."""


class BoxError(WireError):
    """Not a sealed box, or not opened by this key pair (specification: item_key_wrap)."""


# -- plugins ----------------------------------------------------------------------------------


class PluginError(SealpipeError):
    """A source, sink or channel failed. `locator` is the reference it was about; never its data."""

    exit_code = 14

    def __init__(self, message: str, *, locator: str = "", remedy: str | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.locator = locator


class SecretNotFoundError(PluginError):
    """Nothing is there under that locator."""


class AccessDeniedError(PluginError):
    """It is there, or may be, and we may not have it."""


class NotConfiguredError(PluginError):
    """The plugin has not what it needs: a setting, a package, a program."""


class BackendAuthError(PluginError):
    """The backend refused our login."""


class UnavailableError(PluginError):
    """The backend did not answer, or asked to come back later. The only kind that is tried again.

    `retry_after` is in seconds, None where it did not say.
    """

    def __init__(
        self, message: str, *, locator: str = "", remedy: str | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(message, locator=locator, remedy=remedy)
        self.retry_after = retry_after


class ReferenceValueError(PluginError):
    """The plugin cannot make sense of the locator's body or parameters."""

    exit_code = 2


class UnsupportedError(PluginError):
    """The backend cannot do what is asked."""


class WriteConflictError(PluginError):
    """Something else is already stored there."""


class UnknownOutcomeError(PluginError):
    """It may have been taken (a message, a write) and may not: repeating it is somebody's decision."""


NOT_TAKEN = (
    BackendAuthError,
    ReferenceValueError,
    WriteConflictError,
    AccessDeniedError,
    NotConfiguredError,
    SecretNotFoundError,
    UnavailableError,
    UnsupportedError,
    UsageError,
)
"""Errors of a channel or a sink that say that nothing was taken. Any other leaves that open."""


# -- the service ------------------------------------------------------------------------------


class ServiceError(SealpipeError):
    """The service refused, or what came back cannot be used.

    `status` and `error_code` as answered (None where there was none), `additional_data` in full:
    a mapping from the rejected JSON member to the reason the service gave. `unclear` is True where this sending
    or an earlier one may have been carried out all the same; `outbox_id` names the entry that was kept.
    """

    def __init__(
        self,
        message: str,
        *,
        remedy: str | None = None,
        status: int | None = None,
        error_code: int | None = None,
        additional_data: Mapping[str, object] | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, remedy=remedy)
        self.status = status
        self.error_code = error_code
        self.additional_data = dict(additional_data or {})
        self.retry_after = retry_after
        self.unclear = False
        self.outbox_id: str | None = None


class AuthenticationError(ServiceError):
    """The gateway does not accept the credential: the cause is never told (specification: Authentication)."""

    exit_code = 3
    default_remedy = (
        "check that the key is complete and not revoked, that the base URL is the one it "
        "belongs to, and that the plan has API access"
    )


class PermissionDeniedError(ServiceError):
    """The plan or the key's scopes do not allow it."""

    exit_code = 4
    default_remedy = "change the plan or the key; waiting does not help"


class MissingScopeError(PermissionDeniedError):
    """78: the key lacks the scope of this call. Scopes are fixed for a key's life."""

    default_remedy = "create an API key with this scope, and revoke this one"


class ViewProtectionError(PermissionDeniedError):
    """53: a passcode on a plan without view protection."""

    default_remedy = "share without a passcode, or move the account to a plan with view protection"


class QuotaExceededError(PermissionDeniedError):
    """61: the plan's allowance of shares is used up."""

    default_remedy = "expire shares that are no longer needed, or raise the plan's allowance"


class ApiAccessError(PermissionDeniedError):
    """98: the plan has no API access."""

    default_remedy = "API access needs a Business or Enterprise plan"


class KeyAllowanceError(PermissionDeniedError):
    """100: the plan's allowance of API keys is reached."""

    default_remedy = "revoke a key that is no longer used: that frees its slot at once"


class CustodyError(PermissionDeniedError):
    """Custody was required and the service could not store the wrap. The share was expired again."""

    default_remedy = "enrol the account's zero-knowledge key and plan feature, or share with --custody auto"


class InvalidRequestError(ServiceError):
    """19, 44, 104: the service refused the request as invalid."""

    exit_code = 5
    default_remedy = "fix what the service names and try again"


class ToolError(ServiceError):
    """A tool answered with an error, or the tool endpoint with one of JSON-RPC (`error_code` is its code, then)."""

    exit_code = 5
    default_remedy = "see `sealpipe tools list --output json` for the tools and the arguments that they take"


class NotFoundError(ServiceError):
    """1, 70: not on this account, never there, or already ended; the service does not say which."""

    exit_code = 6
    default_remedy = "check the short code, and that the credential belongs to the account that created it"


class RateLimitError(ServiceError):
    """429 to the end. Nothing changed. `retry_after` is in seconds, None where the service gave none."""

    exit_code = 7
    default_remedy = "run it again later, or give it a longer --deadline"


class RetriesExhaustedError(ServiceError):
    """A read, or a call that may be repeated, never got a usable answer. Nothing changed."""

    exit_code = 7
    default_remedy = "run it again later"


class IdempotencyConflictError(ServiceError):
    """105: the idempotency key stands for another body. Final: it is never sent under a new key."""

    exit_code = 8
    default_remedy = "check `sealpipe shares list` for a share created with this key, then share again"


class OutcomeUnknownError(ServiceError):
    """It may have happened and may not have. `outbox_id` names the entry that `resume` finishes."""

    exit_code = 9


class ConnectError(ServiceError):
    """No connection came about: provably nothing was sent."""

    exit_code = 10
    default_remedy = "check the base URL, the network and the proxy settings"


class ProtocolError(ServiceError):
    """The answer breaks the protocol: not JSON, wrong types, a redirect, another encoding, too long."""

    exit_code = 12
    default_remedy = "check that the base URL is the service's API and that no proxy responds instead"


class PublicKeyMismatchError(ProtocolError):
    """A request is at the service under another public key than ours: what is submitted could not be opened.

    `short_code` is that request's.
    """

    default_remedy = "do not send its link; find out who can respond in the service's name, and create a new request"
    short_code: str = ""


class CollectError(SealpipeError):
    """What a request has to give is not as it was asked for. Nothing is lost. `short_code` is the request's."""

    def __init__(self, message: str, *, remedy: str | None = None, short_code: str = "") -> None:
        super().__init__(message, remedy=remedy)
        self.short_code = short_code


class UnreadableSubmissionError(CollectError):
    """Of what was submitted, some cannot be opened, or does not answer what was asked. The rest is delivered."""

    exit_code = 13
    default_remedy = "ask the submitter to send it again; the ciphertext is stored"


class PendingError(CollectError):
    """Nobody has answered yet."""

    exit_code = 15
    default_remedy = "run it again later, or give it more time with --wait"


class NoSubmissionError(CollectError):
    """The request has expired, and nobody had answered."""

    exit_code = 16
    default_remedy = "create a new request"


class TooManySubmissionsError(CollectError):
    """There are more answers than `pick` allows. Nothing was stored: whoever has the link may answer."""

    exit_code = 17
    default_remedy = "choose with --pick newest, oldest, each, or a submission's code"


class SubmissionNotFoundError(CollectError):
    """The request has ended, and none of its submissions is the one that `pick` names. Nothing was stored."""

    exit_code = 17
    default_remedy = TooManySubmissionsError.default_remedy


class AuditError(SealpipeError):
    """An audit log's chain is broken: lines were changed, removed, added or cut off."""

    exit_code = 13
    default_remedy = "compare it with a copy of the log, and find out who could write to it"


class DeliveryError(SealpipeError):
    """Done at the service, but the result could not be put where it belongs. Kept in the outbox.

    `outbox_id` names the entry, None where there is no outbox; then `share` is the share, and its link is there.
    """

    exit_code = 11

    def __init__(self, message: str, *, remedy: str | None = None, outbox_id: str | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.outbox_id = outbox_id
        self.share: Any = None
