"""References to fields: each document is fetched once, source by source, then fields are selected from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from sealpipe.errors import PluginError, ReferenceValueError, SecretNotFoundError, UnavailableError, UsageError
from sealpipe.flows import Do, Flow, Wait
from sealpipe.flows.resolve.select import select
from sealpipe.flows.retry import LONGEST_WAIT, Budget
from sealpipe.plugin import ASKS, FRESH, Document, Locator
from sealpipe.reference import Everything, FieldSpec, Item, Key, Reference
from sealpipe.secret import Secret
from sealpipe.wire.fields import Field

if TYPE_CHECKING:
    from sealpipe.registry import Registry

TRIES = 4
"""How often a backend is asked that did not answer."""

Cache = dict[Locator, Document | PluginError]
"""What was fetched in one run, misses too. Handed from flow to flow, it keeps stdin from being read twice."""


def resolve(
    specs: Sequence[FieldSpec | Field], registry: Callable[[], Registry], cache: Cache | None = None
) -> Flow[list[Field]]:
    """The fields, in order; a Field stands as it is. `registry` is called only where there is a reference.

    Raises ReferenceSyntaxError before anything is fetched, the first PluginError in the order of the specs, and
    UsageError where optional fields fell away and none is left.
    """
    refs = [spec.ref for spec in specs if isinstance(spec, FieldSpec)]
    resolver = yield from _fetch(refs, registry, cache)
    fields: list[Field] = yield Do(partial(resolver.fields, specs))
    if not fields:
        raise UsageError(
            "nothing to share: all fields are optional, and none has a value",
            remedy="give one of them a value, or remove ?optional=1 from one",
        )
    return fields


def resolve_value(ref: Reference, registry: Callable[[], Registry], cache: Cache | None = None) -> Flow[Secret | None]:
    """The one value of a reference, such as a passcode's; None where it is optional and missing."""
    resolver = yield from _fetch([ref], registry, cache)
    return (yield from _one(resolver, ref))


def resolve_secret(
    ref: Reference, what: str, registry: Callable[[], Registry], cache: Cache | None = None
) -> Flow[Secret | None]:
    """The same of what has to be a secret, `what` in an error. UsageError where its source says that it is none."""
    from sealpipe.flows import passcode  # most shares have no passcode

    passcode.refuse_text(ref, what)
    resolver = yield from _fetch([ref], registry, cache)
    answer = resolver.cache[resolver.located[0][0]]
    if isinstance(answer, Document) and not answer.secret:
        raise passcode.text_error(what)
    return (yield from _one(resolver, ref))


def _one(resolver: _Resolver, ref: Reference) -> Flow[Secret | None]:
    fields: list[Field] = yield Do(partial(resolver.fields, [FieldSpec(None, ref)]))
    if len(fields) > 1:
        raise ReferenceValueError(
            f"{ref} gives {len(fields)} values, but only one is possible here",
            locator=str(ref),
            remedy="name one key: #KEY",
        )
    if not fields:
        return None
    value = fields[0].value
    return value if isinstance(value, Secret) else Secret(value)


def collect_remarks(cache: Cache) -> tuple[str, ...]:
    """What the sources say of the documents that were fetched, each with its reference. Never a value."""
    found = [(locator, answer) for locator, answer in cache.items() if isinstance(answer, Document)]
    return tuple(f"{locator}: {document.remark}" for locator, document in found if document.remark)


def earliest_expiry(cache: Cache) -> tuple[datetime, str] | None:
    """The moment when the first of the documents is worth nothing any more, and its reference; None for never."""
    found = [(answer.expires_at, str(locator)) for locator, answer in cache.items() if isinstance(answer, Document)]
    return min(((end, text) for end, text in found if end is not None), default=None)


class _Resolver:
    """What the references of one flow mean, and what came back for them."""

    def __init__(self, cache: Cache) -> None:
        self.cache = cache
        self.located: list[tuple[Locator, str]] = []
        """One for each reference, in their order: what it means, and its document's own format."""

    def locate(self, refs: Sequence[Reference], registry: Registry) -> dict[str, list[Locator]]:
        """The locators to fetch, each once, by source."""
        wanted: dict[str, dict[Locator, None]] = {}
        mentions = MentionCounter(self.cache)
        for ref in refs:
            locator, info = registry.locate(ref), registry.source_info(ref.name)
            if FRESH in info.capabilities:
                locator = mentions.of(locator, ref.selector)
            self.located.append((locator, info.format))
            if locator not in self.cache:
                wanted.setdefault(ref.name, {})[locator] = None
        return {name: list(locators) for name, locators in wanted.items()}

    def fields(self, specs: Sequence[FieldSpec | Field]) -> list[Field]:
        """All fields of all specs."""
        located = iter(self.located)
        return [
            field
            for spec in specs
            for field in ([spec] if isinstance(spec, Field) else self._fields(spec, *next(located)))
        ]

    def _fields(self, spec: FieldSpec, locator: Locator, form: str) -> list[Field]:
        answer = self.cache[locator]
        if isinstance(answer, Document):
            return select(answer, spec.ref, label=spec.label, form=form)
        if isinstance(answer, SecretNotFoundError) and spec.ref.flag("optional"):
            return []
        raise answer


def _fetch(refs: Sequence[Reference], registry: Callable[[], Registry], cache: Cache | None) -> Flow[_Resolver]:
    resolver = _Resolver({} if cache is None else cache)
    if not refs:
        return resolver
    found: Registry = yield Do(registry)
    wanted: dict[str, list[Locator]] = yield Do(partial(resolver.locate, refs, found))
    asking = {name: wanted.pop(name) for name in [*wanted] if ASKS in found.source_info(name).capabilities}
    if asking:
        # By themselves: no lease runs out, and no deadline ends, while somebody types; none is made where nobody can.
        typed: Cache = yield Do(partial(found.fetch, asking))
        for answer in typed.values():
            if isinstance(answer, PluginError) and not isinstance(answer, SecretNotFoundError):
                raise answer
        resolver.cache.update(typed)
    budget = Budget(found.deadline)
    for tries in range(1, TRIES + 1):
        answers: Cache = yield Do(partial(found.fetch, wanted, budget.left()))
        resolver.cache.update(answers)
        wanted = _retryable(answers)
        pause = _backoff(answers, tries) if wanted else 0.0
        if not wanted or tries == TRIES or pause >= budget.left():
            break
        yield Wait(pause)
    return resolver


def _retryable(answers: Cache) -> dict[str, list[Locator]]:
    """What to ask once more, by source: only where a backend did not answer, or asked to come back."""
    wanted: dict[str, list[Locator]] = {}
    for locator, answer in answers.items():
        if isinstance(answer, UnavailableError):
            wanted.setdefault(locator.name, []).append(locator)
    return wanted


def _backoff(answers: Cache, tries: int) -> float:
    asked = [answer.retry_after for answer in answers.values() if isinstance(answer, UnavailableError)]
    seconds = [wait for wait in asked if isinstance(wait, int | float) and wait > 0]  # a plugin may say anything
    return max(Budget().back_off(tries), min(LONGEST_WAIT, max(seconds, default=0.0)))


_ALL = Everything()
Part = str | Everything


class MentionCounter:
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
