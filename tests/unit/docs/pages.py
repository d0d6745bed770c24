"""Write what the docs say of the code: whole pages, and parts of pages between two marks.

Run it as a script.

The code is the source: the commands' help, the tables of settings, signatures and docstrings. What
a person writes stands in the pages outside of the marks, or in the tables of `generator/`.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "tests"))

from unit.docs.generator import (  # noqa: E402 - found by the line above
    api,
    backends,
    ci,
    commands,
    contract,
    errors,
    exit_codes,
    inputs,
    settings,
    tools,
    variables,
)
from unit.docs.generator.markdown import fill_parts, find_parts  # noqa: E402

PARTS: Mapping[str, Callable[[], str]] = {
    "actions": inputs.actions,
    "api-client": api.client_page,
    "api-hooks": contract.hooks_page,
    "api-methods": api.methods,
    "api-plugin": contract.plugin_page,
    "api-plugin-constants": contract.values_page,
    "api-plugin-errors": contract.errors_page,
    "api-pytest": contract.rehearsal_page,
    "api-results": api.results_page,
    "api-testing": contract.contracts_page,
    "api-types": api.types_page,
    "api-webhooks": api.webhooks_page,
    "api-wire": api.wire,
    "assistant-tools": tools.tools,
    "ci-outputs": ci.outputs,
    "ci-runs": ci.runs,
    "ci-systems": ci.systems,
    "ci-tokens": ci.tokens,
    "command-settings": settings.of_commands,
    "commands": commands.index,
    "each-error": errors.reference,
    "errors": errors.tree,
    "exit-codes": exit_codes.page,
    "global-options": commands.global_options,
    "gitlab-templates": inputs.templates,
    "image": inputs.image,
    "plugin-settings": backends.page,
    "refused-names": variables.refused_names,
    "shared-settings": settings.shared,
    "values": commands.values,
}
"""Parts of pages by the name in their marks."""

FOLDERS = ("reference/commands",)
"""Folders of docs/ in which every page is generated as a whole."""

OTHERS = (
    "tests/e2e/actions/pages.py",
    "tests/e2e/workflows/pages.py",
    "tests/plugins/precommit/make_scanner_rules.py",
)
"""Scripts that write the other generated files."""


def read_pages() -> dict[str, str]:
    """Return the pages of docs/ by their paths in it."""
    return {
        str(file.relative_to(DOCS)): file.read_text(encoding="utf-8")
        for file in sorted(DOCS.rglob("*.md"))
    }


def make_pages(texts: Mapping[str, str]) -> dict[str, str]:
    """Return every page that is generated, or has a generated part, as it ought to be."""
    made = {name: fill_parts(text, PARTS) for name, text in texts.items() if find_parts(text)}
    return made | commands.pages(commands.titles_of(texts))


def find_stale(texts: Mapping[str, str]) -> list[str]:
    """Return the pages that are not as they ought to be, and those that nothing makes any more."""
    made = make_pages(texts)
    stale = {name for name, text in made.items() if texts.get(name) != text}
    return sorted(stale | {name for name in texts if name.startswith(FOLDERS) and name not in made})


def write() -> None:
    """Write every generated file."""
    for script in OTHERS:
        runpy.run_path(str(ROOT / script), run_name="__main__")
    texts = read_pages()
    made = make_pages(texts)
    for name in find_stale(texts):
        (DOCS / name).parent.mkdir(exist_ok=True)
        if name in made:
            (DOCS / name).write_text(made[name], encoding="utf-8")
        else:
            (DOCS / name).unlink()
        print(f"docs/{name}")


if __name__ == "__main__":
    write()
