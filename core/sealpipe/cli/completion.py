"""Completion for bash, zsh and fish: the answers to their scripts.

Answers come from this machine alone: option names, schemes, the stores and checks of the user's
config file, receipts, the file names of the outbox, and records of shares and requests. Nothing is
decrypted, no plugin is loaded, and the credential is not read. A value with a control character is
left out, and the shell quotes all others: no name can run anything.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click
from click.shell_completion import CompletionItem, ShellComplete

from sealpipe.cli import render
from sealpipe.cli.command import AnyType
from sealpipe.config import Config
from sealpipe.state.files import find_state_directory
from sealpipe.wire.encoding import encoded

if TYPE_CHECKING:  # a key pressed waits for every import
    from sealpipe.plugin import Info

REQUESTED: Final = "_SEALPIPE_COMPLETE"
"""Set by the scripts to the shell's name; with `_LINE`, the line up to the cursor, and `_WORD`,
what bash replaces.
"""

_MOST: Final = 200
"""Maximum number of files that one answer reads."""
_END: Final = "\ufdd0"
"""Stands for the cursor in a line: no text contains it."""
_KINDS: Final = {"shares": "share", "requests": "request", "collect": "request"}
_MODULES: Final = {"source": "sources", "sink": "sinks", "channel": "channels"}


class _Answer(NamedTuple):
    """What a shell offers.

    `kind` says how: `words` (then a space), `open` (then none), `names`, `file` or `dir`.
    """

    kind: str
    items: tuple[CompletionItem[str], ...] = ()


def print_answer(
    cli: click.Group, commands: Mapping[str, tuple[str, str]], environ: Mapping[str, str]
) -> int:
    """Print the answer to a script: the kind, then a value in each line, with a tab and its help.

    Returns 0.
    """
    words = split_line(environ.get(f"{REQUESTED}_LINE", ""))[1:]
    incomplete = words[-1] if words else ""
    with suppress(Exception):  # a person is typing: whatever is wrong shows when the command runs
        kind, items = _complete(cli, commands, words[:-1], incomplete)
        shown = [
            each for each in items if each.value.isprintable() and each.value.startswith(incomplete)
        ]
        # bash replaces only what follows the last : or =
        replaced = environ.get(f"{REQUESTED}_WORD", incomplete)
        cut = len(incomplete) - len(replaced) if incomplete.endswith(replaced) else 0
        lines = [f"{each.value[cut:]}\t{_shorten(each.help or '')}" for each in shown]
        render.print_result("\n".join([kind, *lines]) + "\n")
    return 0


def split_line(line: str) -> list[str]:
    """Split a line as a shell does, up to the cursor at its end.

    The last word is incomplete, and may be empty.
    """
    lexer = shlex.shlex(line + _END, posix=True, punctuation_chars=False)
    lexer.whitespace_split, lexer.commenters = True, ""
    words: list[str] = []
    try:
        words += lexer
    except ValueError:  # a quote that is not closed yet
        words.append(lexer.token)
    return [word.replace(_END, "") for word in words]


def _complete(
    cli: click.Group, commands: Mapping[str, tuple[str, str]], words: list[str], incomplete: str
) -> _Answer:
    if all(word.startswith("-") for word in words) and not incomplete.startswith("-"):
        items = (CompletionItem(name, help=summary) for name, (_, summary) in commands.items())
        return _Answer("words", tuple(items))
    command: click.Command = cli
    context = click.Context(cli, info_name="sealpipe", resilient_parsing=True)
    path: list[str] = []
    for word in words:
        if not isinstance(command, click.Group):
            break
        if word.startswith("-"):
            continue
        if command is cli and word not in commands:
            return _Answer("words")  # a plugin's command: its code is not loaded for this
        found = command.get_command(context, word)
        if found is None:
            return _Answer("words")
        command = found
        path.append(word)
    chosen: list[str] = []
    for parameter in command.params:
        complete = _find_completion(path, parameter)
        if complete is not None:
            parameter.type = _Completed(parameter.type, complete, chosen)
    option, equals, _ = incomplete.partition("=")
    prefix = option + equals if equals and option.startswith("--") else ""
    completions = tuple(
        ShellComplete(cli, {}, "sealpipe", REQUESTED).get_completions(words, incomplete)
    )
    if any(each.type in ("file", "dir") for each in completions):
        return _Answer(completions[0].type)
    shown = tuple(CompletionItem(prefix + each.value, help=each.help) for each in completions)
    return _Answer(chosen[0] if chosen else "words", shown)


class _Completed(AnyType):
    """A parameter's type with values that this machine knows.

    `chosen` gets the kind of the answer.
    """

    name = "text"

    def __init__(self, inner: Any, complete: Completion, chosen: list[str]) -> None:
        self._inner, self._complete, self._chosen = inner, complete, chosen

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return self._inner.convert(value, param, ctx)

    def split_envvar_value(self, rv: str) -> Any:
        return self._inner.split_envvar_value(rv)

    def shell_complete(
        self,
        ctx: click.Context,
        param: click.Parameter,  # noqa: ARG002 - click's signature
        incomplete: str,
    ) -> list[CompletionItem[str]]:
        kind, items = self._complete(ctx, incomplete)
        found = [each for each in items if each.value.startswith(incomplete)]
        if not found and kind == "names":
            return [CompletionItem(incomplete, type="file")]  # perhaps a receipt in another folder
        self._chosen.append(kind)
        return found


Completion = Callable[[click.Context, str], _Answer]


def _find_completion(path: list[str], parameter: click.Parameter) -> Completion | None:
    """Return what completes a parameter, by its metavar or name; None if nothing does."""
    metavar = str(getattr(parameter, "metavar", None) or parameter.name or "").upper().strip("[].")
    if isinstance(parameter, click.Option):
        if parameter.name == "check":
            return _complete_check
        return _BY_METAVAR.get(str(parameter.metavar))
    if path == ["resume"]:
        return _complete_entry
    if path == ["doctor"]:
        return _complete_name
    if path in (["share"], ["copy"]):
        return _BY_METAVAR["[LABEL[:TYPE]=]REF"]
    kind = _KINDS.get(path[0]) if path else None
    if kind and metavar.startswith("CODE"):
        takes_receipts = "RECEIPT" in metavar
        return lambda ctx, incomplete: _complete_code(
            ctx, incomplete, kind, takes_receipts=takes_receipts
        )
    return _BY_METAVAR.get(metavar)


def _complete_path(kind: str) -> Completion:
    return lambda _, incomplete: _Answer(kind, (CompletionItem(incomplete, type=kind),))


def _complete_reference(kind: str, *, label: bool = False) -> Completion:
    """Complete the scheme or store of a reference; with `label`, after `LABEL=`."""

    def complete(_: click.Context, incomplete: str) -> _Answer:
        before, equals, name = incomplete.partition("=")
        prefix = before + equals if label and equals and ":" not in before else ""
        if ":" in (name if prefix else incomplete):
            return _Answer("open")
        found = [
            (f"{prefix}{each}:", summary) for each, summary in sorted(_list_names(kind).items())
        ]
        return _Answer(
            "open", tuple(CompletionItem(value, help=summary) for value, summary in found)
        )

    return complete


def _complete_key(ctx: click.Context, incomplete: str) -> _Answer:
    items = _complete_reference("source")(ctx, incomplete).items
    return _Answer("open", (CompletionItem("credential", help="the credential's own key"), *items))


def _complete_check(_: click.Context, incomplete: str) -> _Answer:  # noqa: ARG001 - as all of them
    return _Answer(
        "words", tuple(map(CompletionItem, sorted(filter(_is_plain, _read_config("checks")))))
    )


def _complete_name(_: click.Context, incomplete: str) -> _Answer:  # noqa: ARG001 - as all of them
    names = {name: text for kind in _MODULES for name, text in _list_names(kind).items()}
    return _Answer(
        "words", tuple(CompletionItem(name, help=text) for name, text in sorted(names.items()))
    )


def _complete_entry(ctx: click.Context, _: str) -> _Answer:
    files = _list_newest(_find_state_folder(ctx, "outbox"), ".sealed")
    names = [each.name.removesuffix(".sealed") for each in files]
    return _Answer("words", tuple(map(CompletionItem, filter(_is_plain, names))))


def _complete_code(
    ctx: click.Context, incomplete: str, kind: str, *, takes_receipts: bool
) -> _Answer:
    files = _list_newest(_find_state_folder(ctx, "created"), ".json")
    if kind == "request":  # one that another machine created has a ledger
        files += _list_newest(_find_state_folder(ctx, "requests"), ".jsonl")
    rows = [_read_code(each, kind) for each in files]
    known = dict(reversed(rows))
    codes = dict.fromkeys(code for code, _ in rows if code and not code.startswith("-"))
    # Commands decode it.
    items = [CompletionItem(encoded(code), help=known[code]) for code in codes]
    if takes_receipts:
        place = incomplete[: incomplete.rfind("/") + 1]
        receipts = _list_newest(Path(place or "."), ".json")
        items += [
            CompletionItem(place + each.name, help="receipt")
            for each in receipts
            if _is_receipt(each, kind)
        ]
    return _Answer("names" if takes_receipts else "words", tuple(items))


_BY_METAVAR: Final[Mapping[str, Completion]] = {
    "[LABEL[:TYPE]=]REF": _complete_reference("source", label=True),
    "NAME=REF": _complete_reference("source", label=True),
    "PROMPT=REF": _complete_reference("source", label=True),
    "REF": _complete_reference("source"),
    "credential|REF": _complete_key,
    "SINK": _complete_reference("sink"),
    "CHANNEL": _complete_reference("channel"),
    "FILE": _complete_path("file"),
    "DIR": _complete_path("dir"),
}


def _list_names(kind: str) -> dict[str, str]:
    """Return the built-in plugins of a kind and the configured stores, with their summaries."""
    names: dict[str, str] = {}

    def register(info: Info) -> None:
        names[info.name] = info.summary

    module = _MODULES[kind]
    getattr(import_module(f"sealpipe_plugins.{module}"), f"sealpipe_{module}")(register)
    stores = _read_config("stores").items()
    owners = {name: table.get("plugin") for name, table in stores if isinstance(table, Mapping)}
    own = {
        name: f"the store {name}, of {owner}" for name, owner in owners.items() if owner in names
    }
    return names | {name: text for name, text in own.items() if _is_plain(name)}


def _read_config(name: str) -> Mapping[str, Any]:
    """Return a table of the user's config file; empty if it has none, or is wrong."""
    table = _read_user_config().get(name)
    return table if isinstance(table, Mapping) else {}


def _read_user_config() -> Mapping[str, Any]:
    return Config(os.environ).usable_user


def _find_state_folder(ctx: click.Context, name: str) -> Path:
    setting = ctx.params.get("state_dir") or _read_user_config().get("state_dir")
    return find_state_directory(os.environ, setting) / name


def _list_newest(folder: Path, ending: str) -> list[os.DirEntry[str]]:
    """Return the regular files of a folder whose names end so, the newest first."""
    try:
        with os.scandir(folder) as entries:
            files = [each for each in entries if each.name.endswith(ending) and each.is_file()]
    except OSError:
        return []
    return sorted(files, key=lambda each: -each.stat().st_mtime)[:_MOST]


def _read_code(file: os.DirEntry[str], kind: str) -> tuple[str, str]:
    """Return the short code in a file's first line, and its name or title.

    Empty if it is of another kind.
    """
    with (
        suppress(OSError, ValueError, KeyError, TypeError),
        open(file.path, "rb") as lines,  # noqa: PTH123 - a path
    ):
        line = json.loads(lines.readline(64 * 1024))
        code = line["short_code"] if line["kind"] == kind else ""
        return (
            (code, str(line.get("name") or line.get("title") or kind))
            if isinstance(code, str)
            else ("", "")
        )
    return "", ""


def _is_receipt(file: os.DirEntry[str], kind: str) -> bool:
    with suppress(OSError), open(file.path, "rb") as content:  # noqa: PTH123 - a path
        return f'"kind": "{kind}"'.encode() in content.read(512)
    return False


def _is_plain(name: object) -> bool:
    return isinstance(name, str) and shlex.quote(name) == name


def _shorten(text: str) -> str:
    line = render.escape(" ".join(text.split()))
    return line if len(line) <= 70 else f"{line[:69]}…"
