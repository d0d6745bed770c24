"""`sealpipe share`."""

from __future__ import annotations

from typing import Any

import click
from click.core import ParameterSource

from sealpipe.cli import context
from sealpipe.cli.options import Command, options
from sealpipe.errors import UsageError


@click.command(
    cls=Command,
    epilog="References: env:NAME, file:PATH, dotenv:PATH#KEY, stdin:, prompt:TEXT (asks), gen:password, "
    "text:WORDS (no secret).",
)
@options("share", common=context.COMMON)
@click.pass_context
def share(ctx: click.Context, /, **values: Any) -> None:
    """Seal secrets and make a link to them.

    The link is the result, on stdout: whoever has it can open the share. In CI it goes there only with --print. Fields
    are named by reference:

    sealpipe share -f env:DB_PASSWORD -f 'User=text:deploy' --expires-in 24h
    """
    from sealpipe.cli import deliver, disclosure
    from sealpipe.client import Client
    from sealpipe.flows.share import post as sharing

    if ctx.get_parameter_source("bind") is ParameterSource.COMMANDLINE and not values["seal_link"]:
        raise UsageError("--bind is for a sealed link", remedy="add --seal-link, or leave --bind out")
    to = {
        **deliver.targets(values["link_file"], values["receipt"]),
        **deliver.sealing(values["bind"], wanted=values["seal_link"]),
    }
    plan = sharing.plan(
        values["field"],
        title=values["title"],
        description=values["description"],
        views=values["views"],
        passcode=values["passcode_from"],
        custody=values["custody"],
        timed_view=values["timed_view"],
        notify_on=values["notify_on"],
        passcode_generate=values["passcode_generate"],
        send=values["send"],
        passcode_to=values["passcode_to"],
        params=values["param"],
        also_to=values["also_to"],
        message_template=deliver.message_template(values["message_template"]),
        **_expiry(ctx, values),
    )
    session = context.session(values)
    leave = disclosure.plan(
        "the link",
        "send it with --send, name a file for it with --link-file, or have it sealed with --seal-link",
        printing=values["print"],
        elsewhere=bool(values["link_file"] or values["send"] or values["seal_link"]),
        dry_run=values["dry_run"],
        addresses=[session.base_url, session.link_base_url],
    )
    deliver.check_sealing(session, to)
    as_json = values["output"] == "json"
    with Client.of_session(session) as client:
        if values["dry_run"]:
            from sealpipe.cli.dry_run import show

            show(plan, client.run(sharing.rehearsed(session, plan)), session, to, as_json=as_json)
            return
        outbox = context.outbox(values, session.credential)
        made = client.run(sharing.share(session, plan, outbox, deliver=to))
        deliver.finish(client, made, to, leave, as_json=as_json)


def _expiry(ctx: click.Context, values: dict[str, Any]) -> dict[str, Any]:
    """One of three ways to say when it ends: the one that was given nearest (flag, environment, config file)."""
    given = {name: ctx.get_parameter_source(name) for name in ("expires_in", "expires_at", "no_expiry") if values[name]}
    nearest = [name for name, source in given.items() if source is min(given.values(), key=NEARNESS.index)]
    if len(nearest) > 1:
        names = " and ".join("--" + name.replace("_", "-") for name in nearest)
        raise UsageError(f"{names} contradict each other", remedy="give one of them")
    if nearest == ["no_expiry"]:
        return {"expires_in": None}
    return {name: values[name] for name in nearest}


NEARNESS = (
    ParameterSource.COMMANDLINE,
    ParameterSource.ENVIRONMENT,
    ParameterSource.DEFAULT_MAP,
    ParameterSource.DEFAULT,
)
