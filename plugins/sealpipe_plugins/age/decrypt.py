"""Decrypts files of age, and says why one cannot be decrypted.

pyrage's texts are searched, and never shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyrage

from sealpipe.plugin import (
    PLAINTEXT_LIMIT,
    AccessDeniedError,
    Locator,
    PayloadTooLargeError,
    PluginError,
    UnsupportedError,
)
from sealpipe_plugins.age import file_format


def decrypt(content: bytes, identities: Sequence[Any], locator: Locator) -> bytes:
    """Return what a file holds.

    Raises AccessDeniedError if it is for other keys, PluginError if it is damaged.
    """
    if not file_format.is_age(content):
        raise PluginError(
            f"{locator} is not encrypted by age",
            remedy="check the path; a file that is not encrypted is file:PATH",
        )
    if file_format.has_passphrase(content):
        raise UnsupportedError(
            f"{locator} is encrypted with a passphrase, which sealpipe never asks for",
            remedy="encrypt it to a key: age -d FILE | age -r age1... -o FILE",
        )
    try:
        value: bytes = pyrage.decrypt(content, identities)
        reason = ""
    except pyrage.DecryptError as error:
        reason = str(error)
    if not reason:
        if len(value) > PLAINTEXT_LIMIT:
            raise PayloadTooLargeError(
                f"{locator} has more than {PLAINTEXT_LIMIT // 1024 // 1024} MiB"
            )
        return value
    if "No matching keys" in reason:
        raise AccessDeniedError(
            f"{locator} is encrypted for keys that are not available here",
            remedy=(
                "have it encrypted for this key as well: give its writer the public key "
                "(age-keygen -y FILE)"
            ),
        )
    if "Unknown age format" in reason:
        raise UnsupportedError(
            f"{locator} has a newer format of age",
            remedy="encrypt it in the format v1, or install a newer pyrage",
        )
    raise PluginError(
        f"{locator} is damaged, or cut off", remedy="restore it from its backup or repository"
    )
