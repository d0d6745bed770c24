"""A share's link as ciphertext, for whoever has the credential: it may stand where a link may not (DESIGN 6.7).

    sealed link  = "sealpipe-link." base64url(short code) "." base64url(salt (16), iv (12), ciphertext, tag)
    key          = HKDF(custody secret, salt, "sealpipe-sealed-link", 32)
    associated   = the short code: one share's sealed link never passes for another's

Symmetric, under the custody secret: by the custody *public* key anybody could forge one.
"""

from __future__ import annotations

import os
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from sealpipe.credential import Credential
from sealpipe.errors import EncodingError, EnvelopeError, UsageError
from sealpipe.secret import Secret
from sealpipe.wire import derive
from sealpipe.wire.encoding import decode_base64url, encode_base64url

PREFIX: Final = "sealpipe-link"
_INFO: Final = b"sealpipe-sealed-link"
_HEAD: Final = derive.SALT_SIZE + derive.IV_SIZE


def seal(link: Secret, short_code: str, credential: Credential) -> str:
    """The sealed link, one line of `A-Z a-z 0-9 _ - .`. UsageError where the credential has no custody secret."""
    code = short_code.encode()
    salt, iv = os.urandom(derive.SALT_SIZE), os.urandom(derive.IV_SIZE)
    sealed = AESGCM(_key(credential, salt)).encrypt(iv, link.reveal().encode(), code)
    return f"{PREFIX}.{encode_base64url(code)}.{encode_base64url(salt + iv + sealed)}"


def unseal(text: str, *credentials: Credential) -> Secret:
    """The link, by the first credential that opens it. UsageError for what is none; EnvelopeError (13) for none."""
    prefix, *parts = text.strip().split(".")
    code = data = b""
    if prefix == PREFIX and len(parts) == 2:
        try:
            code, data = (decode_base64url(part) for part in parts)
        except EncodingError:
            code = data = b""
    if len(data) < _HEAD + derive.TAG_SIZE:
        raise UsageError(
            "this is not a sealed link", remedy="give what `share --seal-link` printed, whole: it begins sealpipe-link."
        )
    for credential in credentials:
        try:
            key = _key(credential, data[: derive.SALT_SIZE])
            return Secret(AESGCM(key).decrypt(data[derive.SALT_SIZE : _HEAD], data[_HEAD:], code))
        except InvalidTag:
            continue
    raise EnvelopeError(
        "wrong-key",
        "this credential does not open the sealed link, or it was altered",
        remedy="use the credential that sealed it, all three parts; while rotating, SEALPIPE_API_KEY_PREVIOUS",
    )


def check(credential: Credential) -> None:
    """UsageError where nothing could be sealed: known before anything is sent."""
    if credential.custody_secret is None:
        raise UsageError(
            "a link is sealed with the credential's custody secret, and it has none",
            remedy="use the whole credential, all three parts",
        )


def _key(credential: Credential, salt: bytes) -> bytes:
    check(credential)
    assert credential.custody_secret is not None  # noqa: S101 - just checked
    return derive.hkdf(credential.custody_secret.reveal().encode(), salt, _INFO, 32)
