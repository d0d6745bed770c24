"""The installed plugins of every kind.

Built-in plugins are registered first, by the same functions as others. Entry points are loaded only
for a name that no built-in plugin has: finding them is slow, and loading them runs code.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence, Set
from functools import cached_property, partial
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from sealpipe.ci_systems import is_set
from sealpipe.errors import (
    NotConfiguredError,
    PayloadTooLargeError,
    PluginError,
    ReferenceSyntaxError,
)
from sealpipe.plugin import API, ChannelInfo, CIInfo, Info, SinkInfo, SourceInfo
from sealpipe.reference import PARAMETERS
from sealpipe.reference.text import NAME
from sealpipe.registry.safe_calls import call_plugin, suggest

if TYPE_CHECKING:
    import pluggy

_BUILT_IN: Final[Mapping[str, str]] = {
    "source": "sealpipe_plugins.sources",
    "sink": "sealpipe_plugins.sinks",
    "channel": "sealpipe_plugins.channels",
    "ci": "sealpipe_plugins.ci",
}
"""The modules that register the built-in plugins, by kind; each is loaded when one of its kind is
needed.
"""

# Modules with hooks, by name: the core imports no plugin statically.
BUILT_IN: Final = tuple(_BUILT_IN.values())

_MAX_NAME_SHOWN: Final = 40  # a longer text is not a name, and may be a secret


class Kind(NamedTuple):
    """A kind of plugin.

    The hook that registers it, and the descriptor that it is registered with.
    """

    name: str
    hook: str
    info: type[Any]


KINDS: Final[Mapping[str, Kind]] = {
    kind.name: kind
    for kind in (
        Kind("source", "sealpipe_sources", SourceInfo),
        Kind("sink", "sealpipe_sinks", SinkInfo),
        Kind("channel", "sealpipe_channels", ChannelInfo),
        Kind("ci", "sealpipe_ci", CIInfo),
    )
}


class InstalledPlugin(NamedTuple):
    """A plugin as listed by `sealpipe plugins`.

    `origin` and `version` are its distribution's, `plugin` is its entry point there (all empty:
    built in).
    """

    kind: str
    info: Info
    origin: str
    version: str
    plugin: str


class Catalog:
    """The descriptors.

    `problems` maps the name of a plugin that cannot be used, or only in part, to the reason.

    `allowed` are the entry points that may be loaded (None: all); `preferred` maps a name to the
    entry point whose plugin is used for it, even instead of a built-in one.
    """

    def __init__(
        self,
        built_in: Sequence[str] = BUILT_IN,
        allowed: Sequence[str] | None = None,
        preferred: Mapping[str, str] | None = None,
    ) -> None:
        self._plugins: dict[tuple[str, str], InstalledPlugin] = {}
        self._hooks: dict[tuple[str, str], str] = {}
        self._origins: dict[str, tuple[str, str]] = {}
        self._replacements: dict[tuple[str, str], str] = {}
        self._allowed = allowed
        self._preferred = dict(preferred or {})
        self._has_loaded = False
        self._lock = threading.RLock()
        self.problems: dict[str, str] = {}
        self._unloaded = {kind: module for kind, module in _BUILT_IN.items() if module in built_in}
        for name in built_in:
            if name not in BUILT_IN:
                self._load(*KINDS)  # first, so that nothing replaces a built-in plugin
                self._add(name, partial(import_module, name))

    @cached_property
    def _manager(self) -> pluggy.PluginManager:
        from sealpipe.registry.hooks import make_manager  # the built-in tables work without it

        return make_manager()

    def get_info(self, kind: str, name: str) -> Info:
        """Return the descriptor. ReferenceSyntaxError if there is none."""
        with self._lock:
            self._load(kind)
            if (
                (kind, name) not in self._plugins or name in self._preferred
            ) and not self._has_loaded:
                self._load_entry_points()
            if (
                preferred := self._preferred.get(name)
            ) is not None and not self._manager.has_plugin(preferred):
                raise NotConfiguredError(
                    (
                        f"the config takes {name} from the plugin {preferred}, which "
                        f"{self._explain(preferred)}"
                    ),
                    locator=f"{name}:",
                    remedy=f"install it, or remove `from` from [plugins.{name}]",
                )
            if (kind, name) in self._plugins:
                return self._plugins[kind, name].info
            if name in self.problems:
                raise NotConfiguredError(
                    f"the plugin {name} {self.problems[name]}",
                    locator=f"{name}:",
                    remedy="reinstall it with its dependencies, or ask its author",
                )
            raise self._make_unknown_error(kind, name)

    def list_names(self, kind: str) -> list[str]:
        """List the names of a kind that are known so far."""
        with self._lock:
            self._load(kind)
            return sorted(name for other_kind, name in self._plugins if other_kind == kind)

    def detect_ci(self, environ: Mapping[str, str], excluded: Set[str]) -> str | None:
        """Return the first CI plugin by name whose sign is set, but for the `excluded`, or None."""
        # Only outside the built-in CI systems.
        from sealpipe.registry.entry_points import are_declared

        with self._lock:
            if not self._has_loaded and are_declared():
                self._load_entry_points()
            for name in self.list_names("ci"):
                if name not in excluded and is_set(
                    environ, cast("CIInfo", self._plugins["ci", name].info).sign
                ):
                    return name
            return None

    def list_reference_names(self) -> set[str]:
        """Return the names that references may begin with, as far as known."""
        with self._lock:
            self._load("source", "sink", "channel")
            return {name for kind, name in self._plugins if kind != "ci"}

    def find_replacement(self, kind: str, name: str) -> str:
        """Return the entry point of the plugin that replaces a built-in one; empty if none does."""
        with self._lock:
            self.get_info(kind, name)
            return self._replacements.get((kind, name), "")

    def list_plugins(self) -> list[InstalledPlugin]:
        """List every plugin, by kind and name. Loads all entry points."""
        with self._lock:
            if not self._has_loaded:
                self._load_entry_points()
            return [self._plugins[key] for key in sorted(self._plugins)]

    def list_parameters(self) -> list[str]:
        """List the parameters of references that plugins declare. Loads no entry points."""
        return [
            name for each in [*self._plugins.values()] for name in getattr(each.info, "params", ())
        ]

    def get_module_name(self, kind: str, name: str) -> str:
        """Return the name of the module that registered a plugin."""
        with self._lock:
            self.get_info(kind, name)
            return self._hooks[kind, name]

    def list_third_parties(self) -> dict[str, tuple[str, str]]:
        """Return distribution and version of each loaded third-party plugin, by entry point."""
        with self._lock:
            if not self._has_loaded:
                self._load_entry_points()
            return dict(self._origins)

    def get_module(self, plugin: str) -> ModuleType:
        """Return a third party's module by its entry point.

        NotConfiguredError if it is not installed, or broken.
        """
        with self._lock:
            if not self._has_loaded:
                self._load_entry_points()
            module: ModuleType | None = self._manager.get_plugin(plugin)
            if module is None:
                reason = self._explain(plugin)
                raise NotConfiguredError(
                    f"the plugin {plugin} {reason}, and the config names it", locator=f"{plugin}:"
                )
            return module

    def isolate_hook(self, module: ModuleType, hook: str) -> Any:
        """Return the hook as this module alone implements it."""
        with self._lock:
            if not self._manager.is_registered(module):
                self._manager.register(module)
            other_plugins = [other for other in self._manager.get_plugins() if other is not module]
            return self._manager.subset_hook_caller(hook, other_plugins)

    def _load(self, *kinds: str) -> None:
        """Register the built-in plugins of these kinds, once."""
        for kind in kinds:
            name = self._unloaded.pop(kind, None)
            if name is None:
                continue
            registrations: list[tuple[str, Any]] = []
            getattr(import_module(name), KINDS[kind].hook)(partial(_record, registrations, kind))
            self._keep(
                name,
                name,
                registrations,
                [self._find_problem(name, *each) for each in registrations],
            )

    def _load_entry_points(self) -> None:
        self._has_loaded = True
        self._load(*KINDS)  # first, so that nothing replaces a built-in plugin
        from sealpipe.registry.entry_points import find_entry_points, read_origin

        for point in find_entry_points():
            if self._allowed is not None and point.name not in self._allowed:
                self.problems[point.name] = "is not listed in allow_plugins"
                continue
            self._add(point.name, point.load, origin=read_origin(point))

    def _add(
        self, plugin: str, load: Callable[[], ModuleType], *, origin: tuple[str, str] = ("", "")
    ) -> None:
        if self._manager.has_plugin(plugin):
            self.problems[plugin] = "is installed twice: only the first is used"
            return
        registered: list[tuple[str, Any]] = []

        def register_plugin() -> list[str]:
            module = load()
            if not isinstance(module, ModuleType):
                raise PluginError("does not name a module")
            self._manager.register(module, plugin)
            others = [other for other in self._manager.get_plugins() if other is not module]
            for kind in KINDS.values():
                register = partial(_record, registered, kind.name)
                self._manager.subset_hook_caller(kind.hook, others)(register=register)
            return [self._find_problem(plugin, kind, info) for kind, info in registered]

        try:
            problems = call_plugin(
                plugin,
                register_plugin,
                lambda kind: NotConfiguredError(f"could not be loaded ({kind})"),
            )
        except (PluginError, PayloadTooLargeError) as error:
            if not origin[0]:
                raise
            # Nothing that a failed plugin has registered is used.
            if self._manager.has_plugin(plugin):
                self._manager.unregister(name=plugin)
            self.problems[plugin] = error.message
            return
        if origin[0]:
            self._origins[plugin] = origin
        self._keep(
            plugin,
            getattr(self._manager.get_plugin(plugin), "__name__", plugin),
            registered,
            problems,
            origin,
        )

    def _keep(
        self,
        plugin: str,
        module: str,
        registrations: Sequence[tuple[str, Any]],
        problems: Sequence[str],
        origin: tuple[str, str] = ("", ""),
    ) -> None:
        for (kind, info), problem in zip(registrations, problems, strict=True):
            if problem:
                self.problems[plugin] = problem
            else:
                if (kind, info.name) in self._plugins:
                    self._replacements[kind, info.name] = plugin
                self._plugins[kind, info.name] = InstalledPlugin(
                    kind, info, *origin, plugin if origin[0] else ""
                )
                self._hooks[kind, info.name] = module

    def _find_problem(self, plugin: str, kind: str, info: Any) -> str:
        if not isinstance(info, KINDS[kind].info):
            return f"registers an object that is not a {KINDS[kind].info.__name__}"
        if info.api != API:
            return (
                f"is written for version {info.api!r} of the plugin contract; this is version {API}"
            )
        if not NAME.fullmatch(info.name):
            return f"has a {kind} with an invalid name"
        if (kind, info.name) in self._plugins and self._preferred.get(info.name) != plugin:
            return f"has a {kind} named {info.name}, which already exists"
        if not PARAMETERS.keys().isdisjoint(getattr(info, "params", {})):
            return f"has a {kind} {info.name} with a parameter that every source has"
        return ""

    def _explain(self, plugin: str) -> str:
        return self.problems.get(plugin, "is not installed")

    def _make_unknown_error(self, kind: str, name: str) -> ReferenceSyntaxError:
        shown = (
            f"there is no {kind} named {name}"
            if len(name) <= _MAX_NAME_SHOWN
            else f"there is no such {kind}"
        )
        remedy = suggest(name, self.list_names(kind), f"{kind}s")
        if kind == "source":  # it may have been meant as a label
            remedy += (
                " A" if remedy.endswith("?") else "; a"
            ) + ' label that has a colon goes in "quotes"'
        if self.problems:
            remedy += "; not fully loaded: " + ", ".join(
                f"{k} {v}" for k, v in self.problems.items()
            )
        return ReferenceSyntaxError(shown, remedy=remedy)


def _record(registrations: list[tuple[str, Any]], kind: str, info: object) -> None:
    registrations.append((kind, info))
