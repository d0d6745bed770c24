"""What may go out: no value that this process has seen, in any encoding; and text from outside only as harmless data.

Every `Secret` that is made while a server serves is seen: values, passcodes, links, seeds, the credential's parts.
Everything that goes to the client is searched for them. Two kinds of finds do not count, or the search itself would do
harm. A text that the client sent: else it could guess a value in a title, and the refusal would confirm it. And a text
that the server knew anyway, such as its own words and short codes: else somebody who submits `pending` as a password
would silence it.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from sealpipe import secret as secrets
from sealpipe.ci_commands import MIN_MASK_LENGTH
from sealpipe.run.redaction import is_redactable, list_patterns
from sealpipe.secret import Secret

LONGEST: Final = 200
"""Characters of text from outside."""
_INDEXED: Final = 8 * 1024
"""Bytes at each end of a value that are searched for: no text that goes out holds the middle of a large value alone."""
_MOST_VALUES: Final = 2000
_MOST_KNOWN: Final = 1024 * 1024
"""Characters of known texts; the oldest are forgotten, and then a find in them counts."""
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)")
_MARKUP: Final = re.compile(r"<(?=[A-Za-z/!?])|(?<=\])[(\[]|(?<=!)\[|`(?=``)|~(?=~~)|&(?=#|[A-Za-z])|(?<=:)/(?=/)")
"""The character that makes an HTML tag or entity, a link or an image of Markdown, a fence, or an address."""


class OutgoingGuard:
    """Sees every secret, knows every text that is none, and searches. Its methods may be called from any thread."""

    def __init__(self, words: Iterable[str] = ()) -> None:
        self._lock = threading.Lock()
        self._values: dict[bytes, frozenset[bytes] | None] = {}
        self._known: dict[str, None] = {}
        self._size = 0
        self._words = "\n".join(words).encode()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """See every secret that is made in this block."""
        before, secrets.watch = secrets.watch, self.see
        try:
            yield
        finally:
            secrets.watch = before

    def see(self, value: Secret) -> None:
        """Remember a secret; a short one, like common text, is not searched for."""
        try:
            data = value.reveal_bytes()
        except UnicodeError:
            return
        ends = data if len(data) <= 2 * _INDEXED else data[:_INDEXED] + b"\n" + data[-_INDEXED:]
        _, hash_sign, fragment = ends.rpartition(b"#")
        with self._lock:
            for part in (ends, fragment) if hash_sign else (ends,):
                if is_redactable(part):
                    self._values.setdefault(part, None)
            while len(self._values) > _MOST_VALUES:
                del self._values[next(iter(self._values))]

    def know(self, texts: Iterable[str | None]) -> None:
        """Remember texts that are no secrets."""
        with self._lock:
            for text in texts:
                if text and len(text) >= MIN_MASK_LENGTH and text not in self._known:
                    self._known[text] = None
                    self._size += len(text)
            while self._size > _MOST_KNOWN:
                oldest = next(iter(self._known))
                del self._known[oldest]
                self._size -= len(oldest)

    def holds_secret(self, content: Any) -> bool:
        """Return whether a text, or a text in a JSON value, contains a secret that is not known anyway."""
        texts = [text for text in list_texts(content) if not _TIME.fullmatch(text)]
        data = "\n".join(texts).encode(errors="surrogatepass")
        found = [pattern for pattern in self._list_patterns() if pattern in data]
        if not found:
            return False
        with self._lock:
            known = "\n".join(self._known).encode(errors="surrogatepass")
        return any(pattern not in known and pattern not in self._words for pattern in found)

    def _list_patterns(self) -> Iterator[bytes]:
        with self._lock:
            values = list(self._values.items())
        for value, patterns in values:
            if patterns is None:
                patterns = self._values[value] = list_patterns([value])
            yield from patterns


def list_texts(content: Any) -> Iterator[str]:
    """Yield all texts in a JSON value, names of members too."""
    match content:
        case str():
            yield content
        case Mapping():
            for name, value in content.items():
                yield str(name)
                yield from list_texts(value)
        case list() | tuple():
            for item in content:
                yield from list_texts(item)


def untrusted(text: str, longest: int = LONGEST) -> dict[str, str]:
    """Return text from outside as a member of an answer: data, at most so many characters, and harmless to show."""
    return {"untrusted": neutralize(text, longest)}


def neutralize(text: str, longest: int = LONGEST) -> str:
    r"""Return text that neither a terminal nor a renderer of HTML or Markdown obeys: escaped as `\u{HEX}`.

    Escapes control, bidirectional and invisible characters (but line breaks and tabs) and what begins markup.
    """
    shown = "".join(character if _is_plain(character) else _escape(character) for character in text[: 2 * longest])
    shown = _MARKUP.sub(lambda match: _escape(match[0]), shown)
    return shown if len(shown) <= longest and len(text) <= longest else shown[: longest - 3] + "..."


def _is_plain(character: str) -> bool:
    # Cf has the bidirectional and the zero-width characters, M? what piles up on others, Z? but a space odd separators.
    return character in "\n\t " or unicodedata.category(character)[0] not in "CZ"


def _escape(character: str) -> str:
    return f"\\u{{{ord(character):x}}}"
