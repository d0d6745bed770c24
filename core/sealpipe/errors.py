"""Every exception of sealpipe: what happened, what to do next, and the exit code it ends with.

    SealpipeError                       1   a bug of ours where nothing finer fits
    ├── UsageError                      2   an option, a value or a call is wrong: nothing was sent
    │   ├── ReferenceSyntaxError        2   a reference breaks the grammar, or names nothing
    │   ├── SettingError                2   a setting is missing, wrong or contradicts another
    │   │   └── CredentialError         2   the API credential is malformed
    │   ├── PolicyError                 2   a policy does not allow it
    │   ├── StateError                  2   the state folder cannot be read or written
    │   └── PayloadTooLargeError        2   more than 16 MiB to seal
    ├── WireError                       13  bytes break the wire format (`.reason` says how)
    │   ├── EncodingError, FieldError, EnvelopeError, FragmentError, PointError, BoxError, SeedError
    │   └── PasscodeError, WebhookError, WrongKeyError
    ├── AuditError                      13  an audit log's lines were changed, removed or added
    ├── PluginError                     14  a source, sink or channel failed (locator, never data)
    │   ├── SecretNotFoundError, AccessDeniedError, NotConfiguredError, BackendAuthError
    │   ├── UnavailableError, ReferenceValueError, UnsupportedError
    │   └── WriteConflictError, UnknownOutcomeError
    ├── ServiceError                    -   an error response of the service, or no response
    │   ├── AuthenticationError         3   401, or 403 without error_code
    │   ├── PermissionDeniedError       4   MissingScopeError 78, ViewProtectionError 53,
    │   │                                   QuotaExceededError 61, ApiAccessError 98,
    │   │                                   KeyAllowanceError 100, CustodyError
    │   ├── InvalidRequestError         5   19 44 104: refused as invalid
    │   ├── ToolError                   5   an error response of a tool, or of the tool endpoint
    │   ├── NotFoundError               6   1, 70: not on this account, or ended
    │   ├── RateLimitError              7   every response was 429; nothing changed (`.retry_after`)
    │   ├── RetriesExhaustedError       7   a read without a usable response; nothing changed
    │   ├── IdempotencyConflictError    8   105: the key stands for another body
    │   ├── OutcomeUnknownError         9   may have happened; kept in the outbox (`.outbox_id`)
    │   ├── ConnectError                10  provably nothing sent
    │   └── ProtocolError               12  the response breaks the protocol
    │       └── PublicKeyMismatchError  12  a request has another public key than the one sent
    ├── CollectError                    -   nothing came of a request or share (`.short_code`)
    │   ├── UnreadableSubmissionError   13  a submission cannot be opened or has other fields
    │   ├── CheckError                  14  a submission failed the user's check and was not stored
    │   ├── PendingError                15  no submission yet, or a share is not opened yet
    │   ├── NoSubmissionError           16  expired without a submission
    │   ├── UnopenedError               16  a share ended, not known to have been opened
    │   ├── TooManySubmissionsError     17  more submissions than `pick` allows: nothing was stored
    │   └── SubmissionNotFoundError     17  expired, without the submission that `pick` names
    ├── FailedRowsError                 18  rows of a batch failed or are blocked
    └── DeliveryError                   11  done at the service, but the result was not delivered

No message, attribute or cause of these ever holds a secret. Exit codes are part of the command
line's contract.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final, Self


def find_similar(
    word: str, known: Iterable[str], count: int = 1, similarity: float = 0.6
) -> list[str]:
    """Return the known words that are most like a word, at most `count`, the most like first."""
    from difflib import get_close_matches  # for an error only

    return get_close_matches(word, list(known), count, similarity)


_MAX_QUOTED: Final = 60


def quote_input(text: str) -> str:
    """Quote what somebody wrote for an error: shortened, and without control characters."""
    return repr(text if len(text) <= _MAX_QUOTED else text[:_MAX_QUOTED] + "...")


class Remedy(str):
    """What to do next, in words of the command line.

    `python` says it in words of Python, where these differ.
    """

    python: str

    def __new__(cls, text: str, *, python: str = "") -> Self:
        """Make it of both texts; without the second one for `copy` and `pickle`, which add it."""
        made = super().__new__(cls, text)
        made.python = python
        return made


class SealpipeError(Exception):
    """The root of every exception of sealpipe.

    `message` says what happened, `remedy` what to do next (may be empty); `exit_code` is what the
    command line ends with, and `collected` what `collect` collected before it raised this error.
    """

    exit_code: ClassVar[int] = 1
    default_remedy: ClassVar[str] = ""
    collected: Any = None

    def __init__(self, message: str, *, remedy: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = self.default_remedy if remedy is None else remedy

    def copy_with(self, *, message: str | None = None, remedy: str | None = None) -> Self:
        """Return this error with another message or remedy, or both; all else is the same.

        For whoever knows more than the place that raised it: `raise copy from error.__cause__`.
        """
        made = type(self).__new__(type(self), self.message if message is None else message)
        words = {"message": message, "remedy": remedy}
        given = {name: text for name, text in words.items() if text is not None}
        vars(made).update(vars(self), **given)
        if notes := getattr(self, "__notes__", ()):
            made.__notes__ = [*notes]
        return made.with_traceback(self.__traceback__)


def add_to_remedy(remedy: str, more: str) -> Remedy:
    """Return a remedy with more at its end, in both of its forms."""
    return Remedy(remedy + more, python=getattr(remedy, "python", remedy) + more)


def note_remedy(error: SealpipeError) -> None:
    """Let tracebacks show the remedy, in words of Python.

    To be called where an error reaches a program.

    The command line prints the remedy itself, and of the notes on an error only each Note.
    """
    others = [line for line in getattr(error, "__notes__", ()) if not isinstance(line, Remedy)]
    text = getattr(error.remedy, "python", error.remedy)
    error.__notes__ = (
        [Remedy(text, python=text), *others] if text and text not in error.message else others
    )


class Note(str):
    """A note of sealpipe on an exception (`add_note`).

    Other notes may hold a secret, and are not shown.
    """

    __slots__ = ()

    @staticmethod
    def on(error: BaseException) -> list[str]:
        """Return the notes of sealpipe on an exception."""
        return [line for line in getattr(error, "__notes__", ()) if isinstance(line, Note)]


# -- before anything is sent ------------------------------------------------------------------


class UsageError(SealpipeError):
    """An option, a value or a call is wrong. Nothing was sent."""

    exit_code = 2


class ReferenceSyntaxError(UsageError):
    """A reference breaks the grammar (`sealpipe.reference`), or names an unknown source."""


class SettingError(UsageError):
    """A setting is missing, wrong, or contradicts another one."""


class CredentialError(SettingError):
    """The API credential is malformed (specification: Authentication)."""

    default_remedy = (
        "set SEALPIPE_API_KEY or SEALPIPE_API_KEY_FILE to the credential as it was shown once"
    )


class PolicyError(UsageError):
    """A policy of this machine or user does not allow it. Nothing was sent."""

    default_remedy = (
        "change what is shared, with whom or for how long; the policy says what it allows"
    )


class StateError(UsageError):
    """The state folder cannot be read or written."""

    default_remedy = (
        "point SEALPIPE_STATE_DIR at a folder that you can write to, on a disk with free space"
    )


class PayloadTooLargeError(UsageError):
    """More than 16 MiB of plaintext: refused before sealing."""

    default_remedy = "share a link to the file, or split it"


# -- the wire format --------------------------------------------------------------------------


class WireError(SealpipeError):
    """Bytes do not follow the wire format, or the available key does not open them.

    `reason` is a short, stable word for programs: `missing-key`, `malformed-key`, `too-short`, ...
    """

    exit_code = 13

    def __init__(self, reason: str, message: str, *, remedy: str | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.reason = reason


class EncodingError(WireError):
    """Not canonical base64 or base64url (RFC 4648), as the wire format requires."""


class FieldError(WireError):
    """Not a field array (specification: Plaintext field array)."""


class EnvelopeError(WireError):
    """Not an envelope, or not opened by this key (specification: Content key and data envelope)."""


class FragmentError(WireError):
    """A link's fragment without a usable key: `missing-key` or `malformed-key`."""


class PasscodeError(WireError):
    """An invalid passcode: empty, or not encodable as UTF-8."""


class WebhookError(WireError):
    """A webhook is not authentic: `missing-header`, `malformed-header`, `no-match` or `stale`."""


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
    """A source, sink or channel failed.

    `locator` is the reference; the error never holds its data.
    """

    exit_code = 14

    def __init__(self, message: str, *, locator: str = "", remedy: str | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.locator = locator


class SecretNotFoundError(PluginError):
    """The backend has nothing at this locator."""


class AccessDeniedError(PluginError):
    """The backend denies access."""


class NotConfiguredError(PluginError):
    """The plugin needs a setting, a package or a program that is missing."""


class BackendAuthError(PluginError):
    """The backend does not accept the credentials."""


class UnavailableError(PluginError):
    """The backend did not respond, or is overloaded. The only plugin error that is retried.

    `retry_after` is in seconds, None if the backend did not say.
    """

    def __init__(
        self,
        message: str,
        *,
        locator: str = "",
        remedy: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, locator=locator, remedy=remedy)
        self.retry_after = retry_after


class ReferenceValueError(PluginError):
    """The locator's body or parameters are invalid for the plugin."""

    exit_code = 2


class UnsupportedError(PluginError):
    """The backend does not support the operation."""


class WriteConflictError(PluginError):
    """The target already holds a different value."""


class UnknownOutcomeError(PluginError):
    """A message or a write may have succeeded or not. It is repeated only if the user says so."""


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
"""Errors of a channel or sink that mean that nothing was sent or written.

With any other, it may have been.
"""


# -- the service ------------------------------------------------------------------------------


class ServiceError(SealpipeError):
    """The service refused a call, or its response cannot be used.

    `status` and `error_code` are those of the response (None without one), and `retry_after` its
    seconds to wait. `additional_data` maps each rejected JSON member to the service's reason.
    `unclear` is True if this attempt or an earlier one may have succeeded nevertheless; `outbox_id`
    names the stored outbox entry.
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
    """The gateway does not accept the credential.

    It gives no cause (specification: Authentication).
    """

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
    """78: the key does not have the scope of this call. A key's scopes never change."""

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
    """Custody was required and the service could not store the wrap.

    The share was expired again.
    """

    default_remedy = Remedy(
        "enrol the account's zero-knowledge key and plan feature, or share with --custody auto",
        python=(
            'enrol the account\'s zero-knowledge key and plan feature, or share with custody="auto"'
        ),
    )


class InvalidRequestError(ServiceError):
    """19, 44, 104: the service refused the request as invalid."""

    exit_code = 5
    default_remedy = "fix what the service names and try again"


class ToolError(ServiceError):
    """A tool, or the tool endpoint, returned an error.

    `error_code` is the code of a JSON-RPC error.
    """

    exit_code = 5
    default_remedy = Remedy(
        "see `sealpipe tools list --output json` for the tools and the arguments that they take",
        python="see client.list_tools() for the tools and the arguments that they take",
    )


class NotFoundError(ServiceError):
    """1, 70: not on this account, never existed, or already expired.

    The service does not say which.
    """

    exit_code = 6
    default_remedy = (
        "check the short code (shares and requests have their own commands), and that the "
        "credential belongs to the account that created it"
    )


class RateLimitError(ServiceError):
    """Every response was 429.

    Nothing changed. `retry_after` is in seconds, None if the service did not say.
    """

    exit_code = 7
    default_remedy = Remedy(
        "run it again later, or give it a longer --deadline",
        python="call it again later, or make the client with a longer deadline",
    )


class RetriesExhaustedError(ServiceError):
    """A read, or another call that may be retried, never got a usable response. Nothing changed."""

    exit_code = 7
    default_remedy = "run it again later"


class IdempotencyConflictError(ServiceError):
    """105: the idempotency key belongs to another body.

    Final: the body is never sent under a new key.
    """

    exit_code = 8
    default_remedy = Remedy(
        "check `sealpipe shares list` for a share created with this key, then share again",
        python="look for a share created with this key (client.iter_shares()), then share again",
    )


class OutcomeUnknownError(ServiceError):
    """The call may have succeeded or not. `outbox_id` names the entry that `resume` finishes."""

    exit_code = 9


class ConnectError(ServiceError):
    """The connection failed: provably nothing was sent."""

    exit_code = 10
    default_remedy = "check the base URL, the network and the proxy settings"


class ProtocolError(ServiceError):
    """The response breaks the protocol.

    Not JSON, wrong types, a redirect, another encoding, too long.
    """

    exit_code = 12
    default_remedy = (
        "check that the base URL is the service's API and that no proxy responds instead"
    )


class PublicKeyMismatchError(ProtocolError):
    """The service stored another public key for a request: its submissions could not be opened.

    `short_code` is the code of that request.
    """

    default_remedy = (
        "do not send its link; find out who can respond in the service's name, and create a "
        "new request"
    )
    short_code: str = ""


class CollectError(SealpipeError):
    """A request does not have the expected submissions, or a share was not opened.

    Nothing is lost. `short_code` is that of the request or share.
    """

    def __init__(self, message: str, *, remedy: str | None = None, short_code: str = "") -> None:
        super().__init__(message, remedy=remedy)
        self.short_code = short_code


class UnreadableSubmissionError(CollectError):
    """Some submissions cannot be opened, or do not fit the prompts. The others are delivered."""

    exit_code = 13
    default_remedy = "ask the submitter to send it again; the ciphertext is stored"


class CheckError(CollectError):
    """A submission did not pass the check. Nothing of it was stored, and it can be collected again.

    `submission` is its marker.
    """

    exit_code = 14
    default_remedy = (
        "nothing is lost: correct what the check tests, or ask the submitter to send it again, "
        "and collect again"
    )
    submission: str = ""


class PendingError(CollectError):
    """There is no submission yet, or what `shares wait` waits for has not come."""

    exit_code = 15
    default_remedy = Remedy(
        "run it again later, or give it more time with --wait",
        python='call it again later, or with wait="15m"',
    )


class NoSubmissionError(CollectError):
    """The request expired without a submission."""

    exit_code = 16
    default_remedy = "create a new request"


class UnopenedError(CollectError):
    """A share has ended, and is not known to have been opened."""

    exit_code = 16
    default_remedy = "share it again"


class TooManySubmissionsError(CollectError):
    """There are more submissions than `pick` allows.

    Nothing was stored: anyone with the link can submit.
    """

    exit_code = 17
    default_remedy = Remedy(
        "choose with --pick newest, oldest, each, or a submission's code",
        python='choose with pick="newest", "oldest", "each", or a submission\'s code',
    )


class SubmissionNotFoundError(CollectError):
    """The request expired without the submission that `pick` names. Nothing was stored."""

    exit_code = 17
    default_remedy = TooManySubmissionsError.default_remedy


class AuditError(SealpipeError):
    """An audit log's chain is broken: lines were changed, removed, added or cut off."""

    exit_code = 13
    default_remedy = "compare it with a copy of the log, and find out who could write to it"


class FailedRowsError(SealpipeError):
    """Rows of a batch failed or are blocked. All others went on."""

    exit_code = 18
    default_remedy = "`sealpipe batch status NAME` shows each row"


class DeliveryError(SealpipeError):
    """Done at the service, but the result was not delivered. Its outbox entry stays.

    `outbox_id` names the entry, None without an outbox; then `share` is the share, with its link.
    """

    exit_code = 11

    def __init__(
        self, message: str, *, remedy: str | None = None, outbox_id: str | None = None
    ) -> None:
        super().__init__(message, remedy=remedy)
        self.outbox_id = outbox_id
        self.share: Any = None
