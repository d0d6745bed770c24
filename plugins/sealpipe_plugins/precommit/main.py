"""`sealpipe-hook NAME [--tag TAG ...] [--link-host HOST ...] FILE ...`: the program that pre-commit
runs.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from typing import NamedTuple

from sealpipe_plugins.precommit.rules import HOOKS, compile_rules
from sealpipe_plugins.precommit.scanning import is_folder, scan

CLEAN, MATCHED, ERROR = 0, 1, 2
"""Exit codes; pre-commit distinguishes only zero from the others."""

USAGE = f"""\
usage: sealpipe-hook NAME [--tag TAG ...] [--link-host HOST ...] [--] FILE ...

Finds what must not be committed. Prints file, line and rule, never the match itself.
NAME is one of {", ".join(HOOKS)}. --tag: only credentials of that service; --link-host: \
only links to that host
(with no port, to any). A line that contains `sealpipe: allow` is skipped.
Options come before the files. An existing file is read as a file, even if its name looks like \
an option.
Exit code: 0 nothing found, 1 something found, 2 wrong usage or a file that cannot be read.
"""


class _UsageError(Exception):
    pass


class CommandLine(NamedTuple):
    """A parsed command line."""

    hook: str
    tags: list[str]
    hosts: list[str]
    files: list[str]


def main() -> None:
    """The entry point of the console script."""
    sys.exit(run(sys.argv[1:]))


def run(argv: Sequence[str]) -> int:
    """Run a command line and return its exit code."""
    # Only as the last of one or two words: among file names, `--help` is a deleted file, and
    # printing help would let the other files pass.
    if argv and argv[-1] in ("-h", "--help") and len(argv) <= 2 and not _is_file(argv[-1]):
        sys.stdout.write(USAGE)
        return CLEAN
    try:
        arguments = parse_arguments(argv)
    except _UsageError as error:
        sys.stderr.write(f"sealpipe-hook: {error}\n{USAGE}")
        return ERROR
    rules = compile_rules(arguments.hook, tags=arguments.tags, hosts=arguments.hosts)
    code, advice = CLEAN, {}
    folders = list(filter(is_folder, arguments.files))
    for folder in folders:
        _print_line(f"{_escape_name(folder)}: is a folder, and was not scanned: name its files")
    if folders and len(folders) == len(arguments.files):
        return ERROR
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


def parse_arguments(arguments: Sequence[str]) -> CommandLine:
    """Parse the command line without argparse, which would take half of the hook's run time.

    pre-commit appends file names to the configured arguments, and anyone may commit a file called
    `--tag=zz`. So an argument that exists is a file, and so are all arguments after a file.
    """
    if not arguments or arguments[0] not in HOOKS:
        raise _UsageError("the first argument is not the name of a hook")
    options: dict[str, list[str]] = {"--tag": [], "--link-host": []}
    remaining = list(arguments[1:])
    while remaining and remaining[0].startswith("-") and not _is_file(remaining[0]):
        word = remaining.pop(0)
        if word == "--":
            break
        name, equals, value = word.partition("=")
        if name not in options:
            raise _UsageError("unknown option")  # not repeated: it may be a secret
        options[name].append(value if equals or not remaining else remaining.pop(0))
    if not all(re.fullmatch("[a-z][a-z0-9]{0,15}", tag) for tag in options["--tag"]):
        raise _UsageError("--tag must be a short lower-case word")
    if not all(re.fullmatch(r"[A-Za-z0-9.-]{1,253}", host) for host in options["--link-host"]):
        raise _UsageError("--link-host must be a host name")
    return CommandLine(
        arguments[0], options["--tag"], options["--link-host"], list(dict.fromkeys(remaining))
    )


def _is_file(word: str) -> bool:
    return os.path.lexists(word)  # a file, a folder or a dangling link


def _print_line(line: str) -> None:
    from sealpipe.ci_systems import escape_line  # only for a finding: start-up delays every commit

    os.write(1, f"{escape_line(line)}\n".encode("utf-8", "backslashreplace"))


def _escape_name(name: str) -> str:
    """Escape a file name to one line: it may contain any character."""
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in name)


if __name__ == "__main__":
    main()
