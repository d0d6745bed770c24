"""The pages behind links: the files of page/, with headers that grant them minimal rights.

In a page, `{{NAME}}` on a line of its own stands for page/common/NAME.html, which all pages share.

Serving a page uses no view. The page then calls the routes outside /v1.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path

from starlette.responses import Response

from .clock import format_rfc3339

_FOLDER = Path(__file__).resolve().parent / "page"
_PARTS = ("head", "header")

# Only our own scripts and styles; no HTML from strings (Trusted Types), no form target, no frame.
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
    "permissions-policy": (
        "camera=(), clipboard-read=(), geolocation=(), microphone=(), payment=(), usb=()"
    ),
    "x-frame-options": "DENY",
    "x-robots-tag": "noindex, nofollow, noarchive",
}
"""Headers of every page and its files."""

_TYPES = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
_ENCODED_HASH = re.compile("%(?:25)*23")


def find_file(method: str, segments: tuple[str, ...]) -> str | None:
    """Return the file for a request: the page of a link, the index, or a file of a page.

    None if there is none.
    """
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


@dataclass(frozen=True)
class Shown:
    """What HTML gets: the service tag, and the field types that it renders (letters, digits, `_`).

    And when what the link leads to ends, in UTC: for a browser without scripts, which would say it
    in the local time.
    """

    tag: str
    field_types: Sequence[str]
    is_rehearsal: bool
    end: datetime | None = None


_BADGE = '<span class="badge">rehearsal</span>'


def page(name: str, shown: Shown) -> Response:
    """Return a file of page/."""
    if name == "index.html" and not shown.is_rehearsal:
        name = "server.html"
    body = _files()[name]
    if name.endswith(".html"):
        for placeholder, text in (
            ("service_tag", shown.tag),
            ("field_types", " ".join(shown.field_types)),
            ("end", _describe_end(shown.end) if shown.end else ""),
            ("people", "stated" if shown.is_rehearsal else "unknown"),
            ("badge", _BADGE if shown.is_rehearsal else ""),
            ("where", "A rehearsal on this computer." if shown.is_rehearsal else ""),
        ):
            body = body.replace(f"{{{{{placeholder}}}}}".encode("ascii"), text.encode("ascii"))
    return Response(body, media_type=_TYPES[Path(name).suffix], headers=dict(HEADERS))


def _describe_end(end: datetime) -> str:
    words = f"{end:%A}, {end.day} {end:%B %Y, %H:%M} UTC"
    return f'<p>The link works until <time datetime="{format_rfc3339(end)}">{words}</time>.</p>'


def redact_key(target: str) -> str:
    """Return a link's path for the log, cut after `%23` (or `%2523`).

    The text after an encoded `#` may be the key.
    """
    match = _ENCODED_HASH.search(target) if target.startswith("/s/") else None
    return f"{target[: match.end()]}..." if match else target


@cache
def _files() -> Mapping[str, bytes]:
    """The files that may be served, by name: a request never names a path."""
    files = {
        path.name: path.read_bytes() for path in sorted(_FOLDER.iterdir()) if path.suffix in _TYPES
    }
    for part in _PARTS:
        placeholder, text = (
            f"{{{{{part}}}}}\n".encode("ascii"),
            (_FOLDER / "common" / f"{part}.html").read_bytes(),
        )
        files |= {
            name: body.replace(placeholder, text)
            for name, body in files.items()
            if name.endswith(".html")
        }
    return files
