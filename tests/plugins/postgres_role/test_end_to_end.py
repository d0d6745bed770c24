"""A password on its way into PostgreSQL by whole commands; nothing of it shows anywhere, not even
at the server.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import trustme

from plugins.postgres_role.conftest import ADMIN_PASSWORD, THERE, Roles
from sealpipe.testing.contract import FaultyServer
from sealpipe_rehearsal.running_service import RunningService
from support.commands import SEALPIPE
from support.failures import Failure, assert_told_apart, without
from support.job import Job
from support.leaks import Detector
from support.ports import silent_port
from support.storing import asked_at_once
from support.strace import watch
from support.terminal import Terminal, opened


@pytest.fixture
def job(service: RunningService, tmp_path: Path) -> Job:
    return Job(tmp_path, service)


def test_a_new_password_is_set_and_handed_to_its_user(
    roles: Roles, user: Terminal, service: RunningService
) -> None:
    role = roles.create(password="old")
    words = (
        "share",
        "-f",
        "Password=gen:password",
        "--also-to",
        f"postgres-role:{role}?mode=replace#p=Password",
    )
    done = user.sealpipe(*words, **roles.environ())
    assert done.code == 0, done
    assert roles.accepts(role, opened(service, done.out)["Password"])
    assert not roles.accepts(role, "old")


def test_a_submission_becomes_a_password_once(roles: Roles, job: Job) -> None:
    """A second machine finds the marker, and leaves alone what was changed since."""
    role, request = roles.create(), asked_at_once(job)
    given = request.answer()
    job.terminal.environ |= roles.environ()
    target = f"postgres-role:{role}#staging_password"
    assert "\tstored\n" in request.stores(target).out
    assert roles.accepts(role, given.password)
    roles.set(role, "changed since")
    assert (
        "already there"
        in request.stores(target, SEALPIPE_STATE_DIR=str(job.state.parent / "another")).out
    )
    assert roles.accepts(role, "changed since")


def test_neither_password_shows_in_any_place(roles: Roles, job: Job) -> None:
    """Not in what is sent to PostgreSQL either: both logins are SCRAM, and what is set is a
    verifier.
    """
    role, request = roles.create(), asked_at_once(job)
    given = request.answer()
    job.terminal.environ |= roles.environ()
    target = f"postgres-role:{role}?mode=replace#staging_password"
    for words in ([], ["--output", "json"], ["--debug"]):
        seen = watch(job.terminal, [*SEALPIPE, *request.words(target), *words])
        assert seen.done.code == 0, seen.done
        detector = Detector(
            {"new": given.password.encode(), "of the administrator": ADMIN_PASSWORD.encode()}
        )
        assert {
            found for name, data in seen.places() for found in detector.find(data, name)
        } == set()
        assert seen.executed == []
        roles.set(role, "other")
        roles.run("COMMENT ON ROLE {} IS NULL", role)


@pytest.fixture
def failures(roles: Roles, user: Terminal, tmp_path: Path) -> Iterator[dict[str, Failure]]:
    """libpq knows no proxy: in its place stands a role that may not log in."""
    authority = trustme.CA()
    roles.offer_tls(authority)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    role, locked, at = roles.create(), roles.create(rights="NOLOGIN"), roles.environ()
    expired = roles.create(
        rights="LOGIN SUPERUSER VALID UNTIL '2020-01-01'", password=ADMIN_PASSWORD
    )
    target = f"postgres-role:{role}"
    with ExitStack() as stack:
        silent = FaultyServer("silent")
        stack.callback(silent.stop)
        yield {
            "wrong path": Failure("postgres-role:nobody", at),
            "denied": Failure("postgres-role:admin?mode=replace", roles.environ("deputy")),
            "expired login": Failure(target, roles.environ(expired)),
            "unreachable": Failure(
                target, {**at, "PGHOST": "127.0.0.1", "PGPORT": str(silent_port())}
            ),
            "timeout": Failure(
                target,
                {
                    **at,
                    "PGHOST": "127.0.0.1",
                    "PGPORT": silent.url.rpartition(":")[2],
                    "PGCONNECT_TIMEOUT": "2",
                },
            ),
            "missing library": Failure(target, {**at, **without(user, "psycopg", "psycopg")}),
            "wrong database": Failure(target, {**at, "PGDATABASE": "nowhere"}),
            "no login": Failure(f"postgres-role:{locked}", at),
            "unknown CA": Failure(target, {**at, "PGHOST": THERE}),
        }


def test_nine_failures_are_told_apart(
    failures: dict[str, Failure], user: Terminal, service: RunningService
) -> None:
    user.environ["DB_PASSWORD"] = "canary-5d0c9b"

    def words(target: str) -> tuple[str, ...]:
        return "share", "-f", "env:DB_PASSWORD", "--also-to", target, "--deadline", "5s"

    assert_told_apart(
        failures, user, service, secrets={ADMIN_PASSWORD, "canary-5d0c9b"}, words=words
    )
