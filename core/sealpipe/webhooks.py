"""Verify the signature of a webhook.

HMAC-SHA-256 of its time and raw body, in a header of the service.

    from sealpipe import WebhookError, webhooks

    webhooks.verify(raw_body, headers["X-...-Signature"], secret)

The header's name contains the service's name: see where you set up the webhook.
"""

from __future__ import annotations

import hmac
import re
import time
from collections.abc import Sequence
from datetime import UTC, datetime

from sealpipe.errors import UsageError, WebhookError
from sealpipe.secret import Secret, as_secret, strips_frames

TOLERANCE = 300
"""Seconds that a signature may be older than our clock, or newer."""

_TIME = re.compile(r"0|[1-9][0-9]{0,11}", re.ASCII)
_DIGEST = re.compile(r"[0-9a-fA-F]{64}", re.ASCII)
_MAX_PARTS = 16


@strips_frames
def verify(
    body: bytes,
    header: str | None,
    secrets: str | Secret | Sequence[str | Secret],
    *,
    now: float | None = None,
) -> datetime:
    """Verify a webhook, and return when the service signed it. Raises WebhookError, UsageError.

    `body` is the raw body as received, before anything parses it. `header` is the value of the
    signature header, None if it is missing. `secrets` is the webhook's secret, or both during a
    rotation. `now` is in seconds since 1970. `WebhookError.reason` is `missing-header`,
    `malformed-header`, `no-match` or `stale` (not within 300 seconds).
    """
    keys = _parse_secrets([secrets] if isinstance(secrets, str | Secret) else secrets)
    if not isinstance(body, bytes | bytearray | memoryview):
        raise UsageError(
            "the webhook's body is not bytes", remedy="give the raw body, before anything parses it"
        )
    if header is not None and not isinstance(header, str):
        raise UsageError("the signature header is not text", remedy="decode it as Latin-1")
    if not header:
        raise WebhookError("missing-header", "the webhook has no signature", remedy=_REMEDY)
    stamp, digests = _read(header)
    signed = b"%s.%s" % (stamp.encode(), body)
    expected = [hmac.new(key, signed, "sha256").digest() for key in keys]
    # Compare every pair, even after a match, so that the time does not depend on it.
    is_match = [
        hmac.compare_digest(digest, expected_digest)
        for digest in digests
        for expected_digest in expected
    ]
    if not any(is_match):
        raise WebhookError(
            "no-match",
            "the webhook's signature does not match its body with any secret",
            remedy=_REMEDY,
        )
    if not abs((time.time() if now is None else now) - int(stamp)) <= TOLERANCE:
        raise WebhookError(
            "stale",
            f"the webhook was not signed within {TOLERANCE} seconds of now",
            remedy="it may be a replay; if all are refused, set this machine's clock",
        )
    return datetime.fromtimestamp(int(stamp), UTC)


_REMEDY = "respond with 400 and ignore the content; while a secret is being replaced, pass both"


def _parse_secrets(secrets: Sequence[str | Secret]) -> list[bytes]:
    try:
        keys = [as_secret(secret).reveal_bytes() for secret in secrets]
    except (AttributeError, UnicodeEncodeError):  # bytes, numbers, a lone surrogate
        keys = []
    if not keys or not all(keys):
        raise UsageError(
            "the webhook secret is missing, empty or not text",
            remedy="give the secret as it was shown",
        )
    return keys


def _read(header: str) -> tuple[str, list[bytes]]:
    """Return the time as written, and the digests. Members of other schemes are ignored."""
    stamps: list[str] = []
    digests: list[str] = []
    parts = header.split(",", _MAX_PARTS)
    for part in parts:
        name, equals, value = part.strip(" \t").partition("=")
        if not name or not equals:
            raise _make_malformed_error()
        if name in ("t", "v1"):
            (stamps if name == "t" else digests).append(value)
    is_well_formed = (
        len(stamps) == 1 and _TIME.fullmatch(stamps[0]) and all(map(_DIGEST.fullmatch, digests))
    )
    if not is_well_formed or not digests or len(parts) > _MAX_PARTS:
        raise _make_malformed_error()
    return stamps[0], [bytes.fromhex(digest) for digest in digests]


def _make_malformed_error() -> WebhookError:
    return WebhookError(
        "malformed-header", "the webhook's signature is not t=<unix>,v1=<hex>", remedy=_REMEDY
    )
