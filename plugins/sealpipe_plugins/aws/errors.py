"""What AWS and its SDK say when something fails, in the contract's words. Their own text is never shown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from botocore import exceptions as boto

from sealpipe.plugin import PluginError, UnavailableError, UnknownOutcomeError, retry_after
from sealpipe_plugins.aws.error_table import (
    CODES,
    DELETED,
    DENIED,
    FAILED,
    KEY,
    LATER,
    READ,
    SDK,
    Doing,
    Meaning,
)
from sealpipe_plugins.http_errors import connect_error

FAILURES: Final = (boto.BotoCoreError, boto.ClientError)
"""What a call of the SDK raises."""

_CODE: Final = re.compile(r"[A-Za-z][A-Za-z0-9.]{0,63}")


def told(error: Exception, about: object, action: str, doing: Doing = READ) -> PluginError:
    """One of FAILURES, about a reference; `action` is the permission that the call needs."""
    if isinstance(error, boto.ClientError):
        return _answered(error.response, about, action, doing)
    meaning = next((meaning for kind, meaning in SDK if isinstance(error, kind)), None)
    if meaning is None and isinstance(error, boto.ConnectionError | boto.HTTPClientError):
        return _not_reached(error, about, doing)
    failed = isinstance(error, boto.ReadTimeoutError | boto.ConnectionClosedError)
    return _said(meaning, about, action, type(error).__name__, doing, failed=failed)


def code_of(error: Exception) -> str:
    """The code that AWS answered with; empty where it did not answer."""
    return str(error.response.get("Error", {}).get("Code", "")) if isinstance(error, boto.ClientError) else ""


def refused(code: str, message: str, about: object, action: str, doing: Doing = READ) -> PluginError:
    """An error that AWS answers with, by its code."""
    meaning = CODES.get(code)
    if code == "InvalidRequestException" and re.search("delet", message):
        meaning = DELETED
    elif meaning is DENIED and re.search("KMS|kms:|[Cc]iphertext", message):
        meaning = KEY
    return _said(meaning, about, action, code, doing, failed=meaning is FAILED)


def _answered(response: Mapping[str, Any], about: object, action: str, doing: Doing) -> PluginError:
    given, meta = response.get("Error", {}), response.get("ResponseMetadata", {})
    code = str(given.get("Code", ""))
    status = meta.get("HTTPStatusCode", 0)
    failure = refused(code, str(given.get("Message", "")), about, action, doing)
    if status >= 500 and not isinstance(failure, UnavailableError | UnknownOutcomeError):
        failure = _said(FAILED, about, action, code, doing, failed=True)
    elif status == 429 and not isinstance(failure, UnavailableError):
        failure = _said(LATER, about, action, code, doing)
    if isinstance(failure, UnavailableError):
        failure.retry_after = retry_after(meta.get("HTTPHeaders", {}).get("retry-after"))
    return failure


def _not_reached(error: Any, about: object, doing: Doing) -> PluginError:
    host = urlsplit(str(error.kwargs.get("endpoint_url", ""))).netloc
    reason = connect_error(error, "AWS", host or "its address")
    return type(reason)(f"{about} cannot be {doing.word}: {reason.message}", remedy=reason.remedy)


def _said(
    meaning: Meaning | None, about: object, action: str, code: str, doing: Doing, *, failed: bool = False
) -> PluginError:
    if failed and doing.unsure:
        return UnknownOutcomeError(
            f"{about}: AWS failed while it was {doing.word}", remedy="run it again: it looks first"
        )
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
