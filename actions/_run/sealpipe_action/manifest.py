"""ONE table of each action's inputs and outputs; action.yml, the README and the options are made
from it.

The action's step passes every input as the variable SEALPIPE_ACTION_<INPUT>, never as an argument
in a shell.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

Kind = Literal["text", "lines", "flag", "own"]
"""How an input becomes options: one option, one per line, a switch, or none (used by the action
itself).
"""


class Input(NamedTuple):
    """An input: name, help, and its option (by default the same name; none for kind `own`).

    With `real`, it concerns the real service or stores something, so a rehearsal ignores it.
    """

    name: str
    help: str
    kind: Kind = "text"
    option: str = ""
    default: str = ""
    real: bool = False

    @property
    def variable(self) -> str:
        """Its environment variable in the action's last step."""
        return PREFIX + self.name.replace("-", "_").upper()

    @property
    def flag(self) -> str:
        """Its command-line option; empty if it has none."""
        name = self.option if self.kind == "own" else self.option or self.name
        return name and f"--{name}"


PREFIX = "SEALPIPE_ACTION_"

SETUP = (
    Input(
        "extras",
        "Extras to install in addition to those that the references need: `vault,aws`.",
        "own",
    ),
    Input(
        "installer",
        (
            "`uv`, `pip` or `auto`: uv if it is installed, but pip if only pip has an index or "
            "a CA configured."
        ),
        "own",
        default="auto",
    ),
    Input(
        "executable",
        "Path of an installed sealpipe, for runners without an index: nothing is "
        "installed. It must run and print a "
        "version; another version than the action's is a warning.",
        "own",
    ),
)
COMMON = (
    Input(
        "api-key-file",
        "File with the API credential, instead of `env: SEALPIPE_API_KEY`.",
        real=True,
    ),
    Input(
        "base-url",
        "Base URL of the service's API; ends in /v1. Default: `env: SEALPIPE_BASE_URL`.",
        real=True,
    ),
    Input("link-base-url", "Base URL of links. Default: `env: SEALPIPE_LINK_BASE_URL`.", real=True),
    Input("service-tag", "The service's short tag. Needed only without a credential.", real=True),
    Input("state-dir", "State directory. Default: in the runner's temporary directory.", real=True),
    Input("ca-file", "Certificates to trust in addition to the system's (PEM).", real=True),
    Input("deadline", "Overall timeout, retries included, such as `60s`."),
    Input(
        "rehearse",
        "Run against a local service, without an account; nothing is sent.",
        "own",
        "",
        "false",
    ),
    Input(
        "on-missing-key",
        "Without a credential (forks, Dependabot): `fail`, or `skip` the step.",
        "own",
        "",
        "fail",
    ),
    Input(
        "summary",
        "Write what was done to the run's summary: never a link, never a value.",
        "own",
        "",
        "true",
    ),
)
_OFFLINE: Mapping[str, tuple[str, ...]] = {
    "unseal": ("base-url", "link-base-url", "state-dir", "deadline")
}
"""Common inputs that an action lacks because its command makes no connection."""
_NAME = Input(
    "name", "Name for you, in lists, receipts and {name} of paths. The service never gets it."
)
_SEND = Input(
    "send", "Channels that deliver the link, one per line: `slack:#ops`.", "lines", real=True
)
_PARAM = Input(
    "param", "Values for {NAME} in a channel, one `NAME=REF` per line.", "lines", real=True
)
_RECIPIENT = Input(
    "recipient",
    "Value for {recipient} in a channel: plain data, not a reference.",
    "own",
    real=True,
)
_PASSCODE = "Reference to a passcode"

INPUTS: Mapping[str, tuple[Input, ...]] = {
    "share": (
        Input(
            "fields",
            "Fields to share, one `LABEL=REF` per line. Lines that begin with # are ignored.",
            "own",
            "field",
        ),
        Input("fields-from", "File with more such lines.", "own"),
        _NAME,
        Input("title", "Title. The service can read it."),
        Input("description", "Description. The service can read it."),
        Input("expires-in", "How long the link works: `72h`."),
        Input("expires-at", "When the link expires: RFC 3339."),
        Input("no-expiry", "Never expire; the link works until its views are used up.", "flag"),
        Input("views", "How many times the link works: a number, or `unlimited`."),
        Input("passcode-from", f"{_PASSCODE}. The recipient must enter it."),
        Input("organization-id", "Organisation that it belongs to, by the service's id."),
        Input(
            "passcode-generate",
            "Generate a passcode and deliver it to `passcode-to`.",
            "flag",
            real=True,
        ),
        Input(
            "passcode-to", "Channels that deliver the passcode, one per line.", "lines", real=True
        ),
        _SEND,
        _RECIPIENT,
        _PARAM,
        Input("message-template", "File with the message's text; must contain {link}.", real=True),
        Input("also-to", "Sinks that store the fields, too, one per line.", "lines", real=True),
        Input(
            "custody",
            (
                "Let the account's owner read the share: if possible (`auto`), always "
                "(`require`), never (`off`)."
            ),
        ),
        Input("timed-view", "How long an opened share stays visible, in seconds."),
        Input("notify-on", "Email the owner when the share is viewed, denied, expired or deleted."),
        Input(
            "mask-link",
            "Mask the link and set the output `link`. With `false`, neither.",
            "own",
            "",
            "true",
        ),
        Input("link-file", "New file (mode 0600) for the link.", "own", "link-file", real=True),
        Input("seal-link", "Set the output `sealed-link`, for other jobs.", "flag"),
        Input(
            "bind",
            "Text (not secret) that `unseal --bind` must repeat. Default: "
            "`github:OWNER/REPO:RUN_ID` of this "
            "run; `none` binds the sealed link to nothing.",
            "own",
            "bind",
        ),
        Input("receipt", "New JSON file that describes the share, without its link."),
        Input(
            "wait-until",
            "Go on only once the link, which `send` delivered, was `opened`, or the share has "
            "`ended`; the step fails (error-code 15, 16) if that does not come.",
            "own",
            real=True,
        ),
        Input("wait-for", "How long to wait for that.", "own", default="24h", real=True),
        Input(
            "wait-else",
            "What to do with the share when that time is up: `expire`, or nothing.",
            "own",
            real=True,
        ),
        Input("dry-run", "Read the sources and encrypt, but send nothing.", "flag"),
    ),
    "request": (
        Input("ask", "Prompts for the submitter, one `[ID=]PROMPT[:TYPE]` per line.", "lines"),
        _NAME,
        Input("title", "Title. The service can read it. Default: the prompts."),
        Input("description", "Description. The service can read it."),
        Input("expires-in", "How long the collect link works: `30d`."),
        Input("expires-at", "When the collect link expires: RFC 3339."),
        Input("max-submissions", "How many submissions to accept."),
        Input("views", "How many times the form can be opened. Default: no limit."),
        Input("requires-login", "Accept only submitters who sign in.", "flag"),
        Input("requires-mfa", "Accept only submitters who sign in with a second factor.", "flag"),
        Input(
            "passcode-from",
            f"{_PASSCODE} for the form. It is sent to the service and encrypts nothing.",
        ),
        Input(
            "restrict-domain",
            "Accept only submitters who sign in with these email domains, one per line.",
            "lines",
        ),
        Input(
            "restrict-address",
            "Accept only submitters from these IP addresses or ranges, one per line.",
            "lines",
        ),
        Input("organization-id", "Organisation that it belongs to, by the service's id."),
        Input("key", "Seal submissions to this key: `credential` or `new`.", real=True),
        Input("seed-to", "Sink that stores the new key's seed.", real=True),
        _SEND,
        _RECIPIENT,
        _PARAM,
        Input(
            "receipt", "New JSON file for `sealpipe collect`; holds the collect link and no secret."
        ),
        Input("dry-run", "Check everything, but store and send nothing.", "flag"),
    ),
    "collect": (
        Input("requests", "Short codes or receipt files, one per line.", "own"),
        Input(
            "map",
            "Values for the output `values`, one per line: `NAME=PROMPT`, `NAME=PROMPT:text`.",
            "own",
        ),
        Input(
            "to",
            "Sinks that store the submission, one per line: `vault:secret/acme#password=PROMPT`.",
            "lines",
        ),
        Input(
            "mode",
            (
                "What to do if the target exists: fail (`create`), overwrite (`replace`) or "
                "add keys (`merge`)."
            ),
        ),
        Input("dir", "Directory that receives each submission as a directory of files."),
        Input(
            "check",
            "Check of the config file that a submission must pass before it is stored.",
            real=True,
        ),
        Input(
            "key",
            "Key that opens submissions: `credential`, or a reference to a seed or an access link.",
            real=True,
        ),
        Input("wait", "How long to wait for a submission: `15m`.", real=True),
        Input(
            "pick",
            "Which submission to pick: `only`, `newest`, `oldest`, `each`, or a code.",
            real=True,
        ),
        Input(
            "on-pending",
            "If there is no submission yet: `fail`, `warn` or `skip`.",
            "own",
            "",
            "fail",
        ),
        Input(
            "after",
            "After everything is stored, what to do with the request: `keep` or `expire`.",
            "own",
            "after",
            "keep",
        ),
        Input(
            "dry-run",
            "Open submissions and show what would be stored where; store nothing.",
            "flag",
        ),
    ),
    "expire": (
        Input("shares", "Short codes of shares, one per line.", "own"),
        Input(
            "requests",
            "Short codes of requests, one per line. Submissions are kept; nothing is purged.",
            "own",
        ),
        Input(
            "missing-ok",
            "Do not fail if the service does not know a code (any more).",
            "own",
            "",
            "false",
        ),
    ),
    "unseal": (
        Input(
            "sealed-link",
            "The output `sealed-link` of the step that shared. It is ciphertext.",
            "own",
            "sealed-file",
        ),
        Input(
            "bind",
            "Text that the link is bound to. Default: `github:OWNER/REPO:RUN_ID` of this "
            "run; `none` if it is bound to "
            "nothing.",
            "own",
            "bind",
        ),
        Input("expect", "Accept only the link of the share with this short code.", real=True),
        Input("link-file", "New file (mode 0600) for the link.", "own", "link-file"),
        Input(
            "variable",
            "Environment variable for later steps of this job; its name ends in `LINK`.",
            "own",
        ),
    ),
    "batch": (
        Input("file", "The batch file.", "own"),
        Input(
            "command",
            (
                "`run`, `plan` or `adopt`; `collect`, `remind`, `reissue` or `cancel` the rows in "
                "`only`."
            ),
            "own",
            "",
            "run",
        ),
        Input("only", "Only the rows with these keys, one per line.", "lines"),
        Input("for", "How long `run` goes on, and does what becomes due: `10m`."),
        Input("now", "Let `run` look at every waiting row, whatever the schedule says.", "flag"),
        Input("plan", "Plan of which `run` does exactly the actions, or nothing.", real=True),
        Input("out", "File (mode 0600) for the plan that `plan` makes. It has the keys of rows."),
        Input("detailed-exit-code", "Fail with exit code 15 if rows still wait.", "flag"),
        Input(
            "database",
            (
                "Reference to the address of a PostgreSQL database: `env:DATABASE_URL`. "
                "Default: SQLite in `state-dir`."
            ),
            real=True,
        ),
        Input("addresses", "Show email addresses in the log and the summary.", "own", "", "false"),
    ),
}
"""Inputs of each action, in addition to COMMON and SETUP."""


class Output(NamedTuple):
    """An output: name and help."""

    name: str
    help: str


_OUTCOME = (
    "`failed`, or `interrupted` after a failure; `skipped` without a credential, where that is "
    "allowed"
)
_LAST = (
    Output("error-code", "Exit code of sealpipe if it failed; else empty."),
    Output("executable", "Path of sealpipe, for `resume` and `unseal` in later steps."),
)
_MADE = (
    Output(
        "short-code", "The short code, as soon as the service has responded; also after a failure."
    ),
    Output("expires-at", "When it expires: RFC 3339; empty for never."),
)

OUTPUTS: Mapping[str, tuple[Output, ...]] = {
    "share": (
        *_MADE,
        Output(
            "custody",
            "Whether the account's owner can read the share: `stored`, `none` or `failed`.",
        ),
        Output(
            "link",
            "The link, masked, for this job only: the runner does not pass it to other jobs.",
        ),
        Output(
            "sealed-link",
            "The link as ciphertext, for other jobs: `sealpipe unseal --bind` opens it.",
        ),
        Output(
            "outcome", f"`created`, `replayed`, `dry-run` or `undelivered`; `unknown`, {_OUTCOME}."
        ),
        *_LAST,
    ),
    "request": (
        *_MADE,
        Output(
            "link",
            "The collect link: anyone with it can submit, but not read. Empty if it was sent.",
        ),
        Output("receipt", "Path of the receipt, if there is one."),
        Output(
            "outcome", f"`created`, `replayed`, `dry-run` or `undelivered`; `unknown`, {_OUTCOME}."
        ),
        *_LAST,
    ),
    "collect": (
        Output(
            "values",
            "The values that `map` names as JSON, masked, for this job only: `fromJSON(...).NAME`.",
        ),
        Output("count", "Number of submissions, of all requests together."),
        Output("outcome", f"`collected`, `pending`, `expired` or `dry-run`; {_OUTCOME}."),
        *_LAST,
    ),
    "expire": (
        Output("expired", "The codes that are now expired, one per line."),
        Output("missing", "The codes that the service does not know, one per line."),
        Output("outcome", f"`expired`, `missing` or `nothing` (no code was given); {_OUTCOME}."),
        *_LAST,
    ),
    "unseal": (
        Output(
            "link",
            "The link, masked, for this job only: the runner does not pass it to other jobs.",
        ),
        Output("short-code", "The short code of its share."),
        Output("outcome", f"`opened`; {_OUTCOME}."),
        *_LAST,
    ),
    "batch": (
        Output(
            "counts",
            (
                "Number of rows in each state as JSON, of a plan for each action: "
                "`fromJSON(...).create`."
            ),
        ),
        Output(
            "changes",
            "Number of changes that were made; of a plan, of rows that a run would change.",
        ),
        Output("plan", "Path of the plan, if one was written."),
        Output(
            "outcome",
            "`done`, `pending` (rows still wait), `planned` or `adopted`; `troubled` (rows "
            "failed or are blocked), "
            f"{_OUTCOME}.",
        ),
        *_LAST,
    ),
}
"""Outputs of each action."""


def inputs(action: str) -> tuple[Input, ...]:
    """Return every input of an action."""
    common = [each for each in COMMON if each.name not in _OFFLINE.get(action, ())]
    return (*INPUTS[action], *common, *SETUP)
