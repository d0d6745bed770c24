"""Settings: names, types, defaults and help.

The tables of what is global, and of `share`, `request` and `collect`.

click's options (`cli/command.py`) and the pydantic-settings model (`settings_model.py`) are both
made from them. A value comes from the flag, otherwise the environment, the user's config file, or
the default. Nothing in the working directory is read unless a setting names it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from sealpipe import parsing
from sealpipe.errors import UsageError
from sealpipe.reference import Reference, parse, parse_field, parse_sink, parse_target
from sealpipe.reference.text import PARAMETER_NAME


class Setting(NamedTuple):
    """A setting. `parse` turns text into the value, or raises UsageError."""

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
    """Whether it is secret: then it has no option, no config file entry and no help."""

    @property
    def option(self) -> str:
        return "--" + self.name.replace("_", "-")

    def get_variable(self, command: str = "") -> str:
        """Return the environment variable, such as SEALPIPE_SHARE_EXPIRES_IN."""
        return "_".join(
            part for part in ("SEALPIPE", command.replace("-", "_"), self.name) if part
        ).upper()


def parse_param(text: str) -> tuple[str, Reference]:
    """Parse `NAME=REF` into a name and a reference."""
    name, equals, ref = text.partition("=")
    if not equals or not re.fullmatch(PARAMETER_NAME, name):
        raise UsageError(
            "the value is not NAME=REF", remedy="write it as limit=text:5 or code=env:SHORT_CODE"
        )
    return name, parse(ref, "what follows the first =")


def parse_key_choice(text: str) -> str | Reference:
    """Parse `credential`, or a reference to a key."""
    return text if text == "credential" else parse(text, "the key")


def repeatable(
    name: str, summary: str, metavar: str, parser: Callable[[str], Any] = str, short: str = ""
) -> Setting:
    """Return a setting that may be given several times."""
    return Setting(
        name, f"{summary}; may be repeated.", parser, metavar=metavar, multiple=True, short=short
    )


def make_print_setting(what: str) -> Setting:
    """Return the setting that lets a command print a secret in CI."""
    return Setting(
        "print", f"In CI: confirm that you capture stdout, and print the {what}.", flag=True
    )


_NAME = Setting(
    "name",
    "Name for you, in lists, receipts and {name}. The service never gets it.",
    parsing.parse_name,
    metavar="NAME",
)
_DESCRIPTION = Setting("description", "Description. The service can read it.", metavar="TEXT")
_ORGANIZATION = Setting(
    "organization_id", "Organisation that it belongs to, by the service's id.", metavar="ID"
)
_SEND_SETTING = repeatable(
    "send", "Channel that delivers the link, instead of stdout", "CHANNEL", parse_target
)
PARAM = repeatable("param", "Value for {NAME} in a channel", "NAME=REF", parse_param)

MODE = Setting(
    "mode",
    ("What to do if the target exists: fail (create), overwrite (replace) or add keys (merge)."),
    default="create",
    choices=("create", "replace", "merge"),
)

GLOBAL: tuple[Setting, ...] = (
    Setting("api_key", "The API credential.", secret=True),
    Setting(
        "api_key_previous",
        "The previous API credential: decrypts what was encrypted to it.",
        secret=True,
    ),
    Setting("api_key_file", "File with the API credential.", metavar="FILE"),
    Setting(
        "base_url",
        "Base URL of the service's API; ends in /v1.",
        parsing.parse_base_url,
        metavar="URL",
    ),
    Setting("link_base_url", "Base URL of links.", parsing.parse_link_base_url, metavar="URL"),
    Setting(
        "service_tag",
        "The service's short tag. Needed only without a credential.",
        parsing.parse_service_tag,
        metavar="TAG",
    ),
    Setting("state_dir", "State directory: outbox, ledger and stored ciphertext.", metavar="DIR"),
    Setting("ca_file", "Certificates to trust in addition to the system's (PEM).", metavar="FILE"),
    Setting(
        "deadline", "Overall timeout, retries included.", parsing.parse_seconds, "60s", "DURATION"
    ),
    Setting("output", "Format of the result on stdout.", default="text", choices=("text", "json")),
    Setting(
        "debug", "Print each step with its time on stderr: no value, body or header.", flag=True
    ),
)

FIRST: Mapping[str, tuple[Setting, ...]] = {
    "share": (
        repeatable(
            "field", "A field to share, by reference", "[LABEL[:TYPE]=]REF", parse_field, short="-f"
        ),
        _NAME,
        Setting("title", "Title. The service can read it.", metavar="TEXT"),
        _DESCRIPTION,
        Setting(
            "expires_in", "How long the link works.", parsing.parse_duration, "72h", "DURATION"
        ),
        Setting("expires_at", "When the link expires.", parsing.parse_time, metavar="TIME"),
        Setting(
            "no_expiry", "Never expire; the link works until its views are used up.", flag=True
        ),
        Setting(
            "views",
            "How many times the link works: a number, or `unlimited`.",
            parsing.parse_views,
            "1",
            "N",
        ),
        Setting(
            "passcode_from",
            "Reference to a passcode. The recipient must enter it.",
            parse,
            metavar="REF",
        ),
        Setting(
            "custody",
            (
                "Let the account's owner read the share: if possible (auto), always (require) "
                "or never (off)."
            ),
            default="auto",
            choices=("auto", "require", "off"),
        ),
        Setting(
            "timed_view",
            "How long an opened share stays visible, in seconds.",
            parsing.parse_count,
            metavar="SECONDS",
        ),
        Setting(
            "notify_on",
            f"Email the owner when the share is {', '.join(parsing.NOTIFY_ON)}.",
            parsing.parse_events,
            metavar="LIST",
        ),
        _ORGANIZATION,
        Setting(
            "passcode_generate", "Generate a passcode and deliver it to --passcode-to.", flag=True
        ),
        repeatable("passcode_to", "Channel that delivers the passcode", "CHANNEL", parse_target),
        _SEND_SETTING,
        PARAM,
        repeatable("also_to", "Sink that also stores the fields", "SINK", parse_sink),
        Setting(
            "message_template", "File with the message's text; must contain {link}.", metavar="FILE"
        ),
        Setting(
            "link_file", "New file (mode 0600) for the link, instead of stdout.", metavar="FILE"
        ),
        Setting(
            "seal_link",
            "Print the link sealed: another job opens it with `sealpipe unseal`.",
            flag=True,
        ),
        Setting(
            "bind",
            "Text (not secret) that `unseal --bind` must repeat.",
            parsing.parse_bind_text,
            metavar="TEXT",
        ),
        make_print_setting("link"),
        Setting(
            "receipt", "New JSON file that describes the share, without its link.", metavar="FILE"
        ),
        Setting("dry_run", "Read the sources and encrypt, but send nothing.", flag=True),
    ),
    "request": (
        repeatable(
            "ask", "A prompt for the submitter", "[ID=]PROMPT[:TYPE]", parsing.parse_ask, short="-a"
        ),
        _NAME,
        Setting("title", "Title. The service can read it. Default: the prompts.", metavar="TEXT"),
        _DESCRIPTION,
        Setting(
            "expires_in",
            "How long the collect link works.",
            parsing.parse_duration,
            "30d",
            "DURATION",
        ),
        Setting("expires_at", "When the collect link expires.", parsing.parse_time, metavar="TIME"),
        Setting(
            "max_submissions", "How many submissions to accept.", parsing.parse_count, metavar="N"
        ),
        Setting(
            "views",
            "How many times the form can be opened. Default: no limit.",
            parsing.parse_count,
            metavar="N",
        ),
        Setting("requires_login", "Accept only submitters who sign in.", flag=True),
        Setting(
            "requires_mfa", "Accept only submitters who sign in with a second factor.", flag=True
        ),
        Setting(
            "passcode_from",
            "Reference to a passcode for the form. It is SENT TO THE SERVICE and encrypts nothing.",
            parse,
            metavar="REF",
        ),
        repeatable(
            "restrict_domain", "Accept only submitters who sign in with this email domain", "DOMAIN"
        ),
        repeatable(
            "restrict_address", "Accept only submitters from this IP address or range", "ADDRESS"
        ),
        _ORGANIZATION,
        Setting(
            "key",
            "Seal submissions to the credential's key, or to a new one.",
            default="credential",
            choices=("credential", "new"),
        ),
        Setting(
            "seed_to",
            "Sink that stores the new key's seed (with --key new).",
            parse_sink,
            metavar="SINK",
        ),
        _SEND_SETTING,
        PARAM,
        Setting(
            "receipt",
            "New JSON file for `sealpipe collect`; holds the collect link and no secret.",
            metavar="FILE",
        ),
        Setting("dry_run", "Check everything, but store and send nothing.", flag=True),
    ),
    "collect": (
        Setting(
            "key",
            "Key that opens submissions: `credential`, or a reference to a seed or an access link.",
            parse_key_choice,
            "credential",
            "credential|REF",
        ),
        Setting(
            "wait", "How long to wait for a submission.", parsing.parse_duration, metavar="DURATION"
        ),
        Setting(
            "pick",
            "Which submission to pick: only, newest, oldest, each, or a code.",
            default="only",
            metavar="WHICH",
        ),
        repeatable("to", "Sink that stores the submission", "SINK", parse_sink),
        MODE,
        Setting(
            "dir", "Directory that receives each submission as a directory of files.", metavar="DIR"
        ),
        Setting(
            "check",
            "Check of the config file that a submission must pass before it is stored.",
            metavar="NAME",
        ),
        Setting(
            "after",
            "After everything is stored: keep the request, or expire it.",
            default="keep",
            choices=("keep", "expire"),
        ),
        make_print_setting("values"),
        Setting(
            "dry_run",
            "Open submissions and show what would be stored where; store nothing.",
            flag=True,
        ),
    ),
}
"""The tables of the commands that every pipeline runs."""


ARGUMENTS: Mapping[str, str] = {
    "ask": "prompts",
    "dir": "folder",
    "field": "fields",
    "param": "params",
    "passcode_from": "passcode",
    "restrict_address": "ip_whitelist",
    "restrict_domain": "restricted_domains",
}
"""Options that have another name in calls from Python."""
