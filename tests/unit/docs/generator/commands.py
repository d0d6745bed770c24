"""The pages of docs/reference/commands: one for each command of the first level, with all below
it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from sealpipe_plugins.precommit.main import ERROR, MATCHED, USAGE
from unit.docs.generator import examples
from unit.docs.generator.exits import list_exit_codes
from unit.docs.generator.markdown import NOTE, block, code, escape, item, slug, table, wrap
from unit.docs.generator.tree import Node, Option, leaves, root, usage
from unit.docs.generator.values import METAVARS, describe_arguments

HOW_TO: Mapping[str, tuple[str, ...]] = {
    "audit": ("products/audit.md",),
    "batch": ("tutorial/first-batch.md", "how-to/run-a-batch.md", "reference/batch-file.md"),
    "collect": ("how-to/collect.md",),
    "completion": ("how-to/completion.md",),
    "copy": ("how-to/copy.md", "reference/sinks.md"),
    "custody": ("how-to/rotate-a-key.md", "how-to/your-own-service.md"),
    "doctor": ("how-to/troubleshoot.md",),
    "mcp": ("how-to/assistants.md", "reference/assistant-tools.md"),
    "plugins": ("reference/plugins.md",),
    "read": ("how-to/run-a-command.md", "reference/references.md"),
    "rehearsal": ("how-to/rehearse.md", "reference/rehearsal.md"),
    "rehearse": ("how-to/rehearse.md",),
    "request": ("how-to/request-secrets.md",),
    "requests": ("how-to/manage-requests.md",),
    "resume": ("explanation/resume.md",),
    "run": ("how-to/run-a-command.md",),
    "server": ("how-to/your-own-service.md",),
    "share": ("tutorial/first-share.md", "how-to/send-a-link.md"),
    "shares": ("how-to/after-an-incident.md",),
    "stats": ("explanation/what-the-service-sees.md",),
    "tools": ("reference/rehearsal-mcp.md",),
    "unseal": ("how-to/ci/github.md", "how-to/ci/gitlab.md"),
    "webhooks": ("how-to/verify-webhooks.md",),
}
"""What to read first, by the first word of the command: paths in docs/."""


def index() -> str:
    """Return the list of all commands."""
    hook = (
        "[`sealpipe-hook`](commands/sealpipe-hook.md)",
        "Find what must not be committed; pre-commit runs it.",
    )
    return table(
        ("command", "does"), [*(_row(node, f"commands/{_file(node)}") for node in leaves()), hook]
    )


def _file(node: Node) -> str:
    return f"{node.name.split()[1]}.md"


def _row(node: Node, page: str) -> tuple[str, str]:
    anchor = f"#{slug(node.name)}" if len(node.name.split()) > 2 else ""
    return f"[`{node.name}`]({page}{anchor})", escape(node.summary)


def global_options() -> str:
    """Return the options that are not of one command."""
    found = {
        option.setting.name: option
        for node in root().walk()
        for option in node.options
        if not option.table
    }
    return "".join(_option(option) for option in found.values())


def values() -> str:
    """Return what the words in capitals stand for."""
    used = {
        option.setting.metavar
        for node in root().walk()
        for option in node.options
        if _takes_metavar(option)
    }
    return table(("word", "is"), ((code(name), METAVARS[name]) for name in sorted(used)))


def _takes_metavar(option: Option) -> bool:
    return not (option.setting.flag or option.setting.choices)


def pages(titles: Mapping[str, str]) -> dict[str, str]:
    """Return each page by its path in docs/; `titles` are those of the pages that they link to."""
    made = {f"reference/commands/{_file(node)}": _page(node, titles) for node in root().children}
    return made | {"reference/commands/sealpipe-hook.md": _hook()}


def _hook() -> str:
    """The program that pre-commit runs has no click and no settings: its help says all."""
    guides = {
        "how-to/scan-commits.md": "Keep links and credentials out of commits",
        "products/pre-commit.md": "Rules",
    }
    codes = (
        f"0 (nothing found), {MATCHED} (something found), {ERROR} (wrong usage, or a file that "
        "cannot be read)"
    )
    parts = [
        "# sealpipe-hook\n",
        NOTE,
        (
            "Find links, credentials and seeds that must not be committed: the program that "
            "pre-commit runs.\n"
        ),
        f"Guide: {' · '.join(f'[{title}](../../{page})' for page, title in guides.items())}\n",
        block(USAGE),
        f"**Exit codes:** {codes}\n",
    ]
    return "\n".join(parts)


def _page(node: Node, titles: Mapping[str, str]) -> str:
    links = " · ".join(f"[{titles[page]}](../../{page})" for page in HOW_TO[node.name.split()[1]])
    below = [child for child in node.walk() if child is not node and child.runs]
    listed = [table(("command", "does"), (_row(child, "") for child in below))] if below else []
    text = "\n".join([f"# {node.name}\n", NOTE, _body(node, f"Guide: {links}\n"), *listed])
    return text + "".join(f"\n## {child.name}\n\n{_body(child)}" for child in below)


def _body(node: Node, guide: str = "") -> str:
    parts = [block(usage(node)), *_help(node), *([guide] if guide else [])]
    if node.runs:
        parts += [*_arguments(node), *_options(node), *_example(node), *_exits(node)]
    return "\n".join(parts)


def _help(node: Node) -> Iterator[str]:
    for text in node.help.split("\n\n"):
        is_command = text.startswith("sealpipe ")
        yield block(text, "sh") if is_command else f"{wrap(escape(text))}\n"
    epilog = node.command.epilog
    if epilog:
        yield f"{wrap(escape(epilog))}\n"


def _arguments(node: Node) -> Iterator[str]:
    rows = describe_arguments(node)
    if rows:
        yield "**Arguments**\n"
        yield "".join(item(f"{code(name)}: {about}.\n") for name, about in rows)


def _options(node: Node) -> Iterator[str]:
    own = [option for option in node.options if option.table]
    shared = [option.setting.option for option in node.options if not option.table]
    if own:
        yield "**Options**\n"
        yield "".join(map(_option, own))
    if shared:
        also = f"{'Also' if own else 'Options'}: {', '.join(map(code, shared))}"
        yield f"{wrap(f'{also} ([of many commands](../commands.md#options-of-many-commands)).')}\n"


def _option(option: Option) -> str:
    setting = option.setting
    kind = "" if setting.flag else f" {'|'.join(setting.choices) or setting.metavar}"
    names = ", ".join(filter(None, (code(setting.short), code(setting.option + kind))))
    default = f" Default: {code(setting.default)}." if setting.default else ""
    variable = code(setting.get_variable(option.table)) + (
        ", one per line" if setting.multiple else ""
    )
    key = code(f"{option.table}.{setting.name}".strip("."))
    about = wrap(f"{names}: {escape(setting.help)}{default}", "")
    return item(f"{about}\\\n{wrap(f'variable {variable}; config file {key}')}\n")


def _example(node: Node) -> Iterator[str]:
    text = examples.show(node.name.removeprefix("sealpipe "))
    if text:
        yield "**Example**\n"
        yield block(text, "console")


def _exits(node: Node) -> Iterator[str]:
    codes = ", ".join(map(str, list_exit_codes(node)))
    yield f"{wrap(f'**Exit codes:** {codes} ([what they mean](../exit-codes.md))')}\n"


def titles_of(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the title of each page."""
    found = {page: re.search(r"^# (.+)$", text, re.MULTILINE) for page, text in texts.items()}
    return {page: title[1] for page, title in found.items() if title}
