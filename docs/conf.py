"""The documentation as a site: `sphinx-build -W --keep-going -n docs build/site`, see contributing/site.md.

The pages are plain Markdown that a forge shows, too. So what only the site needs is made here: the navigation from the
links of the pages that list others, a description for each page, and addresses on the page for those that do not exist.
"""

from __future__ import annotations

import html
import re
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from docutils import nodes
from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

DOCS = Path(__file__).resolve().parent
PROJECT = tomllib.loads((DOCS.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SOURCE = PROJECT["urls"]["Source"]

project = "sealpipe"
version = release = PROJECT["version"]
language = "en"
extensions = ["myst_parser"]
exclude_patterns = ["_*"]
templates_path = ["_templates"]
myst_heading_anchors = 6
myst_links_external_new_tab = False

html_theme = "furo"
html_title = f"sealpipe {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = [("site.js", {"defer": "defer"})]
html_additional_pages = {"404": "404.html"}
html_show_sourcelink = html_copy_source = html_use_index = html_show_copyright = False
html_baseurl = ""  # where the site is: the workflow that publishes it says so with -D
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"

# Examples, and what only a browser with an account or a machine of the user's answers.
linkcheck_ignore = [r"https?://([\w.-]+\.)?(example(\.com|\.org)?|localhost|127\.0\.0\.1)([:/].*)?$", r".*/OWNER/.*"]
linkcheck_timeout = 20

LINK = re.compile(r"\]\((?!https?://)([^)#]+\.md)")


def find_index(page: Path) -> Path:
    """Return the page in whose navigation a page stands: `how-to/index.md`, or `commands.md` for `commands/`."""
    if page.parent == DOCS:
        return DOCS / "contributing/index.md"
    candidates = (each for folder in page.parents for each in (folder / "index.md", folder.with_suffix(".md")))
    return next(each for each in candidates if each != page and each.exists())


def lead_outside(_: Sphinx, docname: str, source: list[str]) -> None:
    """Lead links to Markdown outside `docs/` to the repository. Other files outside come with the site as copies."""
    folder = (DOCS / docname).parent

    def lead(found: re.Match[str]) -> str:
        target = (folder / found[1]).resolve()
        inside = target.is_relative_to(DOCS)
        return found[0] if inside else f"]({SOURCE}/blob/main/{target.relative_to(DOCS.parent).as_posix()}"

    source[0] = LINK.sub(lead, source[0])


def add_navigation(_: Sphinx, docname: str, source: list[str]) -> None:
    """Give a page that lists others their table of contents, in the order of its last link to each."""
    page = DOCS / f"{docname}.md"
    linked = list(dict.fromkeys((page.parent / link).resolve() for link in LINK.findall(source[0])[::-1]))[::-1]
    home = DOCS / "index.md"
    ours = [each for each in linked if each.is_relative_to(DOCS) and each not in {page, home}]
    listed = [each for each in ours if find_index(each) == page]
    if listed:
        entries = "\n".join(f"/{each.relative_to(DOCS).as_posix()}" for each in listed)
        source[0] += f"\n\n```{{toctree}}\n:hidden:\n\n{entries}\n```\n"


def add_description(
    _: Sphinx, _page: str, _template: str, context: dict[str, Any], tree: nodes.document | None
) -> None:
    """Describe a page to search engines by the start of its first paragraph."""
    first = next((each for each in tree.findall(nodes.paragraph) if _is_prose(each)), None) if tree else None
    text = " ".join((first.astext() if first else f"{PROJECT['description']}.").split())
    if len(text) < 60 and context.get("title"):
        text = f"{re.sub('<.*?>', '', context['title'])}: {text}"
    short = text if len(text) <= 200 else f"{text[:200].rpartition(' ')[0]} …"
    context["metatags"] = f'{context.get("metatags", "")}<meta name="description" content="{html.escape(short)}">'


def _is_prose(paragraph: nodes.paragraph) -> bool:
    return isinstance(paragraph.parent, nodes.section)


def anchor_page_404(app: Sphinx, error: Exception | None) -> None:
    """Address everything on 404.html from the site's root: a server sends it for addresses of any depth."""
    file = Path(app.outdir, "404.html")
    if error is None and file.exists():
        root = urlsplit(app.config.html_baseurl).path.rstrip("/") + "/"
        text = re.sub(
            r'((?:href|src|action|content_root)=")(?:\./)?(?![#/]|[a-z]+:)', rf"\g<1>{root}", file.read_text("utf-8")
        )
        file.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    for language_without_a_lexer in ("csv", "hcl"):
        app.add_lexer(language_without_a_lexer, TextLexer)
    app.connect("source-read", lead_outside)
    app.connect("source-read", add_navigation)
    app.connect("html-page-context", add_description)
    app.connect("build-finished", anchor_page_404)
