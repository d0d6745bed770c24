"""`sealpipe shares expire` and `sealpipe requests expire`, by codes, names or CI runs, or all."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

from sealpipe.cli import render
from sealpipe.cli.code_lists import resolve_request_code, resolve_share_code
from sealpipe.cli.codes import names_receipt
from sealpipe.cli.known_names import KnownNames, find_notes_folder
from sealpipe.cli.local import find_state_folder
from sealpipe.cli.opening import open_client
from sealpipe.client import Client
from sealpipe.collect.results import choose_worst_error
from sealpipe.errors import NotFoundError, SealpipeError, UsageError
from sealpipe.expire.request import EndedRequest
from sealpipe.expire.share import was_expired
from sealpipe.parsing import format_optional_time
from sealpipe.state.creations import Kind, KnownLink, list_creations
from sealpipe.state.receipt import read_receipt, read_share_receipt
from sealpipe.wildcards import matches_name

_CLOCK_MARGIN: Final = timedelta(hours=1)
"""How long after its expiry, by this machine's clock, a share or a request still counts as one that
may be active.
"""


class Ending(NamedTuple):
    """How one kind is expired.

    `expire_one` prints what happened, and returns it as JSON members.
    """

    kind: Kind
    resolve: Callable[[Client, str, Path | None], str]
    list_active: Callable[[Client], list[str]]
    """Lists the short codes of all that is active in the account."""
    expire_one: Callable[[Client, str, Path | None], dict[str, Any]]
    is_over: Callable[[Path | None, KnownLink], bool]


def expire_shares(codes: Sequence[str], **values: Any) -> None:
    """Run `sealpipe shares expire`."""
    ending = Ending(
        "share", resolve_share_code, _list_active_shares, _expire_share, _is_expired_share
    )
    _expire(ending, codes, find_notes_folder(values, "shares"), values)


def expire_requests(codes: Sequence[str], **values: Any) -> None:
    """Run `sealpipe requests expire`."""
    ending = Ending(
        "request", resolve_request_code, _list_active_requests, _expire_request, lambda *_: False
    )
    _expire(ending, codes, find_state_folder(values, "requests"), values)


def _expire(
    ending: Ending, words: Sequence[str], keep: Path | None, values: Mapping[str, Any]
) -> None:
    is_filtered = values["name"] is not None or values["created_by_run"] is not None
    is_all = values["all_active"]
    if is_all and (words or is_filtered):
        raise UsageError(
            f"--all-active takes every active {ending.kind}, and something chooses among them",
            remedy="leave out --all-active, or the codes, --name and --created-by-run",
        )
    if not words and not is_filtered and not is_all:
        raise UsageError(
            f"there is no {ending.kind} to expire",
            remedy=(
                "give its code or its receipt, --name PATTERN or --created-by-run RUN; or "
                "--all-active for all"
            ),
        )
    is_single = len(words) == 1 and not is_filtered
    given = [_read_word(ending.kind, word) for word in words]
    with open_client(values) as client:
        names = KnownNames(values, ending.kind, client.session.base_url)

        def describe(code: str) -> KnownLink:
            return names.find(code) or KnownLink(ending.kind, client.session.base_url, code)

        if is_all:
            known = [describe(code) for code in ending.list_active(client)]
        else:
            known = [
                describe(ending.resolve(client, each, keep)) if isinstance(each, str) else each
                for each in given
            ]
        if is_filtered:
            known = _choose(
                ending, known if words else _list_created(ending, keep, client, values), values
            )
        codes = list(dict.fromkeys(each.short_code for each in known))
        if not is_single and codes:
            _confirm(
                ending.kind, codes, {each.short_code: each for each in known}, yes=values["yes"]
            )
        rows, errors = _expire_each(
            ending, client, codes, keep, is_single=is_single, is_listed=is_all
        )
    if not codes:
        render.print_note(f"no {ending.kind} is active: nothing to expire")
    if values["output"] == "json" and (rows or is_all):
        render.print_json_rows(rows[0] if is_single else rows)
    if errors:
        raise _summarize(errors)


def _read_word(kind: Kind, word: str) -> str | KnownLink:
    """Return what a receipt's file says; else the word, a code.

    A code may look like a path: then there is no file.
    """
    path = Path(word)
    if not names_receipt(word) or not path.is_file():
        return word

    return read_share_receipt(path) if kind == "share" else read_receipt(path).to_creation()


def _list_created(
    ending: Ending, keep: Path | None, client: Client, values: Mapping[str, Any]
) -> list[KnownLink]:
    """List what this machine created and may still be active."""

    folder, earliest = find_notes_folder(values, "created"), datetime.now(UTC) - _CLOCK_MARGIN
    known = [] if folder is None else list_creations(folder, ending.kind, client.session.base_url)
    active = [each for each in known if each.expires_at is None or each.expires_at > earliest]
    return [each for each in active if not ending.is_over(keep, each)]


def select_created(
    known: Sequence[KnownLink], pattern: str | None, run: str | None
) -> list[KnownLink]:
    """Return those whose name matches the pattern, and that belong to the run. None: any."""
    named = [
        each
        for each in known
        if pattern is None or (each.name is not None and matches_name(each.name, pattern))
    ]
    return [each for each in named if run is None or each.is_of_run(run)]


def _choose(
    ending: Ending, known: Sequence[KnownLink], values: Mapping[str, Any]
) -> list[KnownLink]:
    chosen = select_created(known, values["name"], values["created_by_run"])
    if not chosen:
        raise NotFoundError(
            (
                f"no {ending.kind} that may still be active is known by that name or run: "
                "nothing was expired"
            ),
            remedy="names and runs are in receipts, and in the state directory of the job that "
            "created it; on another machine give receipts or codes, or --all-active for all that "
            "the account has out",
        )
    return chosen


def _confirm(
    kind: Kind, codes: Sequence[str], known: Mapping[str, KnownLink], *, yes: bool
) -> None:
    """List what would be expired, and ask.

    Raises UsageError if nobody agrees: then nothing was sent.
    """
    render.print_note(f"{'expiring' if yes else 'would expire'} {render.count(len(codes), kind)}:")
    for code in codes:
        one = known[code]
        cells = [one.name, one.title, one.run and f"run {one.run}"]
        render.print_note(
            "\t".join(
                ["  " + render.escape(code), *(render.escape(each) for each in cells if each)]
            )
        )
    if yes:
        return
    if sys.stdin is None or not sys.stdin.isatty() or not render.is_terminal():
        raise UsageError(
            "not confirmed: nothing was expired", remedy="check the list, and add --yes"
        )
    render.print_note("Type yes to expire them:")
    if sys.stdin.readline().strip().lower() != "yes":
        raise UsageError("not confirmed: nothing was expired", remedy="type yes, or add --yes")


def _expire_each(
    ending: Ending,
    client: Client,
    codes: Sequence[str],
    keep: Path | None,
    *,
    is_single: bool,
    is_listed: bool,
) -> tuple[list[dict[str, Any]], list[SealpipeError]]:
    """Expire one after another.

    A failure does not stop the others. Returns the rows of all, and the errors.

    `is_listed` says that the service listed them all a moment ago: a share that it does not know
    any more has ended. A request would still be known: somebody deleted it with its submissions,
    and that is told.
    """
    rows, errors = [], []
    for code in codes:
        try:
            rows.append(ending.expire_one(client, code, keep))
        except SealpipeError as error:
            if is_listed and ending.kind == "share" and isinstance(error, NotFoundError):
                render.print_note(f"{render.escape(code)} was already expired")
                rows.append({"short_code": code, "outcome": "already-expired"})
                continue
            if is_single:
                raise
            is_named = error.message.startswith("there is no ")
            prefix = "" if is_named else f"{render.escape(code)}: "
            errors.append(error.copy_with(message=prefix + error.message))
            described = render.describe_error(errors[-1])
            rows.append({"short_code": code, "outcome": "failed", "error": described})
    return rows, errors


def _summarize(errors: Sequence[SealpipeError]) -> SealpipeError:
    """Print all errors but the one that represents them, and return that one."""

    worst = choose_worst_error(errors) or errors[0]
    for error in errors:
        if error is not worst:
            render.print_error(error, as_json=False)
    return worst


def _list_active_shares(client: Client) -> list[str]:
    return [row.short_code for row in client.iter_shares()]


def _list_active_requests(client: Client) -> list[str]:
    return [row.short_code for row in client.iter_requests() if not row.has_ended]


def _is_expired_share(keep: Path | None, known: KnownLink) -> bool:
    return keep is not None and was_expired(keep, known.base_url, known.short_code)


def _expire_share(client: Client, code: str, keep: Path | None) -> dict[str, Any]:
    ended = client.expire_share(code, keep=keep)
    escaped_code = render.escape(code)
    render.print_note(
        f"expired {escaped_code}"
        if ended.outcome == "expired"
        else f"{escaped_code} was already expired"
    )
    return {"short_code": code, "outcome": ended.outcome}


def _expire_request(client: Client, code: str, keep: Path | None) -> dict[str, Any]:
    return report_ended(client.expire_request(code, keep=keep))


def report_ended(ended: EndedRequest) -> dict[str, Any]:
    """Print how a request ended, and return it as JSON members."""
    code, count = render.escape(ended.short_code), len(ended.submissions)
    expires_at = format_optional_time(ended.expires_at)
    description = {
        "expired": f"expired {code}",
        "already-expired": f"{code} was already expired",
        "expiring": (
            f"{code} expires at {expires_at}, too soon to expire it safely; run this again "
            "after that"
        ),
        "deleted": f"purged {code}",
    }
    render.print_note(description[ended.outcome])
    render.print_note(
        f"kept {render.count(count, 'submission')}, {ended.late} of them late, in {ended.kept_in}"
    )
    note_skipped(ended.skipped)
    return {
        "short_code": ended.short_code,
        "outcome": ended.outcome,
        "expires_at": expires_at,
        "kept": count,
        "late": ended.late,
        "skipped": ended.skipped,
        "kept_in": str(ended.kept_in),
    }


def note_skipped(skipped: int | None) -> None:
    """Print how many submissions the service does not return."""
    if skipped:
        render.print_note(
            f"skipped {render.count(skipped, 'submission')} without end-to-end encryption"
        )
