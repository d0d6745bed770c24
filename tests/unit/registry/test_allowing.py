"""Which third-party plugins are loaded, whose is taken for a name, and what is no plugin."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import pytest

from sealpipe.errors import NotConfiguredError, SettingError
from sealpipe.registry import Registry
from support.distributions import SOURCE, Site
from support.terminal import Terminal

IT = "class It(Source):\n    def fetch(self, locator):\n        return Document('its own')\n"


def registry(**config: Any) -> Registry:
    return Registry(environ={"A": "of the environment"}, config=lambda: config)


def content(found: Registry, reference: str) -> Any:
    from sealpipe.reference import parse

    locator = found.locate(parse(reference))
    return getattr(found.fetch({locator.name: [locator]})[locator], "content", None)


def test_only_those_that_the_setting_allows_are_loaded(site: Site) -> None:
    attic, cellar = site.source("attic", IT), site.source("cellar", IT)
    found = registry(allow_plugins=["attic"])
    assert content(found, "attic:x") == "its own"
    with pytest.raises(
        NotConfiguredError, match="the plugin cellar is not listed in allow_plugins"
    ):
        found.source_info("cellar")
    assert (attic in sys.modules, cellar in sys.modules) == (True, False)
    assert found.catalog.problems == {"cellar": "is not listed in allow_plugins"}


def test_an_empty_list_allows_none_and_leaves_the_built_in_ones(site: Site) -> None:
    module = site.source("attic", IT)
    found = registry(allow_plugins=[])
    assert content(found, "env:A") == b"of the environment"
    assert {listed.origin for listed in found.catalog.list_plugins()} == {""}
    assert module not in sys.modules


@pytest.mark.parametrize("wrong", ["attic", {"attic": True}, ["attic", 1], True, 3])
def test_a_list_that_is_none_is_an_error(wrong: Any) -> None:
    with pytest.raises(SettingError, match="allow_plugins is not a list of names") as told:
        registry(allow_plugins=wrong).source_info("env")
    assert told.value.remedy == 'write allow_plugins = ["NAME"]'


def test_the_command_line_obeys_the_list(bare: Terminal, site: Site) -> None:
    site.source("attic", "import sys\nsys.stderr.write('imported')\n" + IT)
    site.source("cellar", IT)
    config = str(bare.file("config.toml", 'allow_plugins = ["cellar"]\n'))
    done = bare.sealpipe("plugins", SEALPIPE_CONFIG=config, PYTHONPATH=site.path)
    assert done.code == 0
    assert " cellar " in done.out
    assert " attic " not in done.out
    assert done.err == "sealpipe: the plugin attic is not listed in allow_plugins\n"


def test_a_built_in_is_replaced_only_where_the_config_says_from_whom(site: Site) -> None:
    site.source("env", IT, point="attic")
    assert content(registry(), "env:A") == b"of the environment"
    found = registry(plugins={"env": {"from": "attic"}})
    assert content(found, "env:A") == "its own"
    assert [
        listed.origin != "" for listed in found.catalog.list_plugins() if listed.info.name == "env"
    ] == [True]
    assert found.catalog.problems == {}


def test_of_two_that_have_a_name_the_config_says_which(site: Site) -> None:
    site.source("attic", IT.replace("its own", "first"), point="one")
    site.source("attic", IT.replace("its own", "second"), point="two")
    assert content(registry(), "attic:x") == "first"
    assert content(registry(plugins={"attic": {"from": "two"}}), "attic:x") == "second"


@pytest.mark.parametrize("config", [{}, {"allow_plugins": []}])
def test_a_missing_preferred_plugin_is_an_error(site: Site, config: Mapping[str, Any]) -> None:
    if config:
        site.source("env", IT, point="attic")
    why = "is not listed in allow_plugins" if config else "is not installed"
    with pytest.raises(
        NotConfiguredError, match=rf"the config takes env from the plugin attic, which {why}"
    ):
        registry(plugins={"env": {"from": "attic"}}, **config).source("env")


@pytest.mark.parametrize("wrong", [1, "", ["attic"], {"a": "b"}])
def test_a_preference_that_is_no_name_is_an_error(wrong: Any) -> None:
    with pytest.raises(SettingError, match=r"the config's plugins\.env\.from is not a name"):
        registry(plugins={"env": {"from": wrong}}).source("env")


def test_a_table_of_plugins_may_hold_a_word_that_begins_with_from() -> None:
    assert content(registry(plugins={"other": "from somebody"}), "env:A") == b"of the environment"


def test_a_duplicate_entry_point_is_reported_and_one_stays(site: Site) -> None:
    site.source("attic", IT.replace("its own", "first"))
    site.source("attic", IT.replace("its own", "second"))
    found = registry()
    assert content(found, "attic:x") in ("first", "second")
    assert found.catalog.problems == {"attic": "is installed twice: only the first is used"}
    assert found.catalog.get_module("attic") is not None


def test_what_an_entry_point_names_has_to_be_a_module(site: Site) -> None:
    code = SOURCE.format(name="attic", more="") + "\nclass Hooks:\n    pass\n"
    site.install("attic", code, names="MODULE:Hooks")
    with pytest.raises(NotConfiguredError, match="the plugin attic does not name a module"):
        registry().source_info("attic")


def test_one_module_under_two_entry_points_is_used_once(site: Site) -> None:
    module = site.source("attic", IT)
    site.install("again", "", names=module)
    found = registry()
    assert content(found, "attic:x") == "its own"
    assert list(found.catalog.problems) in (["again"], ["attic"])
