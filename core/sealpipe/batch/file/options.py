"""The tables of a batch file, read by the tables and the parsers of the commands.

`[request]` has `request`'s options.

Names have hyphens, as on the command line. What a batch decides itself is left out, and what is a
batch's own is here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from sealpipe import parsing
from sealpipe.batch.file.document import Document, UnreadableFileError, read_file
from sealpipe.batch.file.mistakes import MistakeCollector, Place, name_text, suggest_name
from sealpipe.batch.file.patterns import Dialect, Pattern, make_pattern
from sealpipe.collect.options import PLACEHOLDERS as COLLECT_PLACEHOLDERS
from sealpipe.command_settings import COMMANDS
from sealpipe.config_file import FLAG_VALUES
from sealpipe.delivery.messages import PLACEHOLDERS as MESSAGE_PLACEHOLDERS
from sealpipe.errors import UsageError
from sealpipe.reference import parse_target
from sealpipe.settings import Setting

KINDS: Final = ("request", "share")
TOP: Final = ("name", "kind", "rows", "key", "row")
"""Members of the file that are no tables of options."""

_OTHER_KEY: Final = (
    "leave it out: each request of a batch has a key of its own, derived from the credential"
)
_NO_OUTPUT: Final = "leave it out: the database and `batch report` have what was created"
_NAMED: Final = "leave it out: the key of each row is its name"
_PLANNED: Final = "leave it out: `batch plan` shows what would be done"
_SENT: Final = 'leave it out: the link goes to send = ["CHANNEL"]'
LEFT_OUT: Final[Mapping[str, Mapping[str, str]]] = {
    "request": {
        "name": _NAMED,
        "key": _OTHER_KEY,
        "seed_to": _OTHER_KEY,
        "receipt": _NO_OUTPUT,
        "dry_run": _PLANNED,
    },
    "share": {
        **dict.fromkeys(("link_file", "seal_link", "bind", "print"), _SENT),
        "name": _NAMED,
        "receipt": _NO_OUTPUT,
        "dry_run": _PLANNED,
    },
    "collect": {
        "key": _OTHER_KEY,
        "wait": "leave it out: a run looks for submissions, and never waits for one",
        "dir": 'write to = ["dir:FOLDER/{submission}"], or a store that every machine reaches',
        "print": 'leave it out: submissions go to to = ["SINK"]',
        "dry_run": _PLANNED,
    },
}
"""Options of commands that have no meaning in a batch, and why."""

RENAMED: Final = {"field": "fields"}
"""Options that have another name in a batch file."""

WHEN: Final = ("expired-unopened",)


def _times(name: str, summary: str) -> Setting:
    return Setting(name, summary, parsing.parse_duration, metavar="DURATION", multiple=True)


_BEFORE_EXPIRY = Setting(
    "before_expiry", "Remind so long before the link expires.", parsing.parse_duration
)
_TEMPLATE = Setting(
    "message_template", "File with the reminder's text; must contain {link}.", metavar="FILE"
)

OWN: Final[Mapping[tuple[str, str], tuple[Setting, ...]]] = {
    ("remind", "request"): (
        _times("after", "Remind so long after the request was sent."),
        _BEFORE_EXPIRY,
        _TEMPLATE,
    ),
    ("remind", "share"): (
        _times("unopened_after", "Remind so long after the share was sent, unless it was opened."),
        _BEFORE_EXPIRY,
        _TEMPLATE,
    ),
    ("reissue", "share"): (
        Setting(
            "when", "When to create a new share of the same sources.", default=WHEN[0], choices=WHEN
        ),
        Setting("times", "How often, at most.", parsing.parse_count, "1"),
    ),
    ("notify", ""): (
        Setting("send", "Channel that gets what changed in a run.", parse_target, multiple=True),
        Setting("rows", "Whether to name rows.", flag=True),
    ),
    ("collect", "request"): tuple(
        each for each in COMMANDS["collect"] if each.name not in LEFT_OUT["collect"]
    ),
    **{
        ((kind, kind)): tuple(each for each in COMMANDS[kind] if each.name not in LEFT_OUT[kind])
        for kind in KINDS
    },
}
"""The options of each table, by table and kind of batch; without a kind, of both."""

TABLES: Final = (*KINDS, *dict.fromkeys(table for table, _ in OWN if table not in KINDS))

_DIALECTS: Final[Mapping[tuple[str, str], Dialect]] = {
    ("collect", "to"): Dialect(COLLECT_PLACEHOLDERS, is_template=True),
    ("share", "also_to"): Dialect(is_template=True),
}
_MESSAGE: Final = Dialect(MESSAGE_PLACEHOLDERS, is_template=True)
_MAX_TEMPLATE: Final = 64 * 1024


class Option(NamedTuple):
    """An option of a table: its patterns, and the place of each.

    Only a repeatable option has more than one.

    `is_broken` if one of its values is wrong, and therefore missing here.
    """

    setting: Setting
    patterns: tuple[Pattern, ...]
    places: tuple[Place, ...]
    is_broken: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it contains."""
        return tuple(dict.fromkeys(name for pattern in self.patterns for name in pattern.columns))

    def fill(self, cells: Mapping[str, str]) -> Any:
        """Return the option's value for a row; None if it is broken. Raises UsageError."""
        filled = [pattern.fill(cells) for pattern in self.patterns]
        return tuple(filled) if self.setting.multiple else next(iter(filled), None)


Options = Mapping[str, Option]
"""The options that a table of the file sets, by the names of `settings.py`."""


def write_name(name: str) -> str:
    """Return an option's name as a batch file spells it."""
    return RENAMED.get(name, name).replace("_", "-")


def list_names(table: str, kind: str) -> list[str]:
    """Return the names of a table's options, as a batch file spells them."""
    return [write_name(each.name) for each in OWN.get((table, kind)) or OWN.get((table, ""), ())]


def read_table(
    document: Document, table: str, kind: str, mistakes: MistakeCollector
) -> Options | None:
    """Read a table of options.

    None if the file does not have it. Adds a mistake for each wrong name and value.
    """
    found = document.members.get(table)
    if found is None:
        return None
    settings = OWN.get((table, kind)) or OWN.get((table, ""))
    if settings is None:
        others = " or ".join(f'kind = "{each}"' for each in KINDS if (table, each) in OWN)
        mistakes.add(
            document.place(table), f"a {kind} has no [{table}]", f"remove it, or write {others}"
        )
        return None
    if not isinstance(found, dict):
        mistakes.add(
            document.place(table),
            f"{table} is not a table",
            f"write [{table}], followed by its options",
        )
        return None
    known = {write_name(each.name): each for each in settings}
    options = {}
    for name, value in found.items():
        setting = known.get(name)
        if setting is None:
            remedy = LEFT_OUT.get(table, {}).get(name.replace("-", "_"))
            problem = f"{name_text(name)} is not an option of [{table}]"
            if remedy is not None:
                problem = f"{name} does not apply to a batch"
            mistakes.add(
                document.place(table, name),
                problem,
                remedy or suggest_name(name, known, "its options are"),
            )
        else:
            options[setting.name] = _read_option(document, table, setting, value, mistakes)
    return options


def _read_option(
    document: Document, table: str, setting: Setting, value: Any, mistakes: MistakeCollector
) -> Option:
    name, dialect = write_name(setting.name), _DIALECTS.get((table, setting.name), Dialect())
    place = document.place(table, name)
    texts = list(_split(value)) if setting.multiple or not isinstance(value, list) else [None]
    if None in texts or (setting.multiple and not isinstance(value, list)):
        expected, example = (
            ("a list of texts", '["..."]') if setting.multiple else ("a single value", '"..."')
        )
        mistakes.add(place, f"{name} is not {expected}", f"write {name} = {example}")
        return Option(setting, (), (), is_broken=True)
    patterns, places = [], []
    for number, text in enumerate(texts):
        here = document.place(table, name, number) if setting.multiple else place
        with mistakes.catch(here, f"{name}: "):
            if setting.name == "message_template":
                pattern = make_pattern(_read_template(document, str(text)), _MESSAGE)
            else:
                pattern = make_pattern(_parse(setting, value, str(text)), dialect)
            patterns.append(pattern)
            places.append(here)
    return Option(setting, tuple(patterns), tuple(places), is_broken=len(patterns) < len(texts))


def _split(value: Any) -> Iterator[str | None]:
    """Return a value's texts; None for what has no text."""
    for each in value if isinstance(value, list) else [value]:
        if isinstance(value, list) and not isinstance(each, str):
            yield None  # a list holds texts only, as in the config file
        elif isinstance(each, str | bool | int | float):
            yield each if isinstance(each, str) else str(each)
        else:
            yield None


def _parse(setting: Setting, value: Any, text: str) -> Any:
    """Parse a value as its command does. Raises UsageError."""
    if setting.flag:
        if text.lower() not in FLAG_VALUES:
            raise UsageError("the value is not true or false", remedy="write true or false")
        return text.lower() in ("1", "true", "t", "yes", "y", "on")
    if not text:
        raise UsageError("the value is empty", remedy="give a value, or leave the option out")
    if setting.choices:
        if text not in setting.choices:
            raise UsageError(
                f"{name_text(text)} is not one of the choices",
                remedy=f"choose from {', '.join(setting.choices)}",
            )
        return text
    if isinstance(value, bool):
        raise UsageError(
            "the option takes more than true or false", remedy=f'write "{setting.metavar}"'
        )
    return setting.parse(text)


def _read_template(document: Document, name: str) -> str:
    """Read the text of a message from a file beside the batch file. Raises UsageError."""
    if name not in document.texts:
        try:
            document.texts[name] = read_file(document.folder / name, _MAX_TEMPLATE).decode(
                "utf-8-sig"
            )
        except UnreadableFileError as error:
            raise UsageError(error.problem, remedy=error.remedy) from None
        except UnicodeDecodeError:
            raise UsageError("the file is not UTF-8 text", remedy="save it as UTF-8") from None
    return document.texts[name]
