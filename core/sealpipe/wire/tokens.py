"""What the service may know: proof of having the link, and proof of having the passcode.

Specification: Client-side encryption, "Access token and verifier". Both are one-way: neither the content
key nor the passcode can be got from them.
"""

from __future__ import annotations

from sealpipe.errors import EnvelopeError
from sealpipe.wire import derive
from sealpipe.wire.encoding import encode_base64url, exactly


def access_token(content_key: bytes) -> str:
    """The access token of a 32-byte content key: 43 characters of base64url.

    Raises EnvelopeError with reason `bad-content-key`.
    """
    key = exactly(derive.KEY_SIZE, content_key, EnvelopeError, "bad-content-key", "a content key")
    return _derived(key, "access token")


def passcode_verifier(passcode: str) -> str:
    """The verifier of a passcode exactly as typed: 43 characters of base64url.

    Raises PasscodeError (see `derive.passcode_bytes`).
    """
    return _derived(derive.passcode_bytes(passcode), "passcode verifier")


def _derived(key: bytes, name: str) -> str:
    return encode_base64url(derive.hkdf(key, b"", derive.INFO[name].encode(), derive.KEY_SIZE))
