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
    Unsupported,
)
from sealpipe_plugins.backends.reasons import not_sent

FAILURES: Final = (boto.BotoCoreError, boto.ClientError)
"""What a call of the SDK raises."""


class _Meaning(NamedTuple):
    """An error: its kind, what it says behind the reference, and what to do. `{action}` is the permission."""

    kind: type[PluginError]
    what: str
    remedy: str


_MISSING = _Meaning(
    NotFound, "is not there", "check its name, its version or stage, the region and the account (`sealpipe doctor`)"
)
_DELETED = _Meaning(NotFound, "is marked for deletion", "restore it, or name another one")
_DENIED = _Meaning(
    Denied,
    "may not be read: AWS does not allow {action} to this identity",
    "allow {action} on it in the identity's policy; `sealpipe doctor` says who is asking",
)
_KEY = _Meaning(
    Denied,
    "cannot be decrypted: its KMS key may not be used, or is not there",
    "allow kms:Decrypt on the key that it is encrypted with",
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
_LATER = _Meaning(Unavailable, "cannot be read now: AWS asks to come back later", "run it again later")
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
        (_LATER, "ThrottlingException Throttling TooManyRequestsException RequestLimitExceeded SlowDown"),
        (_LATER, "ServiceUnavailable ServiceUnavailableException InternalServiceError InternalServerError"),
        (_LATER, "InternalFailure InternalServiceErrorException RequestTimeout RequestTimeoutException"),
        (_LATER, "IDPCommunicationError"),
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
    (boto.ReadTimeoutError, _Meaning(Unavailable, "cannot be read now: AWS did not answer in time", _REACH)),
    (boto.ConnectionClosedError, _Meaning(Unavailable, "cannot be read now: AWS hung up without an answer", _REACH)),
)
_CODE: Final = re.compile(r"[A-Za-z][A-Za-z0-9.]{0,63}")


def told(error: Exception, about: object, action: str) -> PluginError:
    """One of FAILURES, about a reference; `action` is the permission that the call needs."""
    if isinstance(error, boto.ClientError):
        return _answered(error.response, about, action)
    meaning = next((meaning for kind, meaning in _SDK if isinstance(error, kind)), None)
    if meaning is None and isinstance(error, boto.ConnectionError | boto.HTTPClientError):
        return _not_reached(error, about)
    return _said(meaning, about, action, type(error).__name__)


def refused(code: str, message: str, about: object, action: str) -> PluginError:
    """An error that AWS answers with, by its code."""
    meaning = _CODES.get(code)
    if code == "InvalidRequestException" and re.search("delet", message):
        meaning = _DELETED
    elif meaning is _DENIED and re.search("KMS|kms:|[Cc]iphertext", message):
        meaning = _KEY
    return _said(meaning, about, action, code)


def _answered(response: Mapping[str, Any], about: object, action: str) -> PluginError:
    given, meta = response.get("Error", {}), response.get("ResponseMetadata", {})
    code = str(given.get("Code", ""))
    status, wait = meta.get("HTTPStatusCode", 0), meta.get("HTTPHeaders", {}).get("retry-after", "")
    failure = refused(code, str(given.get("Message", "")), about, action)
    busy = status == 429 or status >= 500
    if busy and not isinstance(failure, Unavailable):
        failure = _said(_LATER, about, action, code)
    if isinstance(failure, Unavailable) and re.fullmatch("[0-9]{1,6}", wait):
        failure.retry_after = float(wait)
    return failure


def _not_reached(error: Any, about: object) -> PluginError:
    host = urlsplit(str(error.kwargs.get("endpoint_url", ""))).netloc
    reason = not_sent(error, "AWS", host or "its address")
    return type(reason)(f"{about} cannot be read: {reason.message}", remedy=reason.remedy)


def _said(meaning: _Meaning | None, about: object, action: str, code: str) -> PluginError:
    if meaning is None:
        shown = code if _CODE.fullmatch(code) else "an unknown code"
        return PluginError(f"{about} cannot be read: AWS answered {shown}", remedy="see AWS's list of errors")
    return meaning.kind(f"{about} {meaning.what.format(action=action)}", remedy=meaning.remedy.format(action=action))
