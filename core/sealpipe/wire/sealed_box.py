"""Bytes sealed to a public key: `item_key_wrap`, and the submissions to a request.

Specification: Client-side encryption, "item_key_wrap". The layout in bytes: version 0x01, ephemeral
point (65), salt (16), iv (12), ciphertext and tag. The sender is not authenticated: anyone with the
public key can seal to it.
"""

from __future__ import annotations

import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from sealpipe.errors import BoxError
from sealpipe.wire import keys, tokens
from sealpipe.wire.encoding import decode_base64, encode_base64, exactly

VERSION = 1
"""The first byte of every box."""
_POINT_END = 1 + keys.POINT_SIZE
_SALT_END = _POINT_END + tokens.SALT_SIZE
_IV_END = _SALT_END + tokens.IV_SIZE
MINIMUM_SIZE = _IV_END + tokens.TAG_SIZE
"""Bytes of the shortest box, with an empty payload."""


def seal(
    public_key: bytes,
    payload: bytes,
    *,
    tag: str = "svc",
    ephemeral: bytes | None = None,
    salt: bytes | None = None,
    iv: bytes | None = None,
) -> str:
    """`payload` sealed to a public key (65 bytes, uncompressed), as standard base64.

    A content key of 32 bytes gives 192 characters. `ephemeral` (private scalar, 32 bytes), `salt`
    (16 bytes) and `iv` (12 bytes) exist for test vectors; by default they are random, as in every
    real box. Raises PointError, BoxError (`bad-salt`, `bad-iv`), SeedError (`bad-scalar`),
    UsageError (tag).
    """
    recipient = keys.public_key(public_key)
    sender = (
        ec.generate_private_key(ec.SECP256R1())
        if ephemeral is None
        else keys.private_key(ephemeral)
    )
    salt = os.urandom(tokens.SALT_SIZE) if salt is None else salt
    iv = os.urandom(tokens.IV_SIZE) if iv is None else iv
    salt = exactly(tokens.SALT_SIZE, salt, BoxError, "bad-salt", "a salt")
    iv = exactly(tokens.IV_SIZE, iv, BoxError, "bad-iv", "an iv")
    key = tokens.wrapping_key(sender.exchange(ec.ECDH(), recipient), salt, tag)
    head = bytes([VERSION]) + keys.public_bytes(sender.public_key()) + salt + iv
    return encode_base64(head + AESGCM(key).encrypt(iv, payload, None))


def open(key_pair: keys.KeyPair, blob: str, *, tag: str = "svc") -> bytes:  # noqa: A001
    """The payload of a box sealed to `key_pair.public_key`, in standard base64.

    Raises EncodingError; BoxError with reason `bad-version`, `too-short` or `wrong-key` (another
    key pair, another tag, or an altered box); PointError for its ephemeral point; UsageError for an
    invalid tag.
    """
    data = memoryview(decode_base64(blob))
    if data[:1] and data[0] != VERSION:
        raise BoxError(
            "bad-version", f"the box has version {data[0]}; only version {VERSION} is supported"
        )
    if len(data) < MINIMUM_SIZE:
        raise BoxError(
            "too-short", f"a box has at least {MINIMUM_SIZE} bytes, this one {len(data)}"
        )
    sender = keys.public_key(data[1:_POINT_END])
    shared_secret = key_pair.private_key.exchange(ec.ECDH(), sender)
    key = tokens.wrapping_key(shared_secret, bytes(data[_POINT_END:_SALT_END]), tag)
    try:
        return AESGCM(key).decrypt(data[_SALT_END:_IV_END], data[_IV_END:], None)
    except InvalidTag:
        pass
    raise BoxError(
        "wrong-key",
        "this key pair does not open it, or it was altered",
        remedy=(
            "use the key pair that the request or the share was made with, and the service's tag"
        ),
    )
