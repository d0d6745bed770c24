"""External links of the docs: https, to a host of the list.

`sphinx-build -b linkcheck` calls them; tests do not.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from support.parts import ROOT

HOSTS = {
    "age-encryption.org",
    "bitwarden.com",
    "circleci.com",
    "credenshare.io",
    "cryptography.io",
    "developer.apple.com",
    "doc.rust-lang.org",
    "docs.getmoto.org",
    "docs.npmjs.com",
    "docs.onetimesecret.com",
    "docs.openssl.org",
    "docs.oracle.com",
    "docs.pwpush.com",
    "docs.python.org",
    "gcc.gnu.org",
    "git-scm.com",
    "github.com",
    "keepachangelog.com",
    "kmock.readthedocs.io",
    "learn.microsoft.com",
    "man.openbsd.org",
    "man7.org",
    "manpages.debian.org",
    "nodejs.org",
    "perldoc.perl.org",
    "pkg.go.dev",
    "plugins.jenkins.io",
    "repo.mercurial-scm.org",
    "rust-lang.github.io",
    "semver.org",
    "stat.ethz.ch",
    "support.atlassian.com",
    "vimhelp.org",
    "woodpecker-ci.org",
    "www.atlassian.com",
    "www.bitwarden.com",
    "www.erlang.org",
    "www.gnu.org",
    "www.jetbrains.com",
    "www.lua.org",
    "www.php.net",
    "www.postgresql.org",
    "zsh.sourceforge.io",
}
"""Hosts that pages link to.

Add one with the page that needs it, after `sphinx-build -b linkcheck` has reached it.
"""
LINK = re.compile(r"\]\((https?://[^)\s]+)\)|<(https?://[^>\s]+)>")


def external_links(text: str) -> set[str]:
    """Return the addresses that a page links to; those in code are examples."""
    prose = re.sub(r"^ *```.*?^ *```|`[^`]*`", "", text, flags=re.DOTALL | re.MULTILINE)
    return {link for found in LINK.findall(prose) for link in found if link}


def test_every_external_link_is_https_to_a_known_host() -> None:
    pages = [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]
    links = {link for page in pages for link in external_links(page.read_text(encoding="utf-8"))}
    assert [link for link in sorted(links) if not link.startswith("https://")] == []
    assert {urlsplit(link).hostname for link in links} == HOSTS, f"change HOSTS in {__file__}"


def test_links_are_found_and_examples_are_not() -> None:
    text = (
        "[a](https://a.example/x) <http://b.example> `[c](https://c.example)`\n```sh\ncurl "
        "<https://d.example>\n```\n"
    )
    assert external_links(text) == {"https://a.example/x", "http://b.example"}
