"""What the errors of AWS and its SDK mean, as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from botocore import exceptions as boto

from sealpipe.plugin import (
    AccessDeniedError,
    BackendAuthError,
    NotConfiguredError,
    PluginError,
    ReferenceValueError,
    SecretNotFoundError,
    UnavailableError,
    UnsupportedError,
)


class Verb(NamedTuple):
    """What a call does, as a word for messages.

    If a `not_repeatable` call fails, its outcome is unknown.
    """

    word: str
    not_repeatable: bool = False


READ: Final = Verb("read")
WRITE: Final = Verb("written", not_repeatable=True)
MARK: Final = Verb("written")
"""A write that may be repeated."""


class Meaning(NamedTuple):
    """An error: its kind, the text after the reference, and the remedy.

    `{action}` is the permission, `{done}` what the call does, `{key}` the permission it needs on a
    KMS key.
    """

    kind: type[PluginError]
    what: str
    remedy: str


_MISSING = Meaning(
    SecretNotFoundError,
    "does not exist",
    "check its name, its version or stage, the region and the account (`sealpipe doctor`)",
)
DELETED = Meaning(SecretNotFoundError, "is marked for deletion", "restore it, or name another one")
DENIED = Meaning(
    AccessDeniedError,
    "may not be {done}: AWS does not allow {action} for this identity",
    "allow {action} on it in the identity's policy; `sealpipe doctor` shows the identity",
)
KEY = Meaning(
    AccessDeniedError,
    "cannot be {coded}: its KMS key does not exist or may not be used",
    "allow {key} on the key that it is encrypted with",
)
_UNKNOWN_KEY = Meaning(
    BackendAuthError,
    "cannot be accessed: AWS does not know the access key",
    "check the access key; a temporary one needs its session token",
)
_EXPIRED = Meaning(
    BackendAuthError, "cannot be accessed: the AWS session has expired", "log in to AWS again"
)
_SIGNATURE = Meaning(
    BackendAuthError,
    "cannot be accessed: AWS does not accept the signature",
    "check the secret access key and this machine's clock",
)
_INVALID_NAME = Meaning(
    ReferenceValueError, "is not valid for AWS", "check the name and the parameters after ?"
)
THROTTLED = Meaning(
    UnavailableError, "cannot be {done} now: AWS asks to try again later", "run it again later"
)
FAILED = THROTTLED._replace(remedy="run it again later; AWS has an internal error")
_LIMIT_REACHED = Meaning(
    UnsupportedError,
    "cannot be {done}: AWS's limit for the account or path is reached",
    "delete what is no longer needed",
)
_PATTERN = Meaning(
    UnsupportedError,
    "cannot be {done}: its AllowedPattern does not match the value",
    "ask for another value, or change the pattern",
)
REDIRECT = Meaning(
    NotConfiguredError,
    "cannot be {done}: the address of AWS responded with a redirect, which is never followed",
    "check endpoint_url",
)
_UNKNOWN_OPERATION = Meaning(
    UnsupportedError,
    "cannot be accessed: this endpoint does not support {action}",
    "check endpoint_url",
)

CODES: Final[Mapping[str, Meaning]] = {
    code: meaning
    for meaning, codes in (
        (_MISSING, "ResourceNotFoundException ParameterNotFound ParameterVersionNotFound"),
        (DENIED, "AccessDeniedException AccessDenied UnauthorizedOperation AuthorizationError"),
        (
            KEY,
            (
                "DecryptionFailure InvalidKeyId KMSAccessDeniedException KMSDisabledException "
                "KMSInvalidStateException"
            ),
        ),
        (
            _UNKNOWN_KEY,
            "UnrecognizedClientException InvalidClientTokenId InvalidAccessKeyId AuthFailure",
        ),
        (
            _UNKNOWN_KEY,
            "MissingAuthenticationToken MissingAuthenticationTokenException OptInRequired",
        ),
        (_EXPIRED, "ExpiredToken ExpiredTokenException RequestExpired"),
        (_SIGNATURE, "SignatureDoesNotMatch InvalidSignatureException IncompleteSignature"),
        (
            _INVALID_NAME,
            "ValidationException ValidationError InvalidParameterException InvalidParameterValue",
        ),
        (_INVALID_NAME, "InvalidRequestException ParamValidationError"),
        (KEY, "EncryptionFailure"),
        (
            THROTTLED,
            "ThrottlingException Throttling TooManyRequestsException RequestLimitExceeded SlowDown",
        ),
        (THROTTLED, "TooManyUpdates"),
        (
            FAILED,
            (
                "ServiceUnavailable ServiceUnavailableException InternalServiceError "
                "InternalServerError"
            ),
        ),
        (
            FAILED,
            "InternalFailure InternalServiceErrorException RequestTimeout RequestTimeoutException",
        ),
        (FAILED, "IDPCommunicationError"),
        (
            _LIMIT_REACHED,
            (
                "LimitExceededException ParameterLimitExceeded ParameterMaxVersionLimitExceeded "
                "TooManyTagsError"
            ),
        ),
        (_LIMIT_REACHED, "HierarchyLevelLimitExceededException"),
        (_PATTERN, "ParameterPatternMismatchException"),
        (
            _UNKNOWN_OPERATION,
            "UnknownOperationException UnknownOperation InvalidAction NotImplemented",
        ),
    )
    for code in codes.split()
}

_CHECK_NETWORK = "check the network, endpoint_url and the region"
_LOG_IN_AGAIN = "log in to AWS again (`aws sso login`), or check the profile"
SDK: Final[tuple[tuple[type[Exception], Meaning], ...]] = (
    (
        boto.NoCredentialsError,
        Meaning(
            NotConfiguredError,
            "cannot be accessed: no AWS credentials were found",
            (
                "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile, or role_arn with "
                "audience for the CI's token"
            ),
        ),
    ),
    (
        boto.PartialCredentialsError,
        Meaning(
            NotConfiguredError,
            "cannot be accessed: the AWS credentials are incomplete",
            "set both halves",
        ),
    ),
    (
        boto.NoRegionError,
        Meaning(
            NotConfiguredError,
            "cannot be accessed: no AWS region is set",
            "set AWS_REGION, or the store's region",
        ),
    ),
    (
        boto.InvalidRegionError,
        Meaning(
            NotConfiguredError,
            "cannot be accessed: the AWS region is invalid",
            "check AWS_REGION, or the region in the reference",
        ),
    ),
    (
        boto.ProfileNotFound,
        Meaning(
            NotConfiguredError,
            "cannot be accessed: the AWS profile does not exist",
            "check AWS_PROFILE",
        ),
    ),
    (
        boto.ConfigParseError,
        Meaning(
            NotConfiguredError,
            "cannot be accessed: AWS's config file cannot be read",
            "check ~/.aws/config",
        ),
    ),
    (boto.ParamValidationError, _INVALID_NAME),
    (boto.UnauthorizedSSOTokenError, _EXPIRED),
    (
        boto.SSOError,
        Meaning(
            BackendAuthError, "cannot be accessed: no SSO login to AWS was found", _LOG_IN_AGAIN
        ),
    ),
    (
        boto.TokenRetrievalError,
        Meaning(BackendAuthError, "cannot be accessed: the login to AWS failed", _LOG_IN_AGAIN),
    ),
    (
        boto.CredentialRetrievalError,
        Meaning(BackendAuthError, "cannot be accessed: the login to AWS failed", _LOG_IN_AGAIN),
    ),
    (
        boto.ReadTimeoutError,
        Meaning(
            UnavailableError, "cannot be {done} now: AWS did not respond in time", _CHECK_NETWORK
        ),
    ),
    (
        boto.ConnectionClosedError,
        Meaning(
            UnavailableError,
            "cannot be {done} now: AWS closed the connection without a response",
            _CHECK_NETWORK,
        ),
    ),
)
