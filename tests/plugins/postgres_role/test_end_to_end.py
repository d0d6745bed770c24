"""A password on its way into PostgreSQL by whole commands; nothing of it shows anywhere, not even
at the server.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import trustme

from sealpipe.errors import (
    AccessDeniedError,
    BackendAuthError,
    NotConfiguredError,
    SecretNotFoundError,
    UnavailableError,
    UnsupportedError,
)
from sealpipe.testing.contract import CANARY, FaultyServer
from sealpipe_rehearsal.running_service import RunningService
from support.commands import SEALPIPE
from support.failures import Row, Table
from support.job import Job
from support.leaks import Detector
from support.ports import silent_port
from support.roles import ADMIN_PASSWORD, THERE, Roles
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


def test_what_fails_is_told_apart(roles: Roles) -> None:
    """libpq knows no proxy: in its place stands a role that may not log in."""
    roles.offer_tls(trustme.CA())
    role, locked, at = roles.create(), roles.create(rights="NOLOGIN"), roles.environ()
    expired = roles.create(
        rights="LOGIN SUPERUSER VALID UNTIL '2020-01-01'", password=ADMIN_PASSWORD
    )
    there = {"PGHOST": "127.0.0.1", "PGCONNECT_TIMEOUT": "2"}
    silent = FaultyServer("silent")
    value = {"": CANARY}
    table = Table("postgres-role", role, at, secrets=(ADMIN_PASSWORD,))
    rows = {
        "no role": Row(SecretNotFoundError, "has no role nobody", "nobody", put=value),
        "denied": Row(
            AccessDeniedError, "", "admin", roles.environ("deputy"), put=value, mode="replace"
        ),
        "expired": Row(BackendAuthError, environ=roles.environ(expired), put=value),
        "unreachable": Row(
            UnavailableError, environ={**there, "PGPORT": str(silent_port())}, put=value
        ),
        "timeout": Row(
            UnavailableError,
            "connection timed out",
            environ={**there, "PGPORT": silent.url.rpartition(":")[2]},
            put=value,
        ),
        "no database": Row(NotConfiguredError, environ={"PGDATABASE": "nowhere"}, put=value),
        "no login": Row(UnsupportedError, "cannot log in", locked, put=value),
        "unknown CA": Row(
            NotConfiguredError,
            "from an authority that is not trusted here",
            environ={"PGHOST": THERE},
            put=value,
        ),
    }
    table.tell_apart(rows)
    silent.stop()
