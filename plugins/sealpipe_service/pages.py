"""The pages behind links: the files of page/, with headers that grant them minimal rights.

In a page, `{{NAME}}` on a line of its own stands for page/common/NAME.html, which all pages share.

Serving a page uses no view. The page then calls the routes outside /v1.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path

from starlette.responses import Response

from . import responses
from .clock import format_rfc3339

_FOLDER = Path(__file__).resolve().parent / "page"
_PARTS = ("head", "header")

_SCRIPTS = "script-src 'self'"
# Only our own scripts and styles; no HTML from strings (Trusted Types), no form target, no frame.
_POLICY = (
    "default-src 'none'",
    _SCRIPTS,
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
    **responses.HEADERS,
    "content-security-policy": "; ".join(_POLICY),
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
    headers = {**HEADERS, "content-security-policy": _allow_map(body)}
    return Response(body, media_type=_TYPES[Path(name).suffix], headers=headers)


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
    pages = {name: body for name, body in files.items() if name.endswith(".html")}
    return {**files, **{name: _pin(body, files) for name, body in pages.items()}}


_STYLE = re.compile(rb'<link rel="stylesheet" href="/page/([a-z0-9_]+[.]css)"')
_SCRIPT = re.compile(rb'<script type="module" src="/page/([a-z0-9_]+[.]js)"')
_IMPORT = re.compile(rb'from "[.]/([a-z0-9_]+[.]js)"')


def _pin(page: bytes, files: Mapping[str, bytes]) -> bytes:
    """Name the hashes of a page's styles and scripts, so that a browser takes no others.

    Those of what a script imports are in an import map, for an import has no place for one.
    """

    def pin(match: re.Match[bytes]) -> bytes:
        return match[0] + b' integrity="%b"' % _hash_of(files[match[1].decode()])

    def pin_all(match: re.Match[bytes]) -> bytes:
        names = _list_imports(match[1].decode(), files)
        hashes = {f"/page/{name}": _hash_of(files[name]).decode() for name in names}
        return _MAP % json.dumps({"integrity": hashes}).encode() + b"\n" + pin(match)

    return _SCRIPT.sub(pin_all, _STYLE.sub(pin, page))


_MAP = b'<script type="importmap">%b</script>'
_MAPPED = re.compile(_MAP.replace(b"%b", b"(.*)"))


def _allow_map(page: bytes) -> str:
    """Return the policy of a page: its import map is the one script that stands in it."""
    hashes = [base64.b64encode(hashlib.sha256(each).digest()) for each in _MAPPED.findall(page)]
    allowed = "".join(f" 'sha256-{each.decode()}'" for each in hashes)
    return HEADERS["content-security-policy"].replace(_SCRIPTS, _SCRIPTS + allowed)


def _hash_of(body: bytes) -> bytes:
    return b"sha384-" + base64.b64encode(hashlib.sha384(body).digest())


def _list_imports(script: str, files: Mapping[str, bytes]) -> Sequence[str]:
    """Return all that a script imports, and what that imports."""
    found = [script]
    for name in found:
        found += [
            each.decode()
            for each in dict.fromkeys(_IMPORT.findall(files[name]))
            if each.decode() not in found
        ]
    return found[1:]
