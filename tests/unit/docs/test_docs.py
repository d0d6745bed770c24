"""The docs agree with the code, and their examples run."""

from __future__ import annotations

import pkgutil
import re
from functools import cache
from pathlib import Path

import pytest

import sealpipe
from sealpipe.api.responses import BY_CODE
from sealpipe.command_settings import COMMANDS
from sealpipe.errors import PermissionDeniedError, SealpipeError
from sealpipe.registry import Registry
from sealpipe.settings import GLOBAL
from support.parts import ROOT

DOCS = ROOT / "docs"
TEXTS = sorted([ROOT / "README.md", *DOCS.glob("**/*.md")])
CONTENTS = {text: text.read_text(encoding="utf-8") for text in TEXTS}
WALK_THROUGHS = [
    DOCS / "contributing" / name
    for name in ("add-a-source.md", "add-an-option.md", "trace-exit-code-4.md")
]


def test_the_tree_at_the_top_of_errors_names_every_exception_with_its_exit_code() -> None:
    tree = sealpipe.errors.__doc__ or ""
    for name, kind in vars(sealpipe.errors).items():
        if isinstance(kind, type) and issubclass(kind, SealpipeError):
            assert re.search(rf"\b{name}\b", tree), name
            own = re.search(rf"[├└─] {name} +(\d+)", tree)
            assert own is None or int(own[1]) == kind.exit_code, name


LINK = re.compile(r"\]\((?!https?://)([^)#]+)")


@cache
def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub makes of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_link_leads_to_a_page_and_a_heading() -> None:
    for text, content in CONTENTS.items():
        for target, anchor in re.findall(r"\]\((?!https?://)([^)#]*)#?([^)]*)\)", content):
            page = text.parent / target if target else text
            assert page.exists(), f"{text}: {target}"
            assert not anchor or anchor in anchors(page.resolve()), f"{text}: {target}#{anchor}"


def find_index(page: Path) -> Path:
    """Return the page that lists a page: `how-to/index.md`, or `commands.md` for the folder
    `commands/`.

    It is that of its own folder or of the next one above that has one; the pages of `docs/` are
    those of the project.
    """
    if page.parent == DOCS:
        return DOCS / "contributing/index.md"
    candidates = (
        each for folder in page.parents for each in (folder / "index.md", folder.with_suffix(".md"))
    )
    return next(each for each in candidates if each != page and each.exists())


def test_the_nearest_index_links_to_every_page() -> None:
    for page in {*DOCS.glob("**/*.md")} - {DOCS / "index.md"}:
        index = find_index(page)
        links = [
            (index.parent / link).resolve()
            for link in LINK.findall(index.read_text(encoding="utf-8"))
        ]
        assert page in links, f"link {page.relative_to(ROOT)} in {index.relative_to(ROOT)}"


# In pieces, so that this file names none either.
REGISTRIES = (
    *("pypi" + ".org", "python" + "hosted", "npm" + "js.org", "registry." + "npm"),
    *("deb." + "debian", "ghcr" + ".io", "docker" + ".io/"),
)


def test_no_page_names_a_registry_or_a_machine() -> None:
    found = [(page, host) for page, text in CONTENTS.items() for host in REGISTRIES if host in text]
    assert found == []


def test_no_workflow_action_or_lock_names_a_registry() -> None:
    folders = (".ci", ".github", "actions", "containers")
    files = [file for folder in folders for file in (ROOT / folder).rglob("*") if file.is_file()]
    texts = {
        file: file.read_text(encoding="utf-8", errors="replace")
        for file in [*files, ROOT / "pyproject.toml"]
    }
    assert len(texts) > 30
    assert [
        (file, host) for file, text in texts.items() for host in REGISTRIES if host in text
    ] == []


def test_the_map_of_core_has_every_module_in_one_line() -> None:
    rows = re.findall(
        r"^\| `([\w/]+\.py)` \| \S",
        (DOCS / "CONTRIBUTING.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    core = ROOT / "core/sealpipe"
    assert sorted(rows) == sorted(str(file.relative_to(core)) for file in core.glob("**/*.py"))


@cache
def read(file: Path) -> str:
    """A file of the repository."""
    return file.read_text(encoding="utf-8")


TREE = ("actions", "containers", "core", "docs", "plugins", "tests")
"""The folders of the repository: a path in the docs that starts with one of them is one of ours."""
SHORT = {
    "sealpipe/": "core",
    "sealpipe_plugins/": "plugins",
    "sealpipe_rehearsal/": "plugins",
    "sealpipe_service/": "plugins",
    "pass_store/": "plugins/sealpipe_plugins",
    "vault/": "plugins/sealpipe_plugins",
    "page/": "plugins/sealpipe_service",
}
"""How paths in the docs are shortened, and where they lead."""
MADE_UP = re.compile(r"shelf|[*<{]")


def paths_in(text: str) -> set[str]:
    """Return the paths of this repository that a page names in code, in blocks too."""
    shown = re.findall(
        r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    )
    shown += re.findall(r"^(?:python|pytest|node) .*$", text, re.MULTILINE)
    found = set()
    for words in shown:
        for word in words.split():
            path = word.partition("::")[0].rstrip(".,:")
            if path.startswith(tuple(f"{folder}/" for folder in TREE)):
                found.add(path)
            for start, folder in SHORT.items():
                if path.startswith(start) and path.endswith(".py"):
                    found.add(f"{folder}/{path}")
    return {path for path in found if not MADE_UP.search(path)}


def test_every_path_in_the_docs_exists() -> None:
    named = {(page, path) for page, text in CONTENTS.items() for path in paths_in(text)}
    assert len(named) > 60
    assert [(page, path) for page, path in named if not (ROOT / path).exists()] == []


def test_every_test_in_the_docs_exists() -> None:
    named = {
        (page, file, name)
        for page, text in CONTENTS.items()
        for file, name in re.findall(r"`?(tests/[\w/]+\.py)::(\w+)", text)
    }
    assert len(named) > 200
    assert [each for each in named if f"def {each[2]}(" not in read(ROOT / each[1])] == []


@pytest.mark.parametrize(
    "page", ["CONTRIBUTING", *sorted(f"contributing/{path.stem}" for path in WALK_THROUGHS)]
)
def test_every_name_in_the_walk_throughs_is_in_the_code(page: str) -> None:
    text = re.sub(
        r"^```.*?^```",
        "",
        (DOCS / f"{page}.md").read_text(encoding="utf-8"),
        flags=re.DOTALL | re.MULTILINE,
    )
    named = {
        part
        for name in re.findall(r"`([A-Za-z_][\w.]+)(?:\(.*?\))?`", text)
        for part in name.split(".")
        if "_" in part
    }
    named |= set(re.findall(r"`([A-Z]\w+)`", text))
    assert [
        name
        for name in sorted(named)
        if name not in words_of_code() and not MADE_UP.search(name.lower())
    ] == []


@cache
def words_of_code() -> frozenset[str]:
    """Return every word of our Python files, of their names, and of the CI files and the project
    file.
    """
    files = [file for folder in TREE for file in (ROOT / folder).rglob("*.py")]
    others = [
        ROOT / "pyproject.toml",
        *(ROOT / "actions").rglob("*.yml"),
        *(ROOT / "containers").rglob("*.yml"),
    ]
    texts = [file.read_text(encoding="utf-8") for file in [*files, *others]]
    parts = [part for file in files for part in (*file.parts, file.stem)]
    return frozenset(re.findall(r"\w+", " ".join([*texts, *parts])))


def test_every_variable_and_every_python_name_in_the_docs_exists() -> None:
    known = {
        row.get_variable(command)
        for command, rows in {"": GLOBAL, **COMMANDS}.items()
        for row in rows
    }
    known |= variables_of_plugins() | {"SEALPIPE_PLUGIN_SHELF__URL"}
    page = "\n".join(CONTENTS.values())
    variables = set(re.findall(r"\bSEALPIPE_[A-Z_]*[A-Z]\b", page)) - known - words_of_code()
    assert [name for name in sorted(variables) if not name.startswith("SEALPIPE_STORE_")] == []
    assert sorted(set(re.findall(r"\b[A-Z]\w+Error\b", page)) - words_of_code()) == []
    names = set(re.findall(r"`(sealpipe(?:_rehearsal|_service)?(?:\.\w+)+)", page)) - NO_NAMES
    assert [name for name in sorted(names) if not is_importable(name)] == []


@cache
def variables_of_plugins() -> frozenset[str]:
    """Return the variables of all settings of the built-in plugins."""
    found = set()
    for each in Registry(environ={}).catalog.list_plugins():
        settings = getattr(each.info, "settings", "")
        fields = pkgutil.resolve_name(settings).model_fields if settings else ()
        name = (getattr(each.info, "backend", "") or each.info.name).replace("-", "_")
        found |= {f"SEALPIPE_PLUGIN_{name}__{field}".upper() for field in fields}
    return frozenset(found)


NO_NAMES = {
    "sealpipe.dev",
    "sealpipe.env",
    "sealpipe_rehearsal.extend",
    "sealpipe_rehearsal.service",
}
"""A domain, a file, a fixture's method, a package that the changelog says has moved."""


def is_importable(name: str) -> bool:
    """Return whether a dotted name is a module, or something in one."""
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return False
    return True


def test_the_page_lists_every_exception_of_exit_code_4() -> None:
    part = (
        (DOCS / "reference/exit-codes.md")
        .read_text(encoding="utf-8")
        .partition("## Causes of exit code 4")[2]
    )
    listed = re.findall(r"^\| `(\w+)`", part.partition("\n## ")[0], re.MULTILINE)
    kinds = {kind for kind in vars(sealpipe.errors).values() if isinstance(kind, type)}
    assert sorted(listed) == sorted(
        kind.__name__ for kind in kinds if issubclass(kind, PermissionDeniedError)
    )


def test_the_page_lists_every_error_code_with_its_exit_code() -> None:
    part = (
        (DOCS / "reference/exit-codes.md")
        .read_text(encoding="utf-8")
        .partition("## The service's error codes")[2]
    )
    rows = re.findall(r"^\| (\d+) \| (\d+) \| .+ \| (.+) \|$", part, re.MULTILINE)
    listed = {(int(status), int(code)): exits for status, code, exits in rows}
    assert listed.keys() == {*BY_CODE, (429, 107)}
    for row, kind in BY_CODE.items():
        assert str(kind.exit_code) in re.findall(r"\d+", listed[row]), row


def test_the_example_on_the_page_of_exceptions_runs() -> None:
    code = re.search(r"```python\n(.*?)```", (DOCS / "reference/errors.md").read_text(), re.DOTALL)
    assert code is not None
    exec(compile(code[1], "docs/reference/errors.md", "exec"), {})  # noqa: S102 - our own page


def test_the_wire_example_on_the_python_page_runs() -> None:
    block = (DOCS / "reference/python.md").read_text().split("## Only the format")[1]
    code = re.search(r"```python\n(.*?)```", block, re.DOTALL)
    assert code is not None
    exec(compile(code[1], "docs/reference/python.md", "exec"), {})  # noqa: S102 - our own page


def test_the_rehearsal_example_on_its_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    code = re.search(
        r"```python\n(.*?)```", (DOCS / "reference/rehearsal.md").read_text(), re.DOTALL
    )
    assert code is not None
    exec(compile(code[1], "docs/reference/rehearsal.md", "exec"), {})  # noqa: S102 - our own page
    assert capsys.readouterr().out == "['hello']\n"


def test_the_readme_names_the_two_commands_as_the_gate_runs_them() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "\npip install '.[rehearsal]' && sealpipe rehearse\n" in readme
    assert "\npip install -e '.[dev]' && pytest\n" in readme
