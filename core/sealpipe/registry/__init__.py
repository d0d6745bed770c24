"""Plugins in use.

Stores and their settings, instances, and calls that stay safe whatever a plugin does.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from sealpipe import ci_systems
from sealpipe.errors import (
    NotConfiguredError,
    PayloadTooLargeError,
    PluginError,
    ReferenceSyntaxError,
    find_similar,
)
from sealpipe.plugin import (
    CI,
    Channel,
    ChannelInfo,
    Context,
    Document,
    Health,
    Info,
    Locator,
    Network,
    OutgoingAction,
    Secret,
    Sink,
    SinkInfo,
    Source,
    SourceInfo,
)
from sealpipe.plugin.context import DEADLINE
from sealpipe.reference import PARAMETERS, TARGET_PARAMETERS, Reference
from sealpipe.registry.fetching import fetch_all
from sealpipe.registry.safe_calls import (
    call_plugin,
    close_in_time,
    format_install_command,
    import_object,
    isolate_plugin,
    suggest,
)
from sealpipe.registry.stores import (
    PolicyHook,
    Store,
    check_store_names,
    make_default_store,
    read_allowed_plugins,
    read_preferred_plugins,
    read_stores,
)

if TYPE_CHECKING:
    from sealpipe.registry.catalog import Catalog

_PLAIN_CI = "plain"
_CLASSES: Mapping[str, type[Any]] = {"source": Source, "sink": Sink, "channel": Channel, "ci": CI}


class Registry:
    """The plugins of one run. It can be used from several threads.

    `config` returns the user's config file; `network` makes the network that plugins share; `stdin`
    and `environ` are this process's own unless given. `deadline` is in seconds, for each exchange
    of a plugin.
    """

    def __init__(
        self,
        *,
        environ: Mapping[str, str] | None = None,
        stdin: BinaryIO | None = None,
        config: Callable[[], Mapping[str, Any]] = dict,
        network: Callable[[], Network] | None = None,
        new_file: Callable[[Path, bytes], None] | None = None,
        replace_file: Callable[[Path, bytes, bytes | None], bool] | None = None,
        built_in: Sequence[str] | None = None,
        deadline: float = DEADLINE,
    ) -> None:
        self._environ = environ
        self._stdin = stdin
        self._config = config
        self._network = network
        self._new_file = new_file
        self._replace_file = replace_file
        self._built_in = built_in
        self.deadline = deadline
        self._instances: dict[tuple[str, str], Any] = {}
        self._lock = threading.RLock()

    @cached_property
    def catalog(self) -> Catalog:
        """The installed plugins."""
        # pluggy: only where a plugin is called.
        from sealpipe.registry.catalog import (
            BUILT_IN,
            Catalog,
        )

        built_in = BUILT_IN if self._built_in is None else self._built_in
        return Catalog(
            built_in, read_allowed_plugins(self.config), read_preferred_plugins(self.config)
        )

    @cached_property
    def config(self) -> Mapping[str, Any]:
        """The user's config file."""
        return self._config()

    @cached_property
    def stores(self) -> Mapping[str, Store]:
        """The named stores. SettingError if one has a plugin's name but uses another."""
        named_stores = read_stores(self.config, self.environ)
        if named_stores:
            check_store_names(named_stores, self.catalog.list_reference_names())
        return named_stores

    @property
    def environ(self) -> Mapping[str, str]:
        """The environment."""
        return os.environ if self._environ is None else self._environ

    def source_info(self, name: str) -> SourceInfo:
        """Return the descriptor of a source, by the name of a plugin or a store.

        Raises ReferenceSyntaxError.
        """
        return cast("SourceInfo", self._get_info("source", name))

    def source(self, name: str) -> Source:
        """Return the source of a name, made once.

        Raises ReferenceSyntaxError, NotConfiguredError, SettingError.
        """
        return cast("Source", self._get_instance("source", name))

    def sink_info(self, name: str) -> SinkInfo:
        """Like `source_info`, for a sink."""
        return cast("SinkInfo", self._get_info("sink", name))

    def sink(self, name: str) -> Sink:
        """Like `source`, for a sink."""
        return cast("Sink", self._get_instance("sink", name))

    def channel_info(self, name: str) -> ChannelInfo:
        """Like `source_info`, for a channel."""
        return cast("ChannelInfo", self._get_info("channel", name))

    def channel(self, name: str) -> Channel:
        """Like `source`, for a channel."""
        return cast("Channel", self._get_instance("channel", name))

    def ci(self) -> CI | None:
        """Return the CI system that this process runs in, or None."""
        system = ci_systems.detect_ci_system(self.environ)
        if system is not None and system.plugin != _PLAIN_CI:
            return cast("CI", self._get_instance("ci", system.plugin))
        name = self.catalog.detect_ci(self.environ, ci_systems.PLUGINS) or (
            _PLAIN_CI if system is not None else None
        )
        return None if name is None else cast("CI", self._get_instance("ci", name))

    def identify(self, kind: str, name: str) -> str:
        """Return a name as policies see it: `plugin/store`.

        Raises ReferenceSyntaxError if none of that kind has it.
        """
        store = self._named_store(kind, name)
        plugin = name if store is None else store.plugin
        point = self.catalog.find_replacement(kind, plugin)
        mark = f"@{point}" if point else ""
        return f"{plugin}{mark}/{name}{mark}"

    def oidc_token(self, audience: str | None = None) -> Secret:
        """Return the OIDC token of the CI system. NotConfiguredError outside CI."""
        ci = self.ci()
        if ci is None:
            raise NotConfiguredError(
                "no CI system issues tokens here",
                remedy="authenticate another way: with a token, or AppRole",
            )
        return call_plugin("the CI", lambda: ci.oidc_token(audience))

    def check(self, kind: str, name: str) -> Health:
        """Run a plugin's own check. Raises ReferenceSyntaxError, and PluginError if it fails."""
        instance = self._get_instance(kind, name)
        health = call_plugin(f"the {kind} {name}", instance.check)
        if not isinstance(health, Health):
            raise PluginError(
                f"the {kind} {name} returned {type(health).__name__} from its check",
                locator=f"{name}:",
            )
        return health

    def settings(self, kind: str, name: str) -> Any:
        """Return the settings of a plugin or store; None if it has none.

        SettingError names the wrong setting.
        """
        info = self._get_info(kind, name)
        if not info.settings:
            return None
        model = self._import(kind, name, info, info.settings)
        # Only a PluginSettings is filled; checking for its base class would always import pydantic.
        if not hasattr(model, "own_variables"):
            return call_plugin(
                name, model, self._make_unusable_error(kind, name, info, info.settings)
            )
        # pydantic: only where a backend has settings.
        from sealpipe.registry.filling import fill_settings

        return fill_settings(model, self._get_store(kind, name), self.environ)

    def locate(self, ref: Reference, kind: str = "source") -> Locator:
        """Return the document or target that a reference means.

        ReferenceSyntaxError for an unknown parameter.
        """
        info = cast("SourceInfo | SinkInfo", self._get_info(kind, ref.name))
        core_params = TARGET_PARAMETERS if kind == "sink" else PARAMETERS
        plugin_params = tuple(
            sorted((key, value) for key, value in ref.params if key not in core_params)
        )
        for number, (key, _) in enumerate(ref.params, 1):
            if key not in core_params and key not in info.params:
                known = [*info.params, *core_params]
                # A name that is like no parameter's may be part of a secret.
                is_like = find_similar(
                    key, [*PARAMETERS, *TARGET_PARAMETERS, *self.catalog.list_parameters()]
                )
                raise ReferenceSyntaxError(
                    f"{ref.name}: parameter {key if is_like else number} is unknown",
                    remedy=suggest(key, known, "parameters"),
                )
        return Locator(
            ref.name, ref.body, plugin_params, str(Reference(ref.name, ref.body, plugin_params))
        )

    def fetch(
        self, locators: Mapping[str, Sequence[Locator]], deadline: float | None = None
    ) -> dict[Locator, Document | PluginError]:
        """Fetch documents from all stores at once: `locators` maps a store's name to its locators.

        `deadline` is in seconds, for the whole call: after it, a store that was unavailable once is
        not asked again. Only PayloadTooLargeError is raised, never a PluginError.
        """
        return fetch_all(self.source, locators, deadline)

    def check_outgoing(self, hooks: Sequence[PolicyHook], plan: OutgoingAction) -> None:
        """Ask every policy. Raises PolicyError, or PluginError if one fails."""
        if self.stores:
            self.catalog.list_third_parties()  # for their names: a store must not use one of them
            check_store_names(self.stores, self.catalog.list_reference_names())
        from sealpipe.registry.policies import ask_policies  # only where there is a policy

        ask_policies(self.catalog, hooks, plan)

    def notify_observers(self, hooks: Sequence[PolicyHook], event: Mapping[str, Any]) -> None:
        """Notify every observer. Raises PluginError if a required one fails."""
        from sealpipe.registry.policies import notify_observers  # only where there is an observer

        notify_observers(self.catalog, hooks, event, self.make_context)

    def close(self) -> None:
        """Let plugins close connections and logins.

        Ignores failures, and after an interruption hanging plugins.
        """
        close_in_time(self._close)

    def _close(self) -> None:
        with self._lock:
            instances, self._instances = self._instances, {}
        for (kind, name), each in instances.items():
            if isinstance(each, Source | Sink):
                with suppress(PluginError, PayloadTooLargeError):
                    isolate_plugin(f"the {kind} {name}", each.close)
        network = getattr(self._network, "cache_info", None)
        if self._network is not None and network is not None and network().currsize:
            self._network().close()

    def _named_store(self, kind: str, name: str) -> Store | None:
        """Return the named store.

        Never for a CI system: a store called `github` does not replace it.
        """
        return None if kind == "ci" else self.stores.get(name)

    def _get_store(self, kind: str, name: str) -> Store:
        store = self._named_store(kind, name)
        if store is not None:
            return store
        return make_default_store(self.catalog.get_info(kind, name).backend or name, self.config)

    def _get_info(self, kind: str, name: str) -> Info:
        store = self._named_store(kind, name)
        if store is None:
            return self.catalog.get_info(kind, name)
        try:
            return self.catalog.get_info(kind, store.plugin)
        except ReferenceSyntaxError as error:
            near = suggest(store.plugin, self.catalog.list_names(kind), f"{kind}s")
            where = (
                f"set `plugin` in [{store.heading}] of the config file, or "
                f"{store.get_variable('plugin')}"
            )
            remedy = f"{near} {where}" if near.endswith("?") else f"{where}; {near}"
            failure = ReferenceSyntaxError(f"the store {name}: {error.message}", remedy=remedy)
        raise failure

    def _get_instance(self, kind: str, name: str) -> Any:
        with self._lock:
            if (kind, name) not in self._instances:
                self._instances[kind, name] = self._make(kind, name)
            return self._instances[kind, name]

    def _make(self, kind: str, name: str) -> Any:
        info = self._get_info(kind, name)
        factory = self._import(kind, name, info, info.factory)
        settings = self.settings(kind, name)
        context = self.make_context(name, named=self._named_store(kind, name) is not None)
        missing = call_plugin(
            name, lambda: " and ".join(sorted(getattr(factory, "__abstractmethods__", ())))
        )
        if missing:
            raise PluginError(
                f"the {kind} {name}: {info.factory} lacks {missing}",
                remedy="define it in the plugin's class",
            )
        instance = call_plugin(f"the {kind} {name}", lambda: factory(settings, context))
        if not isinstance(instance, _CLASSES[kind]):
            raise PluginError(
                f"the {kind} {name}: {info.factory} makes no "
                f"sealpipe.plugin.{_CLASSES[kind].__name__}",
                remedy="derive the plugin's class from it",
            )
        return instance

    def make_context(self, name: str, *, named: bool = False) -> Context:
        """Make what a plugin works with, by its own name or that of a store."""
        return Context(
            name,
            named=named,
            environ=self._environ,
            stdin=self._stdin,
            network=self._network,
            oidc_token=self.oidc_token,
            new_file=self._new_file,
            replace_file=self._replace_file,
            deadline=self.deadline,
        )

    def _import(self, kind: str, name: str, info: Info, spec: str) -> Any:
        """Import a class of a plugin. NotConfiguredError says where that failed."""
        failed = self._make_unusable_error(kind, name, info, spec)
        found = call_plugin(name, lambda: import_object(spec), failed)
        if found is None:
            raise failed("the module has no such name")
        return found

    def _make_unusable_error(
        self, kind: str, name: str, info: Info, spec: str
    ) -> Callable[[str], NotConfiguredError]:
        def make_error(why: str) -> NotConfiguredError:
            remedy = format_install_command(info) or "correct the plugin, or tell its author"
            return NotConfiguredError(
                f"the {kind} {name} cannot be used here ({spec}: {why})", remedy=remedy
            )

        return make_error
