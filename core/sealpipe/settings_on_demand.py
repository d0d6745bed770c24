"""The settings of all commands but `share`, `request` and `collect`; a share loads none of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sealpipe import addresses, parsing
from sealpipe.errors import UsageError
from sealpipe.reference import Reference, parse, parse_sink, parse_target
from sealpipe.settings import MODE, PARAM, Setting, make_print_setting, parse_param, repeatable


def parse_choice(text: str) -> str:
    """Parse what a share or a request is chosen by.

    An empty text, such as an unset variable, is no choice.
    """
    if not text.strip():
        raise UsageError("the value is empty", remedy="check the variable that it comes from")
    return text


def parse_database(text: str) -> str | Reference:
    """Parse the address of a server's database, or a reference to it."""
    scheme, colon, _ = text.partition(":")
    if not colon:
        raise UsageError(
            "the value is neither the address of a database nor a reference to one",
            remedy="write it as sqlite:///FILE, postgresql://USER@HOST/NAME or env:DBURL",
        )
    is_address = scheme in ("sqlite", "postgresql", "postgres")
    return text if is_address else parse(text, "the database")


def parse_mail_server(text: str) -> str | Reference:
    """Parse the address of a mail server, or a reference to it."""
    is_address = text.partition(":")[2].startswith("//")
    return text if is_address else parse(text, "the mail server")


_REQUEST_NAME = Setting(
    "name", "The request's name, instead of a code.", parsing.parse_name, metavar="NAME"
)
_PAGES = (
    Setting("page", "Page number, from 1.", parsing.parse_count, metavar="N"),
    Setting("limit", "Rows per page, at most 100.", parsing.parse_count, metavar="N"),
    Setting("all", "List all pages.", flag=True),
)
_FAULTS = Setting("faults", "Plan of faults to inject (TOML).", metavar="FILE")
_EXTENDED = Setting(
    "extended", "Also offer endpoints that the specification does not describe.", flag=True
)

_ACCOUNT = Setting("account", "The account.", default="default", metavar="NAME")
_KEY_ORGANIZATION = Setting("org", "The organisation that the key acts for.", metavar="NAME")
_CUSTODY_LEVEL = Setting(
    "custody",
    "Which shares the key can read.",
    default="self",
    choices=("none", "self", "account"),
)
_PLAN = (
    Setting("plan", "The plan.", choices=("business", "enterprise", "none")),
    Setting(
        "rate",
        "Requests per minute: a number, `plan`, `unlimited`, or `unset` (no access).",
        parsing.parse_limit,
        metavar="N",
    ),
    Setting("keys", "API keys: a number, or `plan`.", parsing.parse_limit, metavar="N"),
    Setting(
        "shares",
        "Active shares at a time: a number, or `plan` (no limit).",
        parsing.parse_limit,
        metavar="N",
    ),
)
"""What an account may do, of a rehearsal or of a server."""
_VIEW_PROTECTION = Setting(
    "view_protection", "Whether shares can have a passcode.", choices=("on", "off")
)

ON_DEMAND: Final[Mapping[str, tuple[Setting, ...]]] = {
    "audit": (
        Setting(
            "head",
            "A head that a command printed earlier: the log must still contain it.",
            metavar="SEQ:MARK",
        ),
        Setting("key", "Reference to the log's key: file:/PATH or env:NAME.", metavar="REF"),
        Setting(
            "collected",
            "FILE has the lines of many logs, as a webhook's receiver stored them, in any order.",
            flag=True,
        ),
    ),
    "batch": (
        Setting(
            "database",
            (
                "Reference to the address of a PostgreSQL database. Default: SQLite in the "
                "state directory."
            ),
            parse,
            metavar="REF",
        ),
        Setting(
            "for",
            "Go on for this long, and do what becomes due.",
            parsing.parse_seconds,
            metavar="DURATION",
        ),
        repeatable("only", "Only the row with this key", "KEY"),
        Setting(
            "now",
            "Look at every waiting row now, whatever the schedule says.",
            flag=True,
        ),
        Setting(
            "watch",
            "Go on, and show what changes, until every row is over or you stop it (Ctrl-C).",
            flag=True,
        ),
        Setting(
            "plan",
            "Do exactly what this plan (from `batch plan --out`) says, or nothing.",
            metavar="FILE",
        ),
        Setting("out", "JSON file (mode 0600) for the plan.", metavar="FILE"),
        Setting("detailed_exit_code", "Exit with 15 if rows still wait.", flag=True),
        Setting("html", "File (mode 0600) for the report as a page.", metavar="FILE"),
        Setting("csv", "File (mode 0600) for the report's rows as CSV.", metavar="FILE"),
        Setting("json", "File (mode 0600) for the report as JSON.", metavar="FILE"),
        Setting(
            "metrics",
            "Serve OpenMetrics here.",
            parsing.parse_loopback_address,
            metavar="127.0.0.1:PORT",
        ),
        Setting(
            "older_than",
            "Purge only what has not changed for this long.",
            parsing.parse_duration,
            metavar="DURATION",
        ),
    ),
    "run": (
        repeatable(
            "env",
            "A variable of the command, by reference; PREFIX_*=REF#* gives one for each key",
            "NAME=REF",
            short="-e",
        ),
        Setting("env_file", "File with a line NAME=REF for each variable.", metavar="FILE"),
        repeatable("file", "A variable that names a file with the value, by reference", "NAME=REF"),
        Setting(
            "check",
            "Run nothing: read every value, and print which of them are there.",
            flag=True,
        ),
        Setting("no_redact", "Leave the command its streams, and its output as it is.", flag=True),
    ),
    "mcp": (
        Setting("policy", "Policy file: what assistants may do.", metavar="FILE"),
        Setting(
            "http",
            "Serve over HTTP here, not on stdin.",
            parsing.parse_loopback_address,
            metavar="127.0.0.1:PORT",
        ),
        Setting(
            "token_file", "File with the token for --http; made if it is missing.", metavar="FILE"
        ),
    ),
    "copy": (
        repeatable("to", "Sink that stores the values", "SINK", parse_sink),
        MODE,
        Setting("dry_run", "Read the sources, and show what would be written where.", flag=True),
    ),
    "read": (make_print_setting("value"),),
    "unseal": (
        Setting("sealed_file", "File with the sealed link, instead of SEALED.", metavar="FILE"),
        Setting(
            "bind", "The text given to `share --bind`.", parsing.parse_bind_text, metavar="TEXT"
        ),
        Setting(
            "expect", "Accept only the link of this share.", parsing.parse_code, metavar="CODE"
        ),
        Setting(
            "link_file", "New file (mode 0600) for the link, instead of stdout.", metavar="FILE"
        ),
        make_print_setting("link"),
    ),
    "shares": (
        *_PAGES,
        Setting(
            "status",
            "List active or expired shares; not every service lists the latter.",
            default="active",
            choices=("active", "expired"),
        ),
    ),
    "wait": (
        Setting(
            "until",
            "What to wait for: that it was opened, or that it has ended.",
            default="opened",
            choices=("opened", "ended"),
        ),
        Setting(
            "for", "How long to wait.", parsing.parse_duration, default="24h", metavar="DURATION"
        ),
        Setting("else", "What to do with it when time is up.", choices=("expire",)),
    ),
    "tools": (
        repeatable("param", "An argument of the tool, by reference", "NAME=REF", parse_param),
        make_print_setting("secret that the tool returns"),
    ),
    "requests": (
        *_PAGES,
        Setting(
            "status",
            "List active or expired requests.",
            default="active",
            choices=("active", "expired"),
        ),
        Setting(
            "sealed_to",
            "List only requests sealed to this key; `previous` exits with 15 if any remain.",
            choices=("credential", "previous"),
        ),
    ),
    "log": (
        Setting(
            "since", "Only what happened at this time or later.", parsing.parse_time, metavar="TIME"
        ),
        Setting(
            "until",
            "Only what happened at this time or before.",
            parsing.parse_time,
            metavar="TIME",
        ),
        Setting(
            "limit", "How many entries to show. Default: all.", parsing.parse_count, metavar="N"
        ),
    ),
    "webhooks": (
        repeatable(
            "secret_from",
            "Reference to the webhook's secret; while you replace it, to both",
            "REF",
            parse,
        ),
        Setting("signature", "Reference to the signature header's value.", parse, metavar="REF"),
        Setting(
            "headers", "File with the request's headers, instead of --signature.", metavar="FILE"
        ),
        Setting(
            "header",
            "The signature header's name, if it does not end in -Signature.",
            metavar="NAME",
        ),
    ),
    "expire": (
        Setting(
            "name",
            "What this machine created with a name like this: `staging-*`.",
            parse_choice,
            metavar="PATTERN",
        ),
        Setting(
            "created_by_run",
            (
                "What this CI run created, as the audit log names it, or the beginning of "
                "that: ORG/REPO/RUN."
            ),
            parse_choice,
            metavar="RUN",
        ),
        Setting(
            "all_active", "All that is active in the account, no matter who created it.", flag=True
        ),
        Setting("yes", "Expire all that is listed, without asking.", flag=True),
    ),
    "link": (_REQUEST_NAME,),
    "remind": (
        repeatable("send", "Channel that delivers the link", "CHANNEL", parse_target),
        PARAM,
        _REQUEST_NAME,
    ),
    "purge": (
        Setting(
            "confirm", "Repeat the short code to confirm: purging cannot be undone.", metavar="CODE"
        ),
    ),
    "resume": (
        Setting("list", "List the outbox; change nothing.", flag=True),
        Setting("resend", "Repeat deliveries that may already have arrived.", flag=True),
        Setting("discard", "Discard the entry; its link is lost for good.", flag=True),
        Setting("all", "Include the entries of other CI runs.", flag=True),
        make_print_setting("link"),
    ),
    "doctor": (
        Setting("roundtrip", "Also create a test share, and expire it at once.", flag=True),
        Setting(
            "conformance",
            "Only check the wire format against its test vectors; no network.",
            flag=True,
        ),
    ),
    "plugins": (Setting("all", "Show the requirements and parameters of each.", flag=True),),
    "rehearse": (
        Setting("keep", "Keep the service running afterwards.", flag=True),
        Setting(
            "open",
            "Open the tour's link in a browser, and serve it until Enter is pressed.",
            flag=True,
        ),
        _FAULTS,
        _EXTENDED,
        Setting(
            "job",
            "COMMAND is a sealpipe command of a CI job: make up what it needs, send nothing.",
            flag=True,
        ),
    ),
    "key": (
        Setting("name", "The key's name.", default="rehearsal"),
        Setting(
            "scope", "A scope, or `all`; may be repeated. Default: shares:write.", multiple=True
        ),
        _CUSTODY_LEVEL,
        Setting(
            "no_register",
            "Do not register the custody public key: the effective level stays none.",
            flag=True,
        ),
        Setting("account", "The account that owns the key.", default="default", metavar="NAME"),
        _KEY_ORGANIZATION,
    ),
    "account": (
        _ACCOUNT,
        Setting("org", "The organisation, instead of an account.", metavar="NAME"),
        *_PLAN,
        _VIEW_PROTECTION,
        Setting(
            "zero_knowledge_enrolled",
            "Whether the account has a zero-knowledge key.",
            choices=("on", "off"),
        ),
        Setting(
            "zero_knowledge_feature",
            "Whether the plan includes custody wraps.",
            choices=("on", "off"),
        ),
    ),
    "custody": (make_print_setting("custody secret"),),
    "server": (
        Setting(
            "database",
            "The service's database, or a reference to its address.",
            parse_database,
            metavar="URL|REF",
        ),
        Setting(
            "public_url",
            "Where the service is reached: https, or http on this machine.",
            addresses.parse_public_url,
            metavar="URL",
        ),
        Setting(
            "tag", "The service's short tag, for good.", parsing.parse_service_tag, "svc", "TAG"
        ),
        Setting(
            "workers", "How many processes serve.", parsing.parse_count, default="1", metavar="N"
        ),
        Setting(
            "listen",
            "Where to listen. Beyond loopback it takes TLS, or --trusted-proxy.",
            addresses.parse_listen_address,
            default="127.0.0.1:8080",
            metavar="ADDRESS:PORT",
        ),
        Setting("socket", "Unix socket to listen at, instead of --listen.", metavar="PATH"),
        Setting("tls_cert", "Certificate with its chain (PEM).", metavar="FILE"),
        Setting("tls_key", "The certificate's key (PEM).", metavar="FILE"),
        repeatable(
            "trusted_proxy",
            "Network of proxies: only they may call without TLS, and say who calls them",
            "CIDR",
            addresses.parse_network,
        ),
        Setting(
            "webhook_key",
            "Reference to the key that the secrets of webhooks are sealed under.",
            parse,
            metavar="REF",
        ),
        repeatable(
            "webhook_network",
            "Network that webhooks may go to, besides public addresses",
            "CIDR",
            addresses.parse_network,
        ),
        Setting("log_addresses", "Log the address of each caller.", flag=True),
        Setting(
            "smtp",
            "Mail server, smtp://HOST or smtps://USER@HOST, or a reference to its address.",
            parse_mail_server,
            metavar="URL|REF",
        ),
        Setting("mail_from", "The address that mails are from.", metavar="ADDRESS"),
        Setting(
            "metrics",
            "Where to show metrics (OpenMetrics) at /metrics, to all who can reach it.",
            addresses.parse_listen_address,
            metavar="ADDRESS:PORT",
        ),
        Setting(
            "shutdown_delay",
            "How long to go on serving once told to stop, while /readyz answers 503.",
            parsing.parse_duration,
            metavar="DURATION",
        ),
        _ACCOUNT,
        _KEY_ORGANIZATION,
        Setting("name", "The key's name.", default="sealpipe", metavar="NAME"),
        Setting(
            "scope",
            "A scope, or `all` as the key of `init` has; may be repeated. Default: shares:write.",
            multiple=True,
            metavar="SCOPE",
        ),
        _CUSTODY_LEVEL,
        Setting(
            "custody_public_key",
            "Register this key, whose secret `sealpipe custody new` printed on the client.",
            metavar="PUBLIC_KEY",
        ),
        *_PLAN,
        Setting(
            "webhooks", "Webhook endpoints: a number, or `plan`.", parsing.parse_limit, metavar="N"
        ),
        _VIEW_PROTECTION,
        Setting("zero_knowledge", "Whether custody wraps are stored.", choices=("on", "off")),
        Setting(
            "older_than",
            "Delete what ended this long ago; at least 30d.",
            parsing.parse_duration,
            metavar="DURATION",
        ),
        Setting("force", "Delete also what ended less than 30 days ago.", flag=True),
        make_print_setting("secret"),
    ),
    "webhook": (
        Setting("account", "The account whose events to send.", default="default", metavar="NAME"),
    ),
    "open": (
        Setting("link", "Reference to the link.", default="stdin:", metavar="REF"),
        Setting("passcode_from", "Reference to the passcode, if the share has one.", metavar="REF"),
    ),
    "answer": (
        repeatable("field", "A value for a prompt, by reference", "PROMPT=REF", short="-f"),
        Setting("passcode_from", "Reference to the form's passcode, if it has one.", metavar="REF"),
    ),
    "rehearsal": (
        Setting("port", "Port on 127.0.0.1.", parsing.parse_port, "8765", "N"),
        Setting(
            "state", "SQLite file that survives a restart. Default: in memory.", metavar="FILE"
        ),
        _FAULTS,
        _EXTENDED,
        Setting(
            "signature_header",
            "Header with the signature of webhooks.",
            parsing.parse_header_name,
            default="X-Service-Signature",
            metavar="NAME",
        ),
    ),
}
