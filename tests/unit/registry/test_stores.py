"""Named stores and plugins' settings: where a value comes from, and what is said where one is
wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from sealpipe.errors import ReferenceSyntaxError, SettingError
from sealpipe.reference import parse
from sealpipe.registry import Registry
from sealpipe_rehearsal.running_service import RunningService
from support.distributions import Site, told
from support.terminal import Terminal, opened

CANARY = "c4nary-9b2c"

ATTIC = """
from typing import Literal

from sealpipe.plugin.settings import PluginSettings

class Settings(PluginSettings):
    addr: str = "default"
    port: int = 1
    lock: Literal["key", "code"] = "key"
    rooms: int = 1
    token: Secret | None = None
    own_variables = {
        "addr": "ATTIC_ADDR", "token": "ATTIC_TOKEN", "rooms": ("ATTIC_ROOMS", "LOFT_ROOMS")
    }

class It(Source):
    def fetch(self, locator):
        named, addr = str(self.context.named), self.settings.addr
        return Document({"store": self.context.store, "named": named, "addr": addr})

class Box(Sink):
    def describe(self, locator, mode):
        return self.settings.addr
    def put(self, locator, fields, *, mode, marker): ...
"""
SINK = """
@hookimpl
def sealpipe_sinks(register):
    from sealpipe.plugin import SinkInfo
    register(SinkInfo("attic", "a test", "MODULE_it:Box", "MODULE_it:Settings"))
    register(SinkInfo("loft", "a test", "MODULE_it:Box", "MODULE_it:Settings", backend="attic"))
"""
HOOKS = """
from sealpipe.plugin import SourceInfo, hookimpl

@hookimpl
def sealpipe_sources(register):
    register(SourceInfo("attic", "a test", "MODULE_it:It", "MODULE_it:Settings"))
"""


@pytest.fixture(autouse=True)
def attic(site: Site) -> str:
    return site.install("attic", HOOKS + SINK, "from sealpipe.plugin import *\n" + ATTIC)


def registry(config: Mapping[str, Any], environ: Mapping[str, str]) -> Registry:
    return Registry(environ=environ, config=lambda: config)


DEFAULT, NAMED = "SEALPIPE_PLUGIN_ATTIC__ADDR", "SEALPIPE_STORE__MY_ATTIC__ADDR"
IN_FILE = {
    "plugins": {"attic": {"addr": "file"}},
    "stores": {"my-attic": {"plugin": "attic", "addr": "file"}},
}
NO_ADDR = {"stores": {"my-attic": {"plugin": "attic"}}}


@pytest.mark.parametrize(
    ("store", "config", "environ", "addr"),
    [
        ("attic", IN_FILE, {DEFAULT: "environment", "ATTIC_ADDR": "own"}, "environment"),
        ("attic", IN_FILE, {DEFAULT: "", "ATTIC_ADDR": "own"}, "file"),
        ("attic", {}, {"ATTIC_ADDR": "own"}, "own"),
        ("attic", {}, {"ATTIC_ADDR": ""}, "default"),
        ("attic", IN_FILE, {NAMED: "of another store"}, "file"),
        ("my-attic", IN_FILE, {NAMED: "environment", "ATTIC_ADDR": "own"}, "environment"),
        ("my-attic", IN_FILE, {"ATTIC_ADDR": "own"}, "file"),
        ("my-attic", NO_ADDR, {"ATTIC_ADDR": "own", DEFAULT: "of the default store"}, "default"),
    ],
)
def test_a_value_comes_from_the_nearest_place_and_own_variables_serve_the_default_store_only(
    store: str, config: Mapping[str, Any], environ: Mapping[str, str], addr: str
) -> None:
    assert registry(config, environ).source(store).settings.addr == addr


def test_two_variables_that_mean_the_same_may_not_differ() -> None:
    assert registry({}, {"ATTIC_ROOMS": "1"}).source("attic").settings.rooms == 1
    assert registry({}, {"LOFT_ROOMS": "2"}).source("attic").settings.rooms == 2
    assert registry({}, {"ATTIC_ROOMS": "3", "LOFT_ROOMS": "3"}).source("attic").settings.rooms == 3
    assert registry({}, {"ATTIC_ROOMS": "", "LOFT_ROOMS": "4"}).source("attic").settings.rooms == 4
    both = {"ATTIC_ROOMS": "5555", "LOFT_ROOMS": "6666"}
    with pytest.raises(SettingError) as refused:
        registry({}, both).source("attic")
    assert refused.value.message == "ATTIC_ROOMS and LOFT_ROOMS are both set, and differ"
    assert "5555" not in f"{refused.value!r} {refused.value.remedy}"
    assert (
        registry({}, {**both, "SEALPIPE_PLUGIN_ATTIC__ROOMS": "7"}).source("attic").settings.rooms
        == 7
    )
    assert registry(IN_FILE, both).source("my-attic").settings.rooms == 1, (
        "they are the default store's"
    )


def test_a_store_may_be_in_the_environment_alone() -> None:
    environ = {
        "SEALPIPE_STORE__MY_ATTIC__PLUGIN": "attic",
        NAMED: "x",
        "SEALPIPE_STORE__MY_ATTIC__PORT": "77",
    }
    found = registry({}, environ).source("my-attic")
    assert (found.settings.addr, found.settings.port) == ("x", 77)


class Vanishing(dict[str, str]):
    """An environment out of which another thread takes a variable as soon as it was listed."""

    def __iter__(self) -> Iterator[str]:
        return iter([*super().__iter__(), "SEALPIPE_STORE__GONE__PLUGIN", f"{DEFAULT}_GONE"])


def test_a_variable_that_another_thread_takes_away_was_never_there() -> None:
    environ = Vanishing({"SEALPIPE_STORE__MY_ATTIC__PLUGIN": "attic", DEFAULT: "y", NAMED: "x"})
    assert registry({}, environ).source("my-attic").settings.addr == "x"
    assert registry({}, environ).source("attic").settings.addr == "y"


def test_the_environment_says_last_which_plugin_a_store_has() -> None:
    config = {"stores": {"my.attic": {"plugin": "nobodys", "addr": "file"}}}
    found = registry(config, {"SEALPIPE_STORE__MY_ATTIC__PLUGIN": "attic"})
    assert found.source("my.attic").settings.addr == "file"


def test_each_store_is_a_source_of_its_own_under_its_name() -> None:
    config = {
        "stores": {
            "north": {"plugin": "attic", "addr": "n"},
            "south": {"plugin": "attic", "addr": "s"},
        }
    }
    found = registry(config, {"ATTIC_ADDR": "own"})
    wanted = {name: [found.locate(parse(f"{name}:x"))] for name in ("north", "south", "attic")}
    told = {
        str(locator): answer.content  # type: ignore[union-attr]
        for locator, answer in found.fetch(wanted).items()
    }
    assert told == {
        "north:x": {"store": "north", "named": "True", "addr": "n"},
        "south:x": {"store": "south", "named": "True", "addr": "s"},
        "attic:x": {"store": "attic", "named": "False", "addr": "own"},
    }


def test_one_table_serves_reading_and_writing_also_under_another_plugins_name() -> None:
    found = registry({"plugins": {"attic": {"addr": "file"}}, **NO_ADDR}, {NAMED: "mine"})
    locator = found.locate(parse("attic:x"), "sink")
    assert found.sink("my-attic").describe(locator, "create") == "mine"
    assert found.sink("attic").describe(locator, "create") == "file"
    assert found.sink("loft").describe(locator, "create") == "file"


def test_a_token_is_read_from_the_environment_and_shown_nowhere() -> None:
    found = registry({}, {"ATTIC_TOKEN": CANARY}).source("attic")
    assert found.settings.token.reveal() == CANARY
    assert CANARY not in repr(found.settings) + str(found.settings) + repr(vars(found))


WRONG = {
    "a mistyped name in the environment": (
        {}, {"SEALPIPE_PLUGIN_ATTIC__ADR": CANARY}, "attic",
        "the store attic has no setting adr", "did you mean addr?",
    ),
    "a mistyped name in the file": (
        {"stores": {"my-attic": {"plugin": "attic", "tokne": CANARY}}}, {}, "my-attic",
        "the store my-attic has no setting tokne", "did you mean token?",
    ),
    "a name like nothing": (
        {"plugins": {"attic": {"zzz": CANARY}}}, {}, "attic",
        "the store attic has no setting zzz", "there are addr, lock, port, rooms, token",
    ),
    "a secret in the file": (
        {"plugins": {"attic": {"token": CANARY}}}, {}, "attic",
        "the config file holds attic's token in plain text",
        "set it in the environment, or name a file that holds it",
    ),
    "a secret in the file, though the environment has it, too": (
        {"stores": {"my-attic": {"plugin": "attic", "token": CANARY}}},
        {"SEALPIPE_STORE__MY_ATTIC__TOKEN": CANARY}, "my-attic",
        "the config file holds my-attic's token in plain text",
        "set it in the environment, or name a file that holds it",
    ),
    "a value that cannot be used": (
        {}, {"SEALPIPE_PLUGIN_ATTIC__PORT": CANARY}, "attic",
        "the store attic has an invalid value for port (int_parsing)",
        "set SEALPIPE_PLUGIN_ATTIC__PORT",
    ),
    "a value that is not one of the choices": (
        {}, {"SEALPIPE_PLUGIN_ATTIC__LOCK": CANARY}, "attic",
        "the store attic has an invalid value for lock (literal_error)",
        "set SEALPIPE_PLUGIN_ATTIC__LOCK to 'key' or 'code'",
    ),
    "the same in a named store": (
        {"stores": {"my-attic": {"plugin": "attic", "addr": [CANARY]}}}, {}, "my-attic",
        "the store my-attic has an invalid value for addr (string_type)",
        "set SEALPIPE_STORE__MY_ATTIC__ADDR",
    ),
    "a store of the environment without a plugin": (
        {}, {"SEALPIPE_STORE__MY_ATTIC__TOKEN": CANARY}, "attic",
        "SEALPIPE_STORE__MY_ATTIC__TOKEN belongs to a store without a plugin",
        "set SEALPIPE_STORE__MY_ATTIC__PLUGIN to the name of one",
    ),
    "a mistyped store": (
        NO_ADDR, {"SEALPIPE_STORE__MY_ATIC__TOKEN": CANARY}, "attic",
        "SEALPIPE_STORE__MY_ATIC__TOKEN belongs to a store without a plugin",
        ("did you mean SEALPIPE_STORE__MY_ATTIC__...? Else set SEALPIPE_STORE__MY_ATIC__PLUGIN to "
            "the name of one"),
    ),
    "a store of the file without a plugin": (
        {"stores": {"my-attic": {"addr": CANARY}}}, {}, "attic",
        "the store my-attic has no plugin", 'write plugin = "..." into [stores.my-attic]',
    ),
    "a store that is no table": (
        {"stores": {"my-attic": CANARY}}, {}, "attic",
        "the config's store 'my-attic' is not a table", "write it as [stores.NAME]",
    ),
    "stores that are no table": (
        {"stores": [CANARY]}, {}, "attic", "the config's stores is not a table",
        "write [stores.NAME]",
    ),
    "plugins that are no table": (
        {"plugins": CANARY}, {}, "attic", "the config's plugins is not a table",
        "write [plugins.NAME]",
    ),
    "a plugin that is no table": (
        {"plugins": {"attic": CANARY}}, {}, "attic", "the config's plugins.attic is not a table",
        "",
    ),
    "a name that no reference can have": (
        {"stores": {"x": {"plugin": "attic"}}}, {}, "attic",
        "the store 'x' has an invalid name", "rename it",
    ),
    "two stores that share their variables": (
        {"stores": {"my-attic": {"plugin": "attic"}, "my_attic": {"plugin": "attic"}}}, {}, "attic",
        "the config's stores my-attic and my_attic have the same variables", "rename one",
    ),
}  # fmt: skip


@pytest.mark.parametrize("how", WRONG)
def test_what_is_wrong_is_named_and_never_shown(how: str) -> None:
    config, environ, store, message, remedy = WRONG[how]
    with pytest.raises(SettingError) as caught:
        registry(config, environ).source(store)  # type: ignore[arg-type]
    assert (caught.value.message, caught.value.remedy, caught.value.exit_code) == (
        message,
        remedy,
        2,
    )
    assert CANARY not in told(caught.value)


def test_an_empty_variable_of_an_unknown_store_is_ignored() -> None:
    assert (
        registry({}, {"SEALPIPE_STORE__MY_ATTIC__TOKEN": ""}).source("attic").settings.addr
        == "default"
    )


def test_a_store_with_an_unknown_plugin_gets_the_nearest() -> None:
    with pytest.raises(ReferenceSyntaxError, match="there is no source named attik") as caught:
        registry({"stores": {"my-attic": {"plugin": "attik"}}}, {}).source("my-attic")
    assert caught.value.remedy.startswith("did you mean attic?")


def test_the_command_line_reads_stores_from_the_config_file(
    user: Terminal, site: Site, service: RunningService
) -> None:
    path = user.file("config.toml", '[stores.my-attic]\nplugin = "attic"\naddr = "file"\n')
    user.environ |= {"PYTHONPATH": site.path, "SEALPIPE_CONFIG": str(path)}
    done = user.sealpipe("share", "-f", "my-attic:x#addr")
    assert opened(service, done.out) == {"addr": "file"}
    done = user.sealpipe("share", "-f", "my-attic:x#addr", SEALPIPE_STORE__MY_ATTIC__PROT=CANARY)
    assert done.code == 2
    assert "the store my-attic has no setting prot\n  did you mean port?" in done.err
    assert CANARY not in done.out + done.err


def test_the_doctor_warns_of_variables_that_no_plugin_has(bare: Terminal, site: Site) -> None:
    bare.environ["PYTHONPATH"] = site.path
    names = {
        "SEALPIPE_PLUGIN_ATIC__ADDR": CANARY,
        "SEALPIPE_PLUGIN_ZZZ__X": CANARY,
        "SEALPIPE_PLUGIN_ATTIC__ADDR": "x",
    }
    done = bare.sealpipe("doctor", "--output", "json", **names)
    checks = {
        each["check"]: each for each in done.json["checks"] if each["check"].startswith("variable ")
    }
    assert {name: each["remedy"] for name, each in checks.items()} == {
        "variable SEALPIPE_PLUGIN_ATIC__ADDR": "did you mean SEALPIPE_PLUGIN_ATTIC__ADDR?",
        "variable SEALPIPE_PLUGIN_ZZZ__X": "unset it",
    }
    assert CANARY not in done.out + done.err


BY_TYPE = """
from enum import Enum
from typing import Annotated, NewType
from pydantic import BaseModel, SecretStr
from typing import Literal

from sealpipe.plugin.settings import PluginSettings

class SecretEngine(Enum):
    KV = "kv"

class Token(Secret):
    pass

Pin = NewType("Pin", Secret)

class Login(BaseModel):
    user: str = ""
    password: Secret | None = None

class Settings(PluginSettings):
    engine: SecretEngine = SecretEngine.KV
    token: Token | None = None
    pin: Annotated[Pin, "a note"] | None = None
    key: SecretStr | None = None
    keys: dict[str, Secret] = {}
    login: Login | None = None
    logins: list[Login] = []

class It(Source):
    def fetch(self, locator):
        return Document(str(self.settings.engine))
"""


@pytest.mark.parametrize(
    ("table", "named"),
    [
        ({"token": CANARY}, "token"),
        ({"pin": CANARY}, "pin"),
        ({"key": CANARY}, "key"),
        ({"keys": {"a": CANARY}}, "keys"),
        ({"login": {"user": "u", "password": CANARY}}, "login.password"),
        ({"logins": [{"user": "u"}, {"password": CANARY}]}, "logins.password"),
    ],
)
def test_a_secret_in_the_file_is_known_by_its_type(
    site: Site, table: Mapping[str, Any], named: str
) -> None:
    site.install(
        "loft", HOOKS.replace('"attic"', '"cellar"'), "from sealpipe.plugin import *\n" + BY_TYPE
    )
    with pytest.raises(SettingError, match=f"holds cellar's {named} in plain text") as caught:
        registry({"plugins": {"cellar": table}}, {}).source("cellar")
    assert CANARY not in told(caught.value)


def test_what_only_has_the_word_in_its_name_is_no_secret(site: Site) -> None:
    site.install(
        "loft", HOOKS.replace('"attic"', '"cellar"'), "from sealpipe.plugin import *\n" + BY_TYPE
    )
    found = registry({"plugins": {"cellar": {"engine": "kv", "login": {"user": "u"}}}}, {}).source(
        "cellar"
    )
    assert found.settings.engine.value == "kv"
