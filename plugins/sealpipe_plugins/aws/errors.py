"""Maps errors of AWS and its SDK to errors of the plugin contract.

The original text is never shown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from botocore import exceptions as boto

from sealpipe.plugin import PluginError, UnavailableError, UnknownOutcomeError, parse_retry_after
from sealpipe_plugins.aws.error_table import (
    CODES,
    DELETED,
    DENIED,
    FAILED,
    KEY,
    READ,
    REDIRECT,
    SDK,
    THROTTLED,
    Meaning,
    Verb,
)
from sealpipe_plugins.http_errors import connect_error

FAILURES: Final = (boto.BotoCoreError, boto.ClientError)
"""The exceptions of an SDK call."""

_CODE: Final = re.compile(r"[A-Za-z][A-Za-z0-9.]{0,63}")


def map_error(error: Exception, subject: object, action: str, verb: Verb = READ) -> PluginError:
    """Map one of FAILURES to an error about `subject`.

    `action` is the permission that the call needs.
    """
    if isinstance(error, boto.ClientError):
        return _map_response(error.response, subject, action, verb)
    meaning = next((meaning for kind, meaning in SDK if isinstance(error, kind)), None)
    if meaning is None and isinstance(error, boto.ConnectionError | boto.HTTPClientError):
        return _map_connect_error(error, subject, verb)
    aws_failed = isinstance(error, boto.ReadTimeoutError | boto.ConnectionClosedError)
    return _make_error(meaning, subject, action, type(error).__name__, verb, aws_failed=aws_failed)


def error_code(error: Exception) -> str:
    """Return AWS's error code; empty if AWS did not respond."""
    return (
        str(error.response.get("Error", {}).get("Code", ""))
        if isinstance(error, boto.ClientError)
        else ""
    )


def error_for_code(
    code: str, message: str, subject: object, action: str, verb: Verb = READ
) -> PluginError:
    """Map an error of AWS by its code."""
    meaning = CODES.get(code)
    if code == "InvalidRequestException" and re.search("delet", message):
        meaning = DELETED
    elif meaning is DENIED and re.search("KMS|kms:|[Cc]iphertext", message):
        meaning = KEY
    return _make_error(meaning, subject, action, code, verb, aws_failed=meaning is FAILED)


def _map_response(
    response: Mapping[str, Any], subject: object, action: str, verb: Verb
) -> PluginError:
    error, metadata = response.get("Error", {}), response.get("ResponseMetadata", {})
    code = str(error.get("Code", ""))
    status = metadata.get("HTTPStatusCode", 0)
    failure = error_for_code(code, str(error.get("Message", "")), subject, action, verb)
    if status >= 500 and not isinstance(failure, UnavailableError | UnknownOutcomeError):
        failure = _make_error(FAILED, subject, action, code, verb, aws_failed=True)
    elif 300 <= status < 400:
        failure = _make_error(REDIRECT, subject, action, code, verb)
    elif status == 429 and not isinstance(failure, UnavailableError):
        failure = _make_error(THROTTLED, subject, action, code, verb)
    if isinstance(failure, UnavailableError):
        failure.retry_after = parse_retry_after(metadata.get("HTTPHeaders", {}).get("retry-after"))
    return failure


def _map_connect_error(error: Any, subject: object, verb: Verb) -> PluginError:
    host = urlsplit(str(error.kwargs.get("endpoint_url", ""))).netloc
    reason = connect_error(error, "AWS", host or "its address")
    return type(reason)(f"{subject} cannot be {verb.word}: {reason.message}", remedy=reason.remedy)


def _make_error(
    meaning: Meaning | None,
    subject: object,
    action: str,
    code: str,
    verb: Verb,
    *,
    aws_failed: bool = False,
) -> PluginError:
    if aws_failed and verb.not_repeatable:
        return UnknownOutcomeError(
            f"{subject}: AWS failed while it was {verb.word}",
            remedy="run it again: it checks what is stored first",
        )
    if meaning is None:
        safe_code = code if _CODE.fullmatch(code) else "an unknown code"
        return PluginError(
            f"{subject} cannot be {verb.word}: AWS responded with {safe_code}",
            remedy="see AWS's list of errors",
        )
    read = verb.word == READ.word
    words = {
        "action": action,
        "done": verb.word,
        "coded": "decrypted" if read else "encrypted",
        "key": "kms:Decrypt" if read else "kms:Encrypt, kms:GenerateDataKey and kms:Decrypt",
    }
    return meaning.kind(
        f"{subject} {meaning.what.format(**words)}", remedy=meaning.remedy.format(**words)
    )
