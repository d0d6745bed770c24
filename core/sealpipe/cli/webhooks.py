"""`sealpipe webhooks verify`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from sealpipe import webhooks as verification
from sealpipe.cli import render
from sealpipe.cli.local import open_context, work_locally
from sealpipe.errors import PayloadTooLargeError, UsageError
from sealpipe.parsing import format_time
from sealpipe.plugin.context import CALLER
from sealpipe.run.use_values import use_values
from sealpipe.run.variables import Variable
from sealpipe.sources.resolve import Value

MAX_BODY: Final = 16 * 1024 * 1024
"""Maximum size in bytes of a webhook's body."""
_MAX_HEADERS: Final = 64 * 1024
_SIGNATURE: Final = "signature"


def verify(**values: Any) -> None:
    """Run `sealpipe webhooks verify`."""
    references = [*values["secret_from"], *([values["signature"]] if values["signature"] else [])]
    if not values["secret_from"]:
        raise UsageError(
            "--secret-from is missing", remedy="add --secret-from REF, such as env:WEBHOOK_SECRET"
        )
    if (values["signature"] is None) is (values["headers"] is None):
        raise UsageError(
            "give --signature or --headers, one of the two", remedy="add --signature REF"
        )
    if any(each.name == "stdin" for each in references):
        raise UsageError(
            "stdin has the webhook's body",
            remedy="use another reference, such as env:NAME or file:PATH",
        )
    header = (
        None if values["headers"] is None else _read_header(values["headers"], values["header"])
    )
    body = sys.stdin.buffer.read(MAX_BODY + 1)
    if len(body) > MAX_BODY:
        raise PayloadTooLargeError(
            f"the webhook's body is larger than {MAX_BODY // 1024 // 1024} MiB"
        )
    names = [f"secret {number}" for number, _ in enumerate(values["secret_from"])]
    variables = [
        Variable(name, ref) for name, ref in zip([*names, _SIGNATURE], references, strict=False)
    ]

    def check(found: Mapping[str, Value]) -> datetime:
        given = found.get(_SIGNATURE)
        signature = header if given is None else given.data.reveal_bytes().decode("latin-1").strip()
        secrets = [found[name].data for name in names if name in found]
        return verification.verify(body, signature, secrets)

    context = open_context(values)
    signed_at = work_locally(
        context, lambda: use_values(context, "read", CALLER, variables, check, lambda _: _DONE)
    )
    if values["output"] == "json":
        render.print_json({"signed_at": format_time(signed_at)})
    else:
        render.print_lines([f"signed {format_time(signed_at)}"])


_DONE: Final = {"outcome": "done"}


def _read_header(path: str, name: str | None) -> str | None:
    """Return the signature header in a file with one header per line, or None."""
    try:
        with Path(path).open("rb") as file:
            lines = file.read(_MAX_HEADERS).decode("latin-1").splitlines()
    except OSError as error:
        raise UsageError(
            f"--headers: {path} cannot be read: {error.strerror}", remedy="check the path"
        ) from None
    pairs = [
        (key.strip().lower(), value.strip())
        for key, colon, value in (each.partition(":") for each in lines)
        if colon
    ]
    found = [
        value
        for key, value in pairs
        if (key == name.lower() if name else key.endswith("-signature"))
    ]
    if len(found) > 1:
        raise UsageError(
            "the file has several signature headers", remedy="name one with --header NAME"
        )
    return found[0] if found else None
