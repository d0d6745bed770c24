"""`sealpipe collect`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import Any

from sealpipe.cli import disclosure, render
from sealpipe.cli.code_lists import resolve_request_code
from sealpipe.cli.codes import names_receipt
from sealpipe.cli.collect_report import (
    ProgressReport,
    print_errors,
    print_late_arrivals,
    print_results,
    print_warnings,
)
from sealpipe.cli.command import call_arguments
from sealpipe.cli.local import find_state_folder
from sealpipe.cli.opening import open_client
from sealpipe.client import Client
from sealpipe.collect import poll
from sealpipe.collect.options import plan_collect
from sealpipe.collect.results import CollectResult, choose_worst_error
from sealpipe.errors import (
    DeliveryError,
    NotFoundError,
    SealpipeError,
    SettingError,
    UsageError,
    WrongKeyError,
    add_to_remedy,
)
from sealpipe.parsing import parse_link_base_url
from sealpipe.state import receipt
from sealpipe.state.receipt import Receipt
from sealpipe.wire.link import refuse_link, split_collect_link


def collect(requests: Sequence[str], **values: Any) -> None:
    """Run `sealpipe collect`."""
    is_stored = bool(values["to"] or values["dir"])
    gate = disclosure.plan_disclosure(
        "the submitted values",
        "store them with --to SINK, or as files with --dir DIR",
        printing=values["print"],
        elsewhere=is_stored,
        dry_run=values["dry_run"],
    )
    progress = ProgressReport()
    arguments = call_arguments("collect", plan_collect, values)
    arguments["requests"] = [_parse_request(word) for word in requests]
    arguments["on_progress"] = progress
    # If the values go to stdout, the requests are expired afterwards.
    arguments["after"] = values["after"] if is_stored else "keep"
    arguments["state"] = find_state_folder(values, "requests")
    plan = plan_collect(**arguments)
    with open_client(values, plan.needs) as client:
        found = _resolve_codes(client, arguments["requests"], requests, values)
        if found != arguments["requests"]:
            plan = plan_collect(**{**arguments, "requests": found})
        try:
            results = poll.collect(
                client.session, plan, dry_run=values["dry_run"], tick=progress.tick
            )
        finally:
            progress.clear()
        problems: list[SealpipeError] = []
        for result in results:
            _name_batch(result, values)
            print_warnings(result)
        try:
            print_results(client.session, results, plan, values, gate)
        except DeliveryError as error:
            remedy = (
                "stored values stay stored: run the command again for the report"
                if is_stored
                else "nothing is lost: run the command again, with --to or --dir"
            )
            problems.append(error.copy_with(remedy=remedy))
        else:
            if values["after"] == "expire" and not is_stored and not values["dry_run"]:
                problems += _expire_requests(client, results, values)
    first = choose_worst_error([*problems, *(result.problem() for result in results)])
    others = [*problems, *(each for result in results for each in result.problems())]
    print_errors(others, first)
    if isinstance(first, NotFoundError):
        here = [f"{word}.json" for word in requests if Path(f"{word}.json").is_file()]
        more = [f"; or give the receipt {render.escape(each)}, which is here" for each in here]
        first = first.copy_with(remedy=add_to_remedy(first.remedy, "".join(more)))
    if first is not None:
        raise first


def _resolve_codes(
    client: Client, given: Sequence[str | Receipt], words: Sequence[str], values: dict[str, Any]
) -> list[str | Receipt]:
    """Return the requests with the short codes that percent-encoded words name.

    UsageError if a code is ambiguous or repeated, or a collect link is of another service.
    """
    found = list(given)
    for number, (each, word) in enumerate(zip(given, words, strict=True)):
        if _is_link(word):
            _check_link(word, client.session.link_base_url)
        elif each == word:  # no receipt, and no `code:` prefix
            found[number] = resolve_request_code(
                client, word, find_state_folder(values, "requests")
            )
    if len({each if isinstance(each, str) else each.short_code for each in found}) < len(found):
        raise UsageError(
            "the same request is given twice, as is and percent-encoded",
            remedy="give each request once",
        )
    return found


def _name_batch(result: CollectResult, values: dict[str, Any]) -> None:
    """If a request has another key because it is of a batch, say so, and what collects it."""
    if not isinstance(result.error, WrongKeyError):
        return

    from sealpipe.cli.batch_store import find_batch_row  # few requests are of a batch

    found = find_batch_row(values, result.short_code)
    if found is not None:
        name, key = found
        result.error = WrongKeyError(
            "wrong-key",
            f"{result.short_code} is the request of row {render.escape(key)} of the batch "
            f"{name}, and has a key of its "
            "own",
            remedy=f"`sealpipe batch run FILE --only {render.escape(quote(key))}` collects it "
            "when it is due; "
            f"`sealpipe batch status {name}` says when",
        )


def _expire_requests(
    client: Client, results: Sequence[CollectResult], values: dict[str, Any]
) -> list[SealpipeError]:

    errors: list[SealpipeError] = []
    for result in results:
        if result.status == "collected" and not result.failures:
            try:
                ended = client.expire_request(
                    result.short_code, keep=find_state_folder(values, "requests")
                )
                render.print_note(f"{render.escape(result.short_code)}: {ended.outcome}")
                result.late = sum(item.identity not in result.seen for item in ended.submissions)
                print_late_arrivals(result)
            except SealpipeError as error:
                errors.append(error)
    return errors


def _is_link(word: str) -> bool:
    return "://" in word and not word.startswith("code:")


def _check_link(word: str, link_base_url: str) -> None:
    """Raise UsageError for a collect link of another service."""

    with suppress(SettingError):
        if parse_link_base_url(split_collect_link(word)[0]) == link_base_url:
            return
    raise UsageError(
        (
            f"the collect link does not begin with {link_base_url}, as links of this service "
            "do: nothing was sent"
        ),
        remedy="check SEALPIPE_LINK_BASE_URL; if it is right, the link belongs to another service",
    )


def _parse_request(word: str) -> str | Receipt:
    if _is_link(word):
        return split_collect_link(word)[1]
    refuse_link(word)  # errors show paths
    if word.startswith("code:"):
        return word.removeprefix("code:")
    if not names_receipt(word):
        return word

    return receipt.read_receipt(Path(word))
