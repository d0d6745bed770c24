"""Asks the person before the client: to confirm a call, by a form.

To open a link, by the client's URL mode.

In protocol 2026-07-28 a server cannot ask in the middle of a call. It returns what it asks, and the
client calls again with the answers and a state, which the SDK seals and binds to the tool and its
arguments. The state names a round here. A confirmation serves once; the answer of a finished call
can be had again, for it changes nothing. In older revisions the server asks while the call waits.
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import time
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from mcp import types
from mcp.shared.exceptions import MCPError
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from sealpipe.errors import PolicyError
from sealpipe.mcp import terminal
from sealpipe.mcp.secret_guard import HIDING
from sealpipe.mcp.tools import Use

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    Context = ServerRequestContext[Any, Any]

TIMEOUT: Final = 600.0
"""Seconds that a person has for an answer."""
_MAX_QUESTION: Final = 4000
"""Characters that a person can be asked to read. A longer call cannot be confirmed."""
_HIDDEN: Final = re.compile(HIDING + r"|~(?=~)|(?<= ) ")
"""Also what makes a renderer strike out text, or change its width."""
_MOST_ROUNDS: Final = 200
_LINK_MESSAGE: Final = (
    "Open this page to enter what is asked for. It is encrypted in the browser; the chat never "
    "sees it."
)
_FORM: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"confirm": {"type": "boolean", "title": "Allow this call", "default": False}},
    "required": ["confirm"],
}
_DECLINED: Final = "a person has not confirmed this call: nothing was done"

Kind = Literal["confirm", "link"]
CONFIRM: Final = "confirm"
LINK: Final = "link"


class Round(NamedTuple):
    """What waits for the client's next call.

    A confirmation, or the answer of a call whose link is being shown.
    """

    kind: Kind
    ends: float
    answer: Mapping[str, Any] | None = None


class Rounds:
    """The rounds that wait, by their nonce.

    The oldest are forgotten: a client may never come back.
    """

    def __init__(self) -> None:
        self._rounds: dict[str, Round] = {}

    def open(self, kind: Kind, answer: Mapping[str, Any] | None = None) -> str:
        """Open a round, and return the state that the client must repeat."""
        now = time.monotonic()
        self._rounds = {nonce: each for nonce, each in self._rounds.items() if each.ends > now}
        while len(self._rounds) >= _MOST_ROUNDS:
            del self._rounds[next(iter(self._rounds))]
        nonce = secrets.token_urlsafe(16)
        self._rounds[nonce] = Round(kind, now + TIMEOUT, answer)
        return json.dumps({"round": nonce})

    def find(self, state: str | None, kind: Kind) -> Round | None:
        """Return the round of a state, if it is of that kind and not too old."""
        found = self._rounds.get(_read_nonce(state))
        return (
            found
            if found is not None and found.kind == kind and found.ends > time.monotonic()
            else None
        )

    def take(self, state: str) -> None:
        """Take the confirmation of a state, which serves once.

        Raises PolicyError if there is none.
        """
        if self.find(state, CONFIRM) is None:
            raise PolicyError(
                "this confirmation has been used, or is too old", remedy="call the tool again"
            )
        del self._rounds[_read_nonce(state)]


def _read_nonce(state: str | None) -> str:
    with suppress(ValueError, KeyError, TypeError, RecursionError):
        return str(json.loads(state or "")["round"])
    return ""


def describe_use(use: Use, arguments: Mapping[str, Any]) -> str:
    """Return the question that a person answers.

    All that the call would use, and its arguments, in ASCII.

    Raises PolicyError if it is too long to read.
    """
    rows: dict[str, list[Any]] = {
        "reads": [str(each) for each in use.sources],
        "writes": [str(each) for each in use.sinks],
        "sends to": [f"{each.name}:{each.to}" for each in use.recipients],
        "runs": list(use.command),
        "variables": list(use.variables),
        "expires in": [] if use.expires_in is None else [str(use.expires_in)],
        "is about": [] if use.subject is None else [use.subject],
        "all arguments": [arguments],
    }
    lines = [f"{name}: {' '.join(map(_quote, values))}" for name, values in rows.items() if values]
    question = "\n".join([f"An assistant calls {use.tool}.", *lines])
    if len(question) > _MAX_QUESTION:
        raise PolicyError(
            "a person must confirm this call, and it is too long to read", remedy="use fewer words"
        )
    return question


def _quote(value: Any) -> str:
    return _HIDDEN.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(value))


def is_modern(context: Context) -> bool:
    """Whether the client calls again with its answers, instead of being asked during the call."""
    return context.protocol_version in MODERN_PROTOCOL_VERSIONS


def has_form(context: Context) -> bool:
    """Whether the client can ask the person by a form. One that declares no mode has this one."""
    capability = _get_capability(context)
    return capability is not None and (capability.form is not None or capability.url is None)


def has_url(context: Context) -> bool:
    """Whether the client can show the person a link."""
    capability = _get_capability(context)
    return capability is not None and capability.url is not None


def make_confirmation(question: str) -> types.ElicitRequest:
    """Make the request for a confirmation."""
    return types.ElicitRequest(
        params=types.ElicitRequestFormParams(message=question, requested_schema=_FORM)
    )


def make_link_request(link: str) -> types.ElicitRequest:
    """Make the request to show a link."""
    return types.ElicitRequest(params=types.ElicitRequestURLParams(message=_LINK_MESSAGE, url=link))


def check_confirmed(response: Any) -> None:
    """Raise PolicyError unless the person said yes."""
    content = (
        response.content
        if isinstance(response, types.ElicitResult) and response.action == "accept"
        else None
    )
    if not content or content.get("confirm") is not True:
        raise PolicyError(_DECLINED, remedy="ask the user what they want instead")


def is_shown(response: Any) -> bool:
    """Whether the client says that it showed the link, and the person agreed to open it."""
    return isinstance(response, types.ElicitResult) and response.action == "accept"


async def confirm_now(context: Context, question: str) -> None:
    """Get a confirmation during the call: by the client's form, else on the terminal.

    Raises PolicyError.
    """
    if has_form(context):
        check_confirmed(
            await _wait(context.session.elicit_form(question, _FORM, context.request_id))
        )
        return
    answer = await terminal.ask(question)
    if answer is None:
        raise PolicyError(
            "a person must confirm this call, and there is no way to ask one",
            remedy="use a client with elicitation, or start `sealpipe mcp --http` on a terminal",
        )
    if not answer:
        raise PolicyError(_DECLINED, remedy="ask the user what they want instead")


async def show_link_now(context: Context, link: str) -> bool:
    """Show a link during the call; return whether the person agreed to open it."""
    identity = secrets.token_urlsafe(16)
    return is_shown(
        await _wait(context.session.elicit_url(_LINK_MESSAGE, link, identity, context.request_id))
    )


async def _wait(asking: Coroutine[Any, Any, types.ElicitResult]) -> types.ElicitResult | None:
    """Return the client's result; None for an error, or no answer in time."""
    with suppress(MCPError, TimeoutError):
        async with asyncio.timeout(TIMEOUT):
            return await asking
    return None


def _get_capability(context: Context) -> types.ElicitationCapability | None:
    capabilities = context.session.client_capabilities
    return None if capabilities is None else capabilities.elicitation
