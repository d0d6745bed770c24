"""Plugins of other people: installed distributions, whole and broken."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from sealpipe.errors import (
    NotConfiguredError,
    PayloadTooLargeError,
    PluginError,
    ReferenceSyntaxError,
)
from sealpipe.reference import parse, parse_field
from sealpipe.registry import Registry
from sealpipe.registry.catalog import Catalog
from sealpipe.registry.entry_points import are_declared
from sealpipe.sources.resolve import resolve
from support.backends import fetched, opened

CANARY = "Canary-9b2c"

HOOK = """
from sealpipe.plugin import SourceInfo, hookimpl

@hookimpl
def sealpipe_sources(register):
    params = {{"level": "how far down"}}
    register(SourceInfo({name!r}, "a test", "{module}_source:It", params=params{more}))
"""
SOURCE = """
from sealpipe.plugin import *

class It(Source):
    def fetch(self, locator):
        {body}
"""

Install = Callable[..., str]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Install a distribution: its module with the hook, and the module of its source."""
    monkeypatch.syspath_prepend(str(tmp_path))
    number = 0

    def distribution(
        name: str, body: str = "return Document(b'x')", *, hook: str = HOOK, more: str = ""
    ) -> str:
        nonlocal number
        number += 1
        module = f"thirdparty_{tmp_path.name.strip('_')}_{number}".replace("-", "_")
        info = tmp_path / f"{module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[sealpipe]\n{name} = {module}\n")
        (tmp_path / f"{module}.py").write_text(hook.format(name=name, module=module, more=more))
        (tmp_path / f"{module}_source.py").write_text(SOURCE.format(body=body))
        return module

    return distribution


def told(error: BaseException) -> str:
    """All that any handler could print of an error, its causes and its frames' variables
    included.
    """
    shown = traceback.TracebackException.from_exception(error, capture_locals=True)
    # knows the canary.
    shown.stack = traceback.StackSummary([f for f in shown.stack if f.filename != __file__])
    attributes = [vars(e) for e in (error, error.__cause__, error.__context__) if e is not None]
    return "".join(shown.format()) + repr(attributes)


def test_an_installed_plugin_is_found_by_its_sources_name(install: Install) -> None:
    install(
        "attic", "return Document({'body': locator.body, 'level': locator.param('level', 'none')})"
    )
    fields = fetched("attic://a/b?level=2#body,level", "Other=attic:a/b#level")
    assert [(f.key, opened(f)) for f in fields] == [
        ("body", b"a/b"),
        ("level", b"2"),
        ("Other", b"none"),
    ]


def test_a_plugin_has_the_parameters_that_it_declares(install: Install) -> None:
    install("attic")
    with pytest.raises(ReferenceSyntaxError, match="attic: parameter levle is unknown") as caught:
        fetched("attic:a?trim=1&levle=2")
    assert caught.value.remedy == "did you mean level?"
    # Other sources have it.
    with pytest.raises(ReferenceSyntaxError, match="env: parameter raw is unknown"):
        fetched("env:A?raw=1")
    with pytest.raises(ReferenceSyntaxError, match="parameter 1 is unknown") as caught:
        fetched(f"attic:a?{CANARY}=2")
    assert "known parameters: decode, encode, filename" in caught.value.remedy
    assert CANARY not in f"{caught.value} {caught.value.remedy}"


def test_entry_points_are_looked_up_only_for_what_no_built_in_has(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = install("attic")
    looks: list[object] = []
    look = Catalog._load_entry_points

    def counted(self: Catalog) -> None:
        looks.append(None)
        look(self)

    monkeypatch.setattr(Catalog, "_load_entry_points", counted)
    found = Registry(environ={"A": "x"})
    resolve([parse_field("env:A"), parse_field("text:t")], lambda: found)
    assert (looks, module in sys.modules) == ([], False)
    resolve([parse_field("attic:A")], lambda: found)
    with pytest.raises(ReferenceSyntaxError):
        found.source_info("nosuch")
    with pytest.raises(ReferenceSyntaxError):
        found.source_info("nosuch")
    assert len(looks) == 1


def test_metadata_is_not_even_imported_for_built_ins() -> None:
    code = textwrap.dedent("""
        import sys
        from sealpipe.sources.resolve import resolve
        from sealpipe.reference import parse_field
        from sealpipe.registry import Registry
        fields = resolve([parse_field("text:t"), parse_field("env:HOME")], Registry)
        print(len(fields), "importlib.metadata" in sys.modules)
    """)
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "2 False\n"


@pytest.mark.parametrize(
    "hook",
    [
        f"raise RuntimeError('{CANARY}')",
        f"import {CANARY.replace('-', '_')}",
        f"syntax error {CANARY}",
        f"raise SystemExit('{CANARY}')",
        HOOK + f"    raise RuntimeError('{CANARY}')",
        (
            "from sealpipe.plugin import hookimpl\n@hookimpl\ndef "
            "sealpipe_sources(unknown_argument): pass"
        ),
        (
            "from sealpipe.plugin import hookimpl\n@hookimpl\ndef sealpipe_sources(register): "
            "register('junk')"
        ),
        (
            "from sealpipe.plugin import *\n@hookimpl\ndef sealpipe_sources(register): "
            "register(SourceInfo([], '', ''))"
        ),
        HOOK.replace("{more}", ", api=2"),
        HOOK.replace("level", "decode"),
    ],
)
def test_a_broken_plugin_breaks_only_its_own_use(install: Install, hook: str) -> None:
    install(
        "broken",
        hook=hook if hook.startswith(HOOK[:20]) else hook.replace("{", "{{").replace("}", "}}"),
    )
    install("whole", "return Document(b'fine')")
    found = Registry(environ={"A": "x"})
    for text in ("whole:x", "env:A"):
        assert len(resolve([parse_field(text)], lambda: found)) == 1
    with pytest.raises(NotConfiguredError, match=r"^the plugin broken ") as caught:
        found.source_info("broken")
    assert CANARY not in told(caught.value)
    with pytest.raises(ReferenceSyntaxError, match="no source named nosuch") as unknown:
        found.source_info("nosuch")
    assert "not fully loaded: broken" in unknown.value.remedy
    assert list(found.catalog.problems) == ["broken"]


@pytest.mark.parametrize("metadata", ["importlib.metadata", "importlib_metadata"])
def test_a_broken_plugin_is_reported_by_its_error_type(install: Install, metadata: str) -> None:
    pytest.importorskip(metadata)  # the second one takes the place of the first
    install("broken", hook=f"raise RuntimeError('{CANARY}')")
    with pytest.raises(
        NotConfiguredError,
        match=r"^the plugin broken could not be loaded \(RuntimeError at thirdparty_\w+\.py:\d+\)$",
    ):
        Registry().source_info("broken")


def test_half_a_plugin_is_none(install: Install) -> None:
    install("half", hook=HOOK + "    register(SourceInfo('other', '', 'x:y'))\n    raise OSError")
    found = Registry()
    with pytest.raises(ReferenceSyntaxError):
        found.source_info("other")


@pytest.mark.parametrize("taken", ["env", "first"])
def test_a_name_that_is_taken_stays_with_its_owner(install: Install, taken: str) -> None:
    install("first")
    hook = (
        HOOK.replace("{name!r}", repr(taken))
        + "    register(SourceInfo('own', '', '{module}_source:It'))\n"
    )
    install("second", hook=hook)
    found = Registry(environ={"A": "real"})
    owner = found.source_info(taken).factory
    assert len(resolve([parse_field("own:x")], lambda: found)) == 1
    assert found.source_info(taken).factory == owner
    assert found.catalog.problems == {"second": f"has a source named {taken}, which already exists"}
    assert opened(resolve([parse_field("env:A")], lambda: found)[0]) == b"real"


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (
            ", needs=('sealpipe[attic]',)",
            r"{module}_source:It: RuntimeError at {module}_source.py:7",
        ),
        (", settings='os:_no_such'", "os:_no_such: the module has no such name"),
        (", settings='ipaddress:ip_address'", "ipaddress:ip_address: TypeError"),
    ],
)
def test_a_source_that_cannot_be_made_says_what_it_needs(
    install: Install, more: str, why: str
) -> None:
    body = (
        "pass\nraise RuntimeError('" + CANARY + "')" if "needs" in more else "return Document(b'x')"
    )
    why = why.format(module=install("attic", body, more=more))
    with pytest.raises(
        NotConfiguredError, match=re.escape(f"the source attic cannot be used here ({why})")
    ) as caught:
        fetched("attic:x")
    error = caught.value
    assert error.remedy == (
        "pip install 'sealpipe[attic]'"
        if "needs" in more
        else "correct the plugin, or tell its author"
    )
    assert (error.locator, error.exit_code) == ("attic:x", 14)
    assert CANARY not in told(error)


@pytest.mark.parametrize(
    ("source", "error"),
    [
        (
            "class It(Source):\n  def fetch(self locator): ...",
            "SyntaxError at {module}_source.py:2",
        ),
        ("from sealpipe.plugin import Sorce", "ImportError at {module}_source.py:1"),
        ("from no_such_package import it", "ModuleNotFoundError at {module}_source.py:1"),
        ("class Attic: ...", "{module}_source:It: the module has no such name"),
        (
            "from sealpipe.plugin import Source\nclass It(Source): ...",
            "{module}_source:It lacks fetch",
        ),
        (
            "class It:\n  def __init__(self, *_): ...",
            "{module}_source:It makes no sealpipe.plugin.Source",
        ),
    ],
)
def test_a_mistake_of_a_plugins_author_is_told_with_its_place(
    install: Install, tmp_path: Path, source: str, error: str
) -> None:
    module = install("attic")
    (tmp_path / f"{module}_source.py").write_text(source)
    with pytest.raises(PluginError, match=re.escape(error.format(module=module))) as caught:
        fetched("attic:x")
    assert f"{module}_source:It" in caught.value.message
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("raise ValueError('{}')", "the source attic raised an unexpected ValueError"),
        ("raise SystemExit('{}')", "the source attic raised an unexpected SystemExit"),
        ("raise type('Odd', (Exception,), {{}})('{}')", "raised an unexpected Odd"),
        (
            "secret = '{}'; return secret.nothing",
            "raised an unexpected AttributeError at thirdparty_",
        ),
        ("raise SyntaxError('{0}', ('{0}.py', 3, 1, '{0}'))", "an unexpected SyntaxError"),
        ("raise SyntaxError('{0}', (12345, 3, 1, '{0}'))", "an unexpected SyntaxError"),
        (
            "raise type('Xml', (SyntaxError,), {{}})('{0}', (__file__ + '{0}', 3, 1, '{0}'))",
            "raised an unexpected Xml",
        ),
        ("exec(compile('1 / 0', '{0}', 'exec'))", "an unexpected ZeroDivisionError"),
        ("raise SecretNotFoundError('there is none') from ValueError('{}')", "there is none"),
        ("secret = '{}'; raise SecretNotFoundError('there is none')", "there is none"),
        ("return '{}'", "the source attic returned str for attic:x"),
        ("return Document(['{}'])", "the source attic returned list for attic:x"),
    ],
)
def test_no_text_of_a_plugins_error_is_shown(install: Install, body: str, reason: str) -> None:
    install("attic", body.format(CANARY))
    with pytest.raises(PluginError) as caught:
        fetched("attic:x")
    error = caught.value
    assert reason in error.message
    assert (error.locator, error.exit_code) == ("attic:x", 14)
    assert CANARY not in told(error)


def test_too_much_is_a_usage_error_from_a_plugin_too(install: Install) -> None:
    install("attic", "raise PayloadTooLargeError('more than 16 MiB')")
    with pytest.raises(PayloadTooLargeError):
        fetched("attic:x")


def test_a_batch_answers_each_and_leaves_out_none(install: Install) -> None:
    body = (
        "pass\n    def fetch_many(self, locators):\n"
        "        return {l: Document(l.body) if l.body != 'no' else "
        "SecretNotFoundError('none', locator=l.text)"
        " for l in locators if l.body != 'lost'}"
    )
    install("attic", body)
    found = Registry()
    locators = [found.locate(parse(f"attic:{body}")) for body in ("a", "no", "lost")]
    a, no, lost = (found.fetch({"attic": locators})[locator] for locator in locators)
    assert (getattr(a, "content", None), str(no)) == ("a", "none")
    assert str(lost) == "the source attic returned NoneType for attic:lost"


def test_an_unknown_name_gets_the_nearest_known_ones() -> None:
    found = Registry()
    for name, hint in (
        ("fiel", "did you mean file?"),
        ("ENV", "did you mean env"),
        ("xyz", "known sources: "),
    ):
        with pytest.raises(
            ReferenceSyntaxError, match=f"there is no source named {name}"
        ) as caught:
            found.source_info(name)
        assert caught.value.remedy.startswith(hint)
    with pytest.raises(ReferenceSyntaxError) as caught:
        found.source_info("x" * 60)
    assert "xxx" not in f"{caught.value} {caught.value.remedy}"


@pytest.mark.parametrize(
    ("module", "may_be_elsewhere"),
    [("_frozen_importlib_external", False), ("importlib_metadata", False), ("zoo", True)],
)
def test_only_a_finder_of_distributions_that_searches_elsewhere_costs_a_look(
    monkeypatch: pytest.MonkeyPatch, module: str, *, may_be_elsewhere: bool
) -> None:
    """Python's own and its backport's search `sys.path`, whose folders are read sooner."""
    finder = type("Finder", (), {"__module__": module, "find_distributions": list})
    monkeypatch.setattr("sys.meta_path", [finder()])
    monkeypatch.setattr("sys.path", [])
    assert are_declared() is may_be_elsewhere
