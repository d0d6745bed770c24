"""ONE table of everything that can be set: names, types, defaults, help.

click's options (`cli/options.py`) and the pydantic-settings model (`settings_model.py`) are both made
from it. A value comes from the flag, else the environment, else the user's config file, else the default
(DESIGN section 3). Nothing is ever read from the working directory on its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from sealpipe import setting_values as values
from sealpipe import times
from sealpipe.reference import parse, parse_field, parse_target


class Setting(NamedTuple):
    """One thing that can be set. `parse` turns text into the value and raises UsageError."""

    name: str
    help: str
    parse: Callable[[str], Any] = str
    default: str | None = None
    metavar: str = "TEXT"
    choices: tuple[str, ...] = ()
    flag: bool = False
    multiple: bool = False
    short: str = ""
    secret: bool = False
    """A secret has no option, is not read from the config file, and never shows in help."""

    @property
    def option(self) -> str:
        return "--" + self.name.replace("_", "-")

    def variable(self, command: str = "") -> str:
        """The environment's name for it: SEALPIPE_BASE_URL, SEALPIPE_SHARE_EXPIRES_IN."""
        return "_".join(part for part in ("SEALPIPE", command.replace("-", "_"), self.name) if part).upper()


def _print(what: str) -> Setting:
    return Setting("print", f"In CI: put the {what} on stdout, which you capture.", flag=True)


GLOBAL: tuple[Setting, ...] = (
    Setting("api_key", "The API credential.", secret=True),
    Setting("api_key_previous", "The credential before this one: opens what was sealed to it.", secret=True),
    Setting("api_key_file", "File that holds the API credential.", metavar="FILE"),
    Setting("base_url", "The service's API; ends in /v1.", values.parse_base_url, metavar="URL"),
    Setting("link_base_url", "What links start with.", values.parse_link_base_url, metavar="URL"),
    Setting(
        "service_tag", "The service's short tag, where no credential tells it.", values.parse_service_tag, metavar="TAG"
    ),
    Setting("state_dir", "Folder for the outbox.", metavar="DIR"),
    Setting("ca_file", "Certificates to trust beside the system's.", metavar="FILE"),
    Setting("deadline", "Longest time for all tries together.", values.parse_seconds, "60s", "DURATION"),
    Setting("output", "What stdout carries.", default="text", choices=("text", "json")),
)

COMMANDS: Mapping[str, tuple[Setting, ...]] = {
    "share": (
        Setting(
            "field", "What to share; may be repeated.", parse_field, multiple=True, short="-f", metavar="[LABEL=]REF"
        ),
        Setting("title", "Title, in clear at the service.", metavar="TEXT"),
        Setting("description", "Description, in clear at the service.", metavar="TEXT"),
        Setting("expires_in", "How long the link works.", times.parse_duration, "72h", "DURATION"),
        Setting("expires_at", "Until when the link works.", times.parse_time, metavar="TIME"),
        Setting("no_expiry", "The link works until its views are spent.", flag=True),
        Setting("views", "How often it may be opened: a number or `unlimited`.", values.parse_views, "1", "N"),
        Setting("passcode_from", "Reference to a passcode that the recipient is asked for.", parse, metavar="REF"),
        Setting(
            "custody",
            "Let the account's owner read the share, too.",
            default="auto",
            choices=("auto", "require", "off"),
        ),
        Setting("timed_view", "Seconds that an opened share stays visible.", values.parse_count, metavar="SECONDS"),
        Setting("notify_on", f"Mail the owner on {', '.join(values.NOTIFY_ON)}.", values.parse_events, metavar="LIST"),
        Setting("passcode_generate", "Draw a passcode; it goes where --passcode-to says.", flag=True),
        Setting("passcode_to", "Where the passcode goes.", parse_target, multiple=True, metavar="CHANNEL"),
        Setting("send", "Where the link goes, in place of stdout.", parse_target, multiple=True, metavar="CHANNEL"),
        Setting("param", "What {NAME} in a channel stands for.", values.parse_param, multiple=True, metavar="NAME=REF"),
        Setting(
            "also_to", "Where fields are stored, too, before the share is made.", parse, multiple=True, metavar="SINK"
        ),
        Setting("message_template", "Text of the message, with {link} in it.", metavar="FILE"),
        Setting("link_file", "New 0600 file for the link, in place of stdout.", metavar="FILE"),
        Setting("seal_link", "Print the link sealed, for `unseal` in another job.", flag=True),
        Setting(
            "bind", "Text, no secret, that `unseal --bind` must name as well.", values.parse_bind_text, metavar="TEXT"
        ),
        _print("link"),
        Setting("receipt", "New JSON file that tells of the share, without its link.", metavar="FILE"),
        Setting("dry_run", "Do everything but send.", flag=True),
    ),
    "request": (
        Setting(
            "ask",
            "What to ask for; may be repeated.",
            values.parse_ask,
            multiple=True,
            short="-a",
            metavar="[ID=]PROMPT[:TYPE]",
        ),
        Setting("title", "Title, in clear at the service; without it, the prompts.", metavar="TEXT"),
        Setting("description", "Description, in clear at the service.", metavar="TEXT"),
        Setting("expires_in", "How long it can be answered.", times.parse_duration, "30d", "DURATION"),
        Setting("max_submissions", "How often it can be answered.", values.parse_count, metavar="N"),
        Setting(
            "passcode_from",
            "Reference to a passcode for the form. It is SENT TO THE SERVICE, and encrypts nothing.",
            parse,
            metavar="REF",
        ),
        Setting("restrict_domain", "Only who signs in from this mail domain.", multiple=True, metavar="DOMAIN"),
        Setting("restrict_address", "Only from this IP address or range.", multiple=True, metavar="ADDRESS"),
        Setting(
            "key",
            "What answers are sealed to: the credential's key, or a new one.",
            default="credential",
            choices=("credential", "new"),
        ),
        Setting("seed_to", "Where a new key's seed is stored.", parse, metavar="SINK"),
        Setting("send", "Where the link goes, in place of stdout.", parse_target, multiple=True, metavar="CHANNEL"),
        Setting("param", "What {NAME} in a channel stands for.", values.parse_param, multiple=True, metavar="NAME=REF"),
        Setting("receipt", "New JSON file for `collect`: nothing secret, no link.", metavar="FILE"),
    ),
    "collect": (
        Setting(
            "key",
            "What opens it: `credential`, or a seed or access link.",
            values.parse_key_choice,
            "credential",
            "credential|REF",
        ),
        Setting("wait", "How long to wait for an answer.", times.parse_duration, metavar="DURATION"),
        Setting("pick", "Which answer: only, newest, oldest, each, or a code.", default="only", metavar="WHICH"),
        Setting("to", "Where it is stored; may be repeated.", parse, multiple=True, metavar="SINK"),
        Setting(
            "mode",
            "What may be there already: nothing (create), or what goes (replace), or stays (merge).",
            default="create",
            choices=("create", "replace", "merge"),
        ),
        Setting("dir", "Folder that takes each answer as a folder of files.", metavar="DIR"),
        Setting("after", "End the request once all is stored.", default="keep", choices=("keep", "expire")),
        _print("values"),
        Setting("dry_run", "Open it, tell what would go where, store nothing.", flag=True),
    ),
    "audit": (
        Setting("head", "A head that was told before: it has to be in there.", metavar="SEQ:MARK"),
        Setting("key", "Reference to the key of the chain: file:/PATH or env:NAME.", metavar="REF"),
    ),
    "unseal": (
        Setting("bind", "The text that the link was sealed with --bind to.", values.parse_bind_text, metavar="TEXT"),
        Setting("expect", "Refuse a link of any other share than this.", values.parse_code, metavar="CODE"),
        Setting("link_file", "New 0600 file for the link, in place of stdout.", metavar="FILE"),
        _print("link"),
    ),
    "shares": (
        Setting("page", "Which page, from 1.", values.parse_count, metavar="N"),
        Setting("limit", "Rows a page, at most 100.", values.parse_count, metavar="N"),
        Setting("all", "Walk every page.", flag=True),
    ),
    "tools": (
        Setting(
            "param",
            "An argument, and where it comes from; may be repeated.",
            values.parse_param,
            multiple=True,
            metavar="NAME=REF",
        ),
        _print("secret that a tool hands out"),
    ),
    "requests": (
        Setting("page", "Which page, from 1.", values.parse_count, metavar="N"),
        Setting("limit", "Rows a page, at most 100.", values.parse_count, metavar="N"),
        Setting("all", "Walk every page.", flag=True),
        Setting("status", "List the active ones, or what has ended.", default="active", choices=("active", "expired")),
        Setting(
            "sealed_to",
            "List only those under this key; previous: ends with 15 while there are any.",
            choices=("credential", "previous"),
        ),
    ),
    "purge": (Setting("confirm", "The short code once more: what is purged is gone for good.", metavar="CODE"),),
    "resume": (
        Setting("list", "Tell what is in the outbox; do nothing.", flag=True),
        Setting("resend", "Send again what may have arrived already.", flag=True),
        Setting("discard", "Drop the entry; its link is lost for good.", flag=True),
        Setting("all", "Take the entries of other CI runs, too.", flag=True),
        _print("link"),
    ),
    "doctor": (
        Setting("roundtrip", "Make a test share, too, and end it at once.", flag=True),
        Setting("conformance", "Run the vectors of the wire format, and nothing else: no network.", flag=True),
    ),
    "plugins": (Setting("all", "Tell what each needs and which parameters it takes.", flag=True),),
    "rehearse": (
        Setting("keep", "Go on serving afterwards.", flag=True),
        Setting("faults", "Plan of what goes wrong on purpose (TOML).", metavar="FILE"),
        Setting("extended", "Offer what the specification does not show, too.", flag=True),
    ),
    "key": (
        Setting("name", "The key's name.", default="rehearsal"),
        Setting("scope", "A scope, or `all`; may be repeated. Without any: shares:write.", multiple=True),
        Setting("custody", "What the key may read.", default="self", choices=("none", "self", "account")),
        Setting("no_register", "Hold the custody public key back: the effective level stays none.", flag=True),
        Setting("account", "Whose key it is.", default="default", metavar="NAME"),
        Setting("org", "The organisation that the key acts in.", metavar="NAME"),
    ),
    "account": (
        Setting("account", "Which account.", default="default", metavar="NAME"),
        Setting("org", "Which organisation, in place of an account.", metavar="NAME"),
        Setting("plan", "The plan.", choices=("business", "enterprise", "none")),
        Setting(
            "rate", "Requests a minute: a number, `plan`, or `unset` (no access).", values.parse_limit, metavar="N"
        ),
        Setting("keys", "API keys: a number, or `plan`.", values.parse_limit, metavar="N"),
        Setting("shares", "Usable shares at a time: a number, or `plan` (no limit).", values.parse_limit, metavar="N"),
        Setting("view_protection", "Whether a passcode may be set.", choices=("on", "off")),
        Setting("zero_knowledge_enrolled", "Whether the account has a zero-knowledge key.", choices=("on", "off")),
        Setting("zero_knowledge_feature", "Whether the plan stores wraps.", choices=("on", "off")),
    ),
    "webhook": (Setting("account", "Whose events.", default="default", metavar="NAME"),),
    "open": (
        Setting("link", "Reference to the link.", default="stdin:", metavar="REF"),
        Setting("passcode_from", "Reference to the passcode that it wants.", metavar="REF"),
    ),
    "answer": (
        Setting("field", "What is typed where; may be repeated.", multiple=True, short="-f", metavar="PROMPT=REF"),
        Setting("passcode_from", "Reference to the passcode that the form wants.", metavar="REF"),
    ),
    "rehearsal": (
        Setting("port", "Port on 127.0.0.1.", values.parse_port, "8765", "N"),
        Setting("state", "SQLite file that survives a restart; in memory without it.", metavar="FILE"),
        Setting("faults", "Plan of what goes wrong on purpose (TOML).", metavar="FILE"),
        Setting("extended", "Offer what the specification does not show, too.", flag=True),
        Setting(
            "signature_header",
            "Header that signs webhooks.",
            values.parse_header_name,
            default="X-Service-Signature",
            metavar="NAME",
        ),
    ),
}
