"""Renders a row.

What the engine asks, shares, sends, reminds and collects for it, and a digest of what is sent.

Cells are data. In a channel's address they are the values of `--param`, so the channel's own checks
hold; everywhere else `patterns.py` fills them in after parsing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sealpipe.batch.file.definition import BatchDefinition
from sealpipe.batch.file.options import Options
from sealpipe.batch.file.patterns import Values
from sealpipe.batch.file.rows import Row
from sealpipe.collect.options import CollectPlan, plan_collect
from sealpipe.reference import Reference, Target
from sealpipe.request.options import RequestJob, plan_request
from sealpipe.settings import ARGUMENTS
from sealpipe.share.options import ShareJob, plan_share
from sealpipe.sources.text_secrets import TEXT_SOURCE
from sealpipe.state.receipt import Receipt
from sealpipe.wire import jsontext

CHANNELS: Final = ("send", "passcode_to")
"""Options whose values are channels."""


@dataclass(frozen=True, slots=True, repr=False)
class RenderedRow:
    """A row as the engine needs it.

    Each method raises UsageError if the options are refused after all.
    """

    key: str
    arguments: Mapping[str, Any]
    """Of `plan_request` or `plan_share`."""
    collect: Mapping[str, Any] | None
    """Of `plan_collect`; None without [collect]."""
    reminder: str | None
    """The text of a reminder, a template with {link}; None for the built-in one."""
    content: Mapping[str, Any]
    """What is sent: the kind, the options that are given, and the cells that channels name."""

    @property
    def digest(self) -> str:
        """SHA-256, in hex, of what [request] or [share] means for this row.

        It is the same in each run and in each version, as long as neither changes. What is
        reminded, collected and notified is no part of it.
        """
        members = {
            **self.content,
            "options": {name: _describe(each) for name, each in self.content["options"].items()},
        }
        return hashlib.sha256(_sorted_json(members).encode("utf-8")).hexdigest()

    def make_request(self, **added: Any) -> RequestJob:
        """Return the job of its request; `added` are arguments such as `key`.

        Its expiry counts from now.
        """
        return plan_request(**self.arguments, **added)

    def make_share(self, **added: Any) -> ShareJob:
        """Return the job of its share; `added` are further arguments.

        Its expiry counts from now.
        """
        return plan_share(**self.arguments, **added)

    def make_collect(self, request: str | Receipt, **added: Any) -> CollectPlan:
        """Return how its request is collected; `added` are arguments such as `key` and `state`."""
        return plan_collect([request], **(self.collect or {}), **added)


def render_row(definition: BatchDefinition, row: Row) -> RenderedRow:
    """Render a row. Raises UsageError if a cell cannot stand where its column is named."""
    filled = fill_options(definition.options, row.values)
    template = None if definition.remind is None else definition.remind.template
    return RenderedRow(
        row.key,
        make_arguments(definition.options, filled, row.values),
        None if definition.collect is None else fill_options(definition.collect, row.values),
        None if template is None else template.fill(row.values),
        {
            "kind": definition.kind,
            "options": filled,
            "cells": list_channel_cells(definition.options, row.values),
        },
    )


def fill_options(options: Options, cells: Values) -> dict[str, Any]:
    """Return the value of each option for a row. Raises UsageError."""
    return {name: option.fill(cells) for name, option in options.items()}


def make_arguments(options: Options, filled: Mapping[str, Any], cells: Values) -> dict[str, Any]:
    """Return filled options as arguments of `plan_request` or `plan_share`."""
    arguments = {
        ARGUMENTS.get(name, name): value for name, value in filled.items() if name != "no_expiry"
    }
    if filled.get("no_expiry"):
        arguments["expires_in"] = None
    if params := list_channel_cells(options, cells):
        own = [(name, Reference(TEXT_SOURCE, cell)) for name, cell in params.items()]
        arguments["params"] = (*arguments.get("params", ()), *own)
    return arguments


def list_channel_cells(options: Options, cells: Values) -> dict[str, str]:
    """Return the cells that channels name, by column: not the values of --param."""
    params = options.get("param")
    given = {pattern.name for pattern in params.patterns} if params else set()
    columns = dict.fromkeys(
        name for each in CHANNELS if each in options for name in options[each].columns
    )
    return {name: cells.get(name, "") for name in columns if name not in given}


def _sorted_json(members: Mapping[str, Any]) -> str:
    tables = {
        name: dict(sorted(each.items())) if isinstance(each, dict) else each
        for name, each in members.items()
    }
    return jsontext.dumps(tables)


def _describe(value: Any) -> Any:
    """Return a value as JSON, in a form that does not depend on the version."""
    match value:
        case Target():
            return f"{value.name}:{value.to}"  # its text would be redacted
        case timedelta():
            return int(value.total_seconds())
        case datetime():
            return value.isoformat()
        case None | bool() | int() | str():
            return value
        case (str(), Reference()):
            return list(map(str, value))
        case tuple() if type(value) is tuple:
            return [_describe(each) for each in value]
    return str(value)  # a prompt, a field or a reference in its canonical form
