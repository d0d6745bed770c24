"""`sealpipe unseal`: open a sealed link, in another job."""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, Any, NoReturn

import click

from sealpipe.cli import render
from sealpipe.cli.command import Command, make_registry, options, run_config

if TYPE_CHECKING:
    from collections.abc import Callable

    from sealpipe.flows import Flow
    from sealpipe.registry import Registry
    from sealpipe.secret import Secret
    from sealpipe.secret_scan import CustodyGate

_COMMON_OPTIONS = ("api_key_file", "service_tag", "ca_file", "output")


@click.command(cls=Command)
@click.argument("sealed", metavar="SEALED", envvar="SEALPIPE_SEALED_LINK")
@options("unseal", common=_COMMON_OPTIONS)
def unseal(sealed: str, **values: Any) -> None:
    """Open a link that `share --seal-link` sealed, with the same credential. Makes no connection.

    SEALED is not secret: it needs the credential, and the text given to --bind, if any. The actions and templates
    bind it to their run: github:OWNER/REPO:RUN_ID, gitlab:PROJECT_PATH:PIPELINE_ID. In CI, printing the link on stdout
    needs --print; it is masked first if possible. Without SEALED, reads SEALPIPE_SEALED_LINK.
    """
    from sealpipe.cli import deliver, disclosure
    from sealpipe.errors import DeliveryError, EnvelopeError
    from sealpipe.flows.session import open_credential, open_previous
    from sealpipe.flows.share import sealed_link
    from sealpipe.secret_scan import CustodyGate
    from sealpipe.wire.encoding import names

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
    code = sealed_link.read_short_code(sealed)
    keys = [credential, *([open_previous(previous)] if previous else [])]

    def opening() -> Secret:
        if values["expect"] is not None and not names(values["expect"], code):
            raise EnvelopeError(
                "other-share",
                f"this sealed link belongs to {render.escape(code)}, not to the share given to --expect",
                remedy="check which job passed it on; the code is the output short-code of the step that sealed it",
            )
        return sealed_link.unseal(sealed, *keys, bind=values["bind"])

    gate = CustodyGate(*keys)
    link = _unseal_under_policy(partial(make_registry, values["ca_file"]), gate, code, opening)
    path = to["link_file"]
    registered = partial(make_registry, values["ca_file"])
    if path is not None:
        disclosure.mask(registered, disclosure.list_link_parts(link))
        try:
            deliver.write_file(path, link.reveal() + "\n")
        except OSError as error:
            raise DeliveryError(
                f"{path} cannot be written: {error.strerror}", remedy="run it again with another --link-file"
            ) from None
        if values["output"] == "json":
            render.print_json({"link": None, "link_file": path})
        return
    gate_to_stdout.write(
        registered, disclosure.list_link_parts(link), lambda: _print_link(link, as_json=values["output"] == "json")
    )


def _unseal_under_policy(
    registry: Callable[[], Registry], custody_gate: CustodyGate, code: str, unseal: Callable[[], Secret]
) -> Secret:
    """Open the link if policies allow it. Observers get an event before and after, with the short code."""
    from sealpipe.client_base import run
    from sealpipe.flows import policy
    from sealpipe.plugin import OutgoingAction
    from sealpipe.registry.stores import read_policy_hooks

    config = run_config()
    hooks = read_policy_hooks(config.user, config.machine)
    if not hooks:
        return unseal()

    def work() -> Flow[Secret]:
        yield from ()
        return unseal()

    def refuse_send(*_: object) -> NoReturn:
        raise AssertionError("opening a sealed link makes no connection")

    session = policy.LocalContext(hooks, cache(registry), custody_gate)
    return run(policy.run_under_policy(session, OutgoingAction("unseal", short_codes=(code,)), work()), refuse_send)


def _print_link(link: Secret, *, as_json: bool) -> None:
    if as_json:
        render.print_json({"link": link.reveal(), "link_file": None})
    else:
        render.print_result(link.reveal() + "\n")
