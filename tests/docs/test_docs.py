"""The docs agree with the code, and their examples run."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

import sealpipe
from sealpipe.errors import SealpipeError

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
TEXTS = sorted([ROOT / "README.md", *DOCS.glob("**/*.md")])


def pages() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pages", Path(__file__).with_name("pages.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_settings_page_is_what_the_table_says() -> None:
    for name, make in pages().PAGES.items():
        assert (DOCS / name).read_text(encoding="utf-8") == make(), f"run python tests/docs/pages.py for {name}"


def test_every_exit_code_of_an_exception_is_on_the_page() -> None:
    listed = {
        int(code)
        for line in (DOCS / "reference/exit-codes.md").read_text().splitlines()
        for code in re.findall(r"\d+", line.split("|")[1] if line.startswith("| ") else "")
    }
    used = {
        kind.exit_code
        for kind in vars(sealpipe.errors).values()
        if isinstance(kind, type) and issubclass(kind, SealpipeError)
    }
    assert used <= listed


def test_the_tree_at_the_top_of_errors_names_every_exception_with_its_exit_code() -> None:
    tree = sealpipe.errors.__doc__ or ""
    for name, kind in vars(sealpipe.errors).items():
        if isinstance(kind, type) and issubclass(kind, SealpipeError):
            assert re.search(rf"\b{name}\b", tree), name
            own = re.search(rf"[├└─] {name} +(\d+)", tree)
            assert own is None or int(own[1]) == kind.exit_code, name


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub makes of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("text", TEXTS, ids=lambda path: path.name)
def test_every_link_leads_to_a_page_and_a_heading(text: Path) -> None:
    for target, anchor in re.findall(r"\]\((?!https?://)([^)#]*)#?([^)]*)\)", text.read_text(encoding="utf-8")):
        page = text.parent / target if target else text
        assert page.exists(), target
        assert not anchor or anchor in anchors(page), f"{target}#{anchor}"


def test_the_index_links_to_every_page() -> None:
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    for page in {*DOCS.glob("**/*.md")} - {*DOCS.glob("**/README.md"), DOCS / "index.md"}:
        assert f"({page.relative_to(DOCS)})" in index, page


@pytest.mark.parametrize("text", TEXTS, ids=lambda path: path.name)
def test_no_page_names_a_registry_or_a_machine(text: Path) -> None:
    # In pieces, so that this file names none either.
    hosts = ["pypi" + ".org", "python" + "hosted", "npm" + "js.org", "registry." + "npm", "deb." + "debian"]
    found = text.read_text(encoding="utf-8")
    assert [host for host in hosts if host in found] == []


def test_the_map_of_core_has_every_module_in_one_line() -> None:
    rows = re.findall(r"^\| `([\w/]+\.py)` \| \S", (DOCS / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.MULTILINE)
    core = ROOT / "core/sealpipe"
    assert sorted(rows) == sorted(str(file.relative_to(core)) for file in core.glob("**/*.py"))


def test_contributing_names_files_that_exist() -> None:
    text = (DOCS / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(?:python )?((?:core|plugins|tests|actions|containers|docs)/[\w/.-]+)", text))
    assert len(named) > 20
    assert [name for name in sorted(named) if "shelf" not in name and not (ROOT / name).exists()] == []


def test_the_changelog_starts_with_this_version() -> None:
    first = re.search(r"^## (\S+?),", (DOCS / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert first is not None
    assert first[1] == sealpipe.__version__


def test_the_wire_example_on_the_python_page_runs() -> None:
    block = (DOCS / "reference/python.md").read_text().split("## Only the format")[1]
    code = re.search(r"```python\n(.*?)```", block, re.DOTALL)
    assert code is not None
    exec(compile(code[1], "docs/reference/python.md", "exec"), {})  # noqa: S102 - our own page


def test_the_rehearsal_example_on_its_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    code = re.search(r"```python\n(.*?)```", (DOCS / "reference/rehearsal.md").read_text(), re.DOTALL)
    assert code is not None
    exec(compile(code[1], "docs/reference/rehearsal.md", "exec"), {})  # noqa: S102 - our own page
    assert capsys.readouterr().out == "['hello']\n"


def test_the_readme_names_the_two_commands_as_the_gate_runs_them() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "\npip install '.[rehearsal]' && sealpipe rehearse\n" in readme
    assert "\npip install -e '.[dev]' && pytest\n" in readme
