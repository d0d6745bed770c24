"""The patterns of a policy for assistants: what they match, and every walk around them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sealpipe.errors import PolicyError, UsageError
from sealpipe.mcp import patterns
from sealpipe.mcp import tool_policy as policies
from sealpipe.mcp.tool_policy import Pattern
from sealpipe.mcp.tool_policy_file import load_policy
from sealpipe.mcp.tools import Use, load_tools
from sealpipe.reference import Reference, Target, parse, parse_target
from sealpipe.wildcards import Wildcard

# pattern -> (references that it covers, walks around it)
SOURCES: dict[str, tuple[list[str], list[str]]] = {
    "vault:secret/app/*#password": (
        [
            "vault:secret/app/db#password",
            "vault://secret/app/db#password",
            "vault:secret/app/db?trim=1&optional=1&decode=base64&type=text#password",
            "vault:secret/app/db#New label=password",
            "vault:secret/app/Datenbank für Müller#password",
        ],
        [
            "vault:secret/app/db",
            "vault:secret/app/db#*",
            "vault:secret/app/db#user",
            "vault:secret/app/db#password=user",
            "vault:secret/app/db#password,user",
            "vault:secret/app/db#/password",
            "vault:secret/app/db#Password",
            "vault:secret/app/db?version=1#password",
            "vault:secret/app/db?path=secret/root#password",
            "vault:secret/app/db?mount=root#password",
            "vault:secret/app/db?namespace=root#password",
            "vault:secret/app/db?format=json#password",
            "vault:secret/app/db?type=markdown&filename=evil.sh#password",
            "vault:secret/app/db/root#password",
            "vault:secret/app#password",
            "vault:secret/app/#password",
            "vault:secret/app//db#password",
            "vault:/secret/app/db#password",
            "vault:secret/app/db/#password",
            "vault:secret/app/../root#password",
            "vault:secret/app/..#password",
            "vault:secret/app/.#password",
            "vault:secret/app/.profile#password",
            "vault:secret/./app/db#password",
            "vault:secret/app/%252e%252e#password",
            "vault:secret/app/%252e%252e%252froot#password",
            "vault:secret/app/db%3Fversion=1#password",
            "vault:secret/app/db%23user#password",
            "vault:secret/app/..\\root#password",
            "vault:secret/app/*#password",
            "vault:secret/app/**#password",
            "vault:secret/app/{name}#password",
            "vault:secret/app/ db#password",
            "vault:secret/app/db #password",
            "vault:secret/app/\uff0e\uff0e\uff0froot#password",  # NFKC: ../root
            "vault:secret/app/\u2025#password",  # NFKC: ..
            "vault:secret/app/\u0430\u0308bc#password",  # not normalized
            "vault:secret/app/d\u200bb#password",
            "vault:secret/app/\u202edb#password",
            "vault:secret/app/-db#password",
            "vault:secret/app/~db#password",
            "vault:secret/app/arn:aws:db#password",
            "vault:s\u0435cret/app/db#password",  # a Cyrillic letter
            "vault:SECRET/app/db#password",
            "Vault:secret/app/db#password",
            "vault2:secret/app/db#password",
            "prod-vault:secret/app/db#password",
            "exec:secret/app/db#password",
            "file:secret/app/db?decode=base64#password",
            "stdin:",
            "vault:secret/app/" + "x" * 1000 + "#password",
        ],
    ),
    "vault:secret/**": (
        ["vault:secret/a", "vault:secret/a/b/c#*", "vault:secret/a#/x/0", "vault:secret/a"],
        [
            "vault:secret",
            "vault:secret/",
            "vault:secretly/a",
            "vault:secret/a/../b",
            "vault:secret/a//b",
            "vault:secret/a#x\u200by",
            "vault:secret/a#\u202ex=y",
            "vault:other/a",
        ],
    ),
    "vault:a#*": (
        ["vault:a#*", "vault:a#x", "vault:a#/p/0", "vault:a#y=x"],
        ["vault:a", "vault:a/b#x"],
    ),
    "vault:secret/app?version=3": (
        ["vault:secret/app?version=3", "vault:secret/app?trim=1&version=3#x"],
        ["vault:secret/app", "vault:secret/app?version=33", "vault:secret/app?version=3&mount=x"],
    ),
    "gen:password?length=*": (
        ["gen:password?length=24"],
        [
            "gen:password",
            "gen:password?length=1/2",
            "gen:pin?length=4",
            "gen:password?length=24&name=x",
        ],
    ),
    "env:DB_*": (
        ["env:DB_PASSWORD", "env:DB_"],
        ["env:DB", "env:db_password", "env:XDB_A", "env:DB_A/B", "env:*"],
    ),
    "env:A*B*C": (
        ["env:ABC", "env:A1B2C", "env:ABBC"],
        ["env:AC", "env:AB", "env:ABCD", "env:A/BC"],
    ),
    "file:/srv/app/*.pem": (
        ["file:/srv/app/tls.pem", "file:///srv/app/tls.pem"],
        [
            "file:srv/app/tls.pem",
            "file:/srv/app/x/tls.pem",
            "file:/srv/app/.pem",
            "file:/srv/app/.x.pem",
            "file:/srv/app/-x.pem",
            "file:/srv/app/~x.pem",
            "file:/srv/app/../tls.pem",
            "file:/srv/app/tls.pem/",
            "file:////srv/app/tls.pem",
            "dotenv:/srv/app/tls.pem",
            "file:~/srv/app/tls.pem",
        ],
    ),
    "doppler:backend/prd#DB_*,HOST": (
        ["doppler:backend/prd#DB_PASSWORD", "doppler:backend/prd#x=DB_A,HOST"],
        [
            "doppler:backend/prd#*",
            "doppler:backend/prd",
            "doppler:backend/prd#DB_A,ROOT",
            "doppler:backend/prd#%2A",
        ],
    ),
    "aws-sm:app#/conn/*/pw": (
        ["aws-sm:app#/conn/0/pw", "aws-sm:app#Label=/conn/b/pw"],
        [
            "aws-sm:app#/conn/0",
            "aws-sm:app#/conn/0/1/pw",
            "aws-sm:app#/conn/a~1b/pw",
            "aws-sm:app#conn",
        ],
    ),
    "aws-ssm:/app/": (["aws-ssm:/app/"], ["aws-ssm:/app", "aws-ssm:/app/x", "aws-ssm:app/"]),
    "aws-sm:*": (
        ["aws-sm:db"],
        ["aws-sm:arn:aws:secretsmanager:eu-west-1:1:secret:db", "aws-sm:", "aws-sm:a/b"],
    ),
    "stdin:": (["stdin:"], ["stdin:x", "text:x"]),
    "vault:" + "x" * 994: (["vault:" + "x" * 994], ["vault:" + "x" * 995, "vault:" + "x" * 993]),
}
SINKS: dict[str, tuple[list[str], list[str]]] = {
    "vault:secret/vendor/*#password": (
        [
            "vault:secret/vendor/acme#password=Staging password",
            "vault:secret/vendor/acme?mode=create#password=x",
        ],
        [
            "vault:secret/vendor/acme",
            "vault:secret/vendor/acme#*",
            "vault:secret/vendor/acme#password",  # the id of the prompt with this text is written
            "vault:secret/vendor/acme#root=password",
            "vault:secret/vendor/acme#password=a,root=b",
            "vault:secret/vendor/acme?mode=replace#password=x",
            "vault:secret/vendor/acme?mode=merge#password=x",
            "vault:secret/vendor/{request}#password=x",
            "vault:secret/vendor/{{x#password=x",
            "dir:secret/vendor/acme#password=x",
        ],
    ),
    "dir:out": (
        ["dir:out#*", "dir:out#token=x", "dir:out#token", "dir:out"],
        [
            "dir:out#../x=y",
            'dir:out#"/etc/x"=y',
            "dir:out#%2Fetc=y",
            "dir:out#..=y",
            "dir:out#a/b=y",
            "dir:out/x",
            "dir:./out",
        ],
    ),
    "dir:all#*": (["dir:all#*", "dir:all#x", "dir:all#x=y"], ["dir:all", "dir:all#../x=y"]),
    "vault:secret/{request}?mode=merge": (
        ["vault:secret/{request}?mode=merge"],
        ["vault:secret/{name}?mode=merge"],
    ),
    "github-secret:acme/*#API_*": (
        ["github-secret:acme/app#API_TOKEN=x"],
        [
            "github-secret:acme/app/prod#API_TOKEN=x",
            "github-secret:acme/app?visibility=all#API_TOKEN=x",
        ],
    ),
}
RECIPIENTS: dict[str, tuple[list[str], list[str]]] = {
    "email:*@example.com": (
        ["email:ann@example.com", "email:ann+x@example.com", "email:a.b_c-d@example.com"],
        [
            "email:ann@example.org",
            "email:ann@example.com.evil.org",
            "email:ann@evil.org@example.com",
            "email:ann@evil.org,bob@example.com",
            "email:ann@evil.org;bob@example.com",
            "email:ann@evil.org bob@example.com",
            "email:Ann <ann@evil.org> x@example.com",
            'email:"ann@evil.org"@example.com',
            "email:ann%evil.org@example.com",
            "email:evil.org!ann@example.com",
            "email:(x)ann@example.com",
            "email:ann@EXAMPLE.com",
            "email:ann@ex\u0430mple.com",
            "email:\u0430nn@example.com",
            "email:ann@example.com.",
            "email:ann@example.com?bcc=evil@example.com",
            "email:ann@example\uff0ecom",
            "email:-oX@example.com",
            "email:{to}@example.com",
            "email:{to}",
            "email:*@example.com",
            "email: ann@example.com",
            "email:ann\u2028@example.com",
            "Email:ann@example.com",
            "mail:ann@example.com",
            "slack:ann@example.com",
        ],
    ),
    "email:ann@example.com": (["email:ann@example.com"],
        ["email:ann+1@example.com", "email:Ann@example.com"]),
    "slack:#*": (["slack:#ops"], ["slack:@U024BE7LH", "slack:", "slack:#a,#b", "slack:#a b"]),
    "webhook:https://hooks.example.com/app/*": (
        ["webhook:https://hooks.example.com/app/x"],
        [
            "webhook:https://hooks.example.com/app/..",
            "webhook:https://hooks.example.com/app/.x",
            "webhook:https://hooks.example.com/app/-x",
            "webhook:https://hooks.example.com/app/x/y",
            "webhook:https://hooks.example.com/app/x?to=y",
            "webhook:https://hooks.example.com/app/x#y",
            "webhook:https://hooks.example.com/app/%2e%2e",
            "webhook:https://hooks.example.com@evil.org/app/x",
            "webhook:http://hooks.example.com/app/x",
        ],
    ),
    "teams:": (["teams:"], ["teams:ops"]),
}  # fmt: skip
COMMANDS: dict[tuple[str, ...], tuple[list[list[str]], list[list[str]]]] = {
    ("psql", "--host=db.example.com", "*"): (
        [["psql", "--host=db.example.com", "app"]],
        [
            ["psql", "--host=db.example.com"],
            ["psql", "--host=db.example.com", ""],
            ["psql", "--host=db.example.com", "app", "--command=x"],
            ["psql", "--host=db.example.com", "--command=x"],
            ["psql", "--host=db.example.com", "-c"],
            ["psql", "--host=db.example.com", "--"],
            ["psql", "--host=db.example.com", "host=evil.org"],
            ["psql", "--host=db.example.com", "postgres://evil.org/app"],
            ["psql", "--host=db.example.com", "a\nb"],
            ["psql", "--host=db.example.com", "@/etc/passwd"],
            ["psql", "--host=db.example.com", "$(id)"],
            ["psql", "--host=db.example.com", "\u0430pp"],
            ["psql", "--host", "db.example.com", "app"],
            ["psql", "--host=db.example.com.evil.org", "app"],
            ["psql", "app", "--host=db.example.com"],
            ["/usr/bin/psql", "--host=db.example.com", "app"],
            ["./psql", "--host=db.example.com", "app"],
            ["PSQL", "--host=db.example.com", "app"],
            ["psql ", "--host=db.example.com", "app"],
            ["env", "psql", "--host=db.example.com", "app"],
            ["sh", "-c", "psql --host=db.example.com app"],
            ["psql --host=db.example.com app"],
        ],
    ),
    ("/usr/bin/deploy", "--env=*", "**"): (
        [["/usr/bin/deploy", "--env=prod"], ["/usr/bin/deploy", "--env=prod", "-x", "any\nthing"]],
        [
            ["deploy", "--env=prod"],
            ["/usr/bin/deploy", "--env=a/../b"],
            ["/usr/bin/deploy", "--env=prod", "a\0b"],
        ],
    ),
    ("true",): ([["true"]], [["true", "x"], ["false"]]),
    ("cat", "/srv/*"): (
        [["cat", "/srv/x"]],
        [["cat", f"/srv/{name}"] for name in ("..", "a/b", "../etc/passwd", ".netrc", "-x", "~x")],
    ),
}
VARIABLES: dict[str, tuple[list[str], list[str]]] = {
    "PG*": (["PGPASSWORD", "PGUSER"], ["XPG", "pgpassword", "PG*"]),
    "*": (
        ["DB_PASSWORD"],
        [
            *(
                "LD_PRELOAD",
                "PATH",
                "GIT_SSH_COMMAND",
                "GIT_CONFIG_COUNT",
                "BASH_ENV",
                "NODE_OPTIONS",
                "MAKEFILES",
            ),
            *(
                "TAR_OPTIONS",
                "GIT_SEQUENCE_EDITOR",
                "NPM_CONFIG_SCRIPT_SHELL",
                "PERLLIB",
                "SEALPIPE_API_KEY",
            ),
        ],
    ),
    "LD*": ([], ["LD_PRELOAD", "LD_LIBRARY_PATH"]),
}


def _read_target(text: str) -> Target:
    """Read a recipient that the grammar itself would refuse, too."""
    name, _, to = text.partition(":")
    return Target(name, to)


TABLES: dict[str, tuple[Callable[[Any], Pattern], Callable[[Any], object], Mapping[Any, Any]]] = {
    "sources": (patterns.parse_source, parse, SOURCES),
    "sinks": (patterns.parse_sink, parse, SINKS),
    "recipients": (patterns.parse_recipient, _read_target, RECIPIENTS),
    "commands": (patterns.parse_command, tuple, COMMANDS),
    "variables": (patterns.parse_variable, str, VARIABLES),
}


@pytest.mark.parametrize("kind", TABLES)
def test_a_pattern_covers_what_it_spells_and_no_walk_around_it(kind: str) -> None:
    parse_pattern, read, table = TABLES[kind]
    for text, (covered, walks) in table.items():
        pattern = parse_pattern(text)
        assert [each for each in covered if not pattern.matches(read(each))] == [], text
        assert [each for each in walks if pattern.matches(read(each))] == [], text


USES: dict[str, Callable[[Any], Use]] = {
    "sources": lambda ref: Use("share_secret", sources=(ref,), recipients=(ANN,), expires_in=HOUR),
    "sinks": lambda ref: Use("request_secret", sinks=(ref,), expires_in=HOUR),
    "recipients": lambda target: Use(
        "share_secret", sources=(SOURCE,), recipients=(target,), expires_in=HOUR
    ),
    "commands": lambda words: Use("run_with_secrets", command=words),
    "variables": lambda name: Use("run_with_secrets", command=("true",), variables=(name,)),
}
HOUR, SOURCE, ANN = timedelta(hours=1), parse("keyring:a"), parse_target("slack:#a")
POLICY = """
schema = 1
[share]
sources = ["keyring:a"]
recipients = ["slack:#a"]
[request]
[run]
commands = [["true"]]
"""


@pytest.mark.parametrize("kind", TABLES)
def test_a_walk_around_is_refused_and_told_what_is_allowed(kind: str, tmp_path: Path) -> None:
    parse_pattern, read, table = TABLES[kind]
    (tmp_path / "mcp.toml").write_text(POLICY)
    policy = load_policy(tmp_path / "mcp.toml", {})
    section = {"sources": "share", "sinks": "request", "recipients": "share"}.get(kind, "run")
    for text, (_, walks) in table.items():
        lists = {**policy.lists[section], kind: (parse_pattern(text),)}
        guarded = replace(policy, lists={**policy.lists, section: lists})
        for walk in walks:
            with pytest.raises(PolicyError) as caught:
                guarded.check(USES[kind](read(walk)))
            says = f"{kind} in [{section}] allow "
            assert says in caught.value.message or "is not allowed: it" in caught.value.message, (
                walk
            )
            assert "add" in caught.value.remedy or "write it plainly" in caught.value.remedy
            assert (caught.value.message + caught.value.remedy).isprintable()


@given(
    st.sampled_from(list(policies.TOOLS)),
    st.lists(
        st.sampled_from([SOURCE, parse("env:HOME"), parse("exec:x"), parse("stdin:")]), max_size=2
    ),
    st.lists(st.sampled_from([ANN, parse_target("email:a@b.c")]), max_size=2),
    st.lists(st.sampled_from(["true", "sh", "env"]), max_size=2),
    st.sampled_from([None, HOUR, timedelta(days=400)]),
)
def test_what_no_list_names_is_refused(
    tool: str, refs: Any, to: Any, command: Any, expiry: Any
) -> None:
    """Deny by default: tables that are there with no list, or with an empty one."""
    for lists in (
        {},
        {name: {} for name in policies.TABLES},
        {"run": {"commands": ()}, "share": {"sources": ()}},
    ):
        policy = policies.Policy(Path("/p"), lists)
        for use in (
            Use(
                tool,
                sources=tuple(refs),
                recipients=tuple(to),
                command=tuple(command),
                expires_in=expiry,
            ),
            Use(tool, sinks=tuple(refs), variables=tuple(command), expires_in=expiry),
        ):
            names_nothing = not any(use[1:6])
            if names_nothing and policy.allows(tool) and not policies.TOOLS[tool].required:
                policy.check(use)
                continue
            with pytest.raises(PolicyError):
                policy.check(use)


@pytest.mark.parametrize(
    ("text", "is_allowed"),
    [
        ("48h", True),
        ("2880m", True),
        ("172800s", True),
        ("2d", True),
        ("49h", False),
        ("2881m", False),
        ("1w", False),
    ],
)
def test_an_expiry_is_compared_in_any_unit(
    tmp_path: Path,
    text: str,
    is_allowed: bool,  # noqa: FBT001
) -> None:
    (tmp_path / "mcp.toml").write_text(
        'schema = 1\nlongest_expiry = "2d"\n[request]\nsinks = ["file:x"]\n'
    )
    tool = load_tools()["request_secret"]
    asked = tool.read({"prompts": [{"text": "Password"}], "to": "file:x", "expires_in": text})
    check = load_policy(tmp_path / "mcp.toml", {}).check
    if is_allowed:
        check(tool.describe(asked))
        return
    with pytest.raises(PolicyError, match="must expire within 2d"):
        check(tool.describe(asked))


@pytest.mark.parametrize(
    "text", ["never", "0d", "-1d", "1.5h", "P1D", "1 d", "\u0661d", "", "forever"]
)
def test_an_expiry_that_is_no_duration_asks_nobody(text: str) -> None:
    with pytest.raises(UsageError):
        load_tools()["request_secret"].read(
            {"prompts": [{"text": "Password"}], "to": "file:x", "expires_in": text}
        )


@pytest.mark.parametrize(
    ("parser", "text"),
    [
        (patterns.parse_source, "vault:secret/**/db"),
        (patterns.parse_source, "vault:secret/a**"),
        (patterns.parse_source, "vault:secret/../db"),
        (patterns.parse_source, "vault:secret//db"),
        (patterns.parse_source, "vault:secret\\db"),
        (patterns.parse_source, "vault:secret/d\u200bb"),
        (patterns.parse_source, "vault:" + "x" * 995),
        (patterns.parse_recipient, "slack:#ops\u202e"),
        (patterns.parse_source, "*:secret/db"),
        (patterns.parse_source, "vault*:secret/db"),
        (patterns.parse_source, "**"),
        (patterns.parse_source, "vault:a#LABEL=password"),
        (patterns.parse_source, 'vault:a#"*_x"'),
        (patterns.parse_source, "vault:a#%2A_x"),
        (patterns.parse_source, "vault:a#x**"),
        (patterns.parse_source, "vault:a#/x/**/y"),
        (patterns.parse_source, "Label=vault:a"),
        (patterns.parse_source, "vault:a?decode=*"),
        (patterns.parse_sink, "vault:a#/password"),
        (patterns.parse_recipient, "*@example.com"),
        (patterns.parse_recipient, "email:{to}"),
        (patterns.parse_recipient, "email:**"),
        (patterns.parse_command, []),
        (patterns.parse_command, [""]),
        (patterns.parse_command, ["*"]),
        (patterns.parse_command, ["**"]),
        (patterns.parse_command, ["ps*"]),
        (patterns.parse_command, ["./psql"]),
        (patterns.parse_command, ["scripts/deploy", "**"]),
        (patterns.parse_command, ["psql", "**", "x"]),
        (patterns.parse_command, ["psql", "--x=**"]),
        (patterns.parse_variable, ""),
        (patterns.parse_variable, "PATH"),
        (patterns.parse_variable, "LD_PRELOAD"),
        (patterns.parse_variable, "LD_*"),
        (patterns.parse_variable, "A=B"),
    ],
)
def test_a_pattern_that_means_nothing_clear_is_refused(
    parser: Callable[[object], object], text: object
) -> None:
    with pytest.raises(UsageError) as caught:
        parser(text)
    assert caught.value.remedy


_TEXT = st.text(st.sampled_from("ab/.-_%?#@*: =\\{},\uff0e\u0301\u200b"), max_size=8)
_BODIES = st.text(st.sampled_from("ab/.- @:\uff0e\u00e9"), max_size=8)
_REFERENCES = st.builds(
    Reference,
    st.sampled_from(["vault", "env", "file"]),
    _BODIES,
    st.sampled_from([(), (("version", "1"),), (("version", "a/b"),)]),
    st.sampled_from(
        [None, parse("xx:a#k").selector, parse("xx:a#k,l").selector, parse("xx:a#/p/0").selector]
    ),
)


@given(_REFERENCES, _REFERENCES, st.sets(st.sampled_from(["name", "body", "params", "selector"])))
def test_a_pattern_without_a_wildcard_matches_only_itself(
    own: Reference, other: Reference, same: set[str]
) -> None:
    """Also where a reference differs in one part only."""
    other = replace(other, **{name: getattr(own, name) for name in same})
    try:
        pattern = patterns.parse_source(str(own))
    except UsageError:
        return  # it could match nothing
    assert pattern.matches(own)
    if pattern.matches(other):
        assert (own.name, own.body, own.params) == (other.name, other.body, other.params)
        assert own.selector is None or set(other.selector or [None]) <= set(own.selector)


@given(_TEXT, _TEXT)
@example("ab*b", "ab")
def test_no_wildcard_covers_more_than_its_characters(pattern: str, text: str) -> None:
    """By another road: as an expression, in which each * is one of the harmless characters, any
    number of times.
    """
    expected = "[A-Za-z0-9._+-]*".join(map(re.escape, pattern.split("*")))
    if Wildcard(pattern).matches(text):
        assert re.fullmatch(expected, text, re.DOTALL)
        assert "*" in pattern or text == pattern


@given(st.text("ab*", max_size=6), st.text("ab", min_size=1, max_size=8))
def test_of_harmless_characters_a_wildcard_covers_all(pattern: str, text: str) -> None:
    expected = ".*".join(map(re.escape, pattern.split("*")))
    assert Wildcard(pattern).matches(text) == bool(re.fullmatch(expected, text))


@given(_BODIES)
def test_decoding_never_widens(body: str) -> None:
    """What is covered has a canonical text that is covered, and whose segments are those of the
    decoded body.
    """
    pattern = patterns.parse_source("vault:a/*")
    ref = Reference("vault", body)
    if pattern.matches(ref):
        assert parse(str(ref)) == ref
        assert str(ref) == f"vault:{body}"
        assert body.split("/")[0] == "a"
        assert len(body.split("/")) == 2


@given(_TEXT)
def test_no_recipient_crosses_an_at_sign(text: str) -> None:
    target = parse_target("email:x")._replace(to=text)
    assert not patterns.parse_recipient("email:*@b").matches(target) or (
        text.count("@") == 1 and text.endswith("@b")
    )
