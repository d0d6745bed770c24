"""Values with `{column}` in them, parsed once.

A row's cell is filled in as data, and never parsed again.

The file's text is parsed first, by the parser of its option. Then only the texts of the parsed
value are templates: a title, a prompt's text, a field's label, and what a reference names. So no
cell becomes a second recipient, a channel, a store, another key, or a placeholder. What could still
act as a path, in a reference's body and its parameters, must be one plain name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

from sealpipe.errors import UsageError
from sealpipe.prompts import Prompt, check_prompt
from sealpipe.reference import Everything, FieldSpec, Item, Key, Pointer, Reference, Target
from sealpipe.reference.text import PLAIN_NAME_RULE, Template, parse_template
from sealpipe.sources.text_secrets import TEXT_SOURCE

Values = Mapping[str, str]
"""The cells of a row by the names of their columns; an empty one may be missing."""


class Pattern(NamedTuple):
    """A parsed value.

    The columns that it contains, and a function from a row's cells to the value for that row.

    The function raises UsageError if a cell cannot stand there. `kept` are the placeholders that it
    leaves, `name` is that of a --param.
    """

    columns: tuple[str, ...]
    fill: Callable[[Values], Any]
    kept: tuple[str, ...] = ()
    name: str = ""


class Dialect(NamedTuple):
    """How an option's texts are read.

    Which placeholders they keep besides columns, such as `{submission}`.

    With `is_template`, the filled text is a template again: in a sink's body, and in a message.
    Then all other braces are escaped.
    """

    kept: Collection[str] = ()
    is_template: bool = False


def make_pattern(value: Any, dialect: Dialect) -> Pattern:
    """Make the pattern of a parsed value.

    UsageError for a brace that is not part of a placeholder.
    """
    match value:
        case str():
            text = _parse_text(value, "the text", dialect)
            return _make_pattern(text.columns, text.fill, text.kept)
        case Prompt():
            text = _parse_text(value.text, "the prompt", Dialect())
            # Only the text: the id, by which targets name the prompt, is the same in each row.
            return _make_pattern(
                text.columns, lambda cells: check_prompt(value._replace(text=text.fill(cells)))
            )
        case Reference():
            return _make_reference_pattern(value, dialect)
        case FieldSpec():
            return _make_field_pattern(value, dialect)
        case Target():
            # The channel fills in the row's values itself (`render`).
            names = parse_template(value.to, f"what follows {value.name}:").names
            return Pattern(tuple(dict.fromkeys(names)), lambda _: value)
        case (str(name), Reference() as ref):  # --param
            pattern = _make_reference_pattern(ref, dialect)
            return Pattern(pattern.columns, lambda cells: (name, pattern.fill(cells)), name=name)
    return Pattern((), lambda _: value)


def _make_pattern(
    columns: Iterable[str], fill: Callable[[Values], Any], kept: tuple[str, ...] = ()
) -> Pattern:
    names = tuple(dict.fromkeys(columns))
    if names:
        return Pattern(names, fill, kept)
    constant = fill({})
    return Pattern((), lambda _: constant, kept)


def escape_braces(text: str) -> str:
    """Write a text as a template that means just this text."""
    return text.replace("{", "{{").replace("}", "}}") if "{" in text or "}" in text else text


class _Text(NamedTuple):
    """A template of which a row fills in some placeholders."""

    template: Template
    dialect: Dialect

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(
            dict.fromkeys(name for name in self.template.names if name not in self.dialect.kept)
        )

    @property
    def kept(self) -> tuple[str, ...]:
        return tuple(
            dict.fromkeys(name for name in self.template.names if name in self.dialect.kept)
        )

    def fill(self, cells: Values) -> str:
        if not self.dialect.is_template:
            return "".join(
                cells.get(piece, "") if number % 2 else piece
                for number, piece in enumerate(self.template.pieces)
            )
        return "".join(
            (f"{{{piece}}}" if piece in self.dialect.kept else escape_braces(cells.get(piece, "")))
            if number % 2
            else escape_braces(piece)
            for number, piece in enumerate(self.template.pieces)
        )

    def fill_plain(self, cells: Values) -> str:
        if (
            self.template.find_misfit({name: cells.get(name, "") for name in self.columns})
            is not None
        ):
            raise UsageError(
                "the cell is not one plain name, which it has to be in a path",
                remedy=f"{PLAIN_NAME_RULE}: name another column, or correct the cell",
            )
        return self.fill(cells)

    def fill_name(self, cells: Values) -> str:
        if not all(cells.get(name) for name in self.columns):
            raise UsageError(
                "the cell is empty, so it names nothing",
                remedy="name another column, or fill in the cell",
            )
        return self.fill(cells)


def _parse_text(text: str, part: str, dialect: Dialect) -> _Text:
    return _Text(parse_template(text, part), dialect)


def _make_reference_pattern(ref: Reference, dialect: Dialect) -> Pattern:
    body = _parse_text(ref.body, f"the body of {ref.name}:", dialect)
    params = [(key, _parse_text(value, f"parameter {key}", Dialect())) for key, value in ref.params]
    items = [_parse_item(item) for item in ref.selector or ()]
    columns = (*body.columns, *(name for _, text in params for name in text.columns))
    columns += tuple(name for item in items for name in item.columns)
    is_text = ref.name == TEXT_SOURCE

    def fill(cells: Values) -> Reference:
        return Reference(
            ref.name,
            body.fill(cells) if is_text else body.fill_plain(cells),
            tuple((key, text.fill_plain(cells)) for key, text in params),
            None if ref.selector is None else tuple(item.fill(cells) for item in items),
        )

    return _make_pattern(columns, fill, body.kept)


def _parse_item(item: Item) -> Pattern:
    """Make the pattern of an item of a selector.

    A cell is one name there, whatever its characters.
    """
    if isinstance(item, Everything):
        return Pattern((), lambda _: item)
    label = None if item.label is None else _parse_text(item.label, "the selector", Dialect())
    texts = (item.name,) if isinstance(item, Key) else item.tokens
    parts = [_parse_text(text, "the selector", Dialect()) for text in texts]
    columns = [name for part in parts for name in part.columns] + [
        *(() if label is None else label.columns)
    ]

    def fill(cells: Values) -> Item:
        filled = [part.fill_name(cells) for part in parts]
        new_label = None if label is None else label.fill_name(cells)
        return (
            Key(filled[0], new_label)
            if isinstance(item, Key)
            else Pointer(tuple(filled), new_label)
        )

    return Pattern(tuple(columns), fill)


def _make_field_pattern(spec: FieldSpec, dialect: Dialect) -> Pattern:
    ref = _make_reference_pattern(spec.ref, dialect)
    label = None if spec.label is None else _parse_text(spec.label, "the label", Dialect())
    columns = (*(() if label is None else label.columns), *ref.columns)
    return _make_pattern(
        columns,
        lambda cells: FieldSpec(None if label is None else label.fill(cells), ref.fill(cells)),
    )
