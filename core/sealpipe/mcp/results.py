"""The results of calls.

Content as JSON and as text, and errors in which nothing from outside is prose.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from mcp import types

from sealpipe.api.responses import escape_text
from sealpipe.errors import SealpipeError
from sealpipe.mcp.secret_guard import list_texts, untrusted
from sealpipe.mcp.tools import Tool

_MAX_MESSAGE: Final = 400
_MEANINGS: Final[Mapping[int, str]] = {
    1: "An error of sealpipe.",
    2: "A setting, an argument or a policy of this machine does not allow it; nothing was sent.",
    3: "The service does not accept this machine's credential.",
    4: "The plan or the scopes of the credential do not allow it.",
    5: "The service refused the call as invalid.",
    6: "There is nothing of that short code, or it has ended.",
    7: "The service is busy or unavailable; nothing has changed.",
    8: "The service holds something else under this call's key.",
    9: "It is not known whether the call succeeded; a person runs `sealpipe resume`.",
    10: "The service cannot be reached; nothing was sent.",
    11: "Done at the service, but not delivered; a person runs `sealpipe resume`.",
    12: "The service's response breaks the protocol.",
    13: "The submission cannot be decrypted, or does not fit the prompts.",
    14: "A store or a channel failed; nothing is lost, and the call can be repeated.",
    15: "There is no submission yet.",
    16: "The request expired without a submission.",
    17: "There is more than one submission: nothing was stored.",
}
"""What each exit code means to an assistant."""
_MEMBERS: Final = ("error", "kind", "exit_code", "message", "next", "detail", "remedy")
_NEXT: Final = "Tell the user. `sealpipe doctor` finds most causes."
_NEXT_CALLS: Final[Mapping[int, str]] = {
    6: "Call `list`: it shows what this server made.",
    15: "Call `wait_for_submission`, then `collect_secret` again.",
    16: "Call `request_secret` again, if the secret is still needed.",
}
"""What an assistant does next, by exit code, where it can do something itself."""
_BUG: Final = "internal error"
_WITHHELD: Final = "The call was carried out, and its answer is withheld: it contains a secret."
_WITHHELD_DETAIL: Final = "withheld: it contains a secret"


class CallError(Exception):
    """A call failed.

    The error for the record, its members for the client, and whether its tool had begun.
    """

    def __init__(
        self, error: SealpipeError, members: Mapping[str, Any], *, has_begun: bool
    ) -> None:
        super().__init__()
        self.error = error
        self.members = members
        self.has_begun = has_begun


@contextmanager
def describe_failure(*, has_begun: bool) -> Iterator[None]:
    """Turn an error of this block into a CallError.

    Before a tool has begun, an error holds only our words and the client's, and is shown as it is.
    Afterwards it may quote the service, a submitter or a store: then our words are those of its
    exit code, and its own are data.
    """
    try:
        yield
    except SealpipeError as error:
        failure = error
    else:
        return
    members = {"kind": type(failure).__name__, "exit_code": failure.exit_code}
    if has_begun:
        code = failure.exit_code
        members |= {
            "message": _MEANINGS.get(code, _MEANINGS[1]),
            "next": _NEXT_CALLS.get(code, _NEXT),
        }
        texts = {"detail": failure.message, "remedy": failure.remedy}
        members |= {name: untrusted(text, _MAX_MESSAGE) for name, text in texts.items() if text}
    else:
        members |= {"message": escape_text(failure.message, _MAX_MESSAGE)}
        members |= {"next": escape_text(failure.remedy or _NEXT, _MAX_MESSAGE)}
    raise CallError(failure, members, has_begun=has_begun) from None


def make_result(content: Mapping[str, Any]) -> types.CallToolResult:
    """Make the result of a call.

    Its content, and the same as JSON text for clients without structured content.
    """
    return _make(content, is_error=False)


def make_error(members: Mapping[str, Any]) -> types.CallToolResult:
    """Make the result of a call that failed."""
    return _make({"error": dict(members)}, is_error=True)


def describe_bug() -> tuple[SealpipeError, types.CallToolResult]:
    """Return the error and the result for a bug of ours.

    Nothing of it is shown: it may hold anything.
    """
    return SealpipeError(_BUG), _make_own_error(_BUG)


def withhold_secrets(result: types.CallToolResult) -> types.CallToolResult:
    """Return an error in place of a result that holds a secret.

    Of an error, only what is data is withheld.
    """
    if not result.is_error:
        return _make_own_error(_WITHHELD)
    members: Mapping[str, Any] = result.structured_content["error"]
    kept = {name: members[name] for name in ("kind", "exit_code", "message", "next")}
    return make_error({**kept, "detail": untrusted(_WITHHELD_DETAIL)})


def list_words(tools: Iterable[Tool[Any, Any]]) -> Iterator[str]:
    """Yield the fixed words of results.

    Names and choices of the schemas, and the sentences of errors.
    """
    yield from (*_MEANINGS.values(), _NEXT, *_NEXT_CALLS.values(), *_MEMBERS, _BUG)
    for kind in _list_kinds(SealpipeError):
        yield kind.__name__
    for tool in tools:
        yield from list_texts([tool.output, tool.name])


def _list_kinds(kind: type[SealpipeError]) -> Iterator[type[SealpipeError]]:
    yield kind
    for each in kind.__subclasses__():
        yield from _list_kinds(each)


def _make_own_error(message: str) -> types.CallToolResult:
    return make_error({"kind": "SealpipeError", "exit_code": 1, "message": message, "next": _NEXT})


def _make(content: Mapping[str, Any], *, is_error: bool) -> types.CallToolResult:
    text = types.TextContent(type="text", text=json.dumps(content))
    return types.CallToolResult(content=[text], structured_content=dict(content), is_error=is_error)
