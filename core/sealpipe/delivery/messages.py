"""Builds the messages to recipients: plain text around the link, or around the passcode. No I/O."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime
from typing import NamedTuple

from sealpipe.errors import UsageError
from sealpipe.plugin import Message
from sealpipe.reference.text import Template, parse_template
from sealpipe.secret import Secret

PLACEHOLDERS = ("link", "title", "expires", "views")
"""The placeholders of a template, which contains `{link}` exactly once."""


_CONTROL = re.compile(r"(?![\t\n]|\r\n)[\x00-\x1f\x7f-\x9f]")


class MessageContext(NamedTuple):
    """What a message says about a share, apart from its link.

    `views` and `expires_at` are None for no limit.

    `expires_at` is None, too, if the service did not say: then `expiry_known` is False.
    """

    kind: str
    title: str | None
    short_code: str
    expires_at: datetime | None
    views: int | None
    with_passcode: bool
    template: str | None = None
    expiry_known: bool = True
    is_reminder: bool = False


def parse_message_template(text: str) -> Template:
    """Parse the text of a link's message.

    UsageError for an unknown placeholder, or not exactly one `{link}`.
    """
    pattern = parse_template(text, "the message's text")
    counts = Counter(pattern.names)
    for name in counts:
        if name not in PLACEHOLDERS:
            raise UsageError(
                f"the message's text has an unknown placeholder {{{name}}}",
                remedy="known are "
                + " ".join(f"{{{name_of_placeholder}}}" for name_of_placeholder in PLACEHOLDERS)
                + "; a brace is written {{",
            )
    if counts["link"] != 1:
        raise UsageError(
            f"the message's text contains {{link}} {counts['link']} times",
            remedy="write {link} exactly once",
        )
    if _CONTROL.search(text):
        raise UsageError("the message's text contains a control character", remedy="use plain text")
    return pattern


def build_link_message(link: Secret, about: MessageContext) -> Message:
    """Build the message with the link."""
    title = _to_line(about.title)
    if about.template is not None:
        values = {
            "link": link.reveal(),
            "title": title,
            "expires": _format_moment(about.expires_at)
            or ("never" if about.expiry_known else "not known"),
            "views": "unlimited" if about.views is None else str(about.views),
        }
        text = parse_message_template(about.template).fill(values)
    else:
        text = (_WORDINGS[about.kind].reminder if about.is_reminder else "") + _WORDINGS[
            about.kind
        ].text.format(
            named=f": {title}" if title else ".",
            link=link.reveal(),
            limits=_describe_limits(about),
            passcode=_PASSCODE_HINT if about.with_passcode else "",
        )
    subject = ("Reminder: " if about.is_reminder else "") + _WORDINGS[about.kind].subject
    return Message(
        about.kind, link, Secret(text), _make_subject(subject, title), *_collect_facts(about)
    )


def build_passcode_message(passcode: Secret, about: MessageContext) -> Message:
    """Build the message with the passcode: it names the share, but does not contain its link."""
    title = _to_line(about.title)
    text = _PASSCODE_TEXT.format(named=f": {title}" if title else ".", passcode=passcode.reveal())
    return Message(
        "passcode",
        passcode,
        Secret(text),
        _make_subject("A passcode for you", title),
        *_collect_facts(about),
    )


_SHARE_TEXT = """\
A secret is shared with you{named}

Open this link in a browser:

{link}

{limits}Anyone with the link can open it: do not pass it on.
{passcode}
If you did not expect this, ask the person it comes from before you open it.
"""
_REQUEST_TEXT = """\
You are asked for a secret{named}

Open this link in a browser, and fill in the form:

{link}

{limits}What you type is encrypted in your browser: only the sender of this request can read it.
{passcode}
If you did not expect this, ask the person it comes from before you fill it in.
"""
_PASSCODE_HINT = "You will be asked for a passcode, which you receive separately.\n"
_PASSCODE_TEXT = """\
This is the passcode for a secret that is shared with you{named}

{passcode}

You receive the link separately. Enter the passcode there when asked.
"""


class _Wording(NamedTuple):
    subject: str
    text: str
    action: str
    """What recipients can do with it."""
    reminder: str
    """How the text of a reminder begins."""


_WORDINGS = {
    "share": _Wording(
        "A secret for you",
        _SHARE_TEXT,
        "opened",
        "This is a reminder: nobody has opened the link yet.\n\n",
    ),
    "request": _Wording(
        "You are asked for a secret",
        _REQUEST_TEXT,
        "filled in",
        "This is a reminder: nobody has filled in the form yet.\n\n",
    ),
}


def _collect_facts(about: MessageContext) -> tuple[str | None, str, datetime | None]:
    return about.title, about.short_code, about.expires_at


def _describe_limits(about: MessageContext) -> str:
    view_limit = {None: "", 1: "once"}.get(about.views, f"{about.views} times")
    until = f"until {_format_moment(about.expires_at)}" if about.expires_at else ""
    phrase = ", ".join(part for part in (view_limit, until) if part)
    return f"It can be {_WORDINGS[about.kind].action} {phrase}.\n" if phrase else ""


def _format_moment(moment: datetime | None) -> str:
    return "" if moment is None else f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _make_subject(text: str, title: str) -> str:
    return f"{text}: {title}" if title else text


def _to_line(text: str | None) -> str:
    """Return a title as one line, safe in mail headers and terminals, cut to leave room."""
    line = " ".join(
        "".join(character if character.isprintable() else " " for character in text or "").split()
    )
    return line if len(line) <= _MAX_LINE else f"{line[: _MAX_LINE - 3]}..."


_MAX_LINE = 300
"""Characters of a title: some systems cut off or refuse a message that is too long."""
