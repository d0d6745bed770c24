"""The data envelope: plaintext sealed under a content key, optionally with a passcode.

Specification: Client-side encryption, "Content key and data envelope". The layout in bytes: salt
(16), iv (12), AES-256-GCM ciphertext, tag (16); in base64. Never seal twice under the same content
key, salt and iv: to send again, send the same envelope.
"""

from __future__ import annotations

import binascii
import os
from collections.abc import Callable, Iterable, Iterator

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import GCM

from sealpipe.errors import EnvelopeError
from sealpipe.wire import tokens
from sealpipe.wire.encoding import decode_base64, enforce_limit, exactly

MINIMUM_SIZE = tokens.SALT_SIZE + tokens.IV_SIZE + tokens.TAG_SIZE
"""Bytes of the shortest envelope, with an empty plaintext."""
_PIECE = 64 * 1024  # bytes encrypted at a time: small enough for a CPU core's own cache
_BODY = tokens.SALT_SIZE + tokens.IV_SIZE

Bytes = bytes | bytearray | memoryview
"""What a plaintext may be."""


def seal(
    content_key: bytes,
    plaintext: bytes,
    passcode: str | None = None,
    *,
    salt: bytes | None = None,
    iv: bytes | None = None,
) -> str:
    """The plaintext as an envelope in standard base64: the `data` of a share.

    `content_key` is 32 bytes. `salt` (16 bytes) and `iv` (12 bytes) exist for test vectors; by
    default they are random. Raises EnvelopeError (`bad-content-key`, `bad-salt`, `bad-iv`),
    PasscodeError, PayloadTooLargeError.
    """
    out = bytearray()
    seal_chunks(content_key, (plaintext,), passcode, salt=salt, iv=iv, out=out)
    return out.decode("ascii")


def seal_chunks(
    content_key: bytes,
    plaintext: Iterable[Bytes],
    passcode: str | None = None,
    *,
    salt: bytes | None = None,
    iv: bytes | None = None,
    out: bytearray | Callable[[bytes], object],
) -> None:
    """Seal a plaintext in chunks of any size.

    The envelope's base64 text goes to `out` as ASCII bytes.

    `out` is a bytearray to append to (on an error it is cut back to its former length), or a
    callable that takes each piece. Neither the plaintext nor the ciphertext is copied as a whole.
    The other arguments and errors are as for `seal`.
    """
    start = len(out) if isinstance(out, bytearray) else 0
    emit = out.extend if isinstance(out, bytearray) else out
    try:
        for piece in _sealed(content_key, plaintext, passcode, salt, iv):
            emit(piece)
    except BaseException:
        if isinstance(out, bytearray):
            del out[start:]
        raise


def open(content_key: bytes, data: str, passcode: str | None = None) -> bytes:  # noqa: A001
    """The plaintext of an envelope in standard base64.

    Raises EncodingError; EnvelopeError with reason `too-short` (under 44 bytes), `wrong-key`
    (another content key, another passcode or none, or an altered envelope) or `bad-content-key`;
    PasscodeError.
    """
    raw = memoryview(decode_base64(data))
    if len(raw) < MINIMUM_SIZE:
        raise EnvelopeError(
            "too-short", f"an envelope has at least {MINIMUM_SIZE} bytes, this one {len(raw)}"
        )
    salt, iv = bytes(raw[: tokens.SALT_SIZE]), bytes(raw[tokens.SALT_SIZE : _BODY])
    key = tokens.content_encryption_key(content_key, salt, passcode)
    decryptor = Cipher(AES256(key), GCM(iv)).decryptor()
    plaintext = decryptor.update(raw[_BODY : -tokens.TAG_SIZE])
    try:
        decryptor.finalize_with_tag(bytes(raw[-tokens.TAG_SIZE :]))
    except InvalidTag:
        del plaintext
    else:
        return plaintext
    raise EnvelopeError(
        "wrong-key",
        "this key does not open it, or it was altered",
        remedy="check that the link is complete and the passcode exact",
    )


def _sealed(
    content_key: bytes,
    plaintext: Iterable[Bytes],
    passcode: str | None,
    salt: bytes | None,
    iv: bytes | None,
) -> Iterator[bytes]:
    salt = os.urandom(tokens.SALT_SIZE) if salt is None else salt
    iv = os.urandom(tokens.IV_SIZE) if iv is None else iv
    iv = exactly(tokens.IV_SIZE, iv, EnvelopeError, "bad-iv", "an iv")
    encryptor = Cipher(
        AES256(tokens.content_encryption_key(content_key, salt, passcode)), GCM(iv)
    ).encryptor()
    # One buffer for all chunks: bytes that fill no group of three stay at its start, and the next
    # ciphertext is written after them. The library requires room for one more block.
    held = _BODY
    buffer = memoryview(bytearray(_BODY + _PIECE + 16))
    buffer[:held] = salt + iv
    for chunk in enforce_limit(plaintext):
        view = memoryview(chunk).cast("B")
        for offset in range(0, len(view), _PIECE):
            held += encryptor.update_into(view[offset : offset + _PIECE], buffer[held:])
            whole = held - held % 3
            yield binascii.b2a_base64(buffer[:whole], newline=False)
            buffer[: held - whole] = buffer[whole:held]
            held -= whole
    encryptor.finalize()
    yield binascii.b2a_base64(bytes(buffer[:held]) + encryptor.tag, newline=False)
