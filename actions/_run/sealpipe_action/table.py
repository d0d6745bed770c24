"""ONE table of what each action takes and gives. action.yml, its README and the argument list are held to it.

The action's step hands every input on as SEALPIPE_ACTION_<INPUT>; never as an argument of a shell.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

Kind = Literal["text", "lines", "flag", "own"]
"""How an input becomes words: one option, one option a line, a switch, or nothing (the action's own)."""


class Input(NamedTuple):
    """An input, the option it stands for (empty: its own name's; of kind `own`: none), and what it is for people.

    `real`: it is about the real service, or stores something somewhere, and is left out of a rehearsal.
    """

    name: str
    help: str
    kind: Kind = "text"
    option: str = ""
    default: str = ""
    real: bool = False

    @property
    def variable(self) -> str:
        """The environment's name for it in the action's last step."""
        return PREFIX + self.name.replace("-", "_").upper()

    @property
    def flag(self) -> str:
        """The option on the command line; empty where there is none."""
        name = self.option if self.kind == "own" else self.option or self.name
        return name and f"--{name}"


PREFIX = "SEALPIPE_ACTION_"

SETUP = (
    Input("extras", "Extras to install beside those that the references name: `vault,aws`.", "own"),
    Input("installer", "`auto`, `uv` or `pip`.", "own", default="auto"),
    Input("executable", "Path of a sealpipe that is there already: nothing is installed.", "own"),
)
COMMON = (
    Input("api-key-file", "File that holds the credential, in place of `env: SEALPIPE_API_KEY`.", real=True),
    Input("base-url", "The service's API; ends in /v1. Else `env: SEALPIPE_BASE_URL`.", real=True),
    Input("link-base-url", "What links start with. Else `env: SEALPIPE_LINK_BASE_URL`.", real=True),
    Input("service-tag", "The service's short tag, where no credential tells it.", real=True),
    Input("state-dir", "Folder for the outbox; without it, in the runner's temporary folder.", real=True),
    Input("ca-file", "Certificates to trust beside the system's.", real=True),
    Input("deadline", "Longest time for all tries together, such as `60s`."),
    Input("on-missing-key", "Without a credential (forks, Dependabot): `fail`, or `skip` the step.", "own", "", "fail"),
    Input("summary", "Tell in the run's summary what was done: never a link, never a value.", "own", "", "true"),
)
_REHEARSE = Input("rehearse", "Run against a local service, without an account; nothing is sent.", "own", "", "false")
_SEND = Input("send", "Channels that take the link, one a line: `slack:#ops`.", "lines", real=True)
_PARAM = Input("param", "What {NAME} in a channel stands for, one a line: `NAME=REF`.", "lines", real=True)
_RECIPIENT = Input("recipient", "What {recipient} in a channel stands for: plain data, no reference.", "own", real=True)
_PASSCODE = "Reference to a passcode"

INPUTS: Mapping[str, tuple[Input, ...]] = {
    "share": (
        Input(
            "fields",
            "What to share, one reference a line: `LABEL=REF`. Lines that begin with # are none.",
            "own",
            "field",
        ),
        Input("fields-from", "File with more of such lines.", "own"),
        Input("title", "Title, in clear at the service."),
        Input("description", "Description, in clear at the service."),
        Input("expires-in", "How long the link works: `72h`."),
        Input("expires-at", "Until when the link works: RFC 3339."),
        Input("no-expiry", "The link works until its views are spent.", "flag"),
        Input("views", "How often it may be opened: a number or `unlimited`."),
        Input("passcode-from", f"{_PASSCODE} that the recipient is asked for."),
        Input("passcode-generate", "Draw a passcode; it goes where `passcode-to` says.", "flag", real=True),
        Input("passcode-to", "Channels that take the passcode, one a line.", "lines", real=True),
        _SEND,
        _RECIPIENT,
        _PARAM,
        Input("message-template", "File with the message's text, {link} in it.", real=True),
        Input("also-to", "Sinks that take the fields, too, one a line.", "lines", real=True),
        Input("custody", "Let the account's owner read the share, too: `auto`, `require` or `off`."),
        Input("timed-view", "Seconds that an opened share stays visible."),
        Input("notify-on", "Mail the owner on viewed, denied, expired, deleted."),
        Input("mask-link", "Mask the link and set the output `link`. With `false`, neither.", "own", "", "true"),
        Input("link-file", "New 0600 file for the link.", "own", "link-file", real=True),
        Input("seal-link", "Set the output `sealed-link`, for other jobs.", "flag"),
        Input(
            "bind",
            "Text, no secret, that `unseal --bind` must name as well. Without it, `github:OWNER/REPO:RUN_ID` of this "
            "run; `none` binds the sealed link to nothing.",
            "own",
            "bind",
        ),
        Input("receipt", "New JSON file that tells of the share, without its link."),
        Input("dry-run", "Do everything but send.", "flag"),
        _REHEARSE,
    ),
    "request": (
        Input("ask", "What to ask for, one a line: `[ID=]PROMPT[:TYPE]`.", "lines"),
        Input("title", "Title, in clear at the service; without it, the prompts."),
        Input("description", "Description, in clear at the service."),
        Input("expires-in", "How long it can be answered: `30d`."),
        Input("max-submissions", "How often it can be answered."),
        Input("passcode-from", f"{_PASSCODE} for the form. It is sent to the service, and encrypts nothing."),
        Input("restrict-domain", "Only who signs in from these mail domains, one a line.", "lines"),
        Input("restrict-address", "Only from these IP addresses or ranges, one a line.", "lines"),
        Input("key", "What answers are sealed to: `credential` or `new`.", real=True),
        Input("seed-to", "Sink that takes a new key's seed.", real=True),
        _SEND,
        _RECIPIENT,
        _PARAM,
        Input("receipt", "New JSON file for `collect`: nothing secret, no link."),
        _REHEARSE,
    ),
    "collect": (
        Input("requests", "Short codes, or files of receipts, one a line.", "own"),
        Input("map", "Which answers become the output `values`, one a line: `NAME=PROMPT`, `NAME=PROMPT:text`.", "own"),
        Input("to", "Sinks that take the answers, one a line: `vault:secret/acme#password=PROMPT`.", "lines"),
        Input("mode", "What may be there already: `create`, `replace` or `merge`."),
        Input("dir", "Folder that takes each answer as a folder of files."),
        Input("key", "What opens it: `credential`, or a reference to a seed or an access link."),
        Input("wait", "How long to wait for an answer: `15m`."),
        Input("pick", "Which answer: `only`, `newest`, `oldest`, `each`, or a code."),
        Input("on-pending", "Where nobody has answered yet: `fail`, `warn` or `skip`.", "own", "", "fail"),
        Input("after", "What becomes of the request once all is stored: `keep` or `expire`.", "own", "after", "keep"),
        Input("dry-run", "Open it, tell what would go where, store nothing.", "flag"),
    ),
    "expire": (
        Input("shares", "Short codes of shares, one a line.", "own"),
        Input("requests", "Short codes of requests, one a line. What was submitted is kept; nothing is purged.", "own"),
        Input("missing-ok", "A code that the service does not know (any more) is no failure.", "own", "", "false"),
    ),
}
"""What each action takes, beside COMMON and SETUP."""


class Output(NamedTuple):
    """An output, and what it is."""

    name: str
    help: str


_OUTCOME = "`failed`, or `interrupted` after a failure; `skipped` without a credential, where that is allowed"
_LAST = (
    Output("error-code", "Exit code of sealpipe where it failed; empty where it did not."),
    Output("executable", "Path of sealpipe, for `resume` and `unseal` in later steps."),
)
_MADE = (
    Output("short-code", "The short code, as soon as the service has answered: after a failure, too."),
    Output("expires-at", "When it ends: RFC 3339, empty for never."),
)

OUTPUTS: Mapping[str, tuple[Output, ...]] = {
    "share": (
        *_MADE,
        Output("custody", "Whether the account's owner can read it, too: `stored`, `none` or `failed`."),
        Output("link", "The link, masked: for this job only, the runner hands it to no other."),
        Output("sealed-link", "The link as ciphertext, for other jobs: `sealpipe unseal --bind` opens it."),
        Output("outcome", f"`created`, `replayed`, `dry-run` or `undelivered`; `unknown`, {_OUTCOME}."),
        *_LAST,
    ),
    "request": (
        *_MADE,
        Output("link", "The collect link: whoever has it can answer, and read nothing. Empty where it was sent."),
        Output("receipt", "Path of the receipt, where one was asked for."),
        Output("outcome", f"`created`, `replayed` or `undelivered`; `unknown`, {_OUTCOME}."),
        *_LAST,
    ),
    "collect": (
        Output("values", "JSON of what `map` names, masked: for this job only. `fromJSON(...).NAME`."),
        Output("count", "How many answers there are; with several requests, all together."),
        Output("outcome", f"`collected`, `pending`, `expired` or `dry-run`; {_OUTCOME}."),
        *_LAST,
    ),
    "expire": (
        Output("expired", "The codes that are expired now, one a line."),
        Output("missing", "The codes that the service does not know, one a line."),
        Output("outcome", f"`expired`, `missing` or `nothing` (no code was given); {_OUTCOME}."),
        *_LAST,
    ),
}
"""What each action gives."""


def inputs(action: str) -> tuple[Input, ...]:
    """Every input of an action."""
    return (*INPUTS[action], *COMMON, *SETUP)
