"""What may go out: no value that this process has seen, in any encoding.

Text from outside only as harmless data.

Every `Secret` that is made while a server serves is seen: values, passcodes, links, seeds, the
credential's parts. Everything that goes to the client is searched for them. Two kinds of finds do
not count, or the search itself would do harm. A text that the client sent: else it could guess a
value in a title, and the refusal would confirm it. And a text that the server knew anyway, such as
its own words and short codes: else somebody who submits `pending` as a password would silence it.
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
from sealpipe.secret import Secret
from sealpipe.spellings import Finder, is_searchable
from sealpipe.spellings.needles import Needle, list_needles, split

LONGEST: Final = 200
"""Characters of text from outside."""
_INDEXED: Final = 1024
"""Bytes at each end of a value that are searched for: no text that goes out holds the middle of a
large value alone.
"""
_MOST_VALUES: Final = 1000
_MOST_BYTES: Final = 256 * 1024
"""Bytes of values that are searched for; what was seen longest ago is forgotten, but not the
credential.
"""
_MOST_KEPT: Final = 12
"""Parts of credentials that are never forgotten: of ours, which is seen first, and of the previous
one.
"""
_MOST_KNOWN: Final = 1024 * 1024
"""Characters of known texts; the oldest are forgotten, and then a find in them counts."""
_WINDOW: Final = 12
"""Bytes of an encoded value that may not stand together; a shorter one is searched for as a
whole.
"""
_CREDENTIAL: Final = re.compile(rb"[A-Za-z0-9]+_sk_live_[^.]*\.")
_PUBLIC: Final = re.compile(rb"https?://[^#@]*#|" + _CREDENTIAL.pattern)
"""The part of a link and of a credential that is no secret."""
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)")
HIDING: Final = r"<(?=[A-Za-z/!?])|(?<=\])[(\[]|(?<=!)\[|&(?=#|[A-Za-z])"
"""Matches what makes an HTML tag or entity, or a link or an image of Markdown: not all of the text
is shown.
"""
_MARKUP: Final = re.compile(HIDING + r"|`(?=``)|~(?=~~)|(?<=:)/(?=/)")
"""Also what makes a fence, or an address."""


class OutgoingGuard:
    """Sees every secret, knows texts that are none, and searches.

    Its methods may be called from any thread.
    """

    def __init__(self, words: Iterable[str] = ()) -> None:
        self._lock = threading.Lock()
        self._values: dict[bytes, None] = {}
        self._kept: set[bytes] = set()
        self._finder = Finder()
        self._unindexed: list[bytes] = []
        self._known: dict[str, None] = {}
        self._size = 0
        self._words = "\n".join(words)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """See every secret that is made in this block."""
        before, secrets.watch = secrets.watch, self.see
        try:
            yield
        finally:
            secrets.watch = before

    def see(self, value: Secret) -> None:
        """Remember a secret. A short one is not searched for: common text would vanish."""
        try:
            data = value.reveal_bytes()
        except UnicodeError:
            return
        parts = [part for part in _select_parts(data) if is_searchable(part)]
        with self._lock:
            if _CREDENTIAL.match(data[:_INDEXED]) and len(self._kept) < _MOST_KEPT:
                self._kept.update(parts)
            for part in parts:
                if part in self._values:
                    del self._values[part]  # it is the newest now
                else:
                    self._unindexed.append(part)
                self._values[part] = None
            if len(self._values) > _MOST_VALUES or sum(map(len, self._values)) > _MOST_BYTES:
                self._forget()

    def _forget(self) -> None:
        """Forget the older half of the values."""
        kept: dict[bytes, None] = dict.fromkeys(self._kept)
        size = 0
        for part in reversed(self._values):
            size += len(part)
            if len(kept) > _MOST_VALUES // 2 or size > _MOST_BYTES // 2:
                break
            kept[part] = None
        self._values = dict.fromkeys(reversed(kept))
        self._unindexed, self._finder = list(self._values), Finder()

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
        """Return whether a text or JSON value contains part of a secret that is not public."""
        texts = [text for text in list_texts(content) if not _TIME.fullmatch(text)]
        data = "\n".join(texts).encode(errors="surrogatepass")
        with self._lock:
            while self._unindexed:
                self._finder.add(_list_windows(self._unindexed.pop()))
            found = {data[start:end] for start, end in self._finder.find_each(data)}
            known = (
                "\n".join([self._words, *self._known]).encode(errors="surrogatepass")
                if found
                else b""
            )
        return any(window not in known for window in found)


def _select_parts(value: bytes) -> set[bytes]:
    """Return what is secret of a value.

    Of a link its fragment, of a credential what follows the key's id.
    """
    public = _PUBLIC.match(value[:_INDEXED])
    value = value if public is None else value[public.end() :]
    return {
        value[:_INDEXED],
        value[-_INDEXED:],
        *(value.split(b".") if public and len(value) < _INDEXED else ()),
    }


def _list_windows(value: bytes) -> Iterator[Needle]:
    """Yield what may not go out of a value, also encoded in ways that programs use less often."""
    yield from list_needles([value], _WINDOW)
    for form in (value[::-1], value.hex(" ").encode(), ", ".join(map(str, value)).encode()):
        yield from map(Needle, split(form, _WINDOW))


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
    """Return text from outside as a member of an answer.

    Data, at most so many characters, and harmless to show.
    """
    return {"untrusted": neutralize(text, longest)}


def neutralize(text: str, longest: int = LONGEST) -> str:
    r"""Return text that neither a terminal nor a renderer of HTML or Markdown obeys.

    Escaped as `\u{HEX}`.

    Escapes control, bidirectional and invisible characters (but line breaks and tabs) and what
    begins markup.
    """
    shown = "".join(
        character if _is_plain(character) else _escape(character)
        for character in text[: 2 * longest]
    )
    shown = _MARKUP.sub(lambda match: _escape(match[0]), shown)
    return shown if len(shown) <= longest and len(text) <= longest else shown[: longest - 3] + "..."


def _is_plain(character: str) -> bool:
    # Cf has the bidirectional and the zero-width characters, M? what piles up on others, Z? but a
    # space odd separators.
    return character in "\n\t " or unicodedata.category(character)[0] not in "CZ"


def _escape(character: str) -> str:
    return f"\\u{{{ord(character):x}}}"
