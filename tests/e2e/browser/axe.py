"""axe-core in the browser: what keeps a page from people who use it by keyboard, by ear or with
little sight.

It is npm's `axe-core`, found through SEALPIPE_TESTS_AXE (the file) or NODE_PATH (folders of
packages), or in a `node_modules` of this checkout.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from e2e.browser.chrome import Browser
from support.parts import ROOT, missing

_RUN = """
const [rules, done] = arguments;
const only = rules ? {runOnly: {type: "rule", values: rules}} : {};
const options = {...only, resultTypes: ["violations"], preload: false};
axe.run(document, options).then(done, error => done(String(error)));
"""
LOOKS = ("color-contrast", "target-size", "link-in-text-block")
"""The rules that depend on how a page looks: colours and sizes."""


@cache
def source() -> str:
    """The program as it is put into a page."""
    folders = [Path(each) for each in os.environ.get("NODE_PATH", "").split(os.pathsep) if each]
    named = os.environ.get("SEALPIPE_TESTS_AXE")
    files = (
        [Path(named)]
        if named
        else [each / "axe-core/axe.min.js" for each in (*folders, ROOT / "node_modules")]
    )
    file = next((each for each in files if each.is_file()), None)
    return (
        file.read_text("utf-8")
        if file
        else missing("axe-core is in no folder that NODE_PATH names (npm)")
    )


def violations(browser: Browser, rules: Sequence[str] = ()) -> list[str]:
    """What axe-core finds wrong with the page as it stands, in one line each: the rule, and where.

    No rule: all.
    """
    _load(browser)
    found: Any = browser.driver.execute_async_script(_RUN, list(rules) or None)
    assert isinstance(found, dict), found
    return [f"{rule['id']}: {rule['help']}: {_places(rule)}" for rule in found["violations"]]


def _load(browser: Browser) -> None:
    if not browser.run("return 'axe' in window"):
        browser.run(source())


def _places(rule: dict[str, Any]) -> str:
    return ", ".join(str(node["target"][0]) for node in rule["nodes"])


def rules_passed(browser: Browser) -> int:
    """How many rules applied to the page and were kept: a page that is empty keeps few."""
    _load(browser)
    count: int = browser.driver.execute_async_script(
        "const done = arguments[0]; axe.run(document, {preload: false}).then(found => "
        "done(found.passes.length))"
    )
    return count
