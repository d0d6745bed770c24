"""The generated parts of docs/reference/api: each public class, function and constant of the
library.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pkgutil import resolve_name
from types import ModuleType
from typing import Any

from sealpipe import errors
from unit.docs.generator.inspection import Attribute, Described, constants, describe
from unit.docs.generator.markdown import (
    block,
    code,
    escape,
    item,
    map_spans,
    paragraphs,
    slug,
    table,
    wrap,
)

RESULTS = (
    "sealpipe.collect.results:OpenedSubmission",
    "sealpipe.collect.results:UnreadableSubmission",
    "sealpipe.collect.results:StoredValues",
    "sealpipe.collect.results:PlannedWrite",
    "sealpipe.expire.request:EndedRequest",
    "sealpipe.expire.share:EndedShare",
    "sealpipe.delivery.send:Deliveries",
    "sealpipe.delivery.send:TrackedDelivery",
    "sealpipe.delivery.recipients:Recipient",
    "sealpipe.api.account:Access",
    "sealpipe.api.account:AccessLog",
    "sealpipe.api.account:Capabilities",
    "sealpipe.api.account:DailyViews",
    "sealpipe.api.pages:Page",
    "sealpipe.api.pages:Pagination",
    "sealpipe.api.account:ShareInfo",
    "sealpipe.api.account:Stats",
    "sealpipe.api.mcp:Tool",
    "sealpipe.api.mcp:ToolResult",
    "sealpipe.api.requests:CreatedRequest",
    "sealpipe.api.requests:DeletedRequest",
    "sealpipe.api.requests:RequestInfo",
    "sealpipe.api.requests:Submission",
    "sealpipe.api.requests:Submissions",
    "sealpipe.api.shares:CreatedShare",
    "sealpipe.state.entry:Entry",
    "sealpipe.state.entry:EntryCommands",
    "sealpipe.state.outbox:EntrySummary",
)
"""What calls return, and programs do not make."""

TYPES = (
    "sealpipe.collect.options:AfterCollect",
    "sealpipe.share.options:Custody",
    "sealpipe.delivery.send:DeliveryState",
    "sealpipe.collect.results:Event",
    "sealpipe.collect.results:Identity",
    "sealpipe.collect.options:KeyChoice",
    "sealpipe.plugin.backends:Mode",
    "sealpipe.collect.results:OnProgress",
    "sealpipe.expire.request:Outcome",
    "sealpipe.delivery.recipients:Content",
    "sealpipe.delivery.recipients:Params",
    "sealpipe.state.receipt:RequestKey",
    "sealpipe.collect.results:Status",
)
"""Names that stand for a type in signatures."""

ARGUMENTS = (
    "sealpipe.api.operation:Credential",
    "sealpipe.reference:FieldSpec",
    "sealpipe.reference:Reference",
    "sealpipe.reference:Target",
)
"""Classes that calls take, and programs seldom make: text does."""

WIRE = ("envelope", "fields", "keys", "link", "sealed_box", "tokens")
"""The modules of the wire format that programs use."""


def exported() -> Mapping[str, Any]:
    """Return the names that `sealpipe` exports, without the exceptions."""
    import sealpipe

    names = (
        name for name in sealpipe.__all__ if not name.startswith("_") and not hasattr(errors, name)
    )
    return {name: getattr(sealpipe, name) for name in sorted(names, key=str.lower)}


def client() -> Iterator[Described]:
    """Yield what a program imports from `sealpipe`, and what calls return."""
    for name, found in exported().items():
        described = describe(name, found)
        if name == "AsyncClient":  # the same methods as those of Client
            own = tuple(each for each in described.methods if each.name in ("AsyncClient.close",))
            described = described._replace(methods=own)
        yield described


def modules() -> list[ModuleType]:
    """Return the modules of the wire format."""
    return [import_module(f"sealpipe.wire.{name}") for name in WIRE]


def of_module(module: ModuleType) -> list[Described]:
    """Return the public classes and functions that a module defines, in the order of its source."""
    named = [(name, value) for name, value in vars(module).items() if not name.startswith("_")]
    own = [
        (name, value)
        for name, value in named
        if getattr(value, "__module__", "") == module.__name__
    ]
    return [
        describe(name, value)
        for name, value in own
        if callable(value) and hasattr(value, "__qualname__")
    ]


def render(described: Iterable[Described], prefix: str = "", depth: int = 3) -> str:
    """Return classes and functions as Markdown.

    `prefix` comes before their names in headings, of `depth` times `#`.
    """
    return "\n".join(_render(each, depth, prefix) for each in described)


def _render(each: Described, depth: int, prefix: str) -> str:
    heading = f"{'#' * depth} {prefix}{each.name}\n"
    signature = [block(each.signature, "python")] if each.signature else []
    attributes = ["".join(map(attribute, each.attributes))] if each.attributes else []
    parts = [heading, *signature, prose(each.doc), *attributes]
    return "\n".join([*parts, *(_render(method, depth + 1, prefix) for method in each.methods)])


def attribute(each: Attribute) -> str:
    """Return an attribute as an item of a list."""
    kind = f": {each.type}" if each.type and not each.type.startswith(("Final", "ClassVar")) else ""
    value = f" = {each.value}" if each.value and len(each.value) < 100 else ""
    about = f": {link_errors(escape(' '.join(each.doc.split())))}" if each.doc else ""
    return item(f"{wrap(f'{code(each.name + kind + value)}{about}')}\n")


def prose(doc: str) -> str:
    """Return a docstring as Markdown, with links to the exceptions that it names."""
    return paragraphs(doc, lambda text: link_errors(escape(text)))


def link_errors(text: str, page: str = "../errors.md") -> str:
    """Link the names of exceptions to their page: those in prose, and code that is such a name
    alone.
    """

    def link(name: str) -> str:
        return f"[`{name}`]({page}#{name.lower()})"

    return map_spans(
        text,
        lambda plain: _NAMED.sub(lambda found: link(found[1]), plain),
        lambda span: link(span.strip("`")) if span.strip("`") in _KINDS else span,
    )


_KINDS = sorted(
    name for name, kind in vars(errors).items() if isinstance(kind, type) and name.endswith("Error")
)
_NAMED = re.compile(rf"\b({'|'.join(_KINDS)})\b")


def wire() -> str:
    """Return the modules of the wire format."""
    return "\n".join(_module(module) for module in modules())


def _module(module: ModuleType) -> str:
    lists = "".join(map(attribute, constants(module)))
    parts = [f"## {module.__name__}\n", prose(module.__doc__ or ""), *([lists] if lists else [])]
    name = module.__name__.rpartition(".")[2]
    return "\n".join([*parts, render(of_module(module), f"{name}.")])


def client_page() -> str:
    """Return what a program imports from `sealpipe`."""
    return render(client())


def methods() -> str:
    """Return the methods of a client in short."""
    found = next(each for each in client() if each.name == "Client").methods
    rows = (
        (f"[`{_short(each.name)}`](#{slug(each.name)})", _first_sentence(each.doc))
        for each in found
    )
    return table(("method", "does"), sorted(rows))


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def _first_sentence(doc: str) -> str:
    text = re.sub(r" \(specification: [^)]*\)", "", " ".join(doc.partition("\n\n")[0].split()))
    return escape(re.split(r"(?<=[.:;]) ", text)[0].rstrip(".:;") + ".")


def types_page() -> str:
    """Return what signatures name, and no program imports."""
    places = (name.partition(":") for name in TYPES)
    found = [(import_module(module), name) for module, _, name in places]
    aliases = [each for module, name in found for each in constants(module) if each.name == name]
    return "\n".join(["".join(map(attribute, aliases)), render(described_arguments())])


def described_arguments() -> list[Described]:
    """Return the classes that calls take."""
    return [describe(name.partition(":")[2], resolve_name(name)) for name in ARGUMENTS]


def described_results() -> list[Described]:
    """Return the classes of results."""
    return [describe(name.partition(":")[2], resolve_name(name), is_made=False) for name in RESULTS]


def webhooks_page() -> str:
    """Return the functions for webhooks."""
    return render(of_module(import_module("sealpipe.webhooks")), "webhooks.")


def results_page() -> str:
    """Return what calls return."""
    return render(described_results())
