"""Each attack of the threat model has what holds it and a test. That the tests exist, and the
links, is held by `test_docs.py`.
"""

from __future__ import annotations

import re

from support.parts import ROOT

PAGE = ROOT / "docs/explanation/threat-model.md"
TEST = re.compile(r"`tests/[\w/]+\.py::\w+`")
SCENARIO = re.compile(r"`tests/cli/scenarios/[\w-]+\.txt`")


def test_every_attack_has_what_holds_it_and_a_test() -> None:
    part = PAGE.read_text(encoding="utf-8").partition("## Attacks")[2].partition("\n## ")[0]
    rows = [line.strip("|").split(" | ") for line in part.splitlines() if line.startswith("| ")]
    attacks = [row for row in rows if row[0].strip() not in ("attack", "---")]
    assert len(attacks) >= 45
    for row in attacks:
        assert len(row) == 3, row
        assert TEST.search(row[2]), row[0]
        assert SCENARIO.sub("", TEST.sub("", row[2])).strip() == "", row[2]
