"""The channels. Each but the first one is the first one with one mistake."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from typing import Any, ClassVar

import httpx

from sealpipe.plugin import (
    Channel,
    Delivery,
    Message,
    PluginError,
    ReferenceValueError,
    Secret,
    UnavailableError,
    UnknownOutcomeError,
    parse_retry_after,
)
from sealpipe.plugin.settings import PluginSettings


class ChatSettings(PluginSettings):
    """Where the chat is, and the token for it."""

    url: str
    token: Secret

    own_variables: ClassVar[Mapping[str, str]] = {"url": "CHAT_URL", "token": "CHAT_TOKEN"}


class Careful(Channel):
    """Does what the contract asks."""

    lost: ClassVar[type[PluginError]] = UnknownOutcomeError
    follows = False

    def validate(self, to: str) -> None:
        if not re.fullmatch(r"[a-z]+", to):
            raise ReferenceValueError("not a name", remedy="write one in lower case")

    def send(self, message: Message, to: str) -> Delivery:
        text = self.write(message.text.reveal(), message.secret.reveal(), message.what)
        response = self.post({"to": to, "html": text})
        if response.status_code in (429, 503):
            wait = parse_retry_after(response.headers.get("retry-after", ""))
            raise UnavailableError("the chat is busy", retry_after=wait)
        if response.status_code >= 500:
            raise UnknownOutcomeError("the chat failed")
        if response.status_code != 201:
            raise PluginError(self.describe(response))
        return Delivery(response.json()["id"])

    def write(self, text: str, secret: str, what: str) -> str:
        """Return the text as HTML in which only a link is markup."""
        shown = html.escape(secret)
        link = f'<a href="{shown}">{shown}</a>' if what == "share" else shown
        return link.join(html.escape(part) for part in text.split(secret))

    def describe(self, response: httpx.Response) -> str:
        """Return what went wrong."""
        return f"the chat responded with status {response.status_code}"

    def post(self, note: dict[str, Any]) -> httpx.Response:
        """Ask the chat to take a note."""
        try:
            return self.request(note)
        except (httpx.ConnectError, httpx.ConnectTimeout):
            raise UnavailableError("the chat cannot be reached") from None
        except httpx.TransportError:
            raise self.lost("the chat did not respond") from None

    def request(self, note: dict[str, Any]) -> httpx.Response:
        """Send one request."""
        return self.context.network.http().post(
            f"{self.settings.url}/notes",
            json=note,
            headers={"authorization": f"Bearer {self.settings.token.reveal()}"},
            follow_redirects=self.follows,
        )


class Repeating(Careful):
    """Lets the core send a message again that may have arrived."""

    lost = UnavailableError


class Insisting(Careful):
    """Itself sends a message again that may have arrived."""

    def request(self, note: dict[str, Any]) -> httpx.Response:
        try:
            return super().request(note)
        except (httpx.RemoteProtocolError, httpx.ReadError, httpx.ReadTimeout):
            return super().request(note)


class Raw(Careful):
    """Lets the errors of its HTTP library through."""

    def post(self, note: dict[str, Any]) -> httpx.Response:
        return self.request(note)


class Trusting(Careful):
    """Lets a title be markup."""

    def write(self, text: str, secret: str, what: str) -> str:
        del what
        return text.replace(secret, f'<a href="{secret}">{secret}</a>')


class Following(Careful):
    """Sends the message where a redirect leads."""

    follows = True


class Asking(Careful):
    """Asks where a redirect leads, with the token, as `urllib.request` does."""

    def request(self, note: dict[str, Any]) -> httpx.Response:
        response = super().request(note)
        if response.status_code not in (301, 302, 303):
            return response
        return self.context.network.http().get(
            f"{response.url.join(response.headers['location'])}",
            headers={"authorization": response.request.headers["authorization"]},
        )


class Quoting(Careful):
    """Quotes a response, in which there is whatever the other side wants."""

    def describe(self, response: httpx.Response) -> str:
        return f"the chat says: {response.text}"


class Citing(Careful):
    """Quotes the message of a refusal, if it has one."""

    def describe(self, response: httpx.Response) -> str:
        is_json = response.headers.get("content-type") == "application/json"
        return f"the chat says: {response.json()['message'] if is_json else 'nothing'}"


class Chatty(Careful):
    """Logs what it has sent."""

    def send(self, message: Message, to: str) -> Delivery:
        delivery = super().send(message, to)
        self.context.logger.info("sent: %s", message.text.reveal())
        return delivery
