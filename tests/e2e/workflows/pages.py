"""Write the files that the pages of docs/how-to/ci show into them: `python
tests/e2e/workflows/pages.py`.

A block of the page begins with `<!-- PATH -->` on a line of its own, and the file follows.
"""

from __future__ import annotations

import re
from pathlib import Path

CI = Path(__file__).resolve().parents[3] / "docs/how-to/ci"
PAGE = CI / "github.md"
PAGES = sorted(CI.glob("*.md"))
BLOCK = re.compile(r"^<!-- (\S+) -->\n```(\w+)\n.*?^```$", re.MULTILINE | re.DOTALL)


def shown(text: str) -> set[str]:
    """The files that a page shows."""
    return {name for name, _ in BLOCK.findall(text)}


def filled(text: str) -> str:
    """The page with its files as they are now."""

    def block(found: re.Match[str]) -> str:
        content = (CI / found[1]).read_text(encoding="utf-8")
        return f"<!-- {found[1]} -->\n```{found[2]}\n{content}```"

    return BLOCK.sub(block, text)


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")
