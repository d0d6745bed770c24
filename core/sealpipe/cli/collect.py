"""`sealpipe collect`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sealpipe.cli import context, render
from sealpipe.cli.options import CodeCommand, names_receipt, options
from sealpipe.errors import DeliveryError, SealpipeError, UsageError

if TYPE_CHECKING:
    from sealpipe.client import Client
    from sealpipe.flows.collect.options import CollectJob, CollectPlan
    from sealpipe.flows.collect.result import Collected
    from sealpipe.state.receipt import Receipt


@click.command(cls=CodeCommand)
@click.argument("requests", nargs=-1, required=True, metavar="CODE|RECEIPT...")
@options("collect", common=context.COMMON)
def collect(requests: Sequence[str], **values: Any) -> None:
    """Open what was handed over to requests, and store it where it belongs. Safe to run again, anywhere.

    A word that ends in .json or holds a slash is a receipt's file, any other a short code (code:WORD is one, too; what
    begins with a dash may stand behind --). Without --to or --dir what was typed is the result, on stdout; in CI only
    with --print. Nobody knows who sent it: whoever has the link may answer.

    sealpipe collect acme.json --wait 15m --to 'vault:secret/vendor/acme#password=Staging password'
    """
    from sealpipe.cli import disclosure
    from sealpipe.cli.collect_report import Progressing, show, tell, tell_of
    from sealpipe.flows.collect import poll
    from sealpipe.flows.collect.options import plan_collect
    from sealpipe.flows.collect.result import worst_error

    stored = bool(values["to"] or values["dir"])
    leave = disclosure.plan_disclosure(
        "what was handed over",
        "store it with --to SINK, or as files with --dir DIR",
        printing=values["print"],
        elsewhere=stored,
        dry_run=values["dry_run"],
    )
    plan = plan_collect(
        [_request(word) for word in requests],
        key=values["key"],
        wait=values["wait"] or timedelta(0),
        pick=values["pick"],
        to=values["to"],
        mode=values["mode"],
        folder=values["dir"],
        # What goes to stdout is ended only once it is out.
        after=values["after"] if stored else "keep",
        state=context.state_folder(values, "requests"),
        dry_run=values["dry_run"],
    )
    progress = Progressing()
    with context.open_client(values) as client:
        plan = _named(client, plan, requests, values)
        try:
            results = client.run(poll.collect(client.session, plan, progress, tick=progress.tick))
        finally:
            progress.over()
        problems: list[SealpipeError] = []
        for result in results:
            tell(result)
        try:
            show(client.session, results, plan, values, leave)
        except DeliveryError as error:
            error.remedy = (
                "what was stored stays stored: run it again for the report"
                if stored
                else "nothing is lost: run it again, with --to or --dir"
            )
            problems.append(error)
        else:
            if values["after"] == "expire" and not stored and not values["dry_run"]:
                problems += _end(client, results, values)
    first = worst_error([*problems, *(result.problem() for result in results)])
    others = [*problems, *(each for result in results for each in result.problems())]
    tell_of(others, first)
    if first is not None:
        raise first


def _named(client: Client, plan: CollectPlan, words: Sequence[str], values: dict[str, Any]) -> CollectPlan:
    """The plan with every code as it is, where a word is in its encoded form. UsageError where one names two."""
    jobs: list[CollectJob] = []
    keep = context.state_folder(values, "requests")
    for job, word in zip(plan.jobs, words, strict=True):
        is_code = job.receipt is None and job.short_code == word  # not a receipt's, and without code: before it
        jobs.append(replace(job, short_code=context.resolve_request_code(client, word, keep)) if is_code else job)
    if len({job.short_code for job in jobs}) < len(jobs):
        raise UsageError("a request is named twice, in both forms", remedy="name each once")
    return replace(plan, jobs=tuple(jobs))


def _end(client: Client, results: Sequence[Collected], values: dict[str, Any]) -> list[SealpipeError]:
    from sealpipe.cli.collect_report import tell_late

    failed: list[SealpipeError] = []
    for result in results:
        if result.status == "collected":
            try:
                ended = client.expire_request(result.short_code, keep=context.state_folder(values, "requests"))
                render.print_note(f"{render.escape(result.short_code)}: {ended.outcome}")
                result.late = sum(item.identity not in result.seen for item in ended.submissions)
                tell_late(result)
            except SealpipeError as error:
                failed.append(error)
    return failed


def _request(word: str) -> str | Receipt:
    from sealpipe.wire.link import refuse_link

    refuse_link(word)  # before it is taken for a path, which errors show
    if word.startswith("code:"):
        return word.removeprefix("code:")
    if not names_receipt(word):
        return word
    from sealpipe.state import receipt

    return receipt.read_receipt(Path(word))
