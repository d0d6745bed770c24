"""A reader notices what is wrong on a page: a line that is not printed, a command that fails, a
block nobody tests.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from e2e.tutorials.page import PAGES, Page, PageError
from e2e.tutorials.reader import Reader
from e2e.tutorials.shapes import Shapes

PAGE = """\
# Greet

## 1. Write

Write `greeting.txt`? No: a table, `people.csv`:

```csv
name
Ann
```

## 2. Greet

```console
$ export WHO=$(tail -n 1 people.csv)
$ echo "Hello $WHO"; \\
  echo bye
Hello Ann
bye
$ LINK=http://127.0.0.1:8765/s/AbCdEfGh1234#1AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
$ echo "$LINK" | sed s/4#/9#/
http://127.0.0.1:8765/s/AbCdEfGh1239#1AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
$ date -u +%FT%TZ
2026-11-23T08:08:58Z
```

In the second terminal:

```console
$ echo ready; cat people.csv -
ready
name
Ann
```

Leave it running. In the first terminal:

```console
$ seq 9; exit_with() { return $1; }; exit_with 6
1
...
9
```

That is exit code 6.

```text
3
7
```
"""


class Home:
    """A home where nothing is installed."""

    environ = {"PATH": os.defpath, "HOME": "/nonexistent"}  # noqa: RUF012 - as a machine's

    def recall(self, typed: str) -> bool:
        del typed
        return False

    def remember(self, typed: str) -> None:
        del typed


def follow(text: str, folder: Path) -> None:
    with Reader(Home(), folder) as reader:
        reader.follow(Page.read(text))


def test_a_page_that_is_right_is_followed_to_its_end(tmp_path: Path) -> None:
    follow(PAGE, tmp_path)
    assert (tmp_path / "people.csv").read_text() == "name\nAnn\n"


@pytest.mark.parametrize("name", PAGES)
def test_each_tutorial_keeps_to_the_rules(name: str) -> None:
    """A look at each page only; the second tier follows it."""
    page = Page.load(name)
    assert [
        command.typed
        for block in page.blocks
        if block.language == "console"
        for command in block.commands()
    ]


@pytest.mark.parametrize(
    ("right", "wrong", "where"),
    [
        ("Hello Ann\nbye", "Hello Bob\nbye", "$ echo "),
        ("Hello Ann\nbye\n", "Hello Ann\n", "$ echo "),
        ("Hello Ann\nbye\n", "Hello Ann\nbye\nbye\n", "$ echo "),
        ("$ export WHO", "$ exprot WHO", "$ exprot"),
        ("2026-11-23T08:08:58Z", "2026-11-23", "$ date"),
        ("exit code 6", "exit code 7", "$ seq"),
        ("That is exit code 6.", "That is all.", "$ seq"),
        ("1\n...\n9", "1\n...\n8", "$ seq"),
        ("3\n7\n", "7\n3\n", "```text"),
        ("people.csv -\nready", "people.csv\nready and waiting", "$ echo ready"),
    ],
)
def test_a_false_line_or_a_false_command_is_noticed(
    right: str, wrong: str, where: str, tmp_path: Path
) -> None:
    assert right in PAGE
    page = PAGE.replace(right, wrong, 1)
    line = page[: page.index(where)].count("\n") + 1
    with pytest.raises(PageError, match=rf"^page\.md:{line}: "):
        follow(page, tmp_path)


@pytest.mark.parametrize("state", ["submitted", "pending"])
def test_what_an_assistant_gets_is_compared(state: str, tmp_path: Path) -> None:
    block = "```json\n{}\n```\n\n"
    sent, got = block.replace("{}", '{"seconds": 1}'), block.replace("{}", '{"state": "submitted"}')
    calls = f"# Ask\n\nIt calls `wait`:\n\n{sent}It gets:\n\n{got}"
    with Reader(Home(), tmp_path) as reader:
        reader.assistant = lambda _tool, sent: {"state": state} if sent == {"seconds": 1} else {}
        page = Page.read(f"{calls}\n```sh\ntrue\n```\n")
        if state == "submitted":
            reader.follow(page)
            return
        with pytest.raises(PageError, match=r"^page\.md:11: the call before"):
            reader.follow(page)


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        ("```\n$ true\n```", "has no language"),
        ("```rust\nfn main() {}\n```", "no test runs a block of rust"),
        ("Look:\n\n```toml\nx = 1\n```", "no test uses this block"),
        ("```toml\nx = 1\n```", "no test uses this block"),
        ("```text\nx\n```", "come from no command"),
        ("It gets:\n\n```json\n{}\n```", "nobody gets that"),
        ("```console\nprinted\n```", "begins with a command"),
        ("```console\n```", "begins with a command"),
        ("```sh\n```", "is empty"),
        ("```sh\ntrue", "has no end"),
        ("- a list:\n\n  ```sh\n  true\n  ```", "at the beginning of a line"),
        ("~~~sh\ntrue\n~~~", "at the beginning of a line"),
        ("    true", "at the beginning of a line"),
        ("<pre>true</pre>", "at the beginning of a line"),
        ("Nothing to do.", "has no command"),
    ],
)
def test_a_block_that_no_test_would_run_is_refused(block: str, reason: str) -> None:
    with pytest.raises(PageError, match=reason):
        Page.read(f"# Page\n\n{block}\n")


def test_a_value_that_is_shown_again_is_the_one_that_was_printed() -> None:
    shapes = Shapes()
    assert shapes.match(["created AbCdEfGh1234"], "created zzzzzzzzzzzz\n")
    assert shapes.filled("show AbCdEfGh1234") == "show zzzzzzzzzzzz"
    assert shapes.match(["AbCdEfGh1234 is there"], "zzzzzzzzzzzz is there\n")
    assert not shapes.match(["AbCdEfGh1234 is there"], "yyyyyyyyyyyy is there\n")
    assert not shapes.match(["ABCDefgh1234, ABCDefgh1234"], "xxxxxxxxxxxx, yyyyyyyyyyyy\n")
    assert not shapes.match(["ABCDefgh5678 is there"], "zzzzzzzzzzzz is there\n"), (
        "it was AbCdEfGh1234 before"
    )
    assert not shapes.match(["ABCDefgh1234, ABCDefgh5678"], "xxxxxxxxxxxx, xxxxxxxxxxxx\n")
    assert not shapes.match(["verification"], "notification\n")
    assert shapes.match(["write ABCDefgh1234.fec760377aa4"], f"write x.{'0' * 32}\n"), (
        "a code that begins with a dash"
    )


def test_lines_may_come_in_any_order_where_the_page_says_so() -> None:
    shown, came = ["acme: done", "bolt: done"], "bolt: done\nacme: done\n"
    assert Shapes().match(shown, came, in_any_order=True)
    assert not Shapes().match(shown, came)
    assert not Shapes().match(shown, "acme: done\nacme: done\n", in_any_order=True)
