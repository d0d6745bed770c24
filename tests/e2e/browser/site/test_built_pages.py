"""Every page of the built site: links, resources, headings, title, description."""

from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import pytest

from support.parts import ROOT

VOID = {"base", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"}
RESOURCES = {
    ("img", "src"),
    ("script", "src"),
    ("source", "srcset"),
    ("object", "data"),
    ("iframe", "src"),
}
SERVICE_PAGES = {"search.html", "404.html"}


class Page(HTMLParser):
    """What a page has, read from its HTML without a browser."""

    def __init__(self, site: Path, path: str) -> None:
        super().__init__()
        self.path = path
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.resources: list[str] = []
        self.headings: list[int] = []
        self.images_without_text = 0
        self.tables_without_headers = 0
        self.lang = self.title = self.description = ""
        self._inside: list[str] = []
        self._headers: list[int] = []
        self.feed((site / path).read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        has = {name: value or "" for name, value in attrs}
        if tag not in VOID:
            self._inside.append(tag)
        self.ids.update(filter(None, [has.get("id")]))
        if tag == "a" and "href" in has:
            self.links.append(has["href"])
        self.resources += [has[name] for each, name in RESOURCES if each == tag and name in has]
        if tag == "link" and has.get("rel") in {
            "stylesheet",
            "shortcut icon",
            "prefetch",
            "preload",
        }:
            self.resources.append(has["href"])
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        self.images_without_text += tag == "img" and not has.get("alt")
        if tag == "table":
            self._headers.append(0)
        if tag == "th" and self._headers:
            self._headers[-1] += 1
        if tag == "html":
            self.lang = has.get("lang", "")
        if tag == "meta" and has.get("name") == "description":
            self.description = has["content"]

    def handle_endtag(self, tag: str) -> None:
        if tag == "table":
            self.tables_without_headers += not self._headers.pop()
        while self._inside and self._inside.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if self._inside[-1:] == ["title"] and "svg" not in self._inside:
            self.title += data


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, Page]:
    """Every page by its address."""
    found = (file.relative_to(site).as_posix() for file in sorted(site.rglob("*.html")))
    return {path: Page(site, path) for path in found}


def test_every_page_of_the_docs_has_its_address(pages: dict[str, Page]) -> None:
    docs = ROOT / "docs"
    written = {
        file.relative_to(docs).with_suffix(".html").as_posix() for file in docs.rglob("*.md")
    }
    assert set(pages) - SERVICE_PAGES == written


def test_every_link_and_resource_leads_somewhere(site: Path, pages: dict[str, Page]) -> None:
    broken = []
    for path, page in pages.items():
        for link in {*page.links, *page.resources}:
            address = urlsplit(urljoin(f"http://site/{path}", link))
            if address.netloc != "site" or not address.scheme.startswith("http"):
                continue
            target = unquote(address.path).lstrip("/") or "index.html"
            if not (site / target).is_file():
                broken.append(f"{path}: {link}")
            elif address.fragment and target in pages:
                broken += (
                    [f"{path}: {link}"]
                    if unquote(address.fragment) not in pages[target].ids
                    else []
                )
    assert broken == []


def test_nothing_comes_from_another_host(site: Path, pages: dict[str, Page]) -> None:
    abroad = [
        f"{path}: {each}"
        for path, page in pages.items()
        for each in page.resources
        if urlsplit(each).netloc
    ]
    for file in site.rglob("*.css"):
        found = re.findall(
            r"(?:@import\s*|url\()\s*[\"']?((?:https?:)?//[^\"')]+)",
            file.read_text(encoding="utf-8"),
        )
        abroad += [f"{file.relative_to(site)}: {each}" for each in found]
    assert abroad == []


def test_every_page_has_a_title_and_a_description(pages: dict[str, Page]) -> None:
    for path, page in pages.items():
        assert page.lang == "en", path
        assert "sealpipe" in page.title, path
        assert 20 <= len(page.description) <= 210, f"{path}: {page.description!r}"
    titles = Counter(
        page.title for path, page in pages.items() if not path.startswith("how-to/ci/")
    )
    assert [title for title, count in titles.items() if count > 2] == []


def test_the_headings_of_every_page_are_in_order(pages: dict[str, Page]) -> None:
    for path, page in pages.items():
        assert page.headings.count(1) == 1, path
        assert page.headings[0] == 1, path
        assert all(
            after <= before + 1
            for before, after in zip(page.headings, page.headings[1:], strict=False)
        ), path


def test_tables_have_headers_and_images_a_text(pages: dict[str, Page]) -> None:
    assert {
        path: page.tables_without_headers
        for path, page in pages.items()
        if page.tables_without_headers
    } == {}
    assert {
        path: page.images_without_text for path, page in pages.items() if page.images_without_text
    } == {}


def test_every_page_is_in_the_navigation_of_every_other(pages: dict[str, Page]) -> None:
    named = {
        urlsplit(urljoin("http://site/", link)).path.lstrip("/")
        for link in pages["index.html"].links
    }
    assert set(pages) - SERVICE_PAGES - named == {"index.html"}


def test_files_beside_the_docs_come_as_copies(site: Path, pages: dict[str, Page]) -> None:
    (licence,) = (link for link in pages["index.html"].links if link.endswith("/LICENSE"))
    assert (site / licence).read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_a_broken_page_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(
        "<html><h1 id=a>A</h1><h3>B</h3><table><tr><td>1</table><img "
        "src='https://host.example/a'><a href='#b'>b</a>"
    )
    page = Page(tmp_path, "page.html")
    with pytest.raises(AssertionError):
        test_every_link_and_resource_leads_somewhere(tmp_path, {"page.html": page})
    with pytest.raises(AssertionError):
        test_nothing_comes_from_another_host(tmp_path, {"page.html": page})
    with pytest.raises(AssertionError):
        test_every_page_has_a_title_and_a_description({"page.html": page})
    with pytest.raises(AssertionError):
        test_the_headings_of_every_page_are_in_order({"page.html": page})
    assert (page.images_without_text, page.lang, page.description) == (1, "", "")
