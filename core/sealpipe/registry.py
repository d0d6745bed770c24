"""Which plugins there are, and the one door through which they are called.

The built-in ones are registered first, through the same hooks as anybody's. Entry points are looked up
only where a reference names something that no built-in has: looking is dear, and loading them runs code.
What goes wrong in a plugin stays there: it breaks only what needs it, and only the type of an error that
is not part of the contract is told, for its text may hold anything.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any, BinaryIO, Final, TypeVar

import pluggy

from sealpipe import hookspecs
from sealpipe.errors import InvalidReference, NotConfigured, PluginError, TooLarge
from sealpipe.plugin import API, Context, Document, Health, Locator, Source, SourceInfo
from sealpipe.reference import PARAMETERS, Reference
from sealpipe.reference.text import NAME

T = TypeVar("T")

GROUP: Final = "sealpipe"
BUILT_IN: Final = ("sealpipe_plugins.sources",)
"""Modules with hooks, by name: the core imports no plugin statically."""

_SHOWN: Final = 40  # a longer name is none, and may be a secret that somebody typed


class Registry:
    """The sources of one run. Safe to use from several threads.

    `problems` maps the name of a plugin that cannot be used, or only in part, to the reason.
    """

    def __init__(
        self,
        *,
        environ: Mapping[str, str] | None = None,
        stdin: BinaryIO | None = None,
        built_in: Sequence[str] = BUILT_IN,
    ) -> None:
        self._environ = environ
        self._stdin = stdin
        self._manager = pluggy.PluginManager("sealpipe")
        self._manager.add_hookspecs(hookspecs)
        self._infos: dict[str, SourceInfo] = {}
        self._origins: dict[str, str] = {}
        self._sources: dict[str, Source] = {}
        self._looked = False
        self._lock = threading.RLock()
        self.problems: dict[str, str] = {}
        for name in built_in:
            self._add(name, partial(import_module, name))

    def info(self, name: str) -> SourceInfo:
        """The descriptor of a source. InvalidReference where there is none."""
        with self._lock:
            if name not in self._infos and not self._looked:
                self._look()
            if name in self._infos:
                return self._infos[name]
            if name in self.problems:
                raise NotConfigured(
                    f"the plugin {name} {self.problems[name]}",
                    locator=f"{name}:",
                    remedy="install it anew with all that it needs, or ask its author",
                )
            raise self._unknown(name)

    def listing(self) -> list[tuple[SourceInfo, str]]:
        """Every source by name, and the distribution that it comes from (empty: built in). Looks up all plugins."""
        with self._lock:
            if not self._looked:
                self._look()
            return [(self._infos[name], self._origins[name]) for name in sorted(self._infos)]

    def check(self, name: str) -> Health:
        """What a source finds out about itself. Blocks. Raises InvalidReference, and PluginError where it fails."""
        source = self._source(name)
        health = _guarded(f"the source {name}", source.check)
        if not isinstance(health, Health):
            raise PluginError(f"the source {name} answered its check with {type(health).__name__}", locator=f"{name}:")
        return health

    def locate(self, ref: Reference) -> Locator:
        """The document that a reference means. InvalidReference for a parameter that nobody knows."""
        info = self.info(ref.name)
        own = tuple(sorted((key, value) for key, value in ref.params if key not in PARAMETERS))
        for number, (key, _) in enumerate(ref.params, 1):
            if key not in PARAMETERS and key not in info.params:
                raise InvalidReference(
                    f"{ref.name}: parameter {number} is unknown",
                    remedy=_suggest(key, [*info.params, *PARAMETERS], "parameters"),
                )
        return Locator(ref.name, ref.body, own, str(Reference(ref.name, ref.body, own)))

    def fetch(self, name: str, locators: Sequence[Locator]) -> dict[Locator, Document | PluginError]:
        """What one source answers to some locators. Blocks. Only TooLarge is raised, never a PluginError."""
        failure: PluginError
        try:
            source = self._source(name)
            answers = _guarded(f"the source {name}", lambda: source.fetch_many(locators))
            return {locator: _checked(locator, answers) for locator in locators}
        except PluginError as error:
            failure = error.with_traceback(None)
        return {locator: _located(failure, locator) for locator in locators}

    def _source(self, name: str) -> Source:
        with self._lock:
            if name not in self._sources:
                self._sources[name] = self._make(self.info(name))
            return self._sources[name]

    def _make(self, info: SourceInfo) -> Source:
        def failed(kind: str) -> NotConfigured:
            needs = " ".join(f"'{need}'" for need in info.needs)
            return NotConfigured(
                f"the source {info.name} cannot be used here ({kind})",
                remedy=f"pip install {needs}" if needs else "see `sealpipe doctor` for what it needs",
            )

        factory = _guarded(info.name, lambda: _imported(info.factory), failed)
        settings = _guarded(info.name, lambda: _imported(info.settings)(), failed) if info.settings else None
        context = Context(info.name, environ=self._environ, stdin=self._stdin)
        made = _guarded(f"the source {info.name}", lambda: factory(settings, context))
        if not isinstance(made, Source):
            raise PluginError(f"the source {info.name} is not a sealpipe.plugin.Source")
        return made

    def _look(self) -> None:
        self._looked = True
        from importlib.metadata import entry_points  # 160 million instructions: only where it is needed

        for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
            self._add(point.name, point.load, origin=point.dist.name if point.dist else point.module)

    def _add(self, plugin: str, load: Callable[[], ModuleType], *, origin: str = "") -> None:
        found: list[SourceInfo] = []

        def ask() -> list[str]:
            module = load()
            self._manager.register(module, plugin)
            others = [other for other in self._manager.get_plugins() if other is not module]
            self._manager.subset_hook_caller("sealpipe_sources", others)(register=found.append)
            return [self._unfit(info) for info in found]

        try:
            problems = _guarded(plugin, ask, lambda kind: NotConfigured(f"could not be loaded ({kind})"))
        except (PluginError, TooLarge) as error:
            if not origin:
                raise
            # Half of a plugin is none: nothing that it registered before it failed is taken.
            if self._manager.has_plugin(plugin):
                self._manager.unregister(name=plugin)
            self.problems[plugin] = error.message
            return
        for info, problem in zip(found, problems, strict=True):
            if problem:
                self.problems[plugin] = problem
            else:
                self._infos[info.name], self._origins[info.name] = info, origin

    def _unfit(self, info: object) -> str:
        if not isinstance(info, SourceInfo):
            return "registers something that is no SourceInfo"
        if info.api != API:
            return f"is made for version {info.api!r} of the plugin contract; this is version {API}"
        if not NAME.fullmatch(info.name):
            return "has a source with a name that none can have"
        if info.name in self._infos:
            return f"has a source named {info.name}, and there is one already"
        if not PARAMETERS.keys().isdisjoint(info.params):
            return f"has a source {info.name} with a parameter that every source has already"
        return ""

    def _unknown(self, name: str) -> InvalidReference:
        shown = f"there is no source named {name}" if len(name) <= _SHOWN else "there is no such source"
        remedy = _suggest(name, self._infos, "sources") + '; a label that has a colon goes in "quotes"'
        if self.problems:
            remedy += "; not loaded whole: " + ", ".join(f"{k} {v}" for k, v in self.problems.items())
        return InvalidReference(shown, remedy=remedy)


def _imported(spec: str) -> Any:
    module, _, name = spec.partition(":")
    return getattr(import_module(module), name)


def _guarded(what: str, call: Callable[[], T], failed: Callable[[str], PluginError] | None = None) -> T:
    """Let a plugin do something. Only errors of the contract come out, without the errors behind them."""
    kept: PluginError | TooLarge
    try:
        return call()
    except (PluginError, TooLarge) as error:
        kept = error
    except (Exception, SystemExit) as error:  # noqa: BLE001  # whatever it is, its text stays inside
        kind = type(error).__name__
        kept = failed(kind) if failed else PluginError(f"{what} failed in a way it should not ({kind})")
    # Out here there is no context; and what a plugin's own error had behind it, or in its frames, is cut off.
    kept.__cause__ = kept.__context__ = None
    raise kept.with_traceback(None)


def _checked(locator: Locator, answers: object) -> Document | PluginError:
    answer = answers.get(locator) if isinstance(answers, Mapping) else None
    if isinstance(answer, PluginError):
        answer.__cause__ = answer.__context__ = None
        return _located(answer.with_traceback(None), locator)
    if isinstance(answer, Document) and isinstance(answer.content, bytes | str | Mapping):
        return answer
    kind = type(answer.content if isinstance(answer, Document) else answer).__name__
    return PluginError(f"the source {locator.name} answered {locator} with {kind}", locator=locator.text)


def _located(error: PluginError, locator: Locator) -> PluginError:
    error.locator = error.locator or locator.text
    return error


def _suggest(given: str, known: Iterable[str], what: str) -> str:
    from difflib import get_close_matches  # for an error only

    names = sorted(known)
    near = get_close_matches(given.lower(), names, n=2, cutoff=0.6)
    near = [name for name in near if sorted(name) == sorted(given.lower())] or near  # letters out of order
    return f"did you mean {' or '.join(near)}?" if near else f"known {what}: {', '.join(names)}"
