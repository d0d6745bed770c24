"""`sealpipe read`."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from sealpipe.cli import disclosure, render
from sealpipe.cli.local import open_context, work_locally
from sealpipe.plugin.context import CALLER
from sealpipe.reference import parse
from sealpipe.run.use_values import use_values
from sealpipe.run.variables import Variable, check_single
from sealpipe.secret import Secret
from sealpipe.sources.resolve import Value


def read(reference: str, **values: Any) -> None:
    """Run `sealpipe read`."""
    ref = parse(reference, "REF")
    check_single(ref, "REF")
    gate = disclosure.plan_disclosure(
        "the value",
        "hand it to the command that needs it with `sealpipe run`",
        printing=values["print"],
    )
    context = open_context(values)

    def show(found: Mapping[str, Value]) -> None:
        as_json = values["output"] == "json"
        data = found["value"].data.reveal_bytes() if found else b""
        text, encoding = _spell(data)
        hidden: list[Secret] = []
        if found and found["value"].is_secret:
            spelled = map(Secret, dict.fromkeys([text, render.escape_json(text)]))
            hidden = (
                list(spelled) if as_json else disclosure.list_masks({"REF": found["value"].data})
            )
        members = {"reference": str(ref), "value": text if found else None, "encoding": encoding}
        gate.write(
            context.registry,
            hidden,
            lambda: render.print_json(members) if as_json else render.print_bytes(data),
        )

    done = {"outcome": "done"}
    work_locally(
        context,
        lambda: use_values(context, "read", CALLER, [Variable("value", ref)], show, lambda _: done),
    )


def _spell(data: bytes) -> tuple[str, str]:
    """Return bytes as text for JSON, and how they are encoded."""
    try:
        return data.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        return base64.b64encode(data).decode(), "base64"
