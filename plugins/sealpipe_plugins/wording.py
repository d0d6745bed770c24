"""A message's text in the forms that systems show: what is not the secret is escaped, the secret stays exact.

The text may hold anything, a title from a pull request for one: it makes no markup, mentions nobody and commands
nothing.
"""

from __future__ import annotations

import html
import re
from typing import Final, NamedTuple

from sealpipe.plugin import Message


class Piece(NamedTuple):
    """A part of a line: words, or the secret itself."""

    text: str
    secret: bool


def lines(message: Message) -> list[list[Piece]]:
    """The text, line by line, each in pieces. A secret that the text lacks is on a line of its own at the end."""
    text, secret = message.text.reveal(), message.secret.reveal()
    if secret not in text:
        text = f"{text.rstrip()}\n\n{secret}"
    found: list[list[Piece]] = [[]]
    for number, words in enumerate(text.split(secret)):
        if number:
            found[-1].append(Piece(secret, secret=True))
        first, *more = re.split(r"\r\n|[\r\n\v\f\x85\u2028\u2029]", words)
        found[-1].append(Piece(_clean(first), secret=False))
        found += [[Piece(_clean(line), secret=False)] for line in more]
    whole = [[piece for piece in line if piece.text] for line in found]
    while whole and not whole[-1]:
        whole.pop()
    return whole


def is_link(secret: str) -> bool:
    """Whether it can stand as a link, rather than be shown as it is."""
    return re.fullmatch(r"https?://[^\s<>\"'|\\^`{}]+", secret) is not None


def subject(message: Message) -> str:
    """One line that is about the message, without the secret."""
    words = " ".join(_clean(re.sub(r"\s", " ", message.subject)).split())[:200]
    return words if words and message.secret.reveal() not in words else "A message from sealpipe"


def as_plain(message: Message) -> str:
    """Plain text, one newline at its end."""
    return "\n".join("".join(piece.text for piece in line) for line in lines(message)) + "\n"


def as_html(message: Message) -> str:
    """A page: paragraphs, and a link to follow."""
    paragraphs: list[list[str]] = [[]]
    for line in lines(message):
        if line:
            paragraphs[-1].append("".join(_html(piece) for piece in line))
        elif paragraphs[-1]:
            paragraphs.append([])
    body = "\n".join(f"<p>{_BREAK.join(rows)}</p>" for rows in paragraphs if rows)
    title = html.escape(subject(message))
    head = f'<head><meta charset="utf-8"><title>{title}</title></head>'
    return f'<!DOCTYPE html>\n<html lang="en">\n{head}\n<body>\n{body}\n</body>\n</html>\n'


def as_markdown(message: Message) -> str:
    """Markdown as GitHub and GitLab read it, in comments."""
    # An indented line would be code, and no link.
    rows = ["".join(_markdown(piece) for piece in line).lstrip() for line in lines(message)]
    # Two spaces break a line in both; GitHub's comments would without them.
    return "\n".join(f"{row}  " if row and after else row for row, after in zip(rows, [*rows[1:], ""], strict=True))


def as_mrkdwn(message: Message) -> str:
    """Text for Slack with its markup switched off: there is nothing but links."""
    return "\n".join("".join(_mrkdwn(piece) for piece in line) for line in lines(message))


def _html(piece: Piece) -> str:
    escaped = html.escape(piece.text)
    if not piece.secret:
        return escaped
    return f'<a href="{escaped}">{escaped}</a>' if is_link(piece.text) else f"<code>{escaped}</code>"


def _markdown(piece: Piece) -> str:
    if not piece.secret:
        # What they look for in the text that is shown (@somebody, #1, https://) no escape keeps from them: it is broken
        # by a character that nobody sees.
        text = _FOUND.sub(lambda found: f"{found[0]}\u2060", piece.text)
        return _LEADING.sub(r"\1\\\2", _MARKUP.sub(r"\\\g<0>", text))
    if is_link(piece.text):
        return f"<{piece.text}>"
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", piece.text)), default=0))
    pad = " " if piece.text[0] in "` " or piece.text[-1] in "` " else ""
    return f"{fence}{pad}{piece.text}{pad}{fence}"


def _mrkdwn(piece: Piece) -> str:
    escaped = html.escape(piece.text, quote=False)  # the three characters that Slack wants escaped
    return f"<{escaped}>" if piece.secret and is_link(piece.text) else escaped


def _clean(text: str) -> str:
    """Without control characters, and those that turn the direction of what follows."""
    return _UNSEEN.sub("", text.replace("\t", " "))


_UNSEEN: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_MARKUP: Final = re.compile(r"[\\`*_{}\[\]<>#|~$^&]")
_LEADING: Final = re.compile(r"^(\s*\d*)([/+=:;.)-])")
_FOUND: Final = re.compile(
    r"""@|[#!$%~&^](?=[\w"'{])|\[(?=\w+:)|:(?=//|[\w+-]+:)|\bwww(?=\.)|\bGH(?=-\d)""", re.IGNORECASE
)
_BREAK: Final = "<br>\n"
