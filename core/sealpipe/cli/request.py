"""`sealpipe request`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sealpipe.cli import context, render
from sealpipe.cli.options import Command, call_arguments, options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sealpipe.prompts import Prompt


@click.command(cls=Command)
@options("request", common=context.COMMON)
def request(**values: Any) -> None:
    """Create a collect link to ask someone for secrets. The service never has the key that opens them.

    Prints the collect link on stdout; anyone with the link can submit, but not read. A prompt that does not end in
    the :TYPE of a field asks for a password.

    sealpipe request -a 'Staging password' -a 'user=User name:text' --receipt acme.json
    """
    from sealpipe.cli import deliver, disclosure
    from sealpipe.client import Client
    from sealpipe.flows.request import create as requesting
    from sealpipe.flows.request.options import RequestOptions

    to = deliver.check_targets(None, values["receipt"])
    asked = RequestOptions(**call_arguments("request", RequestOptions, values))
    _check_seed(values)
    _warn_of_typos(asked.form)
    session = context.make_session(values)
    with Client.from_session(session) as client:
        outbox = context.open_outbox(values, session.credential)
        made = client.run(requesting.request(session, asked, outbox, deliver=to))
        deliver.finish(client, made, to, disclosure.NO_DISCLOSURE, as_json=values["output"] == "json")


def _warn_of_typos(prompts: Sequence[Prompt]) -> None:
    """Warn of prompts that seem to end in a misspelled type: they are used as they are."""
    from sealpipe.prompts import suggest_type

    for prompt in prompts:
        if near := suggest_type(prompt):
            word = prompt.text.rpartition(":")[2]
            render.print_note(
                f"sealpipe: the prompt is {prompt.text!r}, because {word!r} is not a field type; did you mean {near}?"
            )


def _check_seed(values: dict[str, Any]) -> None:
    if values["key"] == "new" and values["seed_to"] is None:
        from sealpipe.errors import UsageError

        raise UsageError(
            "--key new needs --seed-to: without the new key's seed, no submission can be opened",
            remedy="add --seed-to SINK, such as --seed-to vault:secret/requests/acme#seed",
        )
