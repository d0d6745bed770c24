"""Links, and the fragment in them that the service never sees.

Specification: Client-side encryption, "URL fragment and link".
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote

from sealpipe.errors import EncodingError, FragmentError, Remedy, SeedError, UsageError
from sealpipe.wire.encoding import decode_base64url, decoded, encode_base64url, encoded, exactly
from sealpipe.wire.tokens import KEY_SIZE, CustodySeed

FRAGMENT_VERSION = "1"
"""The first character of every fragment."""
_SECRET: Final = re.compile(r"#1?[A-Za-z0-9_-]{32,}|_sk_live_")
"""Matches a link's fragment, complete or damaged, and a credential inside other text."""


def encode_fragment(content_key: bytes) -> str:
    """The fragment of a 32-byte content key, without `#`: `1` and 43 characters of base64url.

    Raises FragmentError with reason `malformed-key`, and UsageError for a custody seed.
    """
    key = exactly(KEY_SIZE, content_key, FragmentError, "malformed-key", "a content key")
    if isinstance(content_key, CustodySeed):
        raise UsageError(
            (
                "the seed of a custody secret is never put into a link: it opens every wrap of "
                "the credential"
            ),
            remedy="create the request with a separate key pair",
        )
    return FRAGMENT_VERSION + encode_base64url(key)


def decode_fragment(text: str | None) -> bytes:
    """The 32-byte content key of a fragment, with or without its `#`.

    Raises FragmentError with reason `missing-key` (None or empty) or `malformed-key` (another
    version, not base64url as an encoder writes it, not 32 bytes).
    """
    body = (text or "").removeprefix("#")
    if not body:
        raise FragmentError(
            "missing-key",
            "the link has no key",
            remedy="use the whole link, including the part after #",
        )
    key = (
        _decoded(body.removeprefix(FRAGMENT_VERSION)) if body.startswith(FRAGMENT_VERSION) else None
    )
    if key is None or len(key) != KEY_SIZE:
        raise FragmentError(
            "malformed-key", "the link's key is damaged", remedy="copy the whole link again"
        )
    return key


def share_link(base: str, short_code: str, content_key: bytes) -> str:
    """`{base}/<short_code>#<fragment>`: anyone with it can read the share, so it is a secret.

    Raises UsageError for a base or a short code that cannot be in a link, and what
    `encode_fragment` raises.
    """
    return f"{_join(base, short_code)}#{encode_fragment(content_key)}"


def collect_link(base: str, short_code: str) -> str:
    """`{base}/r/<short_code>`: the link without a key, for the submitter of a request."""
    return _join(base, "r", short_code)


def access_link(base: str, short_code: str, seed: bytes) -> str:
    """`{base}/r/<short_code>#<fragment of the seed>`: it opens every submission, so it is a secret.

    `seed` is the 32-byte seed of the request's own key pair. Raises SeedError with reason
    `bad-seed`, and UsageError for a `CustodySeed`: that would open every other request and every
    wrap of the credential.
    """
    exactly(KEY_SIZE, seed, SeedError, "bad-seed", "a seed")
    return f"{_join(base, 'r', short_code)}#{encode_fragment(seed)}"


def split_collect_link(text: str) -> tuple[str, str]:
    """The base address and the short code of a collect link.

    UsageError shows nothing of what is none.
    """
    if "#" in text:
        raise UsageError(
            "this is a link with its key, not a collect link: nothing was sent",
            remedy=Remedy(
                "other users of this machine can see the arguments of a command, so treat that key "
                "as exposed; for an access link, give the collect link (the part before the #), "
                "and name the access link with --key REF",
                python=(
                    "for an access link, give the part before the #, and the access link as a "
                    "Secret: key=link"
                ),
            ),
        )
    base, _, last = text.rpartition("/r/")
    code = decoded(last) if "%" in last else last
    if not base or not code or encoded(code) != last:
        raise UsageError(
            "this is not a collect link: nothing was sent",
            remedy=(
                "give the link that `sealpipe request` printed, which ends in /r/CODE, or the "
                "short code alone"
            ),
        )
    return base, code


def _join(base: str, *segments: str) -> str:
    if not base or "#" in base or "?" in base:
        raise UsageError("the links' base address is empty, or has a query or a fragment")
    return "/".join([base.rstrip("/"), *map(segment, segments)])


def segment(short_code: str) -> str:
    """A short code as exactly one path segment of a link or an API call.

    Raises UsageError if it is not one.
    """
    # "." and ".." pass quote() unchanged, and a browser or client would resolve them to another
    # path.
    remedy = "give the code that `sealpipe share` printed"
    if not isinstance(short_code, str) or short_code in ("", ".", ".."):
        raise UsageError(f"{short_code!r:.20} is not a short code", remedy=remedy)
    try:
        return quote(short_code, safe="")
    except UnicodeEncodeError:
        pass
    raise UsageError("the short code is not text", remedy=remedy)


def called(short_code: str) -> str:
    """A short code as a path segment of an API call.

    Raises UsageError as `segment` and `refuse_link` do.
    """
    refuse_link(short_code)
    return segment(short_code)


def refuse_secret(short_code: str) -> None:
    """Raise UsageError if a short code is in fact a link with its key, or a credential.

    The error shows none of it.
    """
    if isinstance(short_code, str) and _SECRET.search(short_code):
        raise UsageError(
            "this is a link with its key, or a credential, not a short code: nothing was sent",
            remedy="give the short code alone: in a link, the part between the last / and the #",
        )


def refuse_link(short_code: str) -> None:
    """Raise UsageError if a short code is in fact a link (with or without key) or a credential."""
    refuse_secret(short_code)
    if isinstance(short_code, str) and "://" in short_code:
        raise UsageError(
            "this is a link, not a short code: nothing was sent",
            remedy="give the short code alone: the part after the link's last /",
        )


def _decoded(body: str) -> bytes | None:
    try:
        return decode_base64url(body)
    except EncodingError:
        return None
