"""What the command line tells about itself; none of it holds anything of the environment."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Iterator

import click
import pytest

from sealpipe.cli.main import cli
from sealpipe.command_settings import COMMANDS
from sealpipe.settings import GLOBAL
from sealpipe_rehearsal.running_service import RunningService
from support.parts import program
from support.terminal import Terminal


def commands_of(group: click.Group, path: str = "") -> Iterator[str]:
    """Every command below a group, by its words."""
    yield path
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        words = f"{path} {name}".strip()
        if isinstance(command, click.Group):
            yield from commands_of(command, words)
        else:
            yield words


EVERY = tuple(commands_of(cli))


def test_the_version_is_the_packages(bare: Terminal) -> None:
    expected = f"sealpipe {importlib.metadata.version('sealpipe')}\n"
    assert bare.sealpipe("--version").out == expected
    assert bare.run(["sealpipe", "--version"]).out == expected
    assert bare.sealpipe("--version", SEALPIPE_OUTPUT="json").out == expected


@pytest.mark.parametrize("command", EVERY)
def test_help_goes_to_stdout_holds_nothing_of_the_environment_and_sends_nothing(
    user: Terminal, service: RunningService, command: str
) -> None:
    every = {setting.get_variable() for setting in GLOBAL}
    every |= {
        setting.get_variable(name) for name, settings in COMMANDS.items() for setting in settings
    }
    done = user.sealpipe(
        *command.split(), "--help", **dict.fromkeys(every, "c4nary"), DB_PASSWORD="c4nary"
    )
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"Usage: sealpipe {command}".rstrip())
    assert "c4nary" not in done.out
    assert user.sealpipe(*command.split(), "-h") == done
    assert service.seen() == []
    takes_a_secret = {"--api-key", "--api-key-previous", "--passcode", "--password", "--value"}
    assert not takes_a_secret & set(re.findall(r"--[a-z-]+", done.out))


@pytest.mark.parametrize(
    "words", [("shares", "show"), ("shares", "expire"), ("requests", "show")], ids=" ".join
)
def test_what_begins_with_h_is_a_code_and_no_help(
    user: Terminal, service: RunningService, words: tuple[str, str]
) -> None:
    """A script whose share is called `-hX` would be shown help, exit 0, and leave the share
    alive.
    """
    for code in (
        ["-hX4", "--output", "json"],
        ["--output", "json", "-hX4"],
        ["--", "-h"],
        ["--", "--help"],
    ):
        service.reset()
        assert (
            user.sealpipe(*words, *code, SEALPIPE_API_KEY=service.create_key().reveal()).code == 6
        )
        asked = {
            seen.target.split("/")[3] for seen in service.seen() if seen.target.count("/") == 3
        }
        assert asked == {each for each in code if each.startswith("-h") or each == "--help"}


# -- completion ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shell", "holds"),
    [
        ("bash", "complete -o nosort -F"),
        ("zsh", "#compdef sealpipe"),
        ("fish", "complete --command sealpipe --no-files"),
    ],
)
def test_each_shells_script_is_printed(bare: Terminal, shell: str, holds: str) -> None:
    done = bare.sealpipe("completion", shell)
    assert (done.code, done.err) == (0, "")
    assert holds in done.out


@pytest.mark.parametrize(
    ("line", "offers"),
    [
        ("sealpipe sh", {"share", "shares"}),
        ("sealpipe shares ", {"list", "show", "expire", "log", "wait"}),
        ("sealpipe share --expires-", {"--expires-in", "--expires-at"}),
        ("sealpipe share --custody ", {"auto", "require", "off"}),
        ("sealpipe rehearsal ", {"serve", "key", "account", "webhook", "open", "answer"}),
    ],
)
def test_bash_completes_with_the_script_that_we_print(
    bare: Terminal, line: str, offers: set[str]
) -> None:
    ask = """
        eval "$(sealpipe completion bash)"
        COMP_LINE=$1 COMP_POINT=${#1}
        COMP_WORDS=($1); [[ $1 == *' ' ]] && COMP_WORDS+=('')
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        function_name=$(complete -p sealpipe | sed -E 's/.*-F ([^ ]+) .*/\\1/')
        "$function_name" sealpipe "${COMP_WORDS[COMP_CWORD]}" ''
        printf '%s\\n' "${COMPREPLY[@]}"
    """
    done = bare.run([program("bash"), "--norc", "-c", ask, "bash", line])
    assert (done.code, done.err) == (0, "")
    assert set(done.out.split()) == offers
