"""`sealpipe unseal`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import click

from sealpipe import policy
from sealpipe.cli import deliver, disclosure, render
from sealpipe.cli.command import list_nearest, run_config
from sealpipe.cli.local import make_registry
from sealpipe.custody_gate import CustodyGate
from sealpipe.errors import DeliveryError, EnvelopeError, UsageError
from sealpipe.plugin import OutgoingAction
from sealpipe.registry import Registry
from sealpipe.registry.stores import read_policy_hooks
from sealpipe.secret import Secret
from sealpipe.session import open_credential, open_previous
from sealpipe.share import sealed_link
from sealpipe.wire.encoding import names


def unseal(sealed: str | None, **values: Any) -> None:
    """Run `sealpipe unseal`."""
    gate_to_stdout = disclosure.plan_disclosure(
        "the link",
        "write it to a file with --link-file",
        printing=values["print"],
        elsewhere=values["link_file"] is not None,
    )
    to = deliver.check_targets(values["link_file"], None)
    config = run_config()
    credential = open_credential(config.read_api_key(values["api_key_file"]), values["service_tag"])
    previous = config.previous_api_key
    text = _read_sealed_link({"sealed": sealed, **values})
    code = sealed_link.read_short_code(text)
    keys = [credential, *([open_previous(previous)] if previous else [])]

    def opening() -> Secret:
        if values["expect"] is not None and not names(values["expect"], code):
            raise EnvelopeError(
                "other-share",
                (
                    f"this sealed link belongs to {render.escape(code)}, not to the share "
                    "given to --expect"
                ),
                remedy=(
                    "check which job passed it on; the code is the output short-code of the "
                    "step that sealed it"
                ),
            )
        return sealed_link.unseal(text, *keys, bind=values["bind"])

    gate = CustodyGate(*keys)
    registry = partial(make_registry, values["ca_file"])
    link = _unseal_under_policy(registry, gate, code, opening)
    path = to["link_file"]
    if path is not None:
        disclosure.mask(registry, disclosure.list_link_parts(link))
        try:
            deliver.write_file(path, link.reveal() + "\n")
        except OSError as error:
            raise DeliveryError(
                f"{path} cannot be written: {error.strerror}",
                remedy="run it again with another --link-file",
            ) from None
        if values["output"] == "json":
            render.print_json({"link": None, "link_file": path})
        return
    gate_to_stdout.write(
        registry,
        disclosure.list_link_parts(link),
        lambda: _print_link(link, as_json=values["output"] == "json"),
    )


_MAX_SEALED: Final = 64 * 1024
_STDIN: Final = "-"


def _read_sealed_link(values: Mapping[str, Any]) -> str:
    """Return the sealed link that is given: as text, as a file, or on stdin. Raises UsageError."""
    given = list_nearest(click.get_current_context(), values, ("sealed", "sealed_file"))
    if len(given) != 1:
        raise UsageError(
            "there are two sealed links: an argument and --sealed-file"
            if given
            else "there is no sealed link",
            remedy=(
                "give one: --sealed-file FILE, - for stdin, or the variable SEALPIPE_SEALED_LINK"
            ),
        )
    word: str = values[given[0]]
    if given == ["sealed_file"]:
        try:
            with Path(word).open("rb") as stream:
                content = stream.read(_MAX_SEALED)
        except OSError as error:
            problem = f"--sealed-file: {word} cannot be read: {error.strerror}"
            raise UsageError(problem, remedy="check the path") from None
    elif word == _STDIN:
        content = b"" if sys.stdin is None else sys.stdin.buffer.read(_MAX_SEALED)
    else:
        return word
    return content.decode("ascii", "replace")


def _unseal_under_policy(
    registry: Callable[[], Registry],
    custody_gate: CustodyGate,
    code: str,
    unseal: Callable[[], Secret],
) -> Secret:
    """Open the link if policies allow it.

    Observers get an event before and after, with the short code.
    """

    config = run_config()
    hooks = read_policy_hooks(config.user, config.machine)
    if not hooks:
        return unseal()

    session = policy.LocalContext(hooks, cache(registry), custody_gate)
    return policy.run_under_policy(
        session, OutgoingAction("unseal", short_codes=(code,)), lambda _: unseal()
    )


def _print_link(link: Secret, *, as_json: bool) -> None:
    if as_json:
        render.print_json({"link": link.reveal(), "link_file": None})
    else:
        render.print_result(link.reveal() + "\n")
