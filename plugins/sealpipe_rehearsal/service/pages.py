"""The pages that people see at their links: files of page/, and headers that leave them next to no rights.

A page is served for looking only: it spends nothing. What it does then, it does at the routes outside /v1.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from starlette.responses import Response

_FOLDER = Path(__file__).resolve().parent.parent / "page"

# Scripts and styles from files of ours and from nowhere else, no text that becomes markup, no plain form, no frame.
_POLICY = (
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
)
HEADERS: Mapping[str, str] = {
    "content-security-policy": "; ".join(_POLICY),
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), clipboard-read=(), geolocation=(), microphone=(), payment=(), usb=()",
    "x-frame-options": "DENY",
    "x-robots-tag": "noindex, nofollow, noarchive",
}
"""What every page and every file of one is served with."""

_TYPES = {".css": "text/css", ".html": "text/html", ".js": "text/javascript", ".svg": "image/svg+xml"}
_TAG = b"{{service_tag}}"
_ENCODED_HASH = re.compile("%(?:25)*23")


def find_file(method: str, segments: tuple[str, ...]) -> str | None:
    """The file that answers a request: a link's page, the origin's, or a part of one; None where there is none."""
    if method not in ("GET", "HEAD"):
        return None
    match segments:
        case ("",):
            return "index.html"
        case ("s", "r", _):
            return "request.html"
        case ("s", _):
            return "share.html"
        case ("page", name) if name in _files():
            return name
    return None


def page(name: str, tag: str) -> Response:
    """A file of page/. Its HTML learns the service's tag (letters and digits) where it asks for it."""
    body = _files()[name].replace(_TAG, tag.encode("ascii")) if name.endswith(".html") else _files()[name]
    return Response(body, media_type=_TYPES[Path(name).suffix], headers=dict(HEADERS))


def redact_key(target: str) -> str:
    """A link's path for the log: what stands behind `%23` may be a key whose `#` a program has encoded, or two have."""
    found = _ENCODED_HASH.search(target) if target.startswith("/s/") else None
    return f"{target[: found.end()]}..." if found else target


@cache
def _files() -> Mapping[str, bytes]:
    """Every file that may be served, by name: a request chooses among these and never names a path."""
    return {path.name: path.read_bytes() for path in sorted(_FOLDER.iterdir()) if path.suffix in _TYPES}
