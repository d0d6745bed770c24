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
    from sealpipe.flows.collect.result import CollectResult
    from sealpipe.state.receipt import Receipt


@click.command(cls=CodeCommand)
@click.argument("requests", nargs=-1, required=True, metavar="CODE|RECEIPT...")
@options("collect", common=context.COMMON)
def collect(requests: Sequence[str], **values: Any) -> None:
    """Decrypt submissions and store them. Safe to run again, on any machine.

    An argument that ends in .json or contains a slash is a receipt file, any other a short code (write code:WORD if
    that is ambiguous). Without --to or --dir, prints the values on stdout; in CI, that needs --print. Senders are not
    authenticated: anyone with the link can submit.

    sealpipe collect acme.json --wait 15m --to 'vault:secret/vendor/acme#password=Staging password'
    """
    from sealpipe.cli import disclosure
    from sealpipe.cli.collect_report import ProgressReport, print_errors, print_warnings, show
    from sealpipe.flows.collect import poll
    from sealpipe.flows.collect.options import plan_collect
    from sealpipe.flows.collect.result import worst_error

    stored = bool(values["to"] or values["dir"])
    leave = disclosure.plan_disclosure(
        "the submitted values",
        "store them with --to SINK, or as files with --dir DIR",
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
        # Requests whose values go to stdout are expired after that.
        after=values["after"] if stored else "keep",
        state=context.state_folder(values, "requests"),
        dry_run=values["dry_run"],
    )
    progress = ProgressReport()
    with context.open_client(values) as client:
        plan = _named(client, plan, requests, values)
        try:
            results = client.run(poll.collect(client.session, plan, progress, tick=progress.tick))
        finally:
            progress.clear()
        problems: list[SealpipeError] = []
        for result in results:
            print_warnings(result)
        try:
            show(client.session, results, plan, values, leave)
        except DeliveryError as error:
            error.remedy = (
                "stored values stay stored: run the command again for the report"
                if stored
                else "nothing is lost: run the command again, with --to or --dir"
            )
            problems.append(error)
        else:
            if values["after"] == "expire" and not stored and not values["dry_run"]:
                problems += _end(client, results, values)
    first = worst_error([*problems, *(result.problem() for result in results)])
    others = [*problems, *(each for result in results for each in result.problems())]
    print_errors(others, first)
    if first is not None:
        raise first


def _named(client: Client, plan: CollectPlan, words: Sequence[str], values: dict[str, Any]) -> CollectPlan:
    """Return the plan with percent-encoded codes decoded. UsageError if one is ambiguous or repeated."""
    jobs: list[CollectJob] = []
    keep = context.state_folder(values, "requests")
    for job, word in zip(plan.jobs, words, strict=True):
        is_code = job.receipt is None and job.short_code == word  # not a receipt's, and without code: before it
        jobs.append(replace(job, short_code=context.resolve_request_code(client, word, keep)) if is_code else job)
    if len({job.short_code for job in jobs}) < len(jobs):
        raise UsageError("the same request is given twice, as is and percent-encoded", remedy="give each request once")
    return replace(plan, jobs=tuple(jobs))


def _end(client: Client, results: Sequence[CollectResult], values: dict[str, Any]) -> list[SealpipeError]:
    from sealpipe.cli.collect_report import print_late

    failed: list[SealpipeError] = []
    for result in results:
        if result.status == "collected":
            try:
                ended = client.expire_request(result.short_code, keep=context.state_folder(values, "requests"))
                render.print_note(f"{render.escape(result.short_code)}: {ended.outcome}")
                result.late = sum(item.identity not in result.seen for item in ended.submissions)
                print_late(result)
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
