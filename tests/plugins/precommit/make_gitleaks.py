"""Write docs/how-to/gitleaks.toml, our rules for gitleaks: `python tests/plugins/precommit/make_gitleaks.py`."""

from __future__ import annotations

from pathlib import Path

from sealpipe_plugins.precommit.rules import NO_ANCHOR, RULES, scanner_pattern

PLACE = Path(__file__).resolve().parents[3] / "docs/how-to/gitleaks.toml"


def main() -> None:
    """All of them, each with its keywords: gitleaks looks for those first."""
    parts = ["# Made from the rules of sealpipe's hooks by tests/plugins/precommit/make_gitleaks.py.\n"]
    for rule in RULES:
        words = ", ".join(f"'{anchor}'" for anchor in dict.fromkeys(literal.lower() for literal, _ in rule.starts))
        parts.append(
            f'[[rules]]\nid = "sealpipe-{rule.name}"\ndescription = "{rule.advice}"\n'
            f"regex = '''{scanner_pattern(rule)}'''\nsecretGroup = 1\nkeywords = [{words}]\n"
            f"[[rules.allowlists]]\nregexTarget = \"line\"\nregexes = ['''sealpipe: allow''']\n"
        )
        if NO_ANCHOR in rule.pattern:  # the key follows the sign and 1
            parts[-1] += "[[rules.allowlists]]\nregexes = ['''1[a-z0-9_-]{43}$''']\n"
    PLACE.parent.mkdir(exist_ok=True)
    PLACE.write_text("\n".join(parts))


if __name__ == "__main__":
    main()
