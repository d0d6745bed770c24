"""A message's text in the formats of the channels.

Everything but the secret is escaped, the secret is exact.

The text is untrusted (a title from a pull request, say): it cannot become markup, mentions or
commands.
"""

from __future__ import annotations

import html
import re
from typing import Final, NamedTuple

from sealpipe.plugin import Message


class Segment(NamedTuple):
    """A part of a line: text, or the secret itself."""

    text: str
    secret: bool


def split_lines(message: Message) -> list[list[Segment]]:
    """Split the text into lines of segments.

    If the text lacks the secret, append a line with it.
    """
    text, secret = message.text.reveal(), message.secret.reveal()
    if secret not in text:
        text = f"{text.rstrip()}\n\n{secret}"
    match: list[list[Segment]] = [[]]
    for number, words in enumerate(text.split(secret)):
        if number:
            match[-1].append(Segment(secret, secret=True))
        first_line, *more_lines = re.split(r"\r\n|[\r\n\v\f\x85\u2028\u2029]", words)
        match[-1].append(Segment(_strip_invisible(first_line), secret=False))
        match += [[Segment(_strip_invisible(line), secret=False)] for line in more_lines]
    non_empty = [[segment for segment in line if segment.text] for line in match]
    while non_empty and not non_empty[-1]:
        non_empty.pop()
    return non_empty


def is_link(secret: str) -> bool:
    """Return whether the secret is a link."""
    return re.fullmatch(r"https?://[^\s<>\"'|\\^`{}]+", secret) is not None


def subject_line(message: Message) -> str:
    """Return a one-line subject, without the secret."""
    subject = " ".join(_strip_invisible(re.sub(r"\s", " ", message.subject)).split())[:200]
    return (
        subject if subject and message.secret.reveal() not in subject else "A message from sealpipe"
    )


def as_plain(message: Message) -> str:
    """Return plain text with one final newline."""
    return (
        "\n".join("".join(segment.text for segment in line) for line in split_lines(message)) + "\n"
    )


def as_html(message: Message) -> str:
    """Return an HTML page with paragraphs and the link."""
    paragraphs: list[list[str]] = [[]]
    for line in split_lines(message):
        if line:
            paragraphs[-1].append("".join(_segment_html(segment) for segment in line))
        elif paragraphs[-1]:
            paragraphs.append([])
    body = "\n".join(f"<p>{_BREAK.join(rows)}</p>" for rows in paragraphs if rows)
    title = html.escape(subject_line(message))
    head = f'<head><meta charset="utf-8"><title>{title}</title></head>'
    return f'<!DOCTYPE html>\n<html lang="en">\n{head}\n<body>\n{body}\n</body>\n</html>\n'


def as_markdown(message: Message) -> str:
    """Return Markdown for comments on GitHub and GitLab."""
    # an indented line would be code, not a link
    rows = [
        "".join(_segment_markdown(segment) for segment in line).lstrip()
        for line in split_lines(message)
    ]
    # Two spaces force a line break in both; GitHub comments would break lines without them.
    return "\n".join(
        f"{row}  " if row and after else row
        for row, after in zip(rows, [*rows[1:], ""], strict=True)
    )


def as_mrkdwn(message: Message) -> str:
    """Return Slack's mrkdwn without any markup except links."""
    return "\n".join(
        "".join(_segment_mrkdwn(segment) for segment in line) for line in split_lines(message)
    )


def _segment_html(segment: Segment) -> str:
    escaped = html.escape(segment.text)
    if not segment.secret:
        return escaped
    return (
        f'<a href="{escaped}">{escaped}</a>' if is_link(segment.text) else f"<code>{escaped}</code>"
    )


def _segment_markdown(segment: Segment) -> str:
    if not segment.secret:
        # Mentions and autolinks (@name, #1, https://) cannot be escaped: an invisible character
        # breaks them.
        text = _AUTOLINKED.sub(lambda match: f"{match[0]}\u2060", segment.text)
        return _LEADING.sub(r"\1\\\2", _MARKUP.sub(r"\\\g<0>", text))
    if is_link(segment.text):
        return f"<{segment.text}>"
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", segment.text)), default=0))
    pad = " " if segment.text[0] in "` " or segment.text[-1] in "` " else ""
    return f"{fence}{pad}{segment.text}{pad}{fence}"


def _segment_mrkdwn(segment: Segment) -> str:
    # The three characters that Slack requires to be escaped.
    escaped = html.escape(segment.text, quote=False)
    return f"<{escaped}>" if segment.secret and is_link(segment.text) else escaped


def _strip_invisible(text: str) -> str:
    """Remove control characters and those that change the text direction."""
    return _INVISIBLE.sub("", text.replace("\t", " "))


_INVISIBLE: Final = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_MARKUP: Final = re.compile(r"[\\`*_{}\[\]<>#|~$^&]")
_LEADING: Final = re.compile(r"^(\s*\d*)([/+=:;.)-])")
_AUTOLINKED: Final = re.compile(
    r"""@|[#!$%~&^](?=[\w"'{])|\[(?=\w+:)|:(?=//|[\w+-]+:)|\bwww(?=\.)|\bGH(?=-\d)""", re.IGNORECASE
)
_BREAK: Final = "<br>\n"
