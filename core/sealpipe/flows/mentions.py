"""Which document each mention of a source means that makes its documents, as `gen:` does. Pure.

Two fields that both say `gen:password` are two passwords; `gen:ssh#private` and `gen:ssh#public` are one key pair.
"""

from __future__ import annotations

from collections.abc import Iterable

from sealpipe.plugin import Locator
from sealpipe.reference import Everything, Item, Key

_ALL = Everything()
Part = str | Everything


class Mentions:
    """Counts the mentions of one flow. What earlier flows of the run have fetched is `before`."""

    def __init__(self, before: Iterable[Locator]) -> None:
        self._before = [locator._replace(mention=0) for locator in before]
        self._taken: dict[Locator, list[set[Part]]] = {}

    def of(self, locator: Locator, selector: tuple[Item, ...] | None) -> Locator:
        """The document of the next mention: the first whose parts it takes are not taken yet, else a new one."""
        if locator.param("name") is not None:
            return locator
        parts: set[Part] = {_ALL} if selector is None else {_part(item) for item in selector}
        documents = self._taken.setdefault(locator, [])
        free = (number for number, taken in enumerate(documents) if _ALL not in taken | parts and not taken & parts)
        number = next(free, len(documents))
        documents[number : number + 1] = [parts.union(*documents[number : number + 1])]
        return locator._replace(mention=self._before.count(locator) + number)


def _part(item: Item) -> Part:
    if isinstance(item, Everything):
        return item
    return item.name if isinstance(item, Key) else item.tokens[0]
