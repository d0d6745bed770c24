"""The people at the other end: they have a link and nothing else, and open it over real HTTP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from sealpipe.secret import Secret
from sealpipe.wire import envelope, fields, link, tokens
from sealpipe.wire.fields import Field

from .door import ask


class NotOpened(Exception):  # what happened to a person, as they would say it
    """The link did not open.

    `reason` is one of `not-found`, `time`, `views`, `attempts`, `deleted`, `passcode-required`,
    `passcode-wrong`. `attempts_left` is how many passcode attempts remain, where one was spent.
    """

    def __init__(self, reason: str, message: str, attempts_left: int | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.attempts_left = attempts_left


@dataclass(frozen=True)
class Recipient:
    """Opens share links of a rehearsal. `origin` is the service's address, if the link's is another's."""

    origin: str | None = None

    def look(self, share_link: str | Secret) -> dict[str, Any]:
        """What the page says before it opens anything: `passcode_required`, `expired_at`. Spends nothing."""
        origin, path, _ = self._parts(share_link)
        return _told(*ask(origin, "GET", path))

    def open_link(self, share_link: str | Secret, passcode: str | Secret | None = None) -> list[Field]:
        """Open a link, spending a view. Raises NotOpened, and WireError for what does not decrypt.

        Where a passcode is wanted and none is given, nothing is spent.
        """
        origin, path, fragment = self._parts(share_link)
        content_key = link.decode_fragment(fragment)
        known = passcode.reveal() if isinstance(passcode, Secret) else passcode
        proof = {"access_token": tokens.access_token(content_key)}
        if _told(*ask(origin, "GET", path))["passcode_required"]:
            if known is None:
                raise NotOpened("passcode-required", "this share wants a passcode")
            proof["passcode_verifier"] = tokens.passcode_verifier(known)
        else:
            known = None  # the sender set none: the content key alone decrypts
        content = _told(*ask(origin, "POST", f"{path}/open", proof))
        return fields.load(envelope.open(content_key, content["data"], known))

    def _parts(self, share_link: str | Secret) -> tuple[str, str, str]:
        text = share_link.reveal() if isinstance(share_link, Secret) else share_link
        address = urlsplit(text)
        code = address.path.rsplit("/", 1)[-1]  # stays encoded, as it is one segment here and there
        origin = self.origin or f"{address.scheme}://{address.netloc}"
        return origin, f"/rehearsal/shares/{code}", address.fragment


def _told(status: int, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise NotOpened("not-found", f"no rehearsal answers there (HTTP {status})")
    if status != 200:
        message = value.get("message", f"HTTP {status}")
        raise NotOpened(value.get("reason", "not-found"), message, value.get("attempts_left"))
    return value
