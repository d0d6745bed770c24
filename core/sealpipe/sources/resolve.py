"""Resolve references to fields.

Fetch each document once, source by source, then select fields from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from sealpipe.budget import MAX_BACKOFF, Budget, wait
from sealpipe.errors import (
    Note,
    PluginError,
    ReferenceValueError,
    SecretNotFoundError,
    UnavailableError,
    UsageError,
)
from sealpipe.plugin import ASKS, FRESH, Document, Locator
from sealpipe.reference import Everything, FieldSpec, Item, Key, Reference
from sealpipe.secret import Secret
from sealpipe.sources.select import select, select_bytes, select_values
from sealpipe.wire.fields import Field

if TYPE_CHECKING:
    from sealpipe.registry import Registry

MAX_TRIES = 4
"""How many times to ask an unavailable backend."""

Cache = dict[Locator, Document | PluginError]
"""The cache of one run, misses included.

All calls of a run share it, so that stdin is not read twice.
"""


def resolve(
    specs: Sequence[FieldSpec | Field], registry: Callable[[], Registry], cache: Cache | None = None
) -> list[Field]:
    """Resolve references to fields, in order; a Field stays as it is.

    `registry` is called only for references.

    Raises ReferenceSyntaxError before anything is fetched, the first PluginError in the order of
    the specs, with notes on the others, and UsageError if all fields are optional and none has a
    value.
    """
    refs = [spec.ref for spec in specs if isinstance(spec, FieldSpec)]
    resolver = _fetch(refs, registry, cache)
    fields = resolver.select_fields(specs)
    if not fields:
        raise UsageError(
            "nothing to share: all fields are optional, and none has a value",
            remedy="give one of them a value, or remove ?optional=1 from one",
        )
    return fields


def resolve_value(
    ref: Reference, registry: Callable[[], Registry], cache: Cache | None = None
) -> Secret | None:
    """Resolve a reference to one value, such as a passcode; None if it is optional and missing."""
    resolver = _fetch([ref], registry, cache)
    return _resolve_one(resolver, ref)


def resolve_secret(
    ref: Reference, what: str, registry: Callable[[], Registry], cache: Cache | None = None
) -> Secret | None:
    """Resolve a reference to a secret, called `what` in errors.

    UsageError if its source marks it as not secret.
    """
    # Most shares have no passcode.
    from sealpipe.sources.text_secrets import (
        make_text_error,
        refuse_text_source,
    )

    refuse_text_source(ref, what)
    resolver = _fetch([ref], registry, cache)
    document = resolver.cache[resolver.locators[0][0]]
    if isinstance(document, Document) and not document.secret:
        raise make_text_error(what)
    return _resolve_one(resolver, ref)


class Value(NamedTuple):
    """One value of any bytes, text or not. `label` and `type` are those of a field that would hold
    it.
    """

    label: str
    data: Secret
    type: str
    is_secret: bool
    """False if the source says that it is public."""


def resolve_bytes(
    refs: Sequence[Reference], registry: Callable[[], Registry]
) -> list[list[Value] | PluginError]:
    """Resolve each reference to its values, byte for byte.

    The values, none if they are optional and missing; or why they cannot be read.
    """
    resolver = _fetch(refs, registry, None)
    results: list[list[Value] | PluginError] = []
    for number, ref in enumerate(refs):
        try:
            results.append(resolver.select_values(ref, number))
        except PluginError as error:
            results.append(error)
    return results


class ReadField(NamedTuple):
    """A field of any bytes, and its document, if its source draws another one at each read.

    A generator does, and what ends with a lease; not a person who is asked.
    """

    field: Field
    drawn_from: Locator | None


def resolve_fields(
    specs: Sequence[FieldSpec], registry: Callable[[], Registry], cache: Cache
) -> list[ReadField]:
    """Resolve references to fields of any bytes. Raises as `resolve`."""
    resolver = _fetch([spec.ref for spec in specs], registry, cache)
    read: list[ReadField] = []
    errors: list[PluginError] = []
    for number, spec in enumerate(specs):
        try:
            read += resolver.read_fields(spec, number, registry())
        except PluginError as error:
            errors.append(error)
    if errors:
        raise _add_others(errors)
    return read


def _resolve_one(resolver: _Resolver, ref: Reference) -> Secret | None:
    fields = resolver.select_fields([FieldSpec(None, ref)])
    if not fields:
        return None
    check_number(ref, len(fields))
    value = fields[0].value
    return value if isinstance(value, Secret) else Secret(value)


def _add_others(errors: Sequence[PluginError]) -> PluginError:
    """Return the first error, with a note for each other one: what is missing is told at once."""
    first = errors[0]
    for text in [*dict.fromkeys(map(_describe, errors))][1:]:
        if text not in Note.on(first):  # an error of the cache may be raised again
            first.add_note(Note(text))
    return first


def _describe(error: PluginError) -> str:
    is_named = not error.locator.partition(":")[2] or error.locator in error.message
    return "; ".join(
        filter(
            None, (error.message if is_named else f"{error.locator}: {error.message}", error.remedy)
        )
    )


def check_number(ref: Reference, number: int) -> None:
    """Raise ReferenceValueError if a reference gave more than one value."""
    if number > 1:
        raise ReferenceValueError(
            f"{ref} gives {number} values, but only one is possible here",
            locator=str(ref),
            remedy="name one key: #KEY",
        )


def collect_remarks(cache: Cache) -> tuple[str, ...]:
    """Return the remarks of sources on the fetched documents, each with its reference.

    Never a value.
    """
    documents = [
        (locator, fetched) for locator, fetched in cache.items() if isinstance(fetched, Document)
    ]
    return tuple(
        f"{locator}: {document.remark}" for locator, document in documents if document.remark
    )


def find_earliest_expiry(cache: Cache) -> tuple[datetime, str] | None:
    """Return the time when the first document expires, and its reference; None if none expires."""
    expiries = [
        (document.expires_at, str(locator))
        for locator, document in cache.items()
        if isinstance(document, Document)
    ]
    return min(((end, text) for end, text in expiries if end is not None), default=None)


class _Resolver:
    """The references of one call, and their documents."""

    def __init__(self, cache: Cache) -> None:
        self.cache = cache
        self.locators: list[tuple[Locator, str]] = []
        """For each reference, in order: its locator, and the format of its document."""

    def locate(self, refs: Sequence[Reference], registry: Registry) -> dict[str, list[Locator]]:
        """Return the locators to fetch, each once, by source."""
        locators_by_source: dict[str, dict[Locator, None]] = {}
        mentions = MentionCounter(self.cache)
        for ref in refs:
            locator, info = registry.locate(ref), registry.source_info(ref.name)
            if FRESH in info.capabilities:
                locator = mentions.locate(locator, ref.selector)
            self.locators.append((locator, info.format))
            if locator not in self.cache:
                locators_by_source.setdefault(ref.name, {})[locator] = None
        return {name: list(locators) for name, locators in locators_by_source.items()}

    def select_fields(self, specs: Sequence[FieldSpec | Field]) -> list[Field]:
        """Return all fields of all specs.

        Raises the first PluginError, with those of the other specs as notes.
        """
        located = iter(self.locators)
        fields: list[Field] = []
        errors: list[PluginError] = []
        for spec in specs:
            try:
                fields += (
                    [spec]
                    if isinstance(spec, Field)
                    else self._select_spec_fields(spec, *next(located))
                )
            except PluginError as error:
                errors.append(error)
        if errors:
            raise _add_others(errors)
        return fields

    def select_values(self, ref: Reference, number: int) -> list[Value]:
        """Return the values of the reference of that number; none if optional and missing."""
        locator, form = self.locators[number]
        document = self._get_document(ref, locator)
        if document is None:
            return []
        return [
            Value(each.label, Secret(each.data), each.choose_type(ref), each.is_secret)
            for each in select_values(document, ref, form=form)
        ]

    def read_fields(self, spec: FieldSpec, number: int, registry: Registry) -> list[ReadField]:
        """Return the fields of the reference of that number."""
        locator, form = self.locators[number]
        document = self._get_document(spec.ref, locator)
        if document is None:
            return []
        capabilities = registry.source_info(spec.ref.name).capabilities
        is_drawn = document.expires_at is not None or (
            FRESH in capabilities and ASKS not in capabilities
        )
        fields = select_bytes(document, spec.ref, label=spec.label, form=form)
        return [ReadField(field, locator if is_drawn else None) for field in fields]

    def _select_spec_fields(self, spec: FieldSpec, locator: Locator, form: str) -> list[Field]:
        document = self._get_document(spec.ref, locator)
        return [] if document is None else select(document, spec.ref, label=spec.label, form=form)

    def _get_document(self, ref: Reference, locator: Locator) -> Document | None:
        result = self.cache[locator]
        if isinstance(result, Document):
            return result
        if isinstance(result, SecretNotFoundError) and ref.flag("optional"):
            return None
        raise result


def _fetch(
    refs: Sequence[Reference], registry: Callable[[], Registry], cache: Cache | None
) -> _Resolver:
    resolver = _Resolver({} if cache is None else cache)
    if not refs:
        return resolver
    plugins = registry()
    locators_by_source = resolver.locate(refs, plugins)
    interactive = {
        name: locators_by_source.pop(name)
        for name in [*locators_by_source]
        if ASKS in plugins.source_info(name).capabilities
    }
    if interactive:
        # First and alone: a lease or deadline must not expire while someone types, nor start if
        # typing is impossible.
        typed_results = plugins.fetch(interactive)
        for result in typed_results.values():
            if isinstance(result, PluginError) and not isinstance(result, SecretNotFoundError):
                raise result
        resolver.cache.update(typed_results)
    budget = Budget(plugins.deadline)
    for tries in range(1, MAX_TRIES + 1):
        results = plugins.fetch(locators_by_source, budget.get_remaining())
        resolver.cache.update(results)
        locators_by_source = _select_retryable(results)
        delay = _choose_backoff(results, tries) if locators_by_source else 0.0
        if not locators_by_source or tries == MAX_TRIES or delay >= budget.get_remaining():
            break
        wait(delay)
    return resolver


def _select_retryable(results: Cache) -> dict[str, list[Locator]]:
    """Return what to fetch again, by source: only documents of unavailable backends."""
    locators: dict[str, list[Locator]] = {}
    for locator, result in results.items():
        if isinstance(result, UnavailableError):
            locators.setdefault(locator.name, []).append(locator)
    return locators


def _choose_backoff(results: Cache, tries: int) -> float:
    requested = [
        result.retry_after for result in results.values() if isinstance(result, UnavailableError)
    ]
    # A plugin may return anything.
    seconds = [wait for wait in requested if isinstance(wait, int | float) and wait > 0]
    return max(Budget().draw_backoff(tries), min(MAX_BACKOFF, max(seconds, default=0.0)))


_ALL_PARTS = Everything()
MappingPart = str | Everything


class MentionCounter:
    """Counts the mentions of each document in one call.

    `before` is what earlier calls of the run have fetched.
    """

    def __init__(self, before: Iterable[Locator]) -> None:
        self._earlier = [locator._replace(mention=0) for locator in before]
        self._parts_taken: dict[Locator, list[set[MappingPart]]] = {}

    def locate(self, locator: Locator, selector: tuple[Item, ...] | None) -> Locator:
        """Return the document of the next mention.

        The first one whose parts are still unused, otherwise a new one.
        """
        if locator.param("name") is not None:
            return locator
        parts: set[MappingPart] = (
            {_ALL_PARTS} if selector is None else {_get_part(item) for item in selector}
        )
        documents = self._parts_taken.setdefault(locator, [])
        free = (
            number
            for number, used_parts in enumerate(documents)
            if _ALL_PARTS not in used_parts | parts and not used_parts & parts
        )
        number = next(free, len(documents))
        documents[number : number + 1] = [parts.union(*documents[number : number + 1])]
        return locator._replace(mention=self._earlier.count(locator) + number)


def _get_part(item: Item) -> MappingPart:
    if isinstance(item, Everything):
        return item
    return item.name if isinstance(item, Key) else item.tokens[0]
