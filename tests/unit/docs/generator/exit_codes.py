"""The exit codes: what each means, what the service has then, and what to do."""

from __future__ import annotations

from typing import NamedTuple

from unit.docs.generator.errors import kinds, of_code
from unit.docs.generator.markdown import slug, table, wrap


class ExitCode(NamedTuple):
    """An exit code of `sealpipe`, in Markdown with links from docs/reference."""

    number: str
    title: str
    meaning: str
    at_the_service: str
    remedy: str


EXIT_CODES = (
    ExitCode(
        "0", "done", "The command did what you asked.", "the result", "Use the result on stdout."
    ),
    ExitCode(
        "1",
        "a bug",
        "sealpipe has a bug.",
        "perhaps something",
        "Report it; the message names the place in the code and holds no value. `sealpipe resume "
        "--list` shows whether an entry is left in the outbox.",
    ),
    ExitCode(
        "2",
        "wrong usage",
        "An option, a setting, a reference or the configuration is wrong, a policy refuses the "
        "action, or local files or a database cannot be read or written. In a [CI "
        "system](ci-systems.md): the link or value would appear in the log.",
        "nothing",
        "Fix what the message names.",
    ),
    ExitCode(
        "3",
        "the credential is refused",
        "The service refused the credential: 401, or 403 without an `error_code`. It does not say "
        "why: the key can be wrong or revoked, or its plan has no API access.",
        "nothing",
        "Check that the key is complete and not revoked, that the base URL is that of its service, "
        "and that the plan has API access.",
    ),
    ExitCode(
        "4",
        "not permitted",
        "The plan or the key's scopes do not allow the call, or the service could not fulfil "
        "`--custody require` ([causes](#causes-of-exit-code-4)).",
        "nothing",
        "Change the plan or the key; waiting does not help.",
    ),
    ExitCode(
        "5",
        "an invalid call",
        "The service refused the call as invalid, or a tool of its MCP endpoint returned an error.",
        "nothing",
        "Fix what the message or `additional_data` names.",
    ),
    ExitCode(
        "6",
        "not found",
        "The share or request does not exist, has ended, or belongs to another account. The "
        "service does not say which.",
        "nothing new",
        "Check the short code, and that the credential belongs to the account that created it.",
    ),
    ExitCode(
        "7",
        "the rate limit",
        (
            "The service returned 429 until the deadline (rate limit), or a read never got a "
            "usable response."
        ),
        "nothing new",
        "Run it again later, or with a longer `--deadline`.",
    ),
    ExitCode(
        "8",
        "a used idempotency key",
        "The idempotency key was used with other content.",
        "the earlier share or request",
        "Check `sealpipe shares list`, then share again.",
    ),
    ExitCode(
        "9",
        "the outcome is unknown",
        "**The outcome is unknown**: the service failed (5xx), was still busy with the "
        "same call, or did not respond. "
        "A share or request is in the outbox.",
        "perhaps the result",
        "Run the command that the error prints: `sealpipe resume ID`, or the same command again.",
    ),
    ExitCode(
        "10",
        "no connection",
        "No connection was possible, so nothing was sent.",
        "nothing",
        "Check address, network and proxy, then run it again.",
    ),
    ExitCode(
        "11",
        "not delivered",
        "The share or request exists, but the result or a [message](channels.md#retry-a-delivery) "
        "was not delivered. The entry is in the outbox.",
        "the share or request",
        "Run `sealpipe resume ID`, as printed.",
    ),
    ExitCode(
        "12",
        "no usable response",
        "The response breaks the protocol (not JSON, a redirect, too long), or a request has "
        "another public key than the one we sent.",
        "perhaps something",
        "Check that the base URL is the service's API and that no proxy responds instead; run "
        "`sealpipe resume ID`, if printed.",
    ),
    ExitCode(
        "13",
        "not decrypted or verified",
        "Something cannot be decrypted or verified. `collect`: a submission is unreadable or does "
        "not fit the targets; the others are delivered, and its ciphertext is stored. `audit "
        "verify`: the log's chain is broken. `webhooks verify`: the webhook is not authentic, or "
        "was not signed just now. `doctor --conformance`: a test vector differs.",
        "unchanged",
        (
            "Use the right `--key`, or ask for a new submission. Do not share with an "
            "installation that fails the vectors."
        ),
    ),
    ExitCode(
        "14",
        "a source, sink or channel failed",
        "A source, sink or channel failed: a secret is missing, empty or not UTF-8, a login was "
        "refused, a backend did not respond, a sink did not accept a value, or a submission did "
        "not pass a check.",
        "nothing; `collect` has fetched the submissions",
        "Fix the backend or its settings, and run it again.",
    ),
    ExitCode(
        "15",
        "nothing yet",
        "`collect`: the request has no submission yet, or `--wait` ran out. `requests list "
        "--sealed-to previous`: "
        "requests still need the previous key. `batch run --detailed-exit-code`: rows still wait. "
        "`shares wait`: time is up.",
        "unchanged; with `shares wait --else expire`, the share has ended",
        "Run it again later.",
    ),
    ExitCode(
        "16",
        "ended without a submission",
        "`collect`: the request has ended without a submission. `shares wait`: the share has ended "
        "and is not known to have been opened.",
        "unchanged",
        "Create a new request, or share it again.",
    ),
    ExitCode(
        "17",
        "too many submissions",
        "`collect`: the request has more submissions than `--pick` accepts, or it has ended and no "
        "submission has the code that `--pick` names. Nothing was stored.",
        "unchanged",
        "Choose one with `--pick`.",
    ),
    ExitCode(
        "18",
        "rows failed",
        "Rows of a batch failed or are blocked; the others went on. With `--output json`, each row "
        "has the exit code of its own error.",
        "what the other rows needed",
        "`sealpipe batch status NAME` says what to do about each.",
    ),
    ExitCode(
        "130, 143",
        "interrupted",
        "The command was interrupted (SIGINT, SIGTERM).",
        "perhaps something",
        "Run `sealpipe resume ID`, if printed.",
    ),
)
"""Every exit code; a test compares their numbers with those of the exceptions."""


def numbers() -> set[int]:
    """Return the numbers of the table."""
    return {int(number) for row in EXIT_CODES for number in row.number.split(", ")}


def of_exceptions() -> set[int]:
    """Return the numbers that exceptions end with."""
    return {kind.exit_code for kind in kinds()}


def page() -> str:
    """Return the list of exit codes, and what each means."""
    rows = [(f"[{row.number}](#{slug(_heading(row))})", row.title) for row in EXIT_CODES]
    return "\n".join([table(("exit code", "in short"), rows), *map(_section, EXIT_CODES)])


def _heading(row: ExitCode) -> str:
    return f"{row.number}: {row.title}"


def _section(row: ExitCode) -> str:
    exceptions = "" if "," in row.number else of_code(int(row.number))
    parts = [
        f"### {_heading(row)}\n",
        f"{wrap(row.meaning)}\n",
        (
            f"{wrap(f'- What to do: {row.remedy}', '  ')}\n"
            f"{wrap(f'- What the service has: {row.at_the_service}.', '  ')}"
        ),
    ]
    more = f"\n{wrap(f'- Exceptions: {exceptions}.', '  ')}\n" if exceptions else "\n"
    return "\n".join(parts) + more
