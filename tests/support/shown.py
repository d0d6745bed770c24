"""What readers see of a message, product by product: its text, its links, and what is more."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from html.parser import HTMLParser
from typing import Any, Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

from sealpipe.testing import Shown
from support.mailbox import Received

READER: Final = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
FOUND: Final = re.compile(
    r"""https?://|\bwww\.|@\w|(?<!\w)[#!$%~&^](?=[\w"'{])|\bGH-\d|\[\w+:|:[\w+-]+:""",
    re.ASCII | re.IGNORECASE,
)
"""Words that GitHub, GitLab, Mattermost or Discord find in what is shown, and link or change."""
COMMAND: Final = re.compile(r"\s*(?:/|>>>|---|\+\+\+|;;;|```|~~~|::)")
"""Beginnings of lines that one of them takes for a command or for markup of its own."""
BREAKS: Final = ("softbreak", "hardbreak")
TAGS: Final = frozenset(("html", "head", "meta", "title", "body", "p", "br", "a", "code"))
HEADERS: Final = (
    "From",
    "To",
    "Reply-To",
    "Subject",
    "Date",
    "Message-ID",
    "Auto-Submitted",
    "MIME-Version",
    "Content-Type",
)
"""The headers of a mail, in order. The one to answer to is left out where none is set."""
MEMBERS: Final = ("schema", "event", "short_code", "link", "title", "expires_at", "text")
"""The members that a webhook gets, in order; a passcode's has `passcode` in place of `link`."""


def markdown(body: str) -> Shown:
    """Return a comment or post as a Markdown reader shows it, and what products find in it."""
    blocks = READER.parse(body)
    tokens = [token for block in blocks for token in [*(block.children or ()), block]]
    others = [
        token.type
        for token in tokens
        if token.type not in ("text", "text_special", *BREAKS, "link_open", "link_close", "inline")
        and not token.type.startswith("paragraph_")
    ]
    plain = "".join(_say(tokens, ""))
    others += [match[0] for match in FOUND.finditer(plain)]
    others += [line for line in body.split("\n") if COMMAND.match(line)]
    links = [str(token.attrs["href"]) for token in tokens if token.type == "link_open"]
    return Shown("".join(_say(tokens, None)), links, others)


def _say(tokens: Sequence[Token], instead: str | None) -> Iterable[str]:
    """The words of tokens; those of a link or in code are `instead`, unless that is None.

    What stands on either side of a link does not meet: a mark is between.
    """
    in_link = False
    for token in tokens:
        in_link = token.type == "link_open" or (in_link and token.type != "link_close")
        if token.type in (*BREAKS, "paragraph_close"):
            yield "\n"
        elif instead is not None and (in_link or token.type == "code_inline"):
            yield "\ue000"
        elif token.type != "inline":
            yield token.content


def slack_blocks(message: Mapping[str, Any]) -> Shown:
    """Return a message's blocks, in which text is text."""
    others = [f"{name}: {value}" for name, value in message.items() if name in _ON and value]
    [block] = message["blocks"]
    [section] = block["elements"]
    others += [
        f"a {each}" for each in (block["type"], section["type"]) if not each.startswith("rich_text")
    ]
    elements = section["elements"]
    others += [str(each) for each in elements if not _is_plain(each)]
    links = [each["url"] for each in elements if each["type"] == "link"]
    return Shown(
        "".join(each.get("url") or each.get("text", "") for each in elements), links, others
    )


_ON: Final = ("mrkdwn", "unfurl_links", "unfurl_media", "attachments", "link_names", "parse")


def _is_plain(element: Mapping[str, Any]) -> bool:
    is_link = element["type"] == "link" and set(element) == {"type", "url"}
    return is_link or (element["type"] == "text" and set(element) == {"type", "text"})


def slack_text(message: Mapping[str, Any]) -> Shown:
    """Return a message's text for notifications: Slack reads what is in <> and three entities."""
    text = message["text"]
    found = re.findall(r"<([^>]*)>?", text)
    others = [each for each in found if not each.startswith("http") or "|" in each]
    others += re.findall(r"&(?!amp;|lt;|gt;)", text)
    for entity, sign in (("&lt;", "\ue000"), ("&gt;", "\ue001"), ("&amp;", "&")):
        text = text.replace(entity, sign)
    shown = text.replace("<", "").replace(">", "").replace("\ue000", "<").replace("\ue001", ">")
    return Shown(shown, [each for each in found if each.startswith("http")], others)


def teams_card(card: Mapping[str, Any]) -> Shown:
    """Return a card: text runs are text, a button opens an address."""
    others = [block["type"] for block in card["body"] if block["type"] != "RichTextBlock"]
    others += [str(each) for each in set(card) - _CARD]
    runs = [run for block in card["body"] for run in block["inlines"]]
    others += [
        str(run)
        for run in runs
        if run["type"] != "TextRun"
        or set(run) - {"type", "text", "weight", "fontType"}
        or "{{" in run["text"]
    ]
    text = "\n".join("".join(run["text"] for run in block["inlines"]) for block in card["body"])
    return Shown(text, [action["url"] for action in card["actions"]], others)


_CARD: Final = {"$schema", "type", "version", "body", "actions"}


def mattermost_post(post: Mapping[str, Any]) -> Shown:
    """Return a post: only its attachment says anything, so no preview opens the link."""
    [attachment] = post["attachments"]
    shown = markdown(attachment["text"])
    expected = {"text": "", "attachments": [{**_FALLBACK, "text": attachment["text"]}]}
    return shown._replace(others=[*shown.others, *([] if post == expected else [str(post)])])


_FALLBACK: Final = {"fallback": "A message from sealpipe"}


def discord_message(message: Mapping[str, Any]) -> Shown:
    """Return a message that mentions nobody and has no preview."""
    shown = markdown(message["content"])
    expected = {"content": message["content"], "allowed_mentions": {"parse": []}, "flags": 4}
    return shown._replace(others=[*shown.others, *([] if message == expected else [str(message)])])


def comment(sent: Mapping[str, Any]) -> Shown:
    """Return a comment; it may only be internal beside its text."""
    shown = markdown(sent["body"])
    return shown._replace(others=[*shown.others, *(set(sent) - {"body", "internal"})])


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.text, self.links, self.others = "", list[str](), list[str]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [str(value) for name, value in attrs if (tag, name) == ("a", "href")]
        is_known = tag in TAGS and all(name in ("href", "lang", "charset") for name, _ in attrs)
        self.others += [] if is_known else [f"<{tag} {attrs}>"]

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        self.others.append(data)


def mail(got: Received, to: str) -> Sequence[Shown]:
    """Return a mail's two parts; headers, parts and recipients that are not its own are more."""
    read = got.mail
    wrong = [name for name in read if name not in HEADERS]
    wrong += [each for each in got.recipients if each != to]
    wrong += [each.addr_spec for each in read["To"].addresses if each.addr_spec != to]
    parts = [part.get_content_type() for part in read.walk()]
    wrong += parts if parts != ["multipart/alternative", "text/plain", "text/html"] else []
    wrong += ["defects" for part in read.walk() if part.defects]  # type: ignore[attr-defined]
    page = _Page()
    page.feed(got.body("html"))
    return [Shown(got.body(), (), wrong), Shown(page.text, page.links, page.others)]


def webhook(body: str) -> Shown:
    """Return JSON whose members are the documented ones, each once."""
    pairs = json.loads(body, object_pairs_hook=list)
    members = dict(pairs)
    names = [MEMBERS[3] if name == "passcode" else name for name, _ in pairs]
    links = [members["link"]] if "link" in members else []
    return Shown(members["text"], links, [] if names == [*MEMBERS] else names)
