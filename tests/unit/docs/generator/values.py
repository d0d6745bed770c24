"""What the words in capitals stand for, in options and arguments, and how each is written."""

from __future__ import annotations

from collections.abc import Mapping

from unit.docs.generator.tree import Node, shown

METAVARS: Mapping[str, str] = {
    "[ID=]PROMPT[:TYPE]": "a prompt, with the id that targets name it by, and the type of its "
    "field: [prompts](../how-to/request-secrets.md)",
    "[LABEL[:TYPE]=]REF": "a [reference](references.md), with the label that the recipient sees, "
    "and its type: `Login page:url=env:PAGE`",
    "127.0.0.1:PORT": "a free port of this machine's own address",
    "ADDRESS:PORT": "an IP address of this machine and a port: `0.0.0.0:8080`, `[::1]:8080`",
    "ADDRESS": "an IP address or a range in CIDR notation",
    "CHANNEL": "a [channel](channels.md) and its recipient: `email:ann@example.com`",
    "CIDR": "a network: `10.0.0.0/8`, or one address",
    "CODE": "a short code, as `share`, `request` and the lists print it",
    "DIR": "a folder",
    "DOMAIN": "a domain: `example.com`",
    "DURATION": "a whole number with `s`, `m`, `h`, `d` or `w`: `90m`, `72h`, `14d`",
    "FILE": "a path",
    "ID": "an id that the service gave",
    "KEY": "the key of a row in a [batch file](batch-file.md)",
    "LIST": "words, separated by commas",
    "N": "a whole number from 1; where the option says so, also a word",
    "NAME": "a name",
    "NAME=REF": "a name and the [reference](references.md) of its value: `to=env:RECIPIENT`",
    "PATH": "a path",
    "PATTERN": "a name in which `*` stands for any characters, and `?` for one",
    "PROMPT=REF": "a prompt as the form shows it, and the [reference](references.md) of its value",
    "PUBLIC_KEY": "a custody public key, as `sealpipe custody new` prints it",
    "REF": "a [reference](references.md), never the secret itself: `vault:secret/app#password`",
    "RUN": "a CI run as the [audit log](../products/audit.md) names it, or its beginning",
    "SCOPE": "a scope, such as `shares:write`, or `all`",
    "SECONDS": "a whole number of seconds",
    "SEQ:MARK": "a head as a command printed it",
    "SINK": "a [sink](sinks.md) and what it stores: `vault:secret/vendor/acme#password`",
    "TAG": "a short lower-case word, as in the credential's prefix: `svc`",
    "TEXT": "a line of text",
    "TIME": "RFC 3339, with a time zone: `2026-12-31T12:00:00Z`",
    "URL": "an address: https, or http on this machine",
    "URL|REF": "`sqlite:///FILE`, `postgresql://USER@HOST/DATABASE`, or a "
    "[reference](references.md) to that",
    "WHICH": "`only`, `newest`, `oldest`, `each`, or a submission's code",
    "credential|REF": "`credential`, or a [reference](references.md)",
}
"""Metavars of options; links are from docs/reference."""

ARGUMENTS: Mapping[str, Mapping[str, str]] = {
    "audit": {"FILE": "the log"},
    "batch": {
        "FILE": "the [batch file](../batch-file.md)",
        "NAME": "the batch's name, as its file has it",
        "KEY": "the key of a row",
        "[KEY]...": "the keys of rows",
    },
    "collect": {"CODE|LINK|RECEIPT...": "the requests: short codes, collect links or receipts"},
    "completion": {"bash|zsh|fish": "the shell"},
    "copy": {
        "[LABEL=]REF...": "the [references](../references.md) of the values, as fields of a share"
    },
    "doctor": {"[NAME]": "a source, sink, channel or store: only this is checked"},
    "mcp": {
        "TOOL": "an [assistant's tool](../assistant-tools.md)",
        "ARGUMENTS": "its arguments: JSON, `@FILE` or `-`",
    },
    "read": {"REF": "the [reference](../references.md) of the value"},
    "rehearsal": {
        "LINK": "the request's collect link",
        "KEY_ID": "the id of a key, as `key list` prints it",
        "URL": "where events are sent",
        "WEBHOOK_ID": "the id of an endpoint, as `webhook list` prints it",
    },
    "rehearse": {"[-- COMMAND ...]": "a command and its arguments"},
    "requests": {
        "CODE": "the request's short code",
        "[CODE|RECEIPT]": "the request's short code or receipt",
        "[CODE|RECEIPT]...": "short codes or receipts of requests",
    },
    "resume": {"[ID]": "the id of an entry, as `--list` and errors print it"},
    "run": {"-- COMMAND ...": "a command and its arguments"},
    "server": {
        "ADDRESS": "one plain address, such as ann@example.com",
        "FILE": "a new file",
        "KEY_ID": "the id of a key, as `key list` prints it",
        "MAIL_ID": "the id of an address, as `mail list` prints it",
        "NAME": "the account's name, or `org:NAME` for an organisation",
        "URL": "where events are sent: https",
        "WEBHOOK_ID": "the id of an endpoint, as `webhook list` prints it",
    },
    "share": {"[REF]...": "a field, as for `-f`; those of `-f` come first"},
    "shares": {
        "CODE": "the share's short code",
        "CODE|RECEIPT": "the share's short code or receipt",
        "[CODE|RECEIPT]...": "short codes or receipts of shares",
    },
    "tools": {"TOOL": "the tool's name"},
    "unseal": {
        "[SEALED]": (
            "the sealed link, or `-` for stdin; default: the variable `SEALPIPE_SEALED_LINK`"
        )
    },
}
"""Arguments by the first word of the command; links are from docs/reference/commands."""


def describe_arguments(node: Node) -> list[tuple[str, str]]:
    """Return each argument of a command, and what it is."""
    own = ARGUMENTS.get(node.name.split()[1], {})
    return [(shown(argument), own[shown(argument)]) for argument in node.arguments]
