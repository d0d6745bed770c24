"""Commands that plugins add to the command line."""

from __future__ import annotations

import re

import pytest

from support.distributions import Site
from support.terminal import Terminal

CANARY = "c4nary-9b2c"

GREETER = f"""
import re
import sys
import click
from sealpipe.plugin import SecretNotFoundError, hookimpl

sys.stderr.write("imported\\n")

@click.command()
@click.argument("name", required=False)
def greet(name):
    "Greet somebody.  Kindly."
    if name == "nobody":
        raise click.UsageError("there is nobody to greet")
    if name == "missing":
        raise SecretNotFoundError("they are not there", remedy="wait")
    if name == "plain":
        raise click.ClickException("the greeter is \\x1b[2J tired")
    if name == "fails":
        raise RuntimeError("{CANARY}")
    if name == "seven":
        raise SystemExit(7)
    click.echo(f"hello {{name}}")

@click.group()
def people():
    "Those who are greeted."

people.add_command(greet)

@hookimpl
def sealpipe_commands(group):
    group.add_command(greet)
    group.add_command(people)
"""
BROKEN = f"""
from sealpipe.plugin import hookimpl

@hookimpl
def sealpipe_commands(group):
    raise RuntimeError("{CANARY}")
"""
THIEF = """
import click
from sealpipe.plugin import hookimpl

@hookimpl
def sealpipe_commands(group):
    group.add_command(click.Command("share", callback=lambda: click.echo("mine")))
"""


@pytest.fixture
def with_greeter(bare: Terminal, site: Site) -> Terminal:
    site.install("greeter", GREETER)
    bare.environ["PYTHONPATH"] = site.path
    return bare


def test_a_command_of_a_plugin_is_found_by_its_name(with_greeter: Terminal) -> None:
    done = with_greeter.sealpipe("greet", "ada")
    assert (done.code, done.out) == (0, "hello ada\n")
    assert with_greeter.sealpipe("people", "greet", "bob").out == "hello bob\n"
    usage = with_greeter.sealpipe("greet", "--help")
    assert usage.code == 0
    assert usage.out.startswith("Usage: sealpipe greet")


@pytest.mark.parametrize(
    "words", [["--help"], ["--version"], ["plugins", "--help"], ["completion", "bash"], ["custody"]]
)
def test_nothing_is_looked_up_for_what_is_ours(with_greeter: Terminal, words: list[str]) -> None:
    done = with_greeter.sealpipe(*words)
    assert "imported" not in done.err
    assert "greet" not in done.out


@pytest.mark.parametrize(
    ("name", "code", "told"),
    [
        ("nobody", 2, "sealpipe: there is nobody to greet"),
        ("missing", 14, "sealpipe: they are not there\n  wait\n"),
        ("plain", 14, "sealpipe: the greeter is \\x1b[2J tired\n"),
        ("fails", 14, "sealpipe: the plugin command greet raised an unexpected RuntimeError\n"),
        ("seven", 7, ""),
    ],
)
def test_a_plugin_commands_error_is_reported_like_ours(
    with_greeter: Terminal, name: str, code: int, told: str
) -> None:
    done = with_greeter.sealpipe("greet", name)
    assert (done.code, done.out) == (code, "")
    assert told in done.err
    assert CANARY not in done.err
    assert "bug of ours" not in done.err


def test_they_are_listed_with_the_plugins(with_greeter: Terminal) -> None:
    done = with_greeter.sealpipe("plugins")
    rows = [line.split(maxsplit=4) for line in done.out.splitlines() if line.startswith("command")]
    assert [(row[1], row[3], row[4]) for row in rows] == [
        ("greet", "1.0", "Greet somebody."),
        ("people", "1.0", "Those who are greeted."),
    ]
    listed = with_greeter.sealpipe("plugins", "--output", "json").json["plugins"]
    assert [each["name"] for each in listed if each["kind"] == "command"] == ["greet", "people"]


def test_an_unknown_command_is_one_all_the_same(with_greeter: Terminal) -> None:
    done = with_greeter.sealpipe("gret")
    assert (done.code, done.out) == (2, "")
    assert "No such command" in done.err


def test_a_broken_plugin_is_reported_and_affects_no_other(
    with_greeter: Terminal, site: Site
) -> None:
    site.install("broken", BROKEN)
    site.install("worse", f"raise OSError('{CANARY}')")
    assert with_greeter.sealpipe("greet", "ada").out == "hello ada\n"
    done = with_greeter.sealpipe("nosuch")
    assert done.code == 2
    for told in (
        r"the plugin broken could not add its commands \(RuntimeError at \w+\.py:6\)\n",
        r"the plugin worse could not be loaded \(OSError at \w+\.py:1\)\n",
    ):
        assert re.search(f"sealpipe: {told}", done.err)
    assert CANARY not in done.err


def test_names_that_are_taken_stay_with_their_owners(with_greeter: Terminal, site: Site) -> None:
    site.install("thief", THIEF)
    site.install("zeta", GREETER)
    assert "mine" not in with_greeter.sealpipe("share", "--help").out
    done = with_greeter.sealpipe("plugins")
    assert (
        "sealpipe: the plugin thief has a command named share, which already exists\n" in done.err
    )
    assert (
        "sealpipe: the plugin zeta has a command named people, which already exists\n" in done.err
    )


def test_a_plugin_that_is_not_allowed_adds_none(with_greeter: Terminal) -> None:
    config = str(with_greeter.file("config.toml", "allow_plugins = []\n"))
    done = with_greeter.sealpipe("greet", "ada", SEALPIPE_CONFIG=config)
    assert (done.code, done.out) == (2, "")
    assert "imported" not in done.err
    assert "the plugin greeter is not listed in allow_plugins" in done.err
