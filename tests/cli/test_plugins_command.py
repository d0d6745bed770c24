"""`sealpipe plugins`: what there is, from where, what it needs, and what is broken."""

from __future__ import annotations

import textwrap

import pytest

from support.terminal import Terminal

BUILT_IN = {"env", "file", "stdin", "text", "prompt", "dotenv", "gen"}
HOOK = """
from sealpipe.plugin import SourceInfo, hookimpl

@hookimpl
def sealpipe_sources(register):
    register(SourceInfo("attic", "boxes\\x1b[2J in the attic", "attic_source:It", needs=("no-such-package-here>=2",),
                        params={"level": "how far down"}))
"""


@pytest.fixture
def with_plugins(bare: Terminal) -> Terminal:
    """A terminal whose Python has two distributions more: one whole, one broken."""
    for name, code in {"attic": HOOK, "cellar": "raise OSError('c4nary')"}.items():
        bare.file(f"site/{name}.py", textwrap.dedent(code))
        bare.file(f"site/{name}_plugin-1.0.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}-plugin\n")
        bare.file(f"site/{name}_plugin-1.0.dist-info/entry_points.txt", f"[sealpipe]\n{name} = {name}\n")
    source = "import sys\nsys.stderr.write('imported')\nfrom sealpipe.plugin import *\n"
    source += "class It(Source):\n    def fetch(self, locator):\n        return Document('x')\n"
    bare.file("site/attic_source.py", source)
    bare.environ["PYTHONPATH"] = str(bare.here / "site")
    return bare


def test_the_built_in_ones_are_listed_one_a_line(bare: Terminal) -> None:
    done = bare.sealpipe("plugins")
    assert (done.code, done.err) == (0, "")
    rows = [line.split(maxsplit=2) for line in done.out.splitlines()]
    assert {row[1] for row in rows} >= BUILT_IN
    assert {("source", name) for name in BUILT_IN} <= {(row[0], row[1]) for row in rows}
    assert all(row[2].startswith("built in") for row in rows if row[1] in BUILT_IN)


def test_all_tells_needs_and_parameters_too(with_plugins: Terminal) -> None:
    done = with_plugins.sealpipe("plugins", "--all")
    assert "    ?length=  characters of a password" in done.out
    assert "    ?decode=  encoding of the value at the source" in done.out
    assert "    ?level=  how far down" in done.out
    assert "    needs no-such-package-here>=2\n" in done.out
    assert "    of the plugin attic\n" in done.out
    assert done.out.count("of the plugin") == 1
    assert "?length=" not in with_plugins.sealpipe("plugins").out


def test_those_of_other_distributions_are_found_and_not_imported(with_plugins: Terminal) -> None:
    done = with_plugins.sealpipe("plugins")
    (line,) = [line for line in done.out.splitlines() if " attic " in line]
    assert "attic-plugin" in line
    assert "(not installed: no-such-package-here>=2; pip install 'no-such-package-here>=2')" in line
    assert "\x1b" not in done.out
    assert "imported" not in done.err


def test_a_broken_one_is_told_by_name_and_type_and_does_not_break_the_list(with_plugins: Terminal) -> None:
    done = with_plugins.sealpipe("plugins")
    assert done.code == 0
    assert done.err == "sealpipe: the plugin cellar could not be loaded (OSError)\n"
    told = with_plugins.sealpipe("plugins", "--output", "json").json
    assert told["problems"] == [{"plugin": "cellar", "problem": "could not be loaded (OSError)"}]


def test_json_has_all_that_there_is_to_know(with_plugins: Terminal) -> None:
    rows = {row["name"]: row for row in with_plugins.sealpipe("plugins", "--output", "json").json["plugins"]}
    assert rows.keys() >= BUILT_IN | {"attic"}
    assert rows["attic"] == {
        "kind": "source",
        "name": "attic",
        "summary": "boxes\x1b[2J in the attic",
        "from": "attic-plugin",
        "plugin": "attic",
        "needs": ["no-such-package-here>=2"],
        "missing": ["no-such-package-here>=2"],
        "install": "pip install 'no-such-package-here>=2'",
        "params": {"level": "how far down"},
        "capabilities": [],
        "format": None,
    }
    assert rows["dotenv"]["format"] == "dotenv"
    assert rows["gen"]["from"] == "built in"


def test_a_table_of_the_config_file_named_plugins_is_not_this_commands(bare: Terminal) -> None:
    config = bare.file("config.toml", "[plugins]\nvault = 'somebody'\n")
    assert bare.sealpipe("plugins", SEALPIPE_CONFIG=str(config)).code == 0
