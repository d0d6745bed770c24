"""Seals a share's link for holders of the credential, so that it may be stored anywhere.

    sealed link  = "sealpipe-link." base64url(short code) "." base64url(box)
    box          = kind, salt (16 bytes), iv (12), ciphertext, tag
    key          = HKDF(custody secret, salt, "sealpipe-sealed-link", 32)
    kind         = one byte: 0 unbound, 1 bound to a text
    associated   = kind, the short code's length (4 bytes, big-endian), the short code, that text

So the sealed link of one share is never accepted for another, and a bound one opens only with the
same text, such as the name of the run that made it. It is symmetric, under the custody secret: with
the custody *public* key, anyone could forge one.
"""

from __future__ import annotations

import os
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from sealpipe.api.operation import Credential
from sealpipe.errors import EncodingError, EnvelopeError, UsageError
from sealpipe.secret import Secret
from sealpipe.wire import tokens
from sealpipe.wire.encoding import decode_base64url, encode_base64url

PREFIX: Final = "sealpipe-link"
_INFO: Final = b"sealpipe-sealed-link"
_UNBOUND, _BOUND = b"\x00", b"\x01"
_SALT: Final = 1 + tokens.SALT_SIZE
_HEAD: Final = _SALT + tokens.IV_SIZE


def seal(
    link: Secret,
    read_short_code: str,
    credential: Credential,
    bind: str | None = None,
    *,
    salt: bytes | None = None,
    iv: bytes | None = None,
) -> str:
    """Return the sealed link, one line of `A-Z a-z 0-9 _ - .`.

    `salt` (16 bytes) and `iv` (12) are for vectors only.

    Raises UsageError if the credential has no custody secret, or `bind` is empty.
    """
    code, kind = read_short_code.encode(), _choose_kind(bind)
    salt, iv = salt or os.urandom(tokens.SALT_SIZE), iv or os.urandom(tokens.IV_SIZE)
    sealed = AESGCM(_derive_key(credential, salt)).encrypt(
        iv, link.reveal().encode(), _make_associated_data(kind, code, bind)
    )
    return f"{PREFIX}.{encode_base64url(code)}.{encode_base64url(kind + salt + iv + sealed)}"


def read_short_code(text: str) -> str:
    """Return the short code that a sealed link claims, which is proven only when it opens.

    Raises UsageError.
    """
    return _split(text)[0].decode()


def unseal(text: str, *credentials: Credential, bind: str | None = None) -> Secret:
    """Open a sealed link with the first credential that can.

    Raises UsageError if the text is not a sealed link, or it is bound and `bind` is None;
    EnvelopeError (exit code 13) if it is not bound, or bound to another text, and if no credential
    opens it.
    """
    code, data = _split(text)
    kind = data[:1]
    if kind == _BOUND and bind is None:
        raise UsageError(
            "this sealed link is bound to a text: --bind is missing",
            remedy="give --bind the same text as `share --seal-link --bind`; without one of your "
            "own, the actions and templates bind it to the run that shared: "
            "github:OWNER/REPO:RUN_ID, gitlab:PROJECT_PATH:PIPELINE_ID",
        )
    if kind != _choose_kind(bind):
        raise EnvelopeError(
            "not-bound",
            "this sealed link is not bound to a text, but --bind expects one",
            remedy=(
                "seal it with the same --bind; if you trust the job that passed it on, unseal "
                "it without --bind"
            ),
        )
    for credential in credentials:
        key = _derive_key(credential, data[1:_SALT])
        try:
            return Secret(
                AESGCM(key).decrypt(
                    data[_SALT:_HEAD], data[_HEAD:], _make_associated_data(kind, code, bind)
                )
            )
        except InvalidTag:
            continue
    or_bound = ", it is bound to another text," if kind == _BOUND else ""
    raise EnvelopeError(
        "wrong-key",
        f"this credential does not open the sealed link{or_bound} or it was altered",
        remedy=(
            "use the credential that sealed it, all three parts; while rotating, "
            "SEALPIPE_API_KEY_PREVIOUS"
        )
        + ("; and the --bind that it was sealed with, in the same run" if kind == _BOUND else ""),
    )


def check_custody(credential: Credential) -> None:
    """Raise UsageError if the credential cannot seal links, before anything is sent."""
    if credential.custody_secret is None:
        raise UsageError(
            "sealing a link needs the credential's custody secret, which is missing",
            remedy="use the whole credential, all three parts",
        )


def _split(text: str) -> tuple[bytes, bytes]:
    """Split a sealed link into short code and sealed data. Raises UsageError."""
    prefix, *parts = text.strip().split(".")
    if prefix == PREFIX and len(parts) == 2:
        try:
            code, data = (decode_base64url(part) for part in parts)
            code.decode()
        except (EncodingError, UnicodeDecodeError):
            data = b""
        if data[:1] in (_UNBOUND, _BOUND) and len(data) >= _HEAD + tokens.TAG_SIZE:
            return code, data
    if "#" in text:
        raise UsageError(
            "this is a link with its key, not a sealed link", remedy="open it in a browser as it is"
        )
    raise UsageError(
        "this is not a sealed link",
        remedy="give what `share --seal-link` printed, complete: it begins with sealpipe-link.",
    )


def _choose_kind(bind: str | None) -> bytes:
    if bind == "":
        raise UsageError("the text for --bind is empty", remedy="give a text, or omit the option")
    return _UNBOUND if bind is None else _BOUND


def _make_associated_data(kind: bytes, code: bytes, bind: str | None) -> bytes:
    return kind + len(code).to_bytes(4) + code + (bind or "").encode()


def _derive_key(credential: Credential, salt: bytes) -> bytes:
    check_custody(credential)
    assert credential.custody_secret is not None  # noqa: S101 - just checked
    return tokens.hkdf(credential.custody_secret.reveal().encode(), salt, _INFO, 32)
