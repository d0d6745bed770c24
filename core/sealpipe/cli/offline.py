"""Commands that never connect: `plugins`, `audit` and `custody`.

The search for plugin commands.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sealpipe.cli import render
from sealpipe.cli.command import OFFLINE, Command, SettingsGroup, make_registry, options, run_config
from sealpipe.cli.commands import COMMANDS
from sealpipe.errors import AuditError, CredentialError, PluginError, SealpipeError, UsageError

if TYPE_CHECKING:
    from sealpipe.registry import Registry

_HEAD = re.compile(r"[1-9][0-9]{0,18}:[0-9a-f]{64}")


@click.command(cls=Command)
@options("plugins", common=OFFLINE)
def plugins(**values: Any) -> None:
    """List installed plugins: built-in ones, and those of other distributions.

    Imports no backend and makes no connection; test one with `sealpipe doctor NAME`.
    """
    registry = make_registry()
    rows = [_describe_plugin(each) for each in registry.catalog.list_plugins()]
    rows += [
        _describe_command(name, each) for name, each in sorted(find_commands(registry).items())
    ]
    if values["output"] == "json":
        problems = [
            {"plugin": name, "problem": problem}
            for name, problem in registry.catalog.problems.items()
        ]
        render.print_json({"plugins": rows, "problems": problems})
        return
    width = max(len(row["name"]) for row in rows)
    lines = [line for row in rows for line in _format_plugin(row, width, details=values["all"])]
    lines += _list_common_parameters() if values["all"] else []
    render.print_lines(map(render.escape, lines))
    print_problems(registry)


def _describe_plugin(plugin: Any) -> dict[str, Any]:
    from sealpipe.doctor.plugins import find_missing_requirements
    from sealpipe.registry.safe_calls import format_install_command

    info, missing = plugin.info, find_missing_requirements(plugin.info.needs)
    return {
        "kind": plugin.kind,
        "name": info.name,
        "summary": info.summary,
        "from": f"{plugin.origin} {plugin.version}".strip() or "built in",
        "plugin": plugin.plugin or None,
        "needs": list(info.needs),
        "missing": missing,
        "install": format_install_command(info) if missing else None,
        "params": dict(getattr(info, "params", {})),
        "capabilities": list(info.capabilities),
        "format": getattr(info, "format", "") or None,
    }


def _describe_command(name: str, command: Any) -> dict[str, Any]:
    return {
        "kind": "command",
        "name": name,
        "summary": command.command.get_short_help_str(),
        "from": f"{command.origin} {command.version}".strip(),
        "plugin": command.plugin,
        "needs": [],
        "missing": [],
        "install": None,
        "params": {},
        "capabilities": [],
        "format": None,
    }


def _format_plugin(row: dict[str, Any], width: int, *, details: bool) -> list[str]:
    flaw = (
        f"  (not installed: {', '.join(row['missing'])}; {row['install']})"
        if row["missing"]
        else ""
    )
    lines = [f"{row['kind']:<7}  {row['name']:<{width}}  {row['from']}  {row['summary']}{flaw}"]
    if details:
        lines += [f"    of the plugin {row['plugin']}"] if row["plugin"] else []
        lines += [f"    needs {need}" for need in row["needs"]]
        lines += [f"    reads its documents as {row['format']}"] if row["format"] else []
        lines += [f"    ?{name}=  {text}" for name, text in row["params"].items()]
    return lines


def _list_common_parameters() -> list[str]:
    from sealpipe.reference import PARAMETERS

    return ["every source", *(f"    ?{name}=  {text}" for name, text in PARAMETERS.items())]


EXPECTED = (SealpipeError, click.UsageError, click.exceptions.Exit)
"""Exceptions that any command may raise, even one of a plugin."""


def find_commands(registry: Registry) -> dict[str, Any]:
    """Find all plugin commands, by name. Looks up all entry points."""
    from sealpipe.registry.commands import collect_commands

    commands = collect_commands(registry.catalog, click.Group, lambda name: name in COMMANDS)
    return {
        name: each for name, each in commands.items() if isinstance(each.command, click.Command)
    }


def find_command(name: str) -> click.Command | None:
    """Find a plugin command by name.

    If there is none, print the plugins that failed to load, and return None.
    """
    registry = make_registry()
    plugin_command = find_commands(registry).get(name)
    if plugin_command is not None:
        known: click.Command = plugin_command.command
        return known
    print_problems(registry)
    return None


def print_problems(registry: Registry) -> None:
    """Print a line for each plugin that failed to load, at least in part."""
    for name, problem in registry.catalog.problems.items():
        render.print_note(f"sealpipe: the plugin {render.escape(name)} {render.escape(problem)}")


def wrap_error(name: str, error: Exception) -> PluginError:
    """Wrap an error of a plugin command.

    With its message if that is meant for users, otherwise with its type.
    """
    if isinstance(error, click.ClickException):
        return PluginError(render.escape(error.format_message()))
    return PluginError(
        f"the plugin command {name} raised an unexpected {type(error).__name__}",
        remedy="report it to the plugin's author; `sealpipe plugins` shows which plugin it is",
    )


@click.group(cls=SettingsGroup)
def audit() -> None:
    """Verify an audit log."""


@audit.command(cls=Command)
@click.argument("log", metavar="FILE")
@options("audit", common=OFFLINE)
def verify(log: str, head: str | None, key: str | None, **values: Any) -> None:
    """Verify the chain of an audit log, from the first line to the last. Makes no connection.

    Reports every changed, removed or added line; with --head (which each command that writes the
    log prints on stderr), also lines cut off at the end. The key comes from the config that names
    this log, or from --key.
    """
    from sealpipe.registry.policies import find_audit_key, verify_audit

    if head is not None and not _HEAD.fullmatch(head):
        raise UsageError(
            "--head is not a valid head",
            remedy="write it as NUMBER:MARK, as the command printed it",
        )
    path = Path(log).absolute()
    if key is None:
        config = run_config()
        key = find_audit_key(path, config.machine.get("enforce", {}), config.user)
    try:
        heads = verify_audit(path, key, head)
    except OSError as error:
        why = error.strerror
        raise UsageError(
            f"{path} cannot be read: {why}", remedy="check the path and its permissions"
        ) from None
    for number, what in (*heads.remarks, *heads.findings):
        render.print_note(f"line {number} {what}")
    if not heads.keyed:
        render.print_note(
            "not protected by a key: anyone who can write this file can forge it; only "
            "--head proves otherwise"
        )
    elif head is None and not heads.findings:
        render.print_note("lines cut off at the end do not show without --head")
    if heads.findings:
        number, what = heads.findings[0]
        remark = len(heads.findings) - 1
        raise AuditError(
            f"{path}: line {number} {what}" + (f", and {remark} more" if remark else "")
        )
    if values["output"] == "json":
        remarks = [{"line": number, "what": what} for number, what in heads.remarks]
        description = {
            "file": str(path),
            "lines": heads.lines,
            "head": heads.head or None,
            "keyed": heads.keyed,
        }
        render.print_json({**description, "remarks": remarks})
    else:
        render.print_result(
            f"{heads.lines} lines, none changed, removed or added; head {heads.head or 'none'}\n"
        )


@click.group(cls=SettingsGroup)
def custody() -> None:
    """Print the credential's custody public key."""


@custody.command("public-key", cls=Command)
@options("", common=("api_key_file", "service_tag", "output"))
def public_key(**values: Any) -> None:
    """Print the custody public key: base64url of the uncompressed P-256 point. Makes no connection.

    The service's app registers this key; compare the two by the fingerprint in --output json.
    """
    import hashlib

    from sealpipe.session import open_credential
    from sealpipe.wire import encoding, keys

    credential = open_credential(
        run_config().read_api_key(values["api_key_file"]), values["service_tag"]
    )
    if credential.custody_secret is None:
        raise CredentialError(
            "the credential has only two parts: the third, the custody secret, is missing",
            remedy=(
                "set the whole credential, as it was shown once; if it is lost, create a new "
                "API key"
            ),
        )
    point = keys.from_custody_secret(
        credential.custody_secret.reveal(), tag=credential.tag
    ).public_key
    shown = encoding.encode_base64url(point)
    if values["output"] == "json":
        digest = hashlib.sha256(point).hexdigest()
        render.print_json(
            {"public_key": shown, "fingerprint": f"sha256:{digest}", "key_id": credential.key_id}
        )
    else:
        render.print_result(f"{shown}\n")
