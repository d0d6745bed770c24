"""The one table of settings: what is made from it cannot drift from it."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from sealpipe import UsageError, addresses, parsing
from sealpipe.cli.main import cli
from sealpipe.collect.options import plan_collect
from sealpipe.command_settings import COMMANDS
from sealpipe.config import Config, list_known_variables
from sealpipe.reference import parse
from sealpipe.request.options import plan_request
from sealpipe.settings import ARGUMENTS, GLOBAL, Setting, parse_param
from sealpipe.settings_model import build_model
from sealpipe.share.options import plan_share

CLI = Path(__file__).resolve().parents[3] / "core/sealpipe/cli"
EVERY = [("", setting) for setting in GLOBAL] + [
    (name, each) for name, table in COMMANDS.items() for each in table
]


def commands(
    group: click.Group, path: tuple[str, ...] = ()
) -> dict[tuple[str, ...], click.Command]:
    """Every command below a group, by its words."""
    context = click.Context(group)
    found: dict[tuple[str, ...], click.Command] = {}
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command
        found[*path, name] = command
        if isinstance(command, click.Group):
            found |= commands(command, (*path, name))
    return found


EVERY_COMMAND = commands(cli)


def options() -> list[tuple[tuple[str, ...], click.Option]]:
    every = (
        (words, parameter)
        for words, command in EVERY_COMMAND.items()
        for parameter in command.params
    )
    return [(words, parameter) for words, parameter in every if isinstance(parameter, click.Option)]


def test_every_setting_has_an_environment_name_of_its_own() -> None:
    names = Counter(setting.get_variable(command) for command, setting in EVERY)
    assert {name: count for name, count in names.items() if count > 1} == {}
    assert all(re.fullmatch(r"SEALPIPE_[A-Z_]+", name) for name in names)
    assert set(names) <= list_known_variables()


def test_every_option_of_every_command_has_an_environment_name_from_the_table() -> None:
    assert len(options()) > len(EVERY)
    known = list_known_variables()
    for words, option in options():
        if "--help" not in option.opts:
            assert option.envvar in known, (words, option.opts)
            assert option.help, (words, option.opts)


def test_no_secret_has_an_option_or_shows_in_help() -> None:
    hidden = {setting.option for _, setting in EVERY if setting.secret}
    assert hidden == {"--api-key", "--api-key-previous"}
    for words, command in EVERY_COMMAND.items():
        # A command keeps the help option that it was first asked for: all later contexts have these
        # names.
        context = click.Context(command, info_name=" ".join(words), **cli.context_settings)
        shown = command.get_help(context)
        assert not hidden & set(re.findall(r"--[\w-]+", shown))


def test_every_setting_of_the_table_is_an_option_somewhere() -> None:
    there = {option.envvar for _, option in options()}
    wanted = {setting.get_variable(command) for command, setting in EVERY if not setting.secret}
    assert wanted - there == set()


def test_every_default_is_what_its_own_parser_takes() -> None:
    for _, setting in EVERY:
        if setting.default is not None:
            setting.parse(setting.default)
            assert not setting.choices or setting.default in setting.choices


@pytest.mark.parametrize(
    ("command", "plan"),
    [("share", plan_share), ("request", plan_request), ("collect", plan_collect)],
)
def test_an_option_has_the_default_of_its_argument_in_python(
    command: str, plan: Callable[..., object]
) -> None:
    arguments = inspect.signature(plan).parameters
    named = {ARGUMENTS.get(setting.name, setting.name): setting for setting in COMMANDS[command]}
    both = named.keys() & arguments.keys()
    assert len(both) >= 6
    for name in both:
        default, own = arguments[name].default, named[name].default
        if own is None:
            assert default in (None, (), False, inspect.Parameter.empty), name
        else:
            assert named[name].parse(own) == default, name


COMMAND_LINE_ONLY = {
    "share": ("no_expiry", "link_file", "seal_link", "bind", "print", "receipt", "dry_run"),
    "request": ("receipt", "dry_run"),
    "collect": ("print", "dry_run"),
}
"""Options that are no argument of the call from Python: the command's module in `core/sealpipe/cli`
uses each.
"""


@pytest.mark.parametrize(
    ("command", "call", "module"),
    [
        ("share", plan_share, "share"),
        ("request", plan_request, "request"),
        ("collect", plan_collect, "collect"),
    ],
)
def test_no_option_is_accepted_and_dropped(
    command: str, call: Callable[..., object], module: str
) -> None:
    arguments = inspect.signature(call).parameters.keys()
    missing = {
        row.name for row in COMMANDS[command] if ARGUMENTS.get(row.name, row.name) not in arguments
    }
    assert sorted(missing - {*COMMAND_LINE_ONLY[command]}) == [], (
        f"add an argument to {call.__name__} in {call.__module__}, a line to ARGUMENTS in "
        "core/sealpipe/settings.py if "
        "the argument has another name, or a line to COMMAND_LINE_ONLY here if "
        f"core/sealpipe/cli/{module}.py uses it"
    )
    assert sorted({*COMMAND_LINE_ONLY[command]} - missing) == [], (
        "remove them from COMMAND_LINE_ONLY"
    )
    text = (CLI / f"{module}.py").read_text(encoding="utf-8")
    unused = [name for name in COMMAND_LINE_ONLY[command] if f'"{name}"' not in text]
    assert unused == [], f"core/sealpipe/cli/{module}.py does not use them"


def test_the_pydantic_model_has_the_same_names_and_defaults() -> None:
    fields = build_model(Config({})).model_fields
    plain = {setting.name: setting for setting in GLOBAL if not setting.secret}
    assert fields.keys() == plain.keys()
    for name, setting in plain.items():
        expected = None if setting.default is None else setting.parse(setting.default)
        assert fields[name].default == expected


@pytest.mark.parametrize(
    ("parse", "good"),
    [
        (parsing.parse_base_url,
            {"https://api.example/v1": "https://api.example/v1",
                "http://[::1]:1/v1": "http://[::1]:1/v1"}),
        (parsing.parse_base_url,
            {"https://api.example/a/v1/": "https://api.example/a/v1", "http://127.9.9.9/v1": None}),
        (parsing.parse_link_base_url,
            {"https://links.example/": "https://links.example",
                "http://LOCALHOST:80": "http://localhost"}),
        # One spelling for one service: a request's ledger is named after it, and knows of a DELETE
        # that was sent.
        (parsing.parse_base_url, {f"https://{host}/v1": "https://api.example/v1"
                                 for host in ("API.Example", "api.example:443", "api.example.",
                                     "api.example.:443")}),
        (parsing.parse_service_tag, {"svc": "svc", "acme2": "acme2"}),
        (parsing.parse_seconds, {"60s": 60.0, "2m": 120.0}),
        (parsing.parse_views, {"1": 1, "unlimited": None, "2147483647": 2_147_483_647}),
        (parse_param,
            {"limit=text:5": ("limit", parse("text:5")), "a.b=env:A=B": ("a.b", parse("env:A=B"))}),
        (parsing.parse_events, {"viewed": ("viewed",), "deleted,viewed": ("deleted", "viewed")}),
        (addresses.parse_public_url,
            {"https://A.example/": "https://a.example", "http://[::1]:80": "http://[::1]",
                "https://a.example:8443": None, "http://127.0.0.1:8080": None}),
        (addresses.parse_listen_address,
            {"192.0.2.1:80": ("192.0.2.1", 80), "[::1]:8080": ("::1", 8080),
                "[0:0::1]:1": ("::1", 1)}),
        (addresses.parse_network,
            {"10.0.0.0/8": None, "192.0.2.7": "192.0.2.7/32", "fd00::/8": None}),
    ],
)  # fmt: skip
def test_good_values_are_taken(parse: object, good: dict[str, object]) -> None:
    for text, value in good.items():
        taken = parse(text)  # type: ignore[operator]
        assert taken == (text if value is None and text != "unlimited" else value)


@pytest.mark.parametrize(
    ("parse", "bad"),
    [
        (parsing.parse_base_url,
            ["", "api.example/v1", "https:///v1", "https://api.example", "https://api.example/v2",
                             "https://api.example/v1?x=1", "https://api.example/v1?",
                             "https://api.example/v1#x", "https://me@api.example/v1",
                             "https://api.example:99999/v1", "https://api.example:0/v1",
                             "http://localhost.example/v1", "http://127.0.0.1.nip.io/v1",
                             "http://0.0.0.0/v1", "http://127.1/v1", "https://api.example /v1",
                             "https://api.example/\n/v1", "//a/v1",
                             "https://[::1/v1", "file:///v1", "http://[::ffff:127.0.0.1]/v1"]),
        (addresses.parse_public_url,
            ["", "a.example", "http://a.example", "https://a.example/links", "https://a.example?x",
                "https://me@a.example", "https://a.example:0"]),
        (addresses.parse_listen_address,
            ["", "8080", ":8080", "localhost:80", "::1:80", "[127.0.0.1]:80", "0.0.0.0:0",
                "0.0.0.0:65536", "0.0.0.0:", "unix:/s"]),
        (addresses.parse_network, ["", "everybody", "10.0.0.1/8", "10.0.0.0/33"]),
        (parsing.parse_link_base_url,
            ["links.example", "http://links.example", "https://links.example#x"]),
        (parsing.parse_service_tag, ["", "S", "1a", "a_b", "a" * 17, "svc\n", "é"]),
        (parsing.parse_seconds, ["0s", "60", "-1s", "inf"]),
        (parsing.parse_views, ["0", "-1", "1.0", "1_0", "2147483648", "Unlimited", "", "¹", "1\n"]),
        (parse_param, ["", "limit", "limit=5", "=text:5", "a b=text:5", "1=text:5",
                          65 * "a" + "=text:5", "é=text:5"]),
        (parsing.parse_events, ["", "viewed,", "viewed,viewed", "VIEWED", "viewed denied"]),
    ],
)  # fmt: skip
def test_bad_values_are_refused_with_the_next_step(parse: object, bad: list[str]) -> None:
    for text in bad:
        with pytest.raises(UsageError) as caught:
            parse(text)  # type: ignore[operator]
        assert caught.value.remedy, text


@pytest.mark.parametrize(
    "setting", [setting for _, setting in EVERY], ids=lambda setting: setting.name
)
def test_help_is_a_sentence_and_the_option_is_its_name(setting: Setting) -> None:
    assert setting.help.endswith(".")
    assert setting.option == "--" + setting.name.replace("_", "-")
