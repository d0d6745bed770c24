"""`sealpipe-hook NAME [--tag TAG ...] [--link-host HOST ...] FILE ...`: what pre-commit runs."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from typing import NamedTuple

from sealpipe_plugins.precommit.rules import HOOKS, compile_rules
from sealpipe_plugins.precommit.scanning import scan

CLEAN, MATCHED, ERROR = 0, 1, 2
"""Exit codes; pre-commit only tells the first from the others."""

USAGE = f"""\
usage: sealpipe-hook NAME [--tag TAG ...] [--link-host HOST ...] [--] FILE ...

Finds what must not be committed. Prints file, line and rule, never the match itself.
NAME is one of {", ".join(HOOKS)}. --tag: only credentials of that service; --link-host: only links to that host
(with no port, to any). A line that contains `sealpipe: allow` is skipped.
Options come before the files. An existing file is read as a file, even if its name looks like an option.
Exit code: 0 nothing found, 1 something found, 2 wrong usage or a file that cannot be read.
"""


class _UsageError(Exception):
    pass


class CommandLine(NamedTuple):
    """A command line, read."""

    hook: str
    tags: list[str]
    hosts: list[str]
    files: list[str]


def main() -> None:
    """The console script."""
    sys.exit(run(sys.argv[1:]))


def run(words: Sequence[str]) -> int:
    """Run a command line to its exit code."""
    # As the last of one or two words: among files it is one that is gone, and help would let the others pass.
    if words and words[-1] in ("-h", "--help") and len(words) <= 2 and not _is_file(words[-1]):
        sys.stdout.write(USAGE)
        return CLEAN
    try:
        arguments = parse_arguments(words)
    except _UsageError as error:
        sys.stderr.write(f"sealpipe-hook: {error}\n{USAGE}")
        return ERROR
    rules = compile_rules(arguments.hook, tags=arguments.tags, hosts=arguments.hosts)
    code, advice = CLEAN, {}
    for file in arguments.files:
        try:
            for match in scan(file, rules):
                _print_line(f"{_escape_name(file)}:{match.line} {match.rule.name}")
                advice[match.rule.name] = match.rule.advice
                code = max(code, MATCHED)
        except OSError as error:
            _print_line(f"{_escape_name(file)}: cannot be read: {error.strerror}")
            code = ERROR
    for name, what in advice.items():
        _print_line(f"{name}: {what}")
    if advice:
        _print_line("to keep a line, add `sealpipe: allow` to it")
    return code


def parse_arguments(words: Sequence[str]) -> CommandLine:
    """The words of a command line, by hand: argparse would be half of what the hook costs.

    pre-commit puts names of files behind what a user wants, and anybody may commit a file called `--tag=zz`. So what is
    there is a file, and what follows a file is one, too.
    """
    if not words or words[0] not in HOOKS:
        raise _UsageError("the first argument is not the name of a hook")
    options: dict[str, list[str]] = {"--tag": [], "--link-host": []}
    remaining = list(words[1:])
    while remaining and remaining[0].startswith("-") and not _is_file(remaining[0]):
        word = remaining.pop(0)
        if word == "--":
            break
        name, equals, value = word.partition("=")
        if name not in options:
            raise _UsageError("unknown option")  # it may be a secret: it is not repeated
        options[name].append(value if equals or not remaining else remaining.pop(0))
    if not all(re.fullmatch("[a-z][a-z0-9]{0,15}", tag) for tag in options["--tag"]):
        raise _UsageError("--tag is a short word in lower case")
    if not all(re.fullmatch(r"[A-Za-z0-9.-]{1,253}", host) for host in options["--link-host"]):
        raise _UsageError("--link-host is a host's name")
    return CommandLine(words[0], options["--tag"], options["--link-host"], list(dict.fromkeys(remaining)))


def _is_file(word: str) -> bool:
    return os.path.lexists(word)  # a file, a folder, a link that leads nowhere


def _print_line(line: str) -> None:
    from sealpipe.ci_systems import escape_line  # imported only for a finding: each commit waits for the start

    os.write(1, f"{escape_line(line)}\n".encode("utf-8", "backslashreplace"))


def _escape_name(name: str) -> str:
    """A file's name as one line: it may hold anything."""
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in name)


if __name__ == "__main__":
    main()
