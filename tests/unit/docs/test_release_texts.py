"""The version, the changelog and the addresses of the project are said once, and the same
everywhere.
"""

from __future__ import annotations

import re
import shutil
import tomllib
from pathlib import Path

import pytest

import sealpipe
from support.parts import ROOT, load_module

NOTES = load_module("notes", ROOT / ".github/release/notes.py")
VERSIONS = load_module("version", ROOT / ".github/release/version.py")
CHANGELOG = (ROOT / "docs/CHANGELOG.md").read_text(encoding="utf-8")
RELEASED = re.sub(r"(?s)(?<=## \[Unreleased\]\n).*?(?=\n## )", "", CHANGELOG, count=1)
"""The changelog as it is on the day of a release: nothing is unreleased."""
URLS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The files that name the version, elsewhere."""
    for file, _ in VERSIONS.find_places():
        there = tmp_path / file.relative_to(ROOT)
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, there)
    return tmp_path


def test_every_place_names_this_version() -> None:
    assert VERSIONS.find_others() == []
    assert VERSIONS.read_version() == sealpipe.__version__


def test_a_new_version_is_written_to_every_place(copy: Path) -> None:
    VERSIONS.write_version("12.34.56", copy)
    assert (VERSIONS.read_version(copy), VERSIONS.find_others(copy)) == ("12.34.56", [])
    shown = {
        file.relative_to(copy).as_posix()
        for file in copy.rglob("*.*")
        if "12.34.56" in file.read_text()
    }
    assert shown >= {"docs/how-to/ci/gitlab.md", "docs/how-to/troubleshoot.md"}
    assert "sealpipe 0.1.0" in (copy / "docs/contributing/benchmarks.md").read_text(), (
        "what was measured stays"
    )


def test_a_place_with_another_version_or_none_is_named(copy: Path) -> None:
    page, image = copy / "docs/how-to/troubleshoot.md", copy / "containers/Dockerfile"
    page.write_text(page.read_text().replace(sealpipe.__version__, "9.9.9"))
    image.write_text(image.read_text().replace("ARG VERSION=", "ARG NUMBER="))
    assert VERSIONS.find_others(copy) == [
        "containers/Dockerfile: names it 0 times, not once",
        "docs/how-to/troubleshoot.md: 9.9.9",
    ]


def test_the_changelog_has_its_form_and_an_entry_of_this_version() -> None:
    assert NOTES.find_faults(CHANGELOG) == []
    assert (
        next(name for name in NOTES.split_entries(CHANGELOG) if name != "Unreleased")
        == sealpipe.__version__
    )


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("## [Unreleased]\n", "", "the first entry is not [Unreleased]"),
        ("## [0.2.0] - 2026-11-23", "## [0.2.0]", "'0.2.0' is not a version with its date"),
        ("## [0.2.0] - 2026-11-23", "## [0.2.0] - 2026-13-23", "0.2.0 is of 2026-13-23"),
        ("## 0.1.0 - ", "## 0.3.0 - ", "0.2.0 stands above 0.3.0"),
        ("## 0.1.0 - ", "## 0.2.0 - ", "a version has two entries"),
        ("\n### Changed\n", "\n### Improved\n", "not each kind once, in the order Added, Changed"),
        ("\n### Fixed\n", "\n### Changed\n", "not each kind once, in the order Added, Changed"),
        ("\n### Changed\n\n- ", "\n### Changed\n\n", "0.2.0, Changed: not a list"),
        ("\n[0.2.0]: ", "\n[0.2.1]: ", "[0.2.0] has no link, or its link no entry"),
    ],
)
def test_what_is_not_of_the_form_is_named(old: str, new: str, fault: str) -> None:
    assert old in RELEASED
    assert any(fault in each for each in NOTES.find_faults(RELEASED.replace(old, new, 1)))


def test_notes_are_of_one_version_and_their_links_lead_to_its_pages() -> None:
    notes = NOTES.make_notes(CHANGELOG, "0.2.0", "https://forge.example/v0.2.0/docs")
    assert "](https://forge.example/v0.2.0/docs/how-to/run-a-batch.md)" in notes
    assert not re.search(r"\]\((?!https://)|^## |^\[", notes, re.MULTILINE)
    for version in ("Unreleased", "9.9.9"):
        with pytest.raises(KeyError):
            NOTES.make_notes(CHANGELOG, version, "docs")


def test_every_address_of_the_project_is_of_one_repository() -> None:
    assert list(URLS) == ["Documentation", "Source", "Changelog", "Issues", "Security"]
    assert {url for url in URLS.values() if not f"{url}/".startswith(f"{URLS['Source']}/")} == set()
    texts = [
        ROOT / "docs/CHANGELOG.md",
        ROOT / "docs/CONTRIBUTING.md",
        ROOT / "docs/how-to/scan-commits.md",
    ]
    named = {
        each
        for file in texts
        for each in re.findall(r"https://[\w.]+/[\w-]+/sealpipe\b", file.read_text())
    }
    assert named == {URLS["Source"]}
    for name in ("Documentation", "Changelog"):
        assert (ROOT / URLS[name].partition("/blob/main/")[2]).is_file()


def test_no_page_installs_a_release_that_is_not_there() -> None:
    """Until there is one, pages install a clone; what names an extra adds it to that
    installation.
    """
    for file in [ROOT / "README.md", *(ROOT / "docs").glob("**/*.md")]:
        assert not re.search(
            r"(?<!`)\b(pip|pipx|uv tool) install '?sealpipe(?![\[\w-])", file.read_text()
        ), file
