"""What the policy file lets an assistant do with the local MCP server.

Without a file it lets it do nothing.

`Policy.check` is asked before each call, with what the call would use. Those of both config files
are asked again by what it calls, as for any client: this one only takes away from what they allow.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, NoReturn, Protocol

from sealpipe.errors import PolicyError
from sealpipe.mcp import patterns
from sealpipe.reference import Key, Reference

if TYPE_CHECKING:
    from sealpipe.mcp.tools import Use

LONGEST_EXPIRY: Final = timedelta(days=7)
"""Where the policy sets none."""
PER_HOUR: Final = 10
"""How often in an hour a tool may be used that creates, sends or runs something, where the policy
sets no number.
"""
_MAX_SHOWN: Final = 60
_MAX_PATTERN_SHOWN: Final = 120
_MAX_PATTERNS_SHOWN: Final = 3


class Pattern(Protocol):
    """One pattern of a list."""

    @property
    def text(self) -> str:
        """The pattern as the policy has it."""

    def matches(self, used: Any, /) -> bool:
        """Return whether the pattern covers what a call would use."""


class ListKind(NamedTuple):
    """A kind of list.

    What its patterns are for, how they are parsed, and what a call uses of it.
    """

    noun: str
    parse: Callable[[Any], Pattern]
    read: Callable[[Use], Collection[Any]]


LISTS: Final[Mapping[str, ListKind]] = {
    "sources": ListKind("source", patterns.parse_source, lambda use: use.sources),
    "sinks": ListKind("sink", patterns.parse_sink, lambda use: use.sinks),
    "recipients": ListKind("recipient", patterns.parse_recipient, lambda use: use.recipients),
    "variables": ListKind("variable", patterns.parse_variable, lambda use: use.variables),
    "commands": ListKind(
        "command", patterns.parse_command, lambda use: (use.command,) if use.command else ()
    ),
}
TABLES: Final = ("request", "share", "run")
"""The tables of a policy, with lists of patterns. A missing list allows nothing."""


class ToolRule(NamedTuple):
    """Which tables offer a tool (one of them), and what a call of it must name."""

    tables: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    has_expiry: bool = False
    per_hour: int | None = None


TOOLS: Final[Mapping[str, ToolRule]] = {
    "request_secret": ToolRule(("request",), ("sinks",), has_expiry=True, per_hour=PER_HOUR),
    "wait_for_submission": ToolRule(("request",)),
    "collect_secret": ToolRule(("request",)),
    "share_secret": ToolRule(
        ("share",), ("sources", "recipients"), has_expiry=True, per_hour=PER_HOUR
    ),
    "run_with_secrets": ToolRule(("run",), ("commands",), per_hour=PER_HOUR),
    "list": ToolRule(("request", "share")),
    "status": ToolRule(("request", "share")),
    "expire": ToolRule(("request", "share")),
    "check": ToolRule(),
}


@dataclass(frozen=True)
class Policy:
    """A policy.

    `lists` are its patterns by table and list; `path` is its file, None if there is none.
    """

    path: Path | None
    lists: Mapping[str, Mapping[str, tuple[Pattern, ...]]] = field(default_factory=dict)
    longest_expiry: timedelta = LONGEST_EXPIRY
    confirmed: frozenset[str] = frozenset()
    hourly: Mapping[str, int] = field(default_factory=dict)

    DENY: ClassVar[Policy]
    """The policy where there is no file: it offers `check` only."""

    def allows(self, tool: str) -> bool:
        """Return whether a tool is offered at all."""
        return tool in TOOLS and (
            not TOOLS[tool].tables or any(table in self.lists for table in TOOLS[tool].tables)
        )

    def confirms(self, tool: str) -> bool:
        """Return whether a person must confirm each call of a tool."""
        return tool in self.confirmed

    def per_hour(self, tool: str) -> int | None:
        """Return how often a tool may be used in an hour; None for any number."""
        return self.hourly.get(tool, TOOLS[tool].per_hour)

    def check(self, use: Use) -> None:
        """Raise PolicyError for the first thing that a call needs and the policy forbids.

        The message says what the policy allows, the remedy which line would allow this.
        """
        if not self.allows(use.tool):
            self._refuse_tool(use.tool)
        rule = TOOLS[use.tool]
        table = next((each for each in rule.tables if each in self.lists), "")
        for name, kind in LISTS.items():
            used = kind.read(use)
            if name in rule.required and not used:
                raise PolicyError(
                    f"{use.tool} names no {kind.noun}",
                    remedy=f"name one that {name} in [{table}] allow",
                )
            allowed = self.lists.get(table, {}).get(name, ())
            for each in used:
                self._check_one(use.tool, table, name, each, allowed)
        if rule.has_expiry:
            self._check_expiry(use)

    def _check_one(
        self, tool: str, table: str, name: str, used: Any, allowed: Iterable[Pattern]
    ) -> None:
        # In ASCII: what looks alike shows.
        shown = json.dumps(list(used) if name == "commands" else str(used))
        flaw = patterns.find_flaw(used) if isinstance(used, Reference) else None
        if flaw is not None:
            raise PolicyError(
                f"{tool}: the {LISTS[name].noun} {_shorten(shown)} is not allowed: {flaw}",
                remedy="write it plainly, such as vault:secret/app/db",
            )
        if any(pattern.matches(used) for pattern in allowed):
            return
        line = shown if len(shown) <= _MAX_SHOWN else "a pattern of it"
        hint = (
            "name the key to write left of =, as in #password=PROMPT; "
            if _lacks_key(name, used)
            else ""
        )
        raise PolicyError(
            (
                f"{tool}: the {LISTS[name].noun} {_shorten(shown)} is not allowed; "
                f"{_describe(table, name, allowed)}"
            ),
            remedy=(
                f"{hint}use what is allowed, or ask the owner of {self.path} to add {line} to "
                f"{name} in [{table}]"
            ),
        )

    def _check_expiry(self, use: Use) -> None:
        longest = self.longest_expiry
        if use.expires_in is None or not timedelta(0) < use.expires_in <= longest:
            raise PolicyError(
                f"{use.tool}: it must expire within {format_duration(longest)}",
                remedy=(
                    f"shorten expires_in, or ask the owner of {self.path} to raise longest_expiry"
                ),
            )

    def _refuse_tool(self, tool: str) -> NoReturn:
        if tool not in TOOLS:  # its name is not ours to repeat
            raise PolicyError("there is no such tool", remedy=f"the tools are {', '.join(TOOLS)}")
        if self.path is None:
            raise PolicyError(
                f'there is no policy, so "{tool}" is not offered',
                remedy=(
                    "ask the owner of this machine to run `sealpipe mcp policy init`, and to "
                    "edit the file"
                ),
            )
        tables = " or ".join(f"[{each}]" for each in TOOLS[tool].tables)
        raise PolicyError(
            f'the policy has no {tables}, so "{tool}" is not offered',
            remedy=f"ask the owner of {self.path} to add {tables}",
        )


Policy.DENY = Policy(None)


def format_duration(duration: timedelta) -> str:
    """Return a duration as policies have it: `7d`, `36h`, `90s`."""
    seconds = int(duration.total_seconds())
    size, unit = next(
        (size, unit)
        for size, unit in ((86400, "d"), (3600, "h"), (60, "m"), (1, "s"))
        if not seconds % size
    )
    return f"{seconds // size}{unit}"


def _describe(table: str, name: str, allowed: Iterable[Pattern]) -> str:
    texts = [
        pattern.text if name == "commands" else json.dumps(pattern.text, ensure_ascii=False)
        for pattern in allowed
    ]
    if not texts:
        return f"{name} in [{table}] allow none"
    shown = [_shorten(text, _MAX_PATTERN_SHOWN) for text in texts[:_MAX_PATTERNS_SHOWN]]
    more = (
        f" and {len(texts) - _MAX_PATTERNS_SHOWN} more" if len(texts) > _MAX_PATTERNS_SHOWN else ""
    )
    return f"{name} in [{table}] allow {', '.join(shown)}{more}"


def _shorten(text: str, longest: int = _MAX_SHOWN) -> str:
    return text if len(text) <= longest else text[:longest] + "..."


def _lacks_key(name: str, used: Any) -> bool:
    """Whether a sink has a key that it does not name left of `=`."""
    return name == "sinks" and any(
        isinstance(item, Key) and item.label is None for item in used.selector or ()
    )
