"""Calls of policies and observers, and the audit log that one of them keeps."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from sealpipe.errors import PluginError, PolicyError
from sealpipe.parsing import redact_address
from sealpipe.plugin import Context, OutgoingAction, VetoError
from sealpipe.registry.catalog import Catalog
from sealpipe.registry.safe_calls import call_plugin
from sealpipe.registry.stores import AUDIT_MODULE, BUILT_IN_HOOKS, PolicyHook


def ask_policies(catalog: Catalog, hooks: Sequence[PolicyHook], plan: OutgoingAction) -> None:
    """Ask every policy.

    Raises PolicyError, or PluginError if one fails: then nothing may leave either.
    """
    for hook in hooks:
        try:
            _call(catalog, hook, "sealpipe_check_outgoing", plan=plan, enforced=hook.enforced)
        except _WrappedVetoError as refused:
            named_policy = "the policy" if hook.name == "policy" else f"the policy {hook.name}"
            subject = "this machine's policy" if hook.enforced else named_policy
            reason = str(refused)
            for target in (
                text for each in plan.recipients for text in (each, each.partition(":")[2])
            ):
                if (shown := redact_address(target)) != target:
                    reason = reason.replace(target, shown)
            raise PolicyError(f"{subject} does not allow this: {reason}") from None


def notify_observers(
    catalog: Catalog,
    hooks: Sequence[PolicyHook],
    event: Mapping[str, Any],
    make_context: Callable[[str], Context],
) -> None:
    """Notify every observer. Raises the first PluginError after all were notified."""
    failed: PluginError | None = None
    for hook in hooks:
        try:
            context = make_context(hook.name)
            _call(catalog, hook, "sealpipe_event", event=event, context=context)
        except PluginError as error:
            failed = failed or error
    if failed is not None:
        raise failed


class _WrappedVetoError(PluginError):
    """A VetoError on its way through `call_plugin`, which lets only errors of the contract pass."""


def _call(catalog: Catalog, hook: PolicyHook, function: str, **values: Any) -> None:
    built_in = BUILT_IN_HOOKS.get(hook.name)
    module = import_module(built_in) if built_in else catalog.get_module(hook.name)
    implementation = getattr(module, function, None)
    if implementation is None:
        return
    call_plugin(
        hook.name,
        partial(
            _ask_hook, catalog.isolate_hook(module, function), {**values, "config": hook.table}
        ),
    )


def _ask_hook(call: Any, values: Mapping[str, Any]) -> None:
    try:
        call(**values)
    except VetoError as refusal:
        raise _WrappedVetoError(str(refusal)) from None


def get_audit_heads() -> Mapping[Path, str]:
    """Return the head of every audit log that this process has written.

    None if it has not loaded the audit.
    """
    module = sys.modules.get(AUDIT_MODULE)
    heads: Mapping[Path, str] = {} if module is None else module.heads
    return heads


def get_unsent_audit() -> Mapping[Path, str]:
    """Return why lines of an audit log that this process has written are not at its webhook yet.

    Empty if all are, or if it has not loaded the audit.
    """
    module = sys.modules.get(AUDIT_MODULE)
    unsent: Mapping[Path, str] = {} if module is None else module.unsent
    return unsent


def describe_audit(table: Mapping[str, Any]) -> str:
    """Return which log a table of `[audit]` is about, and the host that gets its lines.

    Raises PluginError for a wrong setting, or a key or token that cannot be read.
    """
    module = import_module("sealpipe_plugins.audit.settings")
    settings = call_plugin("audit", partial(module.read_settings, table))
    webhook = settings.webhook
    return f"{settings.file}{'' if webhook is None else f', sent to {webhook.host}'}"


def send_audit(
    hooks: Sequence[PolicyHook], make_context: Callable[[str], Context]
) -> Iterator[tuple[Path, int]]:
    """Send what the audit logs of these hooks have not sent to their webhooks.

    Returns each log that has a webhook, with the number of lines that were sent. Raises
    PluginError.
    """
    for hook in hooks:
        if hook.name == "audit":
            module = import_module("sealpipe_plugins.audit.webhook")
            send = partial(module.send, hook.table, make_context(hook.name))
            sent: tuple[Path, int] | None = call_plugin("audit", send)
            if sent is not None:
                yield sent


def find_audit_key(file: Path, *configs: Mapping[str, Any]) -> Any:
    """Return the reference to the audit log's key from the first config that names the file.

    None if there is none.
    """
    for config in configs:
        table = config.get("audit")
        if (
            isinstance(table, Mapping)
            and isinstance(table.get("file"), str)
            and Path(table["file"]) == file
        ):
            return table.get("key")
    return None


def verify_audit(file: Path, key: Any, head: str | None, *, collected: bool, remedy: str) -> Any:
    """Verify an audit log's chain, as a `sealpipe_plugins.audit.verify.Verification`.

    `collected`: the chains of many logs, as `sealpipe_plugins.audit.collected.Verification`.
    `remedy` says where to correct the reference to the key. Raises OSError, NotConfiguredError.
    """
    key_bytes = None
    if key is not None:
        module = import_module("sealpipe_plugins.audit.settings")
        key_bytes = call_plugin("audit", partial(module.read_key, key, remedy))
    name = f"sealpipe_plugins.audit.{'collected' if collected else 'verify'}"
    return import_module(name).verify(file, key_bytes, head)
