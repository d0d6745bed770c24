"""Every derivation: HKDF-SHA-256 (RFC 5869), one table of info strings, and the two tokens.

Specification: Client-side encryption, "Derivation strings" and "Access token and verifier"; empty
salt means a zero-length byte string. The service gets the two tokens as proof of having the link
and the passcode. Both are one-way: neither the content key nor the passcode can be computed from
them.
"""

from __future__ import annotations

import re
from typing import Final, NoReturn, Self

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from sealpipe.errors import EnvelopeError, PasscodeError, SeedError, UsageError
from sealpipe.wire.encoding import encode_base64url, exactly

KEY_SIZE: Final = 32
"""Bytes of a content key, of a seed, and of every key and token derived here."""
SALT_SIZE: Final = 16
"""Bytes of the salt of an envelope or a box."""
IV_SIZE: Final = 12
"""Bytes of the nonce of AES-GCM."""
TAG_SIZE: Final = 16
"""Bytes of the tag of AES-GCM."""

INFO: Final = {
    "content": "content",  # content encryption key, no passcode
    "content with passcode": "content|",  # the same, the passcode's UTF-8 bytes following
    "access token": "access",
    "passcode verifier": "verify",
    "custody": "custody",  # custody secret to the seed of its key pair
    "scalar": "{tag}-ecdh-p256-scalar",  # seed to 48 bytes, reduced to a private scalar
    # ECDH shared secret to the wrapping key; share wraps too
    "sealed box": "{tag}-request-submission",
}
"""The info string of each derivation; `{tag}` is the service's tag."""
_TAG = re.compile(r"[a-z0-9]+", re.ASCII)


class CustodySeed(bytes):
    """The seed of a credential's custody key pair.

    It opens every wrap and request of the credential.

    Its type marks it: `link.access_link` and `link.encode_fragment` refuse to put it into a link,
    `--seed-to` refuses to store it, it cannot be pickled, and its repr shows nothing.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return "CustodySeed(...)"

    __str__ = __repr__

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a custody seed cannot be pickled")


def hkdf(key: bytes, salt: bytes, info: bytes, size: int) -> bytes:
    """`size` bytes of HKDF-SHA-256. An empty salt is a zero-length byte string."""
    return HKDF(algorithm=SHA256(), length=size, salt=salt, info=info).derive(key)


def content_encryption_key(content_key: bytes, salt: bytes, passcode: str | None) -> bytes:
    """The 32-byte AES key of an envelope (specification: Content key and data envelope, step 3).

    `content_key` is 32 bytes, `salt` 16 bytes. Raises EnvelopeError (`bad-content-key`, `bad-salt`)
    and PasscodeError.
    """
    key = exactly(KEY_SIZE, content_key, EnvelopeError, "bad-content-key", "a content key")
    salt = exactly(SALT_SIZE, salt, EnvelopeError, "bad-salt", "a salt")
    info = INFO["content"].encode()
    if passcode is not None:
        info = INFO["content with passcode"].encode() + passcode_bytes(passcode)
    return hkdf(key, salt, info, KEY_SIZE)


def passcode_bytes(passcode: str) -> bytes:
    """The passcode exactly as typed, as UTF-8: no trimming, no normalisation.

    Raises PasscodeError with reason `empty-passcode`, `not-text` (not a str) or `lone-surrogate`.
    """
    if not isinstance(passcode, str):
        raise PasscodeError("not-text", f"a passcode is text, not {type(passcode).__name__}")
    if not passcode:
        raise PasscodeError(
            "empty-passcode", "the passcode is empty", remedy="leave it out, or give one"
        )
    encoded = _utf8(passcode)
    if encoded is None:
        raise PasscodeError("lone-surrogate", "the passcode is not text: half a surrogate pair")
    return encoded


def custody_seed(custody_secret: str) -> CustodySeed:
    """The 32-byte seed of a custody secret (specification: Custody public key, step 1).

    Accepts any non-empty text, as its UTF-8 bytes: `Credential` checks that it has 43 characters.
    Raises SeedError with reason `bad-custody-secret`.
    """
    encoded = _utf8(custody_secret) if isinstance(custody_secret, str) else None
    if not encoded:
        raise SeedError("bad-custody-secret", "a custody secret is text and not empty")
    return CustodySeed(hkdf(encoded, b"", INFO["custody"].encode(), KEY_SIZE))


def scalar_material(seed: bytes, tag: str) -> bytes:
    """The 48 bytes that are reduced to a private scalar.

    Specification: Custody public key, step 2.
    """
    key = exactly(KEY_SIZE, seed, SeedError, "bad-seed", "a seed")
    return hkdf(key, b"", _tagged("scalar", tag), 48)


def wrapping_key(shared_secret: bytes, salt: bytes, tag: str) -> bytes:
    """The 32-byte AES key of a sealed box (specification: item_key_wrap, step 4)."""
    return hkdf(shared_secret, salt, _tagged("sealed box", tag), KEY_SIZE)


def _tagged(name: str, tag: str) -> bytes:
    if not isinstance(tag, str) or not _TAG.fullmatch(tag):
        raise UsageError("a service tag is lower-case letters and digits")
    return INFO[name].format(tag=tag).encode()


def _utf8(text: str) -> bytes | None:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:  # it contains the text, and must not become our error's context
        return None


def access_token(content_key: bytes) -> str:
    """The access token of a 32-byte content key: 43 characters of base64url.

    Raises EnvelopeError with reason `bad-content-key`.
    """
    key = exactly(KEY_SIZE, content_key, EnvelopeError, "bad-content-key", "a content key")
    return _derived(key, "access token")


def passcode_verifier(passcode: str) -> str:
    """The verifier of a passcode exactly as typed: 43 characters of base64url.

    Raises PasscodeError (see `passcode_bytes`).
    """
    return _derived(passcode_bytes(passcode), "passcode verifier")


def _derived(key: bytes, name: str) -> str:
    return encode_base64url(hkdf(key, b"", INFO[name].encode(), KEY_SIZE))
