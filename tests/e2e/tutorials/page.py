"""A tutorial as its reader follows it: files to write, commands to type, and what each prints.

The rules that a page keeps, so that nothing on it goes untested (docs/CONTRIBUTING.md says them to
authors): a block has a language; `console` is commands after `$ ` and all that they print, `sh` is
commands whose output is not shown, `text` is lines of what the block before has printed; any other
block is a file, whose name in code ends the sentence before it, `NAME`: with a colon. JSON may be
what an assistant sends ("calls `TOOL`:") and gets ("It gets:").
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from support.parts import ROOT

FOLDER: Final = ROOT / "docs/tutorial"
PAGES: Final = sorted(file.name for file in FOLDER.glob("*.md") if file.stem != "index")
SHELLS: Final = ("console", "sh")
FILES: Final = ("csv", "json", "python", "toml", "yaml")
ORDINALS: Final = ("first", "second", "third", "fourth")
_NAME = re.compile(r"`([\w./-]+)`:$")
_CALLS = re.compile(r"\bcalls `(\w+)`:$")
_BEFORE = re.compile(r"\bsteps? (\d+)(?: (?:and|to) (\d+))? of \[[^\]]+\]\(([\w-]+\.md)\)")
_CODE = re.compile(r"\bexit code (\d+)", re.IGNORECASE)


class PageError(Exception):
    """The page breaks a rule: its file, the line and what is wrong."""


@dataclass(frozen=True)
class Command:
    """A command, as it is typed, and the lines that it prints; None where the page does not show
    them.
    """

    line: int
    typed: str
    printed: Sequence[str] | None


@dataclass(frozen=True)
class Block:
    """A block of code: the paragraphs around it say what to do with it."""

    line: int
    language: str
    body: Sequence[str]
    before: str
    after: str
    step: int
    first: Sequence[tuple[str, int, int]] = ()
    """Steps of other pages that the text since the last block says to follow: the page, the first
    and the last step.
    """

    @property
    def file(self) -> str:
        """The file that it is; empty for commands, and for what an assistant sends and gets."""
        found = _NAME.search(self.before)
        return found[1] if found and self.language in FILES and not self.tool else ""

    @property
    def tool(self) -> str:
        """The tool that an assistant calls with these arguments."""
        found = _CALLS.search(self.before)
        return found[1] if found and self.language == "json" else ""

    @property
    def is_answer(self) -> bool:
        """Whether it is what the assistant gets for the call in the block before."""
        return self.language == "json" and self.before.endswith("It gets:")

    @property
    def terminal(self) -> int | None:
        """Where to type it, if the sentence before says so: 0 is the first terminal."""
        found = re.search(rf"\b({'|'.join(ORDINALS)}) terminal\b", self.before)
        return ORDINALS.index(found[1]) if found else None

    @property
    def is_left_running(self) -> bool:
        """Whether its last command goes on while the reader does."""
        return self.after.startswith("Leave it running")

    @property
    def in_any_order(self) -> bool:
        """Whether its lines may come in another order."""
        return "in any order" in f"{self.before} {self.after}"

    @property
    def code(self) -> int:
        """The exit code of its last command, which the paragraph after it names if it is not 0."""
        found = _CODE.search(self.after)
        return int(found[1]) if found else 0

    def commands(self) -> Iterator[Command]:
        """Yield its commands; a line that ends with a backslash goes on in the next one."""
        lines = list(enumerate(self.body, self.line + 1))
        while lines:
            at, text = lines.pop(0)
            typed = [text.removeprefix("$ ") if self.language == "console" else text]
            while typed[-1].endswith("\\") and lines:
                typed.append(lines.pop(0)[1])
            if self.language == "sh":
                yield Command(at, "\n".join(typed), None)
                continue
            printed = []
            while lines and not lines[0][1].startswith("$ "):
                printed.append(lines.pop(0)[1])
            yield Command(at, "\n".join(typed), printed)


@dataclass(frozen=True)
class Page:
    """A tutorial: its blocks, in order."""

    name: str
    blocks: Sequence[Block]

    @classmethod
    def load(cls, name: str) -> Page:
        """One of docs/tutorial."""
        return cls.read((FOLDER / name).read_text(encoding="utf-8"), name)

    @classmethod
    def read(cls, text: str, name: str = "page.md") -> Page:
        """Raises `PageError` for a block that no test would run."""
        parts = list(_parts(text, name))
        blocks: list[Block] = []
        step, first = 0, []
        for number, (line, kind, body) in enumerate(parts):
            if kind == "heading":
                found = re.match(r"## (\d+)\.", body[0])
                step = int(found[1]) if found else 0 if body[0].startswith("## ") else step
            elif kind == "paragraph":
                found_steps = _BEFORE.findall(" ".join(body))
                first += [(page, int(low), int(high or low)) for low, high, page in found_steps]
            else:
                around = [
                    parts[each] if 0 <= each < len(parts) else (0, "", ())
                    for each in (number - 1, number + 1)
                ]
                before, after = (
                    " ".join(part[2]) if part[1] == "paragraph" else "" for part in around
                )
                blocks.append(Block(line, kind, body, before, after, step, first))
                _check(blocks, name)
                first = []
        if not any(block.language in SHELLS for block in blocks):
            raise PageError(f"{name}: the page has no command")
        return cls(name, blocks)


def _parts(text: str, name: str) -> Iterator[tuple[int, str, Sequence[str]]]:
    """Yield headings, paragraphs and blocks: the line, what it is (for a block its language) and
    its lines.
    """
    lines = list(enumerate(text.splitlines(), 1))
    while lines:
        at, line = lines.pop(0)
        body = [line]
        if line.startswith("```"):
            body.clear()
            while lines and lines[0][1] != "```":
                body.append(lines.pop(0)[1])
            if not lines:
                raise PageError(f"{name}:{at}: the block has no end")
            del lines[0]
            yield at, line.removeprefix("```"), body
        elif re.match(r" {4}|\t|\s+```|\s*~~~|<", line):
            raise PageError(
                f"{name}:{at}: a block begins with ``` and its language, at the beginning of a line"
            )
        elif line.startswith("#"):
            yield at, "heading", body
        elif line:
            while lines and lines[0][1] and not lines[0][1].startswith(("```", "#")):
                body.append(lines.pop(0)[1].strip())
            yield at, "paragraph", body


def _check(blocks: Sequence[Block], name: str) -> None:
    """Refuse the last block if a reader could not follow it, or no test would."""
    *others, block = blocks
    place = f"{name}:{block.line}"
    if not block.language:
        raise PageError(f"{place}: the block has no language")
    if block.language == "text":
        if not others or others[-1].language not in SHELLS:
            raise PageError(
                f"{place}: the lines come from no command: a block of commands stands before them"
            )
    elif block.language not in (*SHELLS, *FILES):
        raise PageError(f"{place}: no test runs a block of {block.language}")
    elif block.is_answer and (not others or not others[-1].tool):
        raise PageError(f"{place}: nobody gets that: the block before is no call of a tool")
    elif block.language in FILES and not (block.file or block.tool or block.is_answer):
        raise PageError(
            f"{place}: no test uses this block: the sentence before it ends with its file, `NAME`:"
        )
    elif block.language == "console" and not "".join(block.body[:1]).startswith("$ "):
        raise PageError(f"{place}: the block begins with a command: $ COMMAND")
    elif not block.body:
        raise PageError(f"{place}: the block is empty")
