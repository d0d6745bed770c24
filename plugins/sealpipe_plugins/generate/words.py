"""EFF's large word list (its origin and licence are beside it, in eff_large_wordlist.md)."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

COUNT: Final = 7776
"""Five throws of a die."""


@cache
def words() -> tuple[str, ...]:
    """The words. Raises OSError or ValueError where the file is missing or not whole."""
    text = Path(__file__).with_name("eff_large_wordlist.txt").read_text(encoding="ascii")
    found = tuple(line.partition("\t")[2] for line in text.splitlines())
    if len(set(found)) != COUNT or not all(found):
        raise ValueError("the word list is not whole")
    return found
