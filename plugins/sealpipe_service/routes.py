"""The names of routes, for logs and metrics: a path's template, which holds no code.

What no route has is `other`, so that there are as many names as routes, whatever callers send.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import unquote

from . import gateway, pages
from .gateway import CODE

OTHER = "other"
METHODS = ("GET", "HEAD", "POST", "DELETE", OTHER)

_FILE = "{file}"
_OUTSIDE: Sequence[tuple[str, ...]] = (
    ("",),
    ("healthz",),
    ("readyz",),
    ("page", _FILE),
    ("s", "r", CODE),
    ("s", CODE),
    ("links", "shares", CODE),
    ("links", "shares", CODE, "open"),
    ("links", "requests", CODE),
    ("links", "requests", CODE, "open"),
    ("links", "requests", CODE, "submit"),
    ("links", "requests", CODE, "submissions"),
)
_ALL = (*gateway.ROUTES, *gateway.MCP_ROUTES, *gateway.EXTENDED_ROUTES)
_PATHS = tuple(dict.fromkeys((*_OUTSIDE, *(("v1", *route.path) for route in _ALL))))

ROUTES = (*(f"/{'/'.join(path)}" for path in _PATHS), OTHER)
"""All names."""
_BY_LENGTH: Mapping[int, Sequence[tuple[tuple[str, ...], str]]] = {
    length: [each for each in zip(_PATHS, ROUTES, strict=False) if len(each[0]) == length]
    for length in {len(path) for path in _PATHS}
}


def split_path(raw_path: bytes) -> tuple[str, ...]:
    """Split a path before it is decoded: an encoded slash is part of a short code."""
    return tuple(unquote(segment) for segment in raw_path.decode("latin-1").split("/")[1:])


def name_route(segments: tuple[str, ...]) -> str:
    """Return the name of the route that a path belongs to."""
    paths = _BY_LENGTH.get(len(segments), ())
    return next((name for path, name in paths if _fits(path, segments)), OTHER)


def name_method(method: str) -> str:
    """Return a method that has routes, or `other`."""
    return method if method in METHODS else OTHER


def _fits(path: tuple[str, ...], segments: tuple[str, ...]) -> bool:
    return all(
        want in (CODE, got) or (want == _FILE and pages.find_file("GET", segments) is not None)
        for want, got in zip(path, segments, strict=True)
    )
