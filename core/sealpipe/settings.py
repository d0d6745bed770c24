"""ONE table of everything that can be set: names, types, defaults, help.

click's options (`cli/options.py`) and the pydantic-settings model (`client/from_settings.py`) are both made
from it. A value comes from the flag, else the environment, else the user's config file, else the default
(DESIGN section 3). Nothing is ever read from the working directory on its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from sealpipe import times
from sealpipe.errors import SettingError, UsageError
from sealpipe.reference import Reference, parse, parse_field, parse_target
from sealpipe.reference.text import PARAMETER_NAME


@dataclass(frozen=True, slots=True)
class Setting:
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


def _http_url(name: str, text: str) -> str:
    try:
        parts = urlsplit(text)
        number = parts.port  # raises ValueError for a port that is none
    except ValueError:
        raise SettingError(f"{name} is not an address", remedy="write it as https://host/path") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or re.search(r"[\s\x00-\x1f]", text):
        raise SettingError(f"{name} is not an http(s) address", remedy="write it as https://host/path")
    if parts.username is not None or parts.query or parts.fragment or "?" in text or "#" in text or number == 0:
        raise SettingError(
            f"{name} has a user, a query, a fragment or port 0 in it", remedy="write it as https://host/path"
        )
    if parts.scheme == "http" and not is_loopback(parts.hostname):
        raise SettingError(
            f"{name} uses http:// to a host that is not this machine: the credential would travel in clear",
            remedy="use https://; http:// is for loopback only",
        )
    return text.rstrip("/")


def is_loopback(host: str) -> bool:
    """Whether a host name can only mean this machine."""
    return host in ("localhost", "::1") or re.fullmatch(r"127(\.\d{1,3}){3}", host) is not None


def base_url(text: str) -> str:
    """The API's address. It ends in /v1 already: that is checked, never added."""
    url = _http_url("the base URL", text)
    if not url.endswith("/v1"):
        raise SettingError("the base URL does not end in /v1", remedy="set SEALPIPE_BASE_URL with /v1 at its end")
    return url


def link_base_url(text: str) -> str:
    """The address that links start with."""
    return _http_url("the link base URL", text)


def service_tag(text: str) -> str:
    """The service's short tag, as in the credential's prefix."""
    if not re.fullmatch(r"[a-z][a-z0-9]{0,15}", text, re.ASCII):
        raise SettingError("the service tag is not a short lower-case word", remedy="it is `svc` or the like")
    return text


def seconds(text: str) -> float:
    """A span given as a duration (`60s`, `2m`)."""
    return times.parse_duration(text).total_seconds()


def views(text: str) -> int | None:
    """How often a share may be opened; None for `unlimited`."""
    if text == "unlimited":
        return None
    return count(text)


def count(text: str) -> int:
    """A whole number from 1 to 2,147,483,647."""
    if not re.fullmatch(r"[0-9]{1,10}", text, re.ASCII) or not 1 <= int(text) <= 2_147_483_647:
        raise UsageError(f"{text[:20]!r} is not a whole number", remedy="write a whole number from 1 up")
    return int(text)


def limit(text: str) -> int | str:
    """A number of the operator's: a count, or a word that the rehearsal knows."""
    return text if text in ("plan", "unset") else count(text)


def port(text: str) -> int:
    """A TCP port."""
    number = count(text)
    if number > 65535:
        raise UsageError(f"{number} is not a port", remedy="a port is at most 65535")
    return number


def param(text: str) -> tuple[str, Reference]:
    """`NAME=REF`: a name, and where its value comes from."""
    name, equals, ref = text.partition("=")
    if not equals or not re.fullmatch(PARAMETER_NAME, name):
        raise UsageError("this is not NAME=REF", remedy="write it as limit=text:5 or code=env:SHORT_CODE")
    return name, parse(ref, "what follows the first =")


def ask(text: str) -> Any:
    """`[ID=]PROMPT[:TYPE]` as a Prompt."""
    from sealpipe.prompts import parse_prompt  # who shares asks for nothing

    return parse_prompt(text)


def opens_with(text: str) -> str | Reference:
    """`credential`, or where a key comes from."""
    return text if text == "credential" else parse(text, "the key")


NOTIFY_ON = ("viewed", "denied", "expired", "deleted")


def notify_on(text: str) -> tuple[str, ...]:
    """Events parted by commas, each known and none twice."""
    events = tuple(text.split(","))
    for event in events:
        if event not in NOTIFY_ON:
            raise UsageError(f"{event[:20]!r} is no event", remedy=f"choose from {', '.join(NOTIFY_ON)}")
    if len(set(events)) < len(events):
        raise UsageError("an event is named twice", remedy="name each event once")
    return events


GLOBAL: tuple[Setting, ...] = (
    Setting("api_key", "The API credential.", secret=True),
    Setting("api_key_previous", "The credential before this one: opens what was sealed to it.", secret=True),
    Setting("api_key_file", "File that holds the API credential.", metavar="FILE"),
    Setting("base_url", "The service's API; ends in /v1.", base_url, metavar="URL"),
    Setting("link_base_url", "What links start with.", link_base_url, metavar="URL"),
    Setting("service_tag", "The service's short tag, where no credential tells it.", service_tag, metavar="TAG"),
    Setting("state_dir", "Folder for the outbox.", metavar="DIR"),
    Setting("ca_file", "Certificates to trust beside the system's.", metavar="FILE"),
    Setting("deadline", "Longest time for all tries together.", seconds, "60s", "DURATION"),
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
        Setting("views", "How often it may be opened: a number or `unlimited`.", views, "1", "N"),
        Setting("passcode_from", "Reference to a passcode that the recipient is asked for.", parse, metavar="REF"),
        Setting(
            "custody",
            "Let the account's owner read the share, too.",
            default="auto",
            choices=("auto", "require", "off"),
        ),
        Setting("timed_view", "Seconds that an opened share stays visible.", count, metavar="SECONDS"),
        Setting("notify_on", f"Mail the owner on {', '.join(NOTIFY_ON)}.", notify_on, metavar="LIST"),
        Setting("passcode_generate", "Draw a passcode; it goes where --passcode-to says.", flag=True),
        Setting("passcode_to", "Where the passcode goes.", parse_target, multiple=True, metavar="CHANNEL"),
        Setting("send", "Where the link goes, in place of stdout.", parse_target, multiple=True, metavar="CHANNEL"),
        Setting("param", "What {NAME} in a channel stands for.", param, multiple=True, metavar="NAME=REF"),
        Setting(
            "also_to", "Where fields are stored, too, before the share is made.", parse, multiple=True, metavar="SINK"
        ),
        Setting("message_template", "Text of the message, with {link} in it.", metavar="FILE"),
        Setting("link_file", "New 0600 file for the link, in place of stdout.", metavar="FILE"),
        Setting("seal_link", "Print the link sealed, for `unseal` in another job.", flag=True),
        Setting("receipt", "New JSON file that tells of the share, without its link.", metavar="FILE"),
        Setting("dry_run", "Do everything but send.", flag=True),
    ),
    "request": (
        Setting(
            "ask", "What to ask for; may be repeated.", ask, multiple=True, short="-a", metavar="[ID=]PROMPT[:TYPE]"
        ),
        Setting("title", "Title, in clear at the service; without it, the prompts.", metavar="TEXT"),
        Setting("description", "Description, in clear at the service.", metavar="TEXT"),
        Setting("expires_in", "How long it can be answered.", times.parse_duration, "30d", "DURATION"),
        Setting("max_submissions", "How often it can be answered.", count, metavar="N"),
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
        Setting("param", "What {NAME} in a channel stands for.", param, multiple=True, metavar="NAME=REF"),
        Setting("receipt", "New JSON file for `collect`: nothing secret, no link.", metavar="FILE"),
    ),
    "collect": (
        Setting(
            "key", "What opens it: `credential`, or a seed or access link.", opens_with, "credential", "credential|REF"
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
        Setting("dry_run", "Open it, tell what would go where, store nothing.", flag=True),
    ),
    "unseal": (Setting("link_file", "New 0600 file for the link, in place of stdout.", metavar="FILE"),),
    "shares": (
        Setting("page", "Which page, from 1.", count, metavar="N"),
        Setting("limit", "Rows a page, at most 100.", count, metavar="N"),
        Setting("all", "Walk every page.", flag=True),
    ),
    "tools": (
        Setting(
            "param", "An argument, and where it comes from; may be repeated.", param, multiple=True, metavar="NAME=REF"
        ),
    ),
    "requests": (
        Setting("page", "Which page, from 1.", count, metavar="N"),
        Setting("limit", "Rows a page, at most 100.", count, metavar="N"),
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
    ),
    "doctor": (Setting("roundtrip", "Make a test share, too, and end it at once.", flag=True),),
    "plugins": (Setting("all", "Tell what each needs and which parameters it takes.", flag=True),),
    "rehearse": (
        Setting("keep", "Go on serving afterwards.", flag=True),
        Setting("faults", "Plan of what goes wrong on purpose (TOML).", metavar="FILE"),
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
        Setting("rate", "Requests a minute: a number, `plan`, or `unset` (no access).", limit, metavar="N"),
        Setting("keys", "API keys: a number, or `plan`.", limit, metavar="N"),
        Setting("shares", "Usable shares at a time: a number, or `plan` (no limit).", limit, metavar="N"),
        Setting("view_protection", "Whether a passcode may be set.", choices=("on", "off")),
        Setting("zero_knowledge_enrolled", "Whether the account has a zero-knowledge key.", choices=("on", "off")),
        Setting("zero_knowledge_feature", "Whether the plan stores wraps.", choices=("on", "off")),
    ),
    "rehearsal": (
        Setting("port", "Port on 127.0.0.1.", port, "8765", "N"),
        Setting("state", "SQLite file that survives a restart; in memory without it.", metavar="FILE"),
        Setting("faults", "Plan of what goes wrong on purpose (TOML).", metavar="FILE"),
    ),
}
