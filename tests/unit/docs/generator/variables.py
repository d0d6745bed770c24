"""The names that no variable of `sealpipe run` may have, by what obeys them."""

from __future__ import annotations

from sealpipe.run.refused_names import REFUSED
from unit.docs.generator.markdown import code


def refused_names() -> str:
    """Return the table of them."""
    rows = [
        f"| [{reader.name}]({reader.docs}) | {' '.join(map(code, reader.names))}"
        f"{' (in either case)' if reader.ignores_case else ''} |"
        for reader in REFUSED
    ]
    return "\n".join(["| obeyed by | names |", "| --- | --- |", *rows])
