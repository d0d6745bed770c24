"""Our credential, taken out of whatever comes back.

A service, or a proxy in between, may repeat our request in a message, a header, a page of its own. Nothing of that
is shown or handed on before it was here.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cached_property

from sealpipe.api.operation import Answer, Failure
from sealpipe.credential import Credential

WITHHELD = b"[withheld]"

_BACKSLASHES = rb"\\{1,16}"
"""JSON in JSON doubles them each time. Not any number: a megabyte of nothing else would be searched for hours."""


class Echo:
    """Finds what was sent as the credential: the auth secret anywhere, and what follows our key id and a dot.

    The second finds one that was cut short, too. Characters that JSON has escaped (`\\u0041`) count as themselves.
    """

    def __init__(self, credential: Credential) -> None:
        self._credential = credential

    def out_of(self, result: Answer | Failure) -> Answer | Failure:
        """The same without the credential."""
        if isinstance(result, Failure):
            return replace(result, detail=self._text(result.detail))
        headers = {name: self._text(value) for name, value in result.headers.items()}
        return replace(result, headers=headers, body=self._bytes(result.body))

    def _text(self, text: str) -> str:
        return self._bytes(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def _bytes(self, data: bytes) -> bytes:
        # Three searches for plain bytes: the pattern is made, and run, only where there may be something.
        auth, key_id = self._credential.auth_secret.reveal_bytes(), self._credential.key_id.encode()
        if auth in data or key_id + b"." in data or b"\\u00" in data:
            return self._pattern.sub(WITHHELD, data)
        return data

    @cached_property
    def _pattern(self) -> re.Pattern[bytes]:
        sent = self._credential
        run = rb"(?:[A-Za-z0-9_-]|%su00[0-9A-Fa-f]{2})+" % _BACKSLASHES
        named = rb"(?:%s)?%s%s" % (_written(f"Bearer {sent.tag}_sk_live_"), _written(f"{sent.key_id}."), run)
        return re.compile(rb"%s|%s" % (named, _written(sent.auth_secret.reveal())))


def _written(text: str) -> bytes:
    """A pattern for text as it is, or with any of its characters escaped as JSON may do it."""
    return b"".join(rb"(?:%s|%su00(?i:%02x))" % (re.escape(sign.encode()), _BACKSLASHES, ord(sign)) for sign in text)
