"""The documentation as a site: `sphinx-build -W --keep-going -n docs build/site`, see
contributing/site.md.

The pages are plain Markdown that a forge shows, too. So what only the site needs is made here: the
navigation from the links of the pages that list others, a description for each page, what the
search knows beside their words, and addresses on the page for those that do not exist.
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
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError

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
html_search_scorer = str(DOCS / "_static/search.js")
html_additional_pages = {"404": "404.html"}
html_show_sourcelink = html_copy_source = html_use_index = html_show_copyright = False
html_baseurl = ""  # where the site is: the workflow that publishes it says so with -D
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"

# Examples, and what only a browser with an account or a machine of the user's answers.
linkcheck_ignore = [
    r"https?://([\w.-]+\.)?(example(\.com|\.org)?|localhost|127\.0\.0\.1)([:/].*)?$",
    r".*/OWNER/.*",
]
linkcheck_timeout = 20

SEARCHED = {
    "collect now": ["how-to/collect", "how-to/run-a-batch"],
    "revoke": ["how-to/a-stolen-key", "how-to/rotate-a-key"],
    "onboarding": ["how-to/onboarding-forty-contractors", "how-to/send-a-link", "how-to/adopt"],
    "forty contractors": ["how-to/onboarding-forty-contractors"],
    "vendor rotation": ["how-to/vendor-rotation"],
    "break-glass": ["how-to/break-glass"],
    "break glass": ["how-to/break-glass"],
    "rotate a secret": ["how-to/rotate-a-secret"],
    "terraform outputs": ["how-to/terraform-outputs"],
    "evidence audit": ["how-to/evidence-for-an-audit"],
    "vault": ["products/vault"],
}
"""What people search for, and the pages that it leads to first."""

LINK = re.compile(r"\]\((?!https?://)([^)#]+\.md)")


def find_index(page: Path) -> Path:
    """Return the page in whose navigation a page stands: `how-to/index.md`, or `commands.md` for
    `commands/`.
    """
    if page.parent == DOCS:
        return DOCS / "contributing/index.md"
    candidates = (
        each for folder in page.parents for each in (folder / "index.md", folder.with_suffix(".md"))
    )
    return next(each for each in candidates if each != page and each.exists())


def lead_outside(_: Sphinx, docname: str, source: list[str]) -> None:
    """Lead links to Markdown outside `docs/` to the repository.

    Other files outside come with the site as copies.
    """
    folder = (DOCS / docname).parent

    def lead(found: re.Match[str]) -> str:
        target = (folder / found[1]).resolve()
        inside = target.is_relative_to(DOCS)
        return (
            found[0]
            if inside
            else f"]({SOURCE}/blob/main/{target.relative_to(DOCS.parent).as_posix()}"
        )

    source[0] = LINK.sub(lead, source[0])


def add_navigation(_: Sphinx, docname: str, source: list[str]) -> None:
    """Give a page that lists others their table of contents, in the order of its last link to
    each.
    """
    page = DOCS / f"{docname}.md"
    linked = list(
        dict.fromkeys((page.parent / link).resolve() for link in LINK.findall(source[0])[::-1])
    )[::-1]
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
    first = (
        next((each for each in tree.findall(nodes.paragraph) if _is_prose(each)), None)
        if tree
        else None
    )
    text = " ".join((first.astext() if first else f"{PROJECT['description']}.").split())
    if len(text) < 60 and context.get("title"):
        text = f"{re.sub('<.*?>', '', context['title'])}: {text}"
    short = text if len(text) <= 200 else f"{text[:200].rpartition(' ')[0]} …"
    context["metatags"] = (
        f'{context.get("metatags", "")}<meta name="description" content="{html.escape(short)}">'
    )


def _is_prose(paragraph: nodes.paragraph) -> bool:
    return isinstance(paragraph.parent, nodes.section)


def add_searched(app: Sphinx, tree: nodes.document) -> None:
    """Put what people search for into the index of the page that it leads to."""
    words = [word for word, pages in SEARCHED.items() if app.env.docname in pages]
    tree.append(addnodes.index(entries=[("single", word, "", "main", None) for word in words]))


def check_searched(_: Sphinx, env: BuildEnvironment) -> None:
    """Refuse a page that does not exist."""
    missing = {page for pages in SEARCHED.values() for page in pages} - env.found_docs
    if missing:
        raise ExtensionError(
            f"SEARCHED in conf.py names pages that do not exist: {sorted(missing)}"
        )


def mark_recordings(_: Sphinx, tree: nodes.document) -> None:
    """Mark pictures of a terminal for the style."""
    for image in tree.findall(nodes.image):
        if image["uri"].endswith(".svg"):
            image["classes"].append("recording")


def anchor_page_404(app: Sphinx, error: Exception | None) -> None:
    """Address everything on 404.html from the site's root: a server sends it for addresses of any
    depth.
    """
    file = Path(app.outdir, "404.html")
    if error is None and file.exists():
        root = urlsplit(app.config.html_baseurl).path.rstrip("/") + "/"
        text = re.sub(
            r'((?:href|src|action|content_root)=")(?:\./)?(?![#/]|[a-z]+:)',
            rf"\g<1>{root}",
            file.read_text("utf-8"),
        )
        file.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    for language_without_a_lexer in ("csv", "hcl"):
        app.add_lexer(language_without_a_lexer, TextLexer)
    app.connect("source-read", lead_outside)
    app.connect("source-read", add_navigation)
    app.connect("doctree-read", add_searched)
    app.connect("doctree-read", mark_recordings)
    app.connect("env-check-consistency", check_searched)
    app.connect("html-page-context", add_description)
    app.connect("build-finished", anchor_page_404)
