"""Write docs/how-to/*.toml, our rules for other scanners: `python
tests/plugins/precommit/make_scanner_rules.py`.

Of each rule the expression is the same, but for bounds that kingfisher compiles for a quarter of a
minute; how a scanner is told what to allow is its own. gitleaks knows the group of the secret by
its number, the others take the first. kingfisher gets the pragma as an option.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from sealpipe_plugins.precommit.rules import NO_ANCHOR, RULES, Rule, scanner_pattern
from sealpipe_plugins.precommit.scanning import PRAGMA

FOLDER = Path(__file__).resolve().parents[3] / "docs/how-to"
ANCHOR = "1[a-z0-9_-]{43}$"
"""The end of a match that `NO_ANCHOR` refuses."""
UNBOUNDED: Mapping[str, str] = {"{0,16}": "*", "{1,16}": "+", "{0,64}": "*", "{1,255}": "+"}
"""How kingfisher gets the bounds of hosts, words and backslashes: its engine unrolls them, 14 s of
each scan. They are for ours, whose time they bound; it reads in linear time without them.
"""


def allow_in_gitleaks(rule: Rule) -> list[str]:
    """Return the lines of what gitleaks allows."""
    lines = [
        "secretGroup = 1",
        "[[rules.allowlists]]",
        'regexTarget = "line"',
        f"regexes = ['''{PRAGMA.decode()}''']",
    ]
    return (
        [*lines, "[[rules.allowlists]]", f"regexes = ['''{ANCHOR}''']"]
        if NO_ANCHOR in rule.pattern
        else lines
    )


def allow_in_betterleaks(rule: Rule) -> list[str]:
    """Return the line of what betterleaks allows."""
    anchor = f' || finding["secret"] matches "{ANCHOR}"' if NO_ANCHOR in rule.pattern else ""
    return [f"filter = '''finding[\"line\"] contains \"{PRAGMA.decode()}\"{anchor}'''"]


def allow_in_kingfisher(rule: Rule) -> list[str]:
    """Return the line of what kingfisher allows."""
    filtered = f"filter = '''filter.matchesAny(finding[\"secret\"], [`{ANCHOR}`])'''"
    return [filtered] if NO_ANCHOR in rule.pattern else []


SCANNERS: Mapping[str, Callable[[Rule], list[str]]] = {
    "gitleaks": allow_in_gitleaks,
    "betterleaks": allow_in_betterleaks,
    "kingfisher": allow_in_kingfisher,
}


def write_pattern(scanner: str, rule: Rule) -> str:
    """Return a rule's expression for a scanner."""
    pattern = scanner_pattern(rule)
    if scanner == "kingfisher":
        for bound, sign in UNBOUNDED.items():
            pattern = pattern.replace(bound, sign)
    return pattern


def make(scanner: str) -> str:
    """Return the rules for a scanner, each with its keywords: scanners look for those first, in
    lower case.
    """
    parts = [
        (
            "# Made from the rules of sealpipe's hooks by "
            "tests/plugins/precommit/make_scanner_rules.py.\n"
        )
    ]
    for rule in RULES:
        words = ", ".join(
            f"'{word}'" for word in dict.fromkeys(start.literal.lower() for start in rule.starts)
        )
        lines = (
            "[[rules]]",
            f'id = "sealpipe-{rule.name}"',
            f'description = "{rule.advice}"',
            f"regex = '''{write_pattern(scanner, rule)}'''",
            f"keywords = [{words}]",
            *SCANNERS[scanner](rule),
        )
        parts.append("".join(f"{line}\n" for line in lines))
    return "\n".join(parts)


def main() -> None:
    """Write all of them."""
    for scanner in SCANNERS:
        (FOLDER / f"{scanner}.toml").write_text(make(scanner))


if __name__ == "__main__":
    main()
