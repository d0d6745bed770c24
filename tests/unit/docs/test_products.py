"""Every product with a built-in plugin has a page, and every source, sink and channel a row in its list."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sealpipe.registry import Registry

DOCS = Path(__file__).resolve().parents[3] / "docs"
LISTS = {"source": "reference/references.md", "sink": "reference/sinks.md", "channel": "reference/channels.md"}
PAGES = {"azure_key_vault": "azure-key-vault", "pass_store": "pass", "postgres_role": "postgres-role"}
"""Products whose page is not named like their folder."""
ELSEWHERE = {"env", "exec", "prompt", "stdin", "text"}
"""Local sources that `local.md` leaves out: the references page has them, and `exec` has a page of its own."""
BUILT_IN = [
    (each.kind, each.info.name, each.info.factory.split(".")[1])
    for each in Registry(environ={}).catalog.list_plugins()
    if not each.origin and each.kind in LISTS
]


@pytest.mark.parametrize("product", sorted({product for _, _, product in BUILT_IN}))
def test_a_product_has_a_page_in_the_index_that_shows_each_of_its_plugins(product: str) -> None:
    page = f"products/{PAGES.get(product, product)}.md"
    assert (DOCS / page).exists(), f"write docs/{page}"
    assert f"({page})" in (DOCS / "index.md").read_text(encoding="utf-8"), f"link {page} in docs/index.md"
    text = (DOCS / page).read_text(encoding="utf-8")
    for kind, name, owner in BUILT_IN:
        if owner == product and name not in ELSEWHERE:
            assert re.search(rf"\b{name}:", text), f"docs/{page} shows no `{name}:`, a {kind} of the product"


@pytest.mark.parametrize(("kind", "name", "product"), BUILT_IN)
def test_a_plugin_has_a_row_in_the_list_of_its_kind(kind: str, name: str, product: str) -> None:
    rows = re.findall(r"^\|.*$", (DOCS / LISTS[kind]).read_text(encoding="utf-8"), re.MULTILINE)
    assert any(re.search(rf"`{name}:", row) for row in rows), f"add `{name}:` of {product} to a table of {LISTS[kind]}"
