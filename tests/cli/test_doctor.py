"""`sealpipe doctor`: what it finds, what it says to do, how it ends, and what it never does."""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
import trustme

from sealpipe_rehearsal.running_service import RunningService
from support import faults
from support.damage import exchanged
from support.faulty import Exchange, Fault, Faulty, passes
from support.job import proxied
from support.leaks import Detector
from support.ports import silent_port
from support.terminal import Done, Terminal, addresses
from support.wires import LOOPBACK, Proxy, tls

__all__ = ["proxied"]

HOST = "service.example"
UNKNOWN = "svc_sk_live_" + "A" * 16 + "." + "A" * 43
"""A credential in good form that no service knows."""


def rows(done: Done) -> dict[str, tuple[str, str]]:
    """Status, and detail with remedy, by what was looked at."""
    found = [
        re.fullmatch(r"(ok|warn|fail) +(\S+(?: \S+)*?)  +(.*)", line)
        for line in done.out.splitlines()
    ]
    return {match[2]: (match[1], match[3]) for match in found if match}


def calls(service: RunningService) -> list[tuple[str, str]]:
    return [(seen.method, seen.target) for seen in service.seen()]


# -- when all is well -----------------------------------------------------------------------------


def test_it_changes_nothing_and_asks_six_times_never_with_delete(
    user: Terminal, service: RunningService
) -> None:
    user.sealpipe("doctor")
    assert calls(service) == [
        ("GET", "/v1/shares?limit=1"),
        ("POST", "/v1/shares"),
        ("GET", "/v1/requests?limit=1"),
        ("POST", "/v1/requests"),
        ("GET", "/v1/stats"),
        ("GET", "/v1/capabilities"),
    ]
    for seen in service.seen():
        assert "idempotency-key" not in dict(seen.headers)
        assert seen.body in (b"", b"{}")
    assert user.sealpipe("shares", "list").out == ""


def test_json_has_the_same_checks(user: Terminal) -> None:
    told = user.sealpipe("doctor", "--output", "json").json
    assert list(told) == ["schema", "checks"]
    text = rows(user.sealpipe("doctor"))
    assert {row["check"] for row in told["checks"]} == text.keys()
    assert all(
        set(row) <= {"check", "status", "detail", "remedy", "exit_code"} for row in told["checks"]
    )


@pytest.mark.parametrize(("parts", "words"), [(2, "two parts: "), (3, "three parts: ")])
def test_it_tells_how_many_parts_the_credential_has(user: Terminal, parts: int, words: str) -> None:
    credential = ".".join(user.environ["SEALPIPE_API_KEY"].split(".")[:parts])
    assert words in rows(user.sealpipe("doctor", SEALPIPE_API_KEY=credential))["credential"][1]


# -- state ----------------------------------------------------------------------------------------


def test_an_outbox_that_others_may_read_is_doubtful(user: Terminal) -> None:
    box = user.here / "state/outbox"
    box.mkdir(parents=True, mode=0o755)
    box.chmod(0o755)
    done = user.sealpipe("doctor", "--state-dir", str(box.parent), "--output", "json")
    assert {"check": "state directory", "status": "warn", "detail": f"{box} is open to others",
            "remedy": f"chmod 700 {box}"} in done.json["checks"]  # fmt: skip
    assert list(box.iterdir()) == []


# -- the service ----------------------------------------------------------------------------------


def test_a_service_that_is_not_there_ends_with_10_and_one_that_does_not_answer_with_7(
    user: Terminal, proxied: Callable[..., Faulty]
) -> None:
    server = proxied(then=faults.closes)
    done = user.sealpipe("doctor", SEALPIPE_BASE_URL=server.base_url)
    assert (done.code, len(server.received())) == (7, 1)
    done = user.sealpipe("doctor", SEALPIPE_BASE_URL=f"http://127.0.0.1:{silent_port()}/v1")
    assert done.code == 10
    assert "check the base URL" in rows(done)["service"][1]


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (faults.says(200, "<html>Please log in</html>"), 12),
        (faults.says(302, "", {"Location": "https://elsewhere.example/"}), 12),
        (faults.says(404, '{"message":"Not Found"}'), 12),
        (faults.says(500, '{"message":"no"}'), 7),
        (faults.envelope(403, 98), 4),
        (faults.unauthorized, 3),
    ],
)
def test_an_invalid_response_has_its_exit_code(
    user: Terminal, proxied: Callable[..., Faulty], fault: Fault, code: int
) -> None:
    done = user.sealpipe("doctor", "--roundtrip", SEALPIPE_BASE_URL=proxied(then=fault).base_url)
    assert done.code == code, done


def test_a_route_that_a_service_does_not_offer_is_doubtful(
    user: Terminal, proxied: Callable[..., Faulty]
) -> None:
    nothing: list[Fault] = [passes] * 4
    server = proxied(*nothing, then=faults.says(403, '{"Message":"no such route"}'))
    done = user.sealpipe("doctor", SEALPIPE_BASE_URL=server.base_url)
    assert (done.code, rows(done)["scope stats:read"][0]) == (0, "warn")


def test_a_create_that_is_taken_without_a_key_is_no_service_of_this_kind(
    user: Terminal, proxied: Callable[..., Faulty]
) -> None:
    taken = faults.says(201, '{"short_code":"x","expired_at":null,"custody":"none"}')
    done = user.sealpipe("doctor", SEALPIPE_BASE_URL=proxied(passes, taken).base_url)
    assert "without an Idempotency-Key" in rows(done)["scope shares:write"][1]


def test_the_rate_limit_is_not_eaten_up(user: Terminal, proxied: Callable[..., Faulty]) -> None:
    server = proxied(passes, then=faults.envelope(429, 107, {"Retry-After": "30"}))
    done = user.sealpipe("doctor", "--roundtrip", SEALPIPE_BASE_URL=server.base_url)
    assert (done.code, len(server.received())) == (0, 2)
    assert rows(done)["scope shares:write"][0] == rows(done)["roundtrip"][0] == "warn"


def dated(ahead: timedelta | None) -> Fault:
    """The service's answers with another Date, or without one."""

    def fault(exchange: Exchange) -> None:
        answer = exchange.forward()
        line = (
            b""
            if ahead is None
            else f"date: {format_datetime(datetime.now(UTC) + ahead, usegmt=True)}\r\n".encode()
        )
        exchange.send(re.sub(rb"(?i)date: [^\r]*\r\n", line, answer.head) + answer.body)

    return fault


@pytest.mark.parametrize(
    ("ahead", "status", "told"),
    [
        (timedelta(seconds=95), "warn", r"this machine's clock is 9[3-7] s behind the service's"),
        (
            timedelta(hours=-1),
            "warn",
            r"this machine's clock is 3(59|60)\d s ahead of the service's",
        ),
        (timedelta(seconds=20), "ok", r"within [12]\d s of the service's"),
        (None, "ok", "not compared"),
    ],
)
def test_clocks_that_differ_by_more_than_30_seconds_are_doubtful(
    user: Terminal, proxied: Callable[..., Faulty], ahead: timedelta | None, status: str, told: str
) -> None:
    done = user.sealpipe("doctor", SEALPIPE_BASE_URL=proxied(then=dated(ahead)).base_url)
    assert done.code == 0
    assert rows(done)["clock"][0] == status
    assert re.match(told, rows(done)["clock"][1])


# -- TLS and proxies ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA(organization_name="Acme Intercepting Works")


@pytest.fixture
def secured(
    authority: trustme.CA, service: RunningService, tmp_path: Path
) -> Iterator[Callable[..., dict[str, Any]]]:
    """Make a TLS door to the service; what makes a command go there, through a proxy or not."""
    ca_file = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(ca_file)
    with ExitStack() as stack:

        def make(*, proxy: bool = False, **options: Any) -> dict[str, Any]:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            authority.issue_cert(LOOPBACK, HOST, **options).configure_cert(context)
            door = stack.enter_context(tls(context, service.address))
            environ = {
                "SEALPIPE_CA_FILE": str(ca_file),
                "SEALPIPE_BASE_URL": f"https://{LOOPBACK}:{door.port}/v1",
            }
            if not proxy:
                return environ
            between = stack.enter_context(Proxy(door.port))
            return environ | {
                "SEALPIPE_BASE_URL": f"https://{HOST}/v1",
                "HTTPS_PROXY": f"http://me:pr0xy-passw0rd@{LOOPBACK}:{between.port}",
                "PROXY_PORT": str(between.port),
            }

        yield make


def test_the_certificates_issuer_and_expiry_are_reported(
    user: Terminal, secured: Callable[..., dict[str, Any]]
) -> None:
    done = user.sealpipe("doctor", **secured())
    assert done.code == 0, done
    assert re.match(
        r"TLSv1\.3, issued by Acme Intercepting Works.*, until \d{4}-01-01",
        rows(done)["certificate"][1],
    )


def test_a_certificate_that_ends_soon_is_doubtful(
    user: Terminal, secured: Callable[..., dict[str, Any]]
) -> None:
    done = user.sealpipe("doctor", **secured(not_after=datetime.now(UTC) + timedelta(days=3)))
    assert (done.code, rows(done)["certificate"][0]) == (0, "warn")


def test_the_proxy_is_reported_without_its_login(
    user: Terminal, secured: Callable[..., dict[str, Any]]
) -> None:
    environ = secured(proxy=True)
    port = environ.pop("PROXY_PORT")
    done = user.sealpipe("doctor", **environ)
    assert done.code == 0, done
    assert (
        rows(done)["connectivity"][1]
        == f"https://{HOST}, through the proxy http://{LOOPBACK}:{port} with a login"
    )
    assert "Acme Intercepting Works" in rows(done)["certificate"][1]
    assert "pr0xy" not in done.out + done.err
    direct = user.sealpipe("doctor", "--deadline", "5s", **environ, NO_PROXY=HOST)
    assert (
        rows(direct)["connectivity"][1] == f"https://{HOST}, direct: NO_PROXY ({HOST}) includes it"
    )
    assert direct.code == 10


def test_an_untrusted_certificate_exits_10_an_invalid_file_2(
    user: Terminal, secured: Callable[..., dict[str, Any]]
) -> None:
    environ = secured()
    done = user.sealpipe("doctor", **{**environ, "SEALPIPE_CA_FILE": None})
    assert (done.code, "CERTIFICATE_VERIFY_FAILED" in done.out) == (10, True), done
    done = user.sealpipe(
        "doctor", **{**environ, "SEALPIPE_CA_FILE": str(user.file("none.pem", "x"))}
    )
    assert (done.code, rows(done)["connectivity"][0], rows(done)["service"][0]) == (
        2,
        "fail",
        "warn",
    )


# -- the round trip -------------------------------------------------------------------------------


def test_a_roundtrip_creates_and_expires_an_unopened_share(
    user: Terminal, service: RunningService
) -> None:
    done = user.sealpipe("doctor", "--roundtrip")
    assert done.code == 0, done
    assert re.fullmatch(
        r"a test share was created in \d+ ms and expired in \d+ ms", rows(done)["roundtrip"][1]
    )
    assert rows(done)["custody"] == ("ok", "the service responded with `stored`")
    assert [method for method, _ in calls(service)][5:] == ["POST", "DELETE", "GET"]
    assert [event.payload["event"] for event in service.events()] == ["share.deleted"]
    assert user.sealpipe("shares", "list").out == ""
    assert user.outbox() == []


def test_a_key_without_custody_is_reported_in_nine_calls(
    bare: Terminal, service: RunningService
) -> None:
    done = bare.at(service, custody="none").sealpipe("doctor", "--roundtrip")
    assert done.code == 0, done
    assert len(service.seen()) == 9
    assert bare.sealpipe("shares", "list").out == ""
    told = bare.sealpipe("doctor", "--roundtrip", "--output", "json").json["checks"]
    assert [row["status"] for row in told if row["check"] == "custody"] == ["warn", "ok"]


def test_a_create_whose_answer_is_lost_ends_with_9_and_says_that_it_ends_by_itself(
    user: Terminal, proxied: Callable[..., Faulty]
) -> None:
    five: list[Fault] = [passes] * 5
    done = user.sealpipe(
        "doctor", "--roundtrip", SEALPIPE_BASE_URL=proxied(*five, faults.reset_after).base_url
    )
    assert (done.code, rows(done)["roundtrip"][0]) == (9, "fail")
    assert "expires by itself within five minutes" in rows(done)["roundtrip"][1]


# -- plugins, and what never shows ----------------------------------------------------------------


def test_a_backend_without_a_check_is_not_contacted(user: Terminal) -> None:
    for name, detail in (("webhook", "settings complete; not contacted"), ("text", "ready")):
        done = user.sealpipe("doctor", name, SEALPIPE_PLUGIN_WEBHOOK__UNSIGNED="true")
        assert done.code == 0
        assert done.out.splitlines()[-1].endswith(detail)


def test_one_source_can_be_looked_at_alone(user: Terminal, service: RunningService) -> None:
    done = user.sealpipe("doctor", "gen")
    assert (done.code, done.err) == (0, "")
    assert "7776 words" in done.out
    assert service.seen() == []


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("vualt", "vault"),
        ("slakc", "slack"),
        ("prod-valt", "prod-vault"),
        ("zzzzzz", "sealpipe plugins"),
    ],
)
def test_an_unknown_name_is_reported_with_the_nearest(user: Terminal, name: str, near: str) -> None:
    user.file("c.toml", "[stores.prod-vault]\nplugin = 'vault'\n")
    done = user.sealpipe("doctor", name, SEALPIPE_CONFIG=str(user.here / "c.toml"))
    assert (done.code, done.out) == (2, "")
    assert f"there is no store, source, sink or channel named {name}" in done.err
    assert near in done.err
    assert "label" not in done.err


def test_a_name_as_long_as_a_secret_is_not_repeated(user: Terminal) -> None:
    done = user.sealpipe("doctor", UNKNOWN)
    assert (done.code, UNKNOWN in done.err) == (2, False)


def test_a_source_that_cannot_be_used_ends_with_14(bare: Terminal) -> None:
    hook = (
        "from sealpipe.plugin import SourceInfo, hookimpl\n@hookimpl\ndef "
        "sealpipe_sources(register):\n"
    )
    hook += "    for name in ('sick', 'odd', 'fails', 'lacks'):\n"
    hook += (
        "        register(SourceInfo(name, 'a test', f'attic_sources:{name}', "
        "needs=('no-such-package-here',)))\n"
    )
    bare.file("site/attic.py", hook)
    sources = (
        "from sealpipe.plugin import *\nclass Base(Source):\n    def fetch(self, locator): ...\n"
    )
    for name, says in {
        "sick": "Health(ok=False, detail='the attic is locked')",
        "odd": "'c4nary'",
        "fails": "1 / 0",
    }.items():
        sources += f"class {name}(Base):\n    def check(self):\n        return {says}\n"
    bare.file("site/attic_sources.py", sources)
    bare.file("site/attic-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: attic\n")
    bare.file("site/attic-1.0.dist-info/entry_points.txt", "[sealpipe]\nattic = attic\n")
    for name, told in {
        "sick": "the attic is locked",
        "odd": "returned str from its check",
        "fails": "raised an unexpected ZeroDivisionError",
        "lacks": "(attic_sources:lacks: the module has no such name)",
    }.items():
        done = bare.sealpipe("doctor", name, PYTHONPATH=str(bare.here / "site"))
        assert done.code == 14, done
        assert told in done.out
        assert (
            "no-such-package-here is not installed  -> pip install 'no-such-package-here'"
            in done.out
        )
        assert "c4nary" not in done.out + done.err


def test_no_part_of_a_secret_shows(
    user: Terminal, secured: Callable[..., dict[str, Any]], service: RunningService
) -> None:
    key, before = user.environ["SEALPIPE_API_KEY"], service.create_key().reveal()
    parts = {"auth": key, "custody": key, "previous auth": before, "previous custody": before}
    detector = Detector(
        {
            name: credential.split(".")[1 if "auth" in name else 2].encode()
            for name, credential in parts.items()
        }
        | {"proxy": b"pr0xy-passw0rd"}
    )
    assert len({found.secret for found in detector.find(key.encode())}) == 2
    environ = {**secured(proxy=True), "SEALPIPE_API_KEY_PREVIOUS": before}
    for words in ([], ["--roundtrip"], ["--output", "json"], ["gen"]):
        done = user.sealpipe("doctor", *words, **environ)
        assert done.code == 0, done
        assert detector.find((done.out + done.err).encode()) == set()
    broken = user.sealpipe("doctor", **addresses(service), SEALPIPE_API_KEY=key + "x")
    assert broken.code == 2
    assert detector.find((broken.out + broken.err).encode()) == set()


@pytest.mark.parametrize(
    ("name", "sign"), [("azure", "TF_BUILD"), ("github", "GITHUB_ACTIONS"), ("gitlab", "GITLAB_CI")]
)
def test_a_ci_system_is_checked_by_the_variable_of_its_jobs(
    bare: Terminal, name: str, sign: str
) -> None:
    here = bare.sealpipe("doctor", name, CI="true", **{sign: "true"})
    elsewhere = bare.sealpipe("doctor", name)
    assert (here.code, elsewhere.code) == (0, 0)
    assert "this job runs on it" in here.out
    assert f"this process is not one of its jobs: {sign} is not set" in elsewhere.out


@pytest.mark.usefixtures("extended")
def test_it_tells_what_key_and_plan_allow_where_the_service_does(user: Terminal) -> None:
    status, told = rows(user.sealpipe("doctor"))["plan"]
    assert status == "ok"
    assert re.search(
        r"^\w+, custody \d, \d+ requests per minute, (any number of|\d+ more) shares, \d+ days of",
        told,
    ), told
    assert "with: " in told


def test_a_plan_is_not_told_where_the_service_does_not_have_it(user: Terminal) -> None:
    assert "plan" not in rows(user.sealpipe("doctor"))


CUSTODY = "custody secret"


@pytest.mark.usefixtures("extended")
@pytest.mark.parametrize("index", [-1, -2, 0, 20])
def test_a_damaged_custody_secret_is_found_where_the_service_tells_the_public_key(
    user: Terminal, index: int
) -> None:
    key, _, custody = user.environ["SEALPIPE_API_KEY"].rpartition(".")
    fine, damaged = (
        user.sealpipe("doctor"),
        user.sealpipe("doctor", SEALPIPE_API_KEY=f"{key}.{exchanged(custody, index)}"),
    )
    assert (fine.code, rows(fine)[CUSTODY][0]) == (0, "ok")
    assert (damaged.code, rows(damaged)[CUSTODY][0]) == (2, "fail")
    assert "not the one of this API key" in rows(damaged)[CUSTODY][1]
    assert custody not in damaged.out


def test_a_custody_secret_is_not_checked_where_the_service_tells_nothing(user: Terminal) -> None:
    done = user.sealpipe("doctor")
    said = ("ok", "not checked: the service does not report the registered custody public key")
    assert (done.code, rows(done)[CUSTODY]) == (0, said)
    two_parts = user.environ["SEALPIPE_API_KEY"].rpartition(".")[0]
    assert CUSTODY not in rows(user.sealpipe("doctor", SEALPIPE_API_KEY=two_parts))


def test_a_custody_secret_is_not_checked_where_none_is_registered(
    bare: Terminal, extended: RunningService
) -> None:
    done = bare.at(extended, register=False).sealpipe("doctor")
    assert rows(done)[CUSTODY] == ("ok", "not checked: no custody public key is registered")


def test_a_compromised_key_is_to_be_revoked(user: Terminal, extended: RunningService) -> None:
    assert "compromise" not in rows(user.sealpipe("doctor"))
    key = user.environ["SEALPIPE_API_KEY"]
    httpx.get(
        f"{extended.base_url}/shares", headers={"Authorization": f"Bearer {key}"}, trust_env=False
    )
    assert rows(user.sealpipe("doctor"))["compromise"] == (
        "warn",
        "compromised: revoke  -> create a new API key, and revoke this one",
    )


@pytest.mark.parametrize(
    ("body", "status", "detail"),
    [
        ("{}", "ok", "the service says nothing about it"),
        ('{"plan": {"name": "\\u001b[2Jx"}, "key": {"rate_limit_rpm": true}}', "ok", "\\x1b[2Jx"),
        ('{"limits": {"remaining_shares": -1}, "features": {"a": true, "b": false, "c": 1}}', "ok",
         "any number of shares, with: a, without: b"),
        ('{"plan": []}', "warn", "unknown: "),
        ("[]", "warn", "unknown: "),
    ],
)  # fmt: skip
def test_a_plan_of_another_shape_does_no_harm(
    user: Terminal, proxied: Callable[..., Faulty], body: str, status: str, detail: str
) -> None:
    five: list[Fault] = [passes] * 5
    done = user.sealpipe(
        "doctor", SEALPIPE_BASE_URL=proxied(*five, faults.says(200, body)).base_url
    )
    assert done.code == 0, done
    found = rows(done)["plan"]
    assert found[0] == status
    assert found[1].startswith(detail) if status == "warn" else found[1] == detail
