"""The contract of plugins: the generated parts of docs/reference/api on plugins, hooks, contract
tests and pytest.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

from sealpipe import errors, plugin, testing
from sealpipe.plugin.settings import PluginSettings
from sealpipe.registry import hooks as registry_hooks
from unit.docs.generator.api import attribute, link_errors, render
from unit.docs.generator.inspection import Attribute, Described, constants, describe
from unit.docs.generator.markdown import item

PYTEST = {
    "Rehearsal": "sealpipe_rehearsal.pytest_plugin",
    "LinkRefusedError": "sealpipe_rehearsal.people",
    "Recipient": "sealpipe_rehearsal.people",
    "Submitter": "sealpipe_rehearsal.people",
    "Webhook": "sealpipe_rehearsal.control_client",
    "WebhookDelivery": "sealpipe_service.webhook_deliveries",
    "Event": "sealpipe_service.journal",
    "LoggedRequest": "sealpipe_rehearsal.log",
    "Note": "sealpipe_service.journal",
}
"""What a test gets from the fixture `sealpipe_rehearsal`, with its modules."""


def hooks() -> list[Described]:
    """Return the hooks that plugins implement."""
    return [
        describe(name, hook)
        for name, hook in vars(registry_hooks).items()
        if name.startswith("sealpipe_")
    ]


def exported() -> Mapping[str, Any]:
    """Return the classes and functions of `sealpipe.plugin`, without the exceptions of the core."""
    found = {name: getattr(plugin, name) for name in plugin.__all__ if not hasattr(errors, name)}
    own = {
        name: value
        for name, value in found.items()
        if inspect.isclass(value) or inspect.isroutine(value)
    }
    return {**own, "PluginSettings": PluginSettings}


def values() -> list[Attribute]:
    """Return the constants of `sealpipe.plugin`, from the modules that define them."""
    names = set(plugin.__all__) - exported().keys() - vars(errors).keys()
    defined = [each for module in _modules() for each in constants(module) if each.name in names]
    return sorted(
        {each.name: each for each in reversed(defined)}.values(), key=lambda each: each.name
    )


def _modules() -> list[ModuleType]:
    names = ("ci_systems", "plugin", "plugin.backends", "plugin.context", "wire.encoding")
    return [import_module(f"sealpipe.{name}") for name in names]


def contracts() -> list[Described]:
    """Return the classes of contract tests, without the tests that they run."""
    return [
        _without_tests(describe(name, getattr(testing, name), is_made=False))
        for name in testing.__all__
    ]


def _without_tests(each: Described) -> Described:
    methods = tuple(
        method for method in each.methods if not method.name.partition(".")[2].startswith("test_")
    )
    return each._replace(methods=methods)


def rehearsal() -> list[Described]:
    """Return what the fixture is made of."""
    found = {name: getattr(import_module(place), name) for name, place in PYTEST.items()}
    return [describe(name, kind, is_made=False) for name, kind in found.items()]


def hooks_page() -> str:
    """Return each hook."""
    return render(hooks(), depth=2)


def plugin_page() -> str:
    """Return what a plugin's author imports."""
    return render(described_exports())


def described_exports() -> list[Described]:
    """Return the classes and functions of `sealpipe.plugin`."""
    return [_describe(name, value) for name, value in exported().items()]


def _describe(name: str, value: Any) -> Described:
    described = describe(name, value, is_made=value is not PluginSettings)
    # they are pydantic's.
    return described._replace(methods=()) if value is PluginSettings else described


def values_page() -> str:
    """Return the constants that a plugin's author imports."""
    return _list(values())


def errors_page() -> str:
    """Return the exceptions that a plugin's author imports."""
    return "".join(
        item(f"{link_errors(name)}\n") for name in plugin.__all__ if hasattr(errors, name)
    )


def _list(attributes: Iterable[Attribute]) -> str:
    return "".join(map(attribute, attributes))


def contracts_page() -> str:
    """Return the classes of contract tests."""
    return render(contracts(), depth=2)


def rehearsal_page() -> str:
    """Return what the fixture offers."""
    return render(rehearsal(), depth=2)
