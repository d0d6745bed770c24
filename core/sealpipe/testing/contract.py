"""What the contracts of all kinds have in common."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import ClassVar

import pytest

from sealpipe.client.plugins import PluginNetwork, new_file, replace_file
from sealpipe.errors import PluginError
from sealpipe.plugin import Health, Info
from sealpipe.registry import Registry
from sealpipe.registry.catalog import BUILT_IN
from sealpipe.testing.canary import CANARY, spellings

LIGHT: frozenset[str] = frozenset({"sealpipe", "pluggy"})


class Contract:
    """The descriptor, the isolation, and what is never shown. `name` is the plugin's."""

    kind: ClassVar[str]
    name: ClassVar[str]
    built_in: ClassVar[Sequence[str]] = BUILT_IN
    """Modules with hooks that the registry begins with; others are found by their entry points."""

    @pytest.fixture
    def environ(self) -> Mapping[str, str]:
        """The environment that configures the plugin for its backend. To be overridden where it needs any."""
        return {}

    @pytest.fixture
    def registry(self, environ: Mapping[str, str]) -> Registry:
        """A registry as the core makes it, in that environment."""
        return self.registry_in(environ)

    def registry_in(self, environ: Mapping[str, str]) -> Registry:
        """The same in another environment."""
        return Registry(
            environ=environ,
            network=lambda: PluginNetwork(None),
            new_file=new_file,
            replace_file=replace_file,
            built_in=self.built_in,
        )

    def info(self, registry: Registry) -> Info:
        """The descriptor."""
        return registry.catalog.info(self.kind, self.name)

    def test_the_descriptor_tells_what_users_need(self, registry: Registry) -> None:
        info = self.info(registry)
        assert info.name == self.name
        assert info.summary
        assert info.summary == info.summary.strip()
        assert len(info.summary) <= 100
        assert not info.extra or info.needs, "an extra installs something"
        for spec in filter(None, (info.factory, info.settings)):
            module, _, attribute = spec.partition(":")
            assert module, spec
            assert attribute, spec

    def test_the_module_with_the_hook_imports_no_sdk(self, registry: Registry) -> None:
        hooks = registry.catalog.hooks(self.kind, self.name)
        code = (
            "import sys, json, importlib\n"
            f"for name in {KINDS_NEEDED!r}: importlib.import_module(name)\n"
            "before = set(sys.modules)\n"
            f"importlib.import_module({hooks!r})\n"
            "print(json.dumps(sorted({name.partition('.')[0] for name in set(sys.modules) - before})))"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        own = hooks.partition(".")[0]
        loaded = set(json.loads(done.stdout)) - LIGHT - {own} - set(sys.stdlib_module_names)
        assert not loaded, f"importing the hooks imports {', '.join(sorted(loaded))}"

    def test_it_says_of_itself_whether_it_can_be_used(self, registry: Registry) -> None:
        health = registry.check(self.kind, self.name)
        assert isinstance(health, Health)
        assert health.ok, health.detail

    def test_its_settings_show_nothing_in_their_repr(self, registry: Registry) -> None:
        made = getattr(registry, self.kind)(self.name)
        assert not shows(repr(made), self.secrets())
        assert not shows(repr(made.settings), self.secrets())

    def secrets(self) -> Sequence[str]:
        """Secrets of the plugin's own, such as its token, that nothing may show. To be overridden."""
        return ()


KINDS_NEEDED = ("sealpipe.registry", "sealpipe.plugin")


def shows(text: str, secrets: Sequence[str] = ()) -> list[str]:
    """Which secrets, or the canary, a text shows in any spelling."""
    return [secret for secret in (CANARY, *secrets) for spelling in spellings(secret) if spelling in text]


def told(error: PluginError) -> str:
    """All that an error tells, as the command line and a log would."""
    causes = [repr(error.__cause__), repr(error.__context__)]
    return "\n".join([str(error), repr(error), error.message, error.remedy, error.locator, *causes])


def logged(caplog: pytest.LogCaptureFixture) -> str:
    """All that was logged meanwhile, at every level."""
    return "\n".join(f"{record.getMessage()} {record.args!r} {record.exc_text}" for record in caplog.records)


def listen(caplog: pytest.LogCaptureFixture) -> None:
    """Log everything from now on."""
    caplog.set_level(logging.DEBUG)
