"""Forty field arrays that want to be more than text."""

from __future__ import annotations

from typing import Any

from e2e.browser.sending import field

_RLO, _ISOLATE, _ZERO_WIDTH = "\u202e", "\u2066", "\u200b"
_SCRIPT = "<script>window.pwned = 1</script>"
_TYPES = ("text", "password", "date", "multiline", "markdown", "source_code", "url", "qr")


def _everywhere(text: str) -> list[Any]:
    """One text as label, value, type, language and file name."""
    return [
        field(text, kind, text, selectedProgrammingLanguage=text, filename=text)
        for kind in (*_TYPES, text)
    ]


def _url(text: str) -> list[Any]:
    return [field(text, "url"), field(text, "markdown"), field(text, "text", text)]


def _file(name: Any) -> list[Any]:
    return [
        field("content", "source_code", filename=name),
        field("content", "markdown", filename=name),
    ]


ARRAYS: dict[str, list[Any]] = {
    # Markup and script
    "a script element": _everywhere(_SCRIPT),
    "an image whose error runs": _everywhere('<img src=x onerror="window.pwned=1">'),
    "an image from elsewhere": _everywhere('<img src="http://198.51.100.7/p.png">'),
    "an svg that runs when it loads": _everywhere(
        "<svg onload=window.pwned=1><animate onbegin=window.pwned=1>"
    ),
    "an end of what it may stand in": _everywhere(
        f'"></pre></textarea></title></style></h2>{_SCRIPT}'
    ),
    "an end of an attribute": _everywhere(
        '" onmouseover="window.pwned=1" autofocus onfocus="window.pwned=1" x="'
    ),
    "a frame": _everywhere('<iframe srcdoc="<script>parent.pwned=1</script>"></iframe>'),
    "a base, a refresh and a style sheet": _everywhere(
        '<base href="http://198.51.100.7/"><meta http-equiv=refresh '
            'content="0;url=http://198.51.100.7/">'
        '<link rel=stylesheet href="http://198.51.100.7/s.css"><style>@import '
            '"http://198.51.100.7/t.css"</style>'
    ),
    "a form": _everywhere(
        '<form action="http://198.51.100.7/"><input name=p><button>Open it</button></form>'
    ),
    "entities": _everywhere("&lt;script&gt;&#60;script&#62;&amp;amp;\u0000&nbsp;"),
    "templates": _everywhere(
        "{{constructor.constructor('window.pwned=1')()}}${window.pwned=1}#{1}<%= 1 %>"
    ),
    "markdown with markup and links": _everywhere(
        f"[x](javascript:window.pwned=1) ![x](http://198.51.100.7/p.png) {_SCRIPT} "
            "<javascript:window.pwned=1>"
    ),
    "names that objects have": [field(name, name, name) for name in ("__proto__", "constructor",
        "toString", "then")],
    "members that objects have": [{"key": "k", "value": "v", "type": "text",
        "__proto__": {"pwned": 1}, "id": "stage"}],
    # Addresses
    "javascript": _url("javascript:window.pwned=1"),
    "javascript in mixed case": _url("JaVaScRiPt:window.pwned=1//http://x"),
    "javascript behind a control character": _url("\u0001javascript:window.pwned=1"),
    "javascript with a line break inside": _url("java\nscript:window.pwned=1"),
    "javascript behind a web address": _url("http://example.com\njavascript:window.pwned=1"),
    "data": _url(f"data:text/html,{_SCRIPT}"),
    "vbscript, blob, file and others": [
        field(f"{scheme}:x", "url") for scheme in ("vbscript", "blob", "file", "ftp", "mailto",
            "tel", "about")
    ],
    "no scheme": _url("//198.51.100.7/x"),
    "a web address without slashes": _url("https:198.51.100.7"),
    "a web address with backslashes": _url("https:\\\\198.51.100.7\\x"),
    "somebody else's name in front": _url("https://bank.example@198.51.100.7/login"),
    "a web address that reads backwards": _url(f"https://198.51.100.7/{_RLO}moc.knab//:sptth"),
    # Direction, terminals, what is not seen
    "right-to-left overrides": _everywhere(f"{_RLO}drowssap{_ISOLATE}\u2067\u200f\u061c"),
    "zero-width and tags": _everywhere(f"pass{_ZERO_WIDTH}word\ufeff\u2060\U000e0041\ufffc"),
    "terminal escapes": _everywhere(
        "\u001b]0;pwned\u0007\u001b[2J\u001b[31mred\u009b1m\u0008\u007f"
    ),
    "workflow commands and line breaks": _everywhere(
        "a\r\n::set-output name=x::y\u2028\u2029\u0085z\u000b\u000c"
    ),
    "half surrogate pairs": _everywhere("\ud800 and \udc00"),
    "a hundred marks on one letter": _everywhere("Z" + "\u0335\u0321\u0489" * 100),
    # Size
    "values of half a million characters": [field("wide " * 100_000),
        field("x" * 500_000, "source_code")],
    "a label of a hundred thousand": [field("v", "text", "L" * 100_000)],
    "two thousand fields": [field(str(number), "text",
        f"Field {number}") for number in range(2000)],
    # Form
    "members of other kinds": [
        {"key": 1, "value": {"a": ["<b>"]}, "type": []}, {},
        {"label": "wrong", "value": None, "type": "text"},
        field("v", "nonsense"), {"key": ["k"], "value": True, "type": "password", "filename": {}},
    ],
    # File names
    "file names with paths": [
        *_file("../../../etc/cron.d/pwned"),
        *_file("C:\\Windows\\cmd.exe"),
        *_file("/x/"),
    ],
    "file names that are none": [
        *_file(".."),
        *_file("."),
        *_file("   "),
        *_file("\u0000"),
        *_file(7),
        *_file(""),
    ],
    "file names that systems keep or shells read": [
        *_file("CON.txt"), *_file("-rf"), *_file("~/.bashrc"), *_file("%2e%2e%2fx"),
        *_file("$(id).txt"),
    ],
    "file names that lie or never end": [
        *_file(f"invoice{_RLO}fdp.exe"), *_file("n" * 5000 + ".pem"), *_file("a<b>|c?*.txt"),
    ],
}  # fmt: skip
