"""The examples under "Try it without an account" on the product pages run as they are pasted."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PRODUCTS = Path(__file__).resolve().parents[3] / "docs/products"
HEADING = "## Try it without an account"
PRINTED = {
    "audit": ["2 lines, none changed", "audit-test.jsonl: line 1 was changed"],
    "azure": ["##vso[task.setsecret]http://127.0.0.1", "\n82\n"],
    "exec": ["created ", "#1"],
    "generate": [
        "Password: ",
        "private: -----BEGIN OPENSSH PRIVATE KEY-----",
        "public: ssh-ed25519 ",
    ],
    "policy": ["#1", "the policy does not allow this", "env/env is not allowed"],
    "pre-commit": ["notes.txt:1 link-with-key"],
}
"""Words that each example prints."""
CODES = {"audit": 13, "policy": 2, "pre-commit": 1}
"""Exit codes other than 0 that the pages name."""


def example(page: str) -> str:
    text = (PRODUCTS / f"{page}.md").read_text(encoding="utf-8")
    found = re.search(r"```sh\n(.*?)```", text.partition(HEADING)[2], re.DOTALL)
    assert found is not None, page
    return found[1]


def test_every_page_with_an_example_is_tried() -> None:
    assert {
        page.stem for page in PRODUCTS.glob("*.md") if HEADING in page.read_text(encoding="utf-8")
    } == set(PRINTED)


@pytest.mark.parametrize("page", PRINTED)
def test_an_example_prints_what_its_page_says(page: str, tmp_path: Path) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SEALPIPE_")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', os.defpath)}"
    done = subprocess.run(
        ["bash", "-c", example(page)],
        env={**kept, "PATH": path, "HOME": str(tmp_path), "TMPDIR": str(tmp_path)},
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == CODES.get(page, 0), done.stdout
    for words in PRINTED[page]:
        assert words in done.stdout
