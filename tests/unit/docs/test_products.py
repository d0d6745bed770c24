"""Every product with a built-in plugin has a page, and every source, sink and channel a row in its
list.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sealpipe.registry import Registry

DOCS = Path(__file__).resolve().parents[3] / "docs"
LISTS = {
    "source": "reference/references.md",
    "sink": "reference/sinks.md",
    "channel": "reference/channels.md",
}
PAGES = {
    "azure_key_vault": "azure-key-vault",
    "pass_store": "pass",
    "postgres_role": "postgres-role",
}
"""Products whose page is not named like their folder."""
ELSEWHERE = {"env", "exec", "prompt", "stdin", "text"}
"""Local sources that `local.md` leaves out: the references page has them, and `exec` has a page of
its own.
"""
BUILT_IN = [
    (each.kind, each.info.name, each.info.factory.split(".")[1])
    for each in Registry(environ={}).catalog.list_plugins()
    if not each.origin and each.kind in LISTS
]


@pytest.mark.parametrize("product", sorted({product for _, _, product in BUILT_IN}))
def test_a_product_has_a_page_that_shows_each_of_its_plugins_and_a_row_with_them(
    product: str,
) -> None:
    page = f"{PAGES.get(product, product)}.md"
    assert (DOCS / "products" / page).exists(), f"write docs/products/{page}"
    text = (DOCS / "products" / page).read_text(encoding="utf-8")
    own = [
        (kind, name) for kind, name, owner in BUILT_IN if owner == product and name not in ELSEWHERE
    ]
    for kind, name in own:
        assert re.search(rf"\b{name}:", text), (
            f"docs/products/{page} shows no `{name}:`, a {kind} of the product"
        )
    row = re.search(
        rf"^\| \[.+\]\({page}\) \|(.*)\|$",
        (DOCS / "products/index.md").read_text("utf-8"),
        re.MULTILINE,
    )
    assert row, f"add a row for {page} to docs/products/index.md"
    shown = [re.findall(r"`(.+?)`", cell) for cell in row[1].split("|")]
    assert shown == [sorted(name for each, name in own if each == kind) for kind in LISTS]


def test_a_plugin_has_a_row_in_the_list_of_its_kind() -> None:
    for kind, name, product in BUILT_IN:
        page = (DOCS / LISTS[kind]).read_text(encoding="utf-8")
        assert re.search(rf"^\|.*`{name}:", page, re.MULTILINE), (
            f"add `{name}:` of {product} to a table of {LISTS[kind]}"
        )
