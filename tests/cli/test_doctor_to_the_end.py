"""`sealpipe doctor` looks at every value, the state folder and the link address, and what is wrong
ends nothing.
"""

from __future__ import annotations

import os
import re
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue

import click
import pytest
import trustme

from sealpipe.cli.command import OneOf, SettingType
from sealpipe.command_settings import COMMANDS
from sealpipe.config_file import FLAG_VALUES, check_value
from sealpipe.errors import SettingError, UsageError
from sealpipe.settings import GLOBAL, Setting
from sealpipe_rehearsal.running_service import RunningService
from support.ports import silent_port
from support.terminal import Done, Terminal
from support.wires import LOOPBACK, Wire, tls

CANARY = "c4nary" * 20
LAST = "scope stats:read"
"""The last thing that is looked at: who tells of it has gone on to the end."""

SETTINGS = [each for each in GLOBAL if not each.secret] + [
    each for every in COMMANDS.values() for each in every
]


def rows(done: Done) -> dict[str, tuple[str, str]]:
    """Status, and detail with remedy, by what was looked at."""
    return {
        each["check"]: (each["status"], f"{each['detail']} -> {each.get('remedy', '')}")
        for each in done.json["checks"]
    }


def doctor(user: Terminal, *words: str, **environ: str | None) -> Done:
    return user.sealpipe("doctor", "--output", "json", *words, **environ)


# -- values ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("SEALPIPE_SHARE_EXPIRES_IN", "banana", "is not a duration"),
        ("SEALPIPE_SHARE_EXPIRES_AT", "tomorrow", "time"),
        ("SEALPIPE_SHARE_VIEWS", "0", "is too small"),
        ("SEALPIPE_SHARE_FIELD", "env:X\nno reference", ""),
        ("SEALPIPE_SHARE_CUSTODY", CANARY, "the value is not one of the choices"),
        ("SEALPIPE_SHARE_SEAL_LINK", CANARY, "the value is not a boolean"),
        ("SEALPIPE_SHARE_NOTIFY_ON", "viewed,viewed", "repeats an event"),
        ("SEALPIPE_REQUEST_ASK", ":password", ""),
        ("SEALPIPE_COLLECT_WAIT", "-1h", "is not a duration"),
        ("SEALPIPE_COLLECT_TO", CANARY, ""),
        ("SEALPIPE_SHARES_LIMIT", "many", "is not a whole number"),
        ("SEALPIPE_REHEARSAL_PORT", "70000", "is not a port"),
        ("SEALPIPE_DOCTOR_ROUNDTRIP", "banana", "the value is not a boolean"),
    ],
)
def test_an_unusable_variable_is_reported(
    user: Terminal, variable: str, value: str, says: str
) -> None:
    done = doctor(user, **{variable: value})
    status, told = rows(done)[f"variable {variable}"]
    assert (done.code, status) == (2, "fail")
    assert told.startswith(f"variable {variable}: ")
    assert says in told
    assert rows(done)[LAST][0] == "ok"
    assert CANARY not in done.out + done.err


def test_all_errors_are_reported_at_once_by_name(user: Terminal) -> None:
    done = doctor(
        user,
        SEALPIPE_SHARE_EXPIRES_IN="banana",
        SEALPIPE_COLLECT_WAIT="banana",
        SEALPIPE_SHARE_TITLE=CANARY,
        SEALPIPE_DEADLIN="1s",
    )
    found = rows(done)
    assert [
        found[f"variable SEALPIPE_{name}"][0] for name in ("SHARE_EXPIRES_IN", "COLLECT_WAIT")
    ] == ["fail", "fail"]
    assert found["variable SEALPIPE_DEADLIN"] == (
        "warn",
        "unknown variable -> did you mean SEALPIPE_DEADLINE?",
    )
    assert found["other settings"][1].startswith("1 can be used: variable SEALPIPE_SHARE_TITLE")
    assert CANARY not in done.out


@pytest.mark.parametrize("value", ["yaml", CANARY])
def test_an_output_that_there_is_not_is_a_finding_and_ends_nothing(
    user: Terminal, value: str
) -> None:
    done = user.sealpipe("doctor", SEALPIPE_OUTPUT=value)
    assert done.code == 2
    assert "fail  setting output" in done.out
    assert LAST in done.out
    assert CANARY not in done.out + done.err


def test_a_config_file_that_is_no_toml_is_one_finding_with_its_line(user: Terminal) -> None:
    file = user.file("c.toml", f'deadline = "5s"\n[share]\ntitle = {CANARY}\n')
    done = doctor(user, SEALPIPE_CONFIG=str(file))
    assert done.code == 2
    told = [each["detail"] for each in done.json["checks"] if each["status"] == "fail"]
    assert told == [f"the config file {file} is not valid TOML at line 3, column 9"]
    assert rows(done)[LAST][0] == "ok"
    assert CANARY not in done.out + done.err


def test_every_config_file_error_is_reported_with_a_suggestion(user: Terminal) -> None:
    lines = [
        "deadlin = '5s'",
        "state_dir = ['x']",
        "api_key = 'svc_sk_live_x'",
        "[share]",
        f"titel = '{CANARY}'",
        "expires_in = 'banana'",
        "views = 3",
        "expires_at = 2031-01-01T00:00:00Z",
        "[colect]",
        "[collect]",
        "to = 'vault:x'",
        "wait = '15m'",
    ]
    done = doctor(user, SEALPIPE_CONFIG=str(user.file("c.toml", "\n".join(lines))))
    failed = [
        f"{each['detail']} -> {each['remedy']}"
        for each in done.json["checks"]
        if each["status"] == "fail"
    ]
    assert done.code == 2
    for says in (
        "'deadlin', which is not a setting -> did you mean deadline?",
        "'state_dir', which is not a single value",
        "contains a credential",
        "'share.titel', which is not a setting -> did you mean title?",
        "'colect', which is not a setting -> did you mean collect?",
        "'collect.to', which is not a list of strings",
        "config file's share.expires_in: the value is not a duration",
    ):
        assert sum(says in each for each in failed) == 1, says
    assert len(failed) == 7, failed
    assert rows(done)["other settings"][1].startswith(
        "3 can be used: config file's share.expires_at, config file's share.views, config "
        "file's collect.wait"
    )
    assert rows(done)[LAST][0] == "ok"
    assert CANARY not in done.out + done.err
    assert "svc_sk_live_x" not in done.out + done.err


def test_a_value_that_a_flag_or_variable_stands_before_is_looked_at_too(user: Terminal) -> None:
    file = user.file("c.toml", "base_url = 'nonsense'\ndeadline = 'soon'\n")
    done = doctor(user, "--deadline", "9s", SEALPIPE_CONFIG=str(file), SEALPIPE_DEADLINE="never")
    found = rows(done)
    assert found["setting deadline"] == ("ok", "9 s (--deadline) -> ")
    assert found["variable SEALPIPE_DEADLINE"][0] == found["config file's deadline"][0] == "fail"
    assert found["config file's base_url"][0] == "fail"
    assert found["setting base_url"][0] == "ok"


def test_an_invalid_value_is_reported_once(user: Terminal) -> None:
    done = doctor(user, SEALPIPE_DEADLINE="soon")
    assert [each["check"] for each in done.json["checks"] if each["status"] == "fail"] == [
        "setting deadline"
    ]


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda each: each.name)
def test_a_value_fits_here_where_the_command_line_takes_it(setting: Setting) -> None:
    """The doctor parses by the table, commands by click: both say the same of any text."""
    kind: click.ParamType[object] = (
        click.BOOL if setting.flag else OneOf(setting) if setting.choices else SettingType(setting)
    )
    for text in (
        "banana",
        "1h",
        "3",
        "true",
        "off",
        "env:X",
        "a=env:X",
        "text",
        "expired",
        "https://a.example/v1",
        "-",
    ):
        assert _passes(lambda text=text: check_value(setting, text, "x")) == _passes(
            lambda text=text: kind.convert(text, None, None)
        )


def _passes(parse: object) -> bool:
    try:
        parse()  # type: ignore[operator]
    except (UsageError, SettingError, click.BadParameter):
        return False
    return True


def test_no_wrong_value_is_repeated_wherever_it_stands(user: Terminal) -> None:
    secret = "Tr0ub4dor-3x"
    settings = [
        (name, each)
        for name, every in COMMANDS.items()
        for each in every
        if each.name != "conformance"
    ]
    done = doctor(user, **{each.get_variable(name): secret for name, each in settings})
    assert len([each for each in done.json["checks"] if each["status"] == "fail"]) > 20
    assert secret not in done.out + done.err
    file = user.file("c.toml", f"{CANARY} = 1\n[share]\n{CANARY} = 1\nviews = '{secret}'\n")
    done = doctor(user, SEALPIPE_CONFIG=str(file))
    assert "a name of 120 characters" in done.out
    assert not {CANARY, secret} & {word for word in (CANARY, secret) if word in done.out + done.err}


def test_what_switches_is_what_the_command_line_takes() -> None:
    assert frozenset(click.types.BoolParamType.bool_states) - {""} == FLAG_VALUES


# -- plugins and stores ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "check", "says"),
    [
        (
            "[stores.prod]\nplugin = 'vualt'\n",
            "store prod",
            "its plugin vualt does not exist -> did you mean vault?",
        ),
        (
            "[stores.prod]\nplugin = 'vault'\nadr = 'c4naryc4nary'\n",
            "store prod",
            "has no setting adr",
        ),
        ("[stores.prod]\n", "stores", "the store prod has no plugin"),
        ("[plugins.vault]\nadr = 'c4naryc4nary'\n", "plugin vault", "has no setting adr"),
        ("allow_plugins = 'c4naryc4nary'\n", "plugins", "allow_plugins is not a list"),
        ("policy = 'c4naryc4nary'\n", "policies", "policy is not a table"),
        (
            "[policy]\nsorces = ['c4naryc4nary']\n",
            "policy",
            "has a rule 'sorces' that does not exist",
        ),
        (
            "[policy]\nsources = 'c4naryc4nary'\n",
            "policy",
            'write a list of strings, such as ["*"]',
        ),
        ("[policy]\nactions = ['c4naryc4nary']\n", "policy", "write a list of some of share, "),
        ("[policy]\nlongest_expiry = '1y'\n", "policy", 'write a duration, such as "7d"'),
        ("[policy]\nmost_views = 'two'\n", "policy", "write a whole number, 1 or more"),
        ("[policy]\nfile = '/nowhere/policy.toml'\n", "policy", "cannot be read"),
        ("[audit]\nfile = '/nowhere/at/all/log'\n", "audit", "the directory does not exist"),
        ("[audit]\nfile = 'c4nary'\n", "audit", "its file is not an absolute path"),
        ("[audit]\nfil = '/tmp/c4nary'\n", "audit", "its file is not an absolute path"),
        ("[audit]\nfile = '/tmp/x'\nkey = 'c4nary'\n", "audit", "write file:/PATH or env:NAME"),
        (
            "[audit]\nfile = '/tmp/x'\nwebhook.url = 'http://c4nary.example/'\n",
            "audit",
            "the audit's webhook must be an https address",
        ),
    ],
)
def test_what_is_set_for_plugins_is_looked_at_too(
    user: Terminal, content: str, check: str, says: str
) -> None:
    done = doctor(user, SEALPIPE_CONFIG=str(user.file("c.toml", content)))
    assert done.code != 0
    assert rows(done)[check][0] == "fail"
    assert says in rows(done)[check][1]
    assert rows(done)[LAST][0] == "ok"
    assert "c4nary" not in done.out + done.err


def test_where_the_audit_log_is_sent_is_reported_without_its_token(user: Terminal) -> None:
    url = "https://logs.example/c4nary?token=c4nary"
    content = f"[audit]\nfile = '{user.here}/log'\n[audit.webhook]\nurl = '{url}'\n"
    done = doctor(user, SEALPIPE_CONFIG=str(user.file("c.toml", content)))
    state, detail = rows(done)["audit"]
    assert state == "ok"
    assert detail.startswith(f"active ({user.here}/log, sent to logs.example)")
    assert "c4nary" not in done.out + done.err


def test_a_store_with_valid_settings_is_reported(user: Terminal) -> None:
    file = user.file(
        "c.toml",
        "[stores.prod]\nplugin = 'vault'\naddr = 'https://vault.example'\n[policy]\nsinks = []\n",
    )
    done = doctor(user, SEALPIPE_CONFIG=str(file), SEALPIPE_STORE__PROD__TOKEN=CANARY)
    assert done.code == 0, done.json
    assert rows(done)["store prod"][0] == "ok"
    assert rows(done)["policy"][0] == "ok"
    assert CANARY not in done.out


# -- the state folder -----------------------------------------------------------------------------


def tree(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.mark.parametrize(
    "named",
    [
        "/proc/sealpipe/state",
        "/dev/null/state",
        "/sys/state",
        "{tmp}/{long}/state",
        "{tmp}/link/state",
    ],
)
def test_a_state_folder_that_cannot_be_created_is_reported(user: Terminal, named: str) -> None:
    """Root may write everywhere by its permissions, and yet cannot: only trying it shows."""
    (user.tmp / "link").symlink_to(user.tmp / "nowhere")
    before = tree(user.tmp)
    done = doctor(user, "--state-dir", named.format(tmp=user.tmp, long="x" * 300))
    assert (done.code, rows(done)["state directory"][0]) == (2, "fail"), done.json
    assert "SEALPIPE_STATE_DIR" in rows(done)["state directory"][1]
    assert rows(done)[LAST][0] == "ok"
    assert tree(user.tmp) == before


def test_a_folder_that_can_be_made_is_tried_and_nothing_is_left(user: Terminal) -> None:
    before = tree(user.tmp)
    done = doctor(user, "--state-dir", str(user.tmp / "a/b/c"))
    assert (done.code, rows(done)["state directory"][0]) == (0, "ok")
    assert tree(user.tmp) == before


def test_the_try_writes_and_syncs_in_the_folder(
    user: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sealpipe.doctor.machine import GivenSetting, check_state_directory

    settings = {"state_dir": GivenSetting(str(user.tmp / "a/b"), "x")}
    real, seen = os.fsync, []
    monkeypatch.setattr(os, "fsync", lambda descriptor: (seen.append(descriptor), real(descriptor)))
    assert [each.status for each in check_state_directory(settings, {}, None)] == ["ok", "ok"]
    assert len(seen) >= 3, "the file, its name, and its going"

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    (found,) = check_state_directory(settings, {}, None)
    assert (found.status, "No space left" in found.detail) == ("fail", True)
    assert not (user.tmp / "a").exists()
    assert not list(user.tmp.glob(".sealpipe*"))


# -- the link address -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def door(authority: trustme.CA, service: RunningService) -> Iterator[int]:
    """A TLS port whose certificate is for another name."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("links.example").configure_cert(context)
    with tls(context, service.address) as server:
        yield server.port


@pytest.fixture
def listening() -> Iterator[tuple[int, SimpleQueue[bytes]]]:
    """A port that takes connections, and all that arrives at it."""
    arrived: SimpleQueue[bytes] = SimpleQueue()
    with socket.create_server((LOOPBACK, 0)) as server:

        def serve() -> None:
            while True:
                try:
                    line, _ = server.accept()
                except OSError:
                    return
                with line:
                    line.settimeout(5)
                    arrived.put(line.recv(1000))

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1], arrived


def test_a_responding_link_address_is_reported(user: Terminal, service: RunningService) -> None:
    assert rows(doctor(user))["link address"] == ("ok", f"{service.origin} can be reached -> ")


def test_the_link_address_is_connected_to_and_asked_nothing(
    user: Terminal, listening: tuple[int, SimpleQueue[bytes]]
) -> None:
    port, arrived = listening
    done = doctor(user, SEALPIPE_LINK_BASE_URL=f"http://{LOOPBACK}:{port}/s3cret-path")
    assert (done.code, rows(done)["link address"][0]) == (0, "ok")
    assert arrived.get(timeout=60) == b""
    assert arrived.empty()


def test_a_link_address_that_leads_nowhere_ends_with_10(
    user: Terminal, door: int, authority: trustme.CA
) -> None:
    authority.cert_pem.write_to_path(user.tmp / "ca.pem")
    plain = user.environ["SEALPIPE_BASE_URL"].removeprefix("http").removesuffix("/v1")
    for address, says in {
        f"http://{LOOPBACK}:{silent_port()}": "Connection refused",
        # the second without a network
        "https://links.invalid": "the host name does not exist|the DNS lookup failed",
        f"https://{'x' * 64}.example": "the host name is not valid",
        f"https://{LOOPBACK}:{door}": "its certificate was rejected: IP address mismatch",
        f"https{plain}": "TLS failed",
    }.items():
        done = doctor(
            user, SEALPIPE_LINK_BASE_URL=address, SEALPIPE_CA_FILE=str(user.tmp / "ca.pem")
        )
        status, told = rows(done)["link address"]
        assert (done.code, status) == (10, "fail"), (address, told)
        assert re.search(says, told), told
        assert "check SEALPIPE_LINK_BASE_URL" in told
        assert rows(done)[LAST][0] == "ok"


def test_an_untrusted_certificate_is_reported(user: Terminal, door: int) -> None:
    done = doctor(user, SEALPIPE_LINK_BASE_URL=f"https://{LOOPBACK}:{door}")
    assert "its certificate was rejected: " in rows(done)["link address"][1]
    assert done.code == 10


def test_a_proxy_that_does_not_let_links_through_is_doubtful_only(user: Terminal) -> None:
    with Wire(lambda client: client.sendall(b"HTTP/1.1 403 Forbidden\r\n\r\n")) as proxy:
        for port in (proxy.port, silent_port()):
            environ = {"HTTPS_PROXY": f"http://me:pr0xy-passw0rd@{LOOPBACK}:{port}"}
            done = doctor(user, SEALPIPE_LINK_BASE_URL="https://links.example", **environ)
            assert rows(done)["link address"][0] == "warn", rows(done)
            assert (done.code, "pr0xy" in done.out + done.err) == (0, False)
