"""What AWS and its SDK say when something fails, in the contract's words. Their own text is never shown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from botocore import exceptions as boto

from sealpipe.plugin import (
    AuthFailed,
    BadReference,
    Denied,
    NotConfigured,
    NotFound,
    PluginError,
    Unavailable,
    Unclear,
    Unsupported,
)
from sealpipe_plugins.backends.reasons import not_sent

FAILURES: Final = (boto.BotoCoreError, boto.ClientError)
"""What a call of the SDK raises."""


class Doing(NamedTuple):
    """What a call does, in a word for people. `unsure` tells that it is not known whether it did, where AWS fails."""

    word: str
    unsure: bool = False


READ: Final = Doing("read")
WRITE: Final = Doing("written", unsure=True)
MARK: Final = Doing("written")
"""Writing what may be written again as often as one likes."""


class _Meaning(NamedTuple):
    """An error: its kind, what it says behind the reference, and what to do.

    `{action}` is the permission, `{done}` what the call does, `{key}` what it needs of a KMS key.
    """

    kind: type[PluginError]
    what: str
    remedy: str


_MISSING = _Meaning(
    NotFound, "is not there", "check its name, its version or stage, the region and the account (`sealpipe doctor`)"
)
_DELETED = _Meaning(NotFound, "is marked for deletion", "restore it, or name another one")
_DENIED = _Meaning(
    Denied,
    "may not be {done}: AWS does not allow {action} to this identity",
    "allow {action} on it in the identity's policy; `sealpipe doctor` says who is asking",
)
_KEY = _Meaning(
    Denied,
    "cannot be {coded}: its KMS key may not be used, or is not there",
    "allow {key} on the key that it is encrypted with",
)
_STRANGER = _Meaning(
    AuthFailed,
    "cannot be asked for: AWS does not know the access key",
    "check the access key; a temporary one needs its session token",
)
_EXPIRED = _Meaning(AuthFailed, "cannot be asked for: the AWS session has expired", "log in to AWS anew")
_SIGNATURE = _Meaning(
    AuthFailed,
    "cannot be asked for: AWS does not accept the signature",
    "check the secret access key, and this machine's clock",
)
_MALFORMED = _Meaning(BadReference, "is nothing that AWS takes", "check the name, and the parameters behind ?")
_LATER = _Meaning(Unavailable, "cannot be {done} now: AWS asks to come back later", "run it again later")
_FAILED = _LATER._replace(remedy="run it again later; AWS has trouble of its own")
_FULL = _Meaning(
    Unsupported, "cannot be {done}: the account, or this place, has as many as AWS allows", "delete what nobody needs"
)
_PATTERN = _Meaning(
    Unsupported, "cannot be {done}: its AllowedPattern does not match the value", "ask for another value, or change it"
)
_NOT_HERE = _Meaning(Unsupported, "cannot be asked for: this endpoint does not know {action}", "check endpoint_url")

_CODES: Final[Mapping[str, _Meaning]] = {
    code: meaning
    for meaning, codes in (
        (_MISSING, "ResourceNotFoundException ParameterNotFound ParameterVersionNotFound"),
        (_DENIED, "AccessDeniedException AccessDenied UnauthorizedOperation AuthorizationError"),
        (_KEY, "DecryptionFailure InvalidKeyId KMSAccessDeniedException KMSDisabledException KMSInvalidStateException"),
        (_STRANGER, "UnrecognizedClientException InvalidClientTokenId InvalidAccessKeyId AuthFailure"),
        (_STRANGER, "MissingAuthenticationToken MissingAuthenticationTokenException OptInRequired"),
        (_EXPIRED, "ExpiredToken ExpiredTokenException RequestExpired"),
        (_SIGNATURE, "SignatureDoesNotMatch InvalidSignatureException IncompleteSignature"),
        (_MALFORMED, "ValidationException ValidationError InvalidParameterException InvalidParameterValue"),
        (_MALFORMED, "InvalidRequestException ParamValidationError"),
        (_KEY, "EncryptionFailure"),
        (_LATER, "ThrottlingException Throttling TooManyRequestsException RequestLimitExceeded SlowDown"),
        (_LATER, "TooManyUpdates"),
        (_FAILED, "ServiceUnavailable ServiceUnavailableException InternalServiceError InternalServerError"),
        (_FAILED, "InternalFailure InternalServiceErrorException RequestTimeout RequestTimeoutException"),
        (_FAILED, "IDPCommunicationError"),
        (_FULL, "LimitExceededException ParameterLimitExceeded ParameterMaxVersionLimitExceeded TooManyTagsError"),
        (_FULL, "HierarchyLevelLimitExceededException"),
        (_PATTERN, "ParameterPatternMismatchException"),
        (_NOT_HERE, "UnknownOperationException UnknownOperation InvalidAction NotImplemented"),
    )
    for code in codes.split()
}

_REACH = "check the network, endpoint_url and the region"
_LOGIN = "log in to AWS anew (`aws sso login`), or check the profile"
_SDK: Final[tuple[tuple[type[Exception], _Meaning], ...]] = (
    (
        boto.NoCredentialsError,
        _Meaning(
            NotConfigured,
            "cannot be asked for: there are no AWS credentials here",
            "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile, or role_arn with audience for the CI's token",
        ),
    ),
    (
        boto.PartialCredentialsError,
        _Meaning(NotConfigured, "cannot be asked for: half of the AWS credentials is missing", "set both halves"),
    ),
    (
        boto.NoRegionError,
        _Meaning(NotConfigured, "cannot be asked for: no AWS region is set", "set AWS_REGION, or the store's region"),
    ),
    (
        boto.InvalidRegionError,
        _Meaning(NotConfigured, "cannot be asked for: the AWS region is none", "check AWS_REGION, or the region in it"),
    ),
    (
        boto.ProfileNotFound,
        _Meaning(NotConfigured, "cannot be asked for: there is no such AWS profile", "check AWS_PROFILE"),
    ),
    (
        boto.ConfigParseError,
        _Meaning(NotConfigured, "cannot be asked for: AWS's config file cannot be read", "check ~/.aws/config"),
    ),
    (boto.ParamValidationError, _MALFORMED),
    (boto.UnauthorizedSSOTokenError, _EXPIRED),
    (boto.SSOError, _Meaning(AuthFailed, "cannot be asked for: there is no SSO login to AWS", _LOGIN)),
    (boto.TokenRetrievalError, _Meaning(AuthFailed, "cannot be asked for: the login to AWS failed", _LOGIN)),
    (boto.CredentialRetrievalError, _Meaning(AuthFailed, "cannot be asked for: the login to AWS failed", _LOGIN)),
    (boto.ReadTimeoutError, _Meaning(Unavailable, "cannot be {done} now: AWS did not answer in time", _REACH)),
    (boto.ConnectionClosedError, _Meaning(Unavailable, "cannot be {done} now: AWS hung up without an answer", _REACH)),
)
_CODE: Final = re.compile(r"[A-Za-z][A-Za-z0-9.]{0,63}")


def told(error: Exception, about: object, action: str, doing: Doing = READ) -> PluginError:
    """One of FAILURES, about a reference; `action` is the permission that the call needs."""
    if isinstance(error, boto.ClientError):
        return _answered(error.response, about, action, doing)
    meaning = next((meaning for kind, meaning in _SDK if isinstance(error, kind)), None)
    if meaning is None and isinstance(error, boto.ConnectionError | boto.HTTPClientError):
        return _not_reached(error, about, doing)
    failed = isinstance(error, boto.ReadTimeoutError | boto.ConnectionClosedError)
    return _said(meaning, about, action, type(error).__name__, doing, failed=failed)


def code_of(error: Exception) -> str:
    """The code that AWS answered with; empty where it did not answer."""
    return str(error.response.get("Error", {}).get("Code", "")) if isinstance(error, boto.ClientError) else ""


def refused(code: str, message: str, about: object, action: str, doing: Doing = READ) -> PluginError:
    """An error that AWS answers with, by its code."""
    meaning = _CODES.get(code)
    if code == "InvalidRequestException" and re.search("delet", message):
        meaning = _DELETED
    elif meaning is _DENIED and re.search("KMS|kms:|[Cc]iphertext", message):
        meaning = _KEY
    return _said(meaning, about, action, code, doing, failed=meaning is _FAILED)


def _answered(response: Mapping[str, Any], about: object, action: str, doing: Doing) -> PluginError:
    given, meta = response.get("Error", {}), response.get("ResponseMetadata", {})
    code = str(given.get("Code", ""))
    status, wait = meta.get("HTTPStatusCode", 0), meta.get("HTTPHeaders", {}).get("retry-after", "")
    failure = refused(code, str(given.get("Message", "")), about, action, doing)
    if status >= 500 and not isinstance(failure, Unavailable | Unclear):
        failure = _said(_FAILED, about, action, code, doing, failed=True)
    elif status == 429 and not isinstance(failure, Unavailable):
        failure = _said(_LATER, about, action, code, doing)
    if isinstance(failure, Unavailable) and re.fullmatch("[0-9]{1,6}", wait):
        failure.retry_after = float(wait)
    return failure


def _not_reached(error: Any, about: object, doing: Doing) -> PluginError:
    host = urlsplit(str(error.kwargs.get("endpoint_url", ""))).netloc
    reason = not_sent(error, "AWS", host or "its address")
    return type(reason)(f"{about} cannot be {doing.word}: {reason.message}", remedy=reason.remedy)


def _said(
    meaning: _Meaning | None, about: object, action: str, code: str, doing: Doing, *, failed: bool = False
) -> PluginError:
    if failed and doing.unsure:
        return Unclear(f"{about}: AWS failed while it was {doing.word}", remedy="run it again: it looks first")
    if meaning is None:
        shown = code if _CODE.fullmatch(code) else "an unknown code"
        return PluginError(f"{about} cannot be {doing.word}: AWS answered {shown}", remedy="see AWS's list of errors")
    read = doing.word == READ.word
    words = {
        "action": action,
        "done": doing.word,
        "coded": "decrypted" if read else "encrypted",
        "key": "kms:Decrypt" if read else "kms:Encrypt, kms:GenerateDataKey and kms:Decrypt",
    }
    return meaning.kind(f"{about} {meaning.what.format(**words)}", remedy=meaning.remedy.format(**words))
