"""A secret of a store's in a recipient's hands, and a submitter's in the store, each by one
command; and where value and login show on the way.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import pytest

from sealpipe_rehearsal.running_service import RunningService
from support.commands import SEALPIPE
from support.job import Job
from support.leaks import sides
from support.storing import another_machine, asked_at_once
from support.strace import watch
from support.terminal import Terminal, opened

VALUE = f"canary-{secrets.token_hex(12)}"
"""What stands in the store."""


class HandOver:
    """Subclass it with a fixture `login`, the environment, in which `reference` gives `VALUE`.

    A value or a login that goes over TLS is seen in no place, else only at `port` of this machine.
    """

    reference: ClassVar[str]
    missing: ClassVar[str]
    target: ClassVar[str]
    """Of a submission: its `staging_password` and its `user`."""
    port: int = 0
    read_there: ClassVar[frozenset[str]] = frozenset()
    """Which secrets the server sees of a read; of a write at least `stored_there`."""
    stored_there: ClassVar[frozenset[str]] = frozenset()

    def secrets(self, login: Mapping[str, str]) -> Mapping[str, str]:
        """The secrets of the login, and those that it gets."""
        raise NotImplementedError

    def held(self) -> tuple[Mapping[str, str], object]:
        """The values at the target, by `password` and `user`; and what another write changes."""
        raise NotImplementedError

    def test_one_command_hands_a_secret_over(
        self, login: Mapping[str, str], user: Terminal, service: RunningService
    ) -> None:
        done = user.sealpipe("share", "-f", f"Password={self.reference}", **login)
        assert done.code == 0, done
        assert opened(service, done.out) == {"Password": VALUE}

    def test_a_submission_is_stored_once_on_every_machine(
        self, login: Mapping[str, str], service: RunningService, tmp_path: Path
    ) -> None:
        request = asked_at_once(Job(tmp_path / "job", service))
        given = request.answer()
        request.stores(self.target, **login)
        values, written = self.held()
        assert values == {"password": given.password, "user": given.user}
        request.stores(self.target, **login, **another_machine(request.job))
        assert self.held() == (values, written)

    @pytest.mark.parametrize("is_there", [True, False])
    def test_reading_shows_value_and_login_to_the_store_alone(
        self, login: Mapping[str, str], user: Terminal, *, is_there: bool
    ) -> None:
        reference = self.reference if is_there else self.missing
        words = ["share", "-f", f"Password={reference}", "--output", "json", "--debug"]
        seen = watch(user, [*SEALPIPE, *words], environ=login)
        assert seen.done.code == (0 if is_there else 14), seen.done
        hidden = {"value": VALUE, **self.secrets(login)}
        assert sides(seen.places(), self.port, hidden) == (self.read_there, set())
        assert seen.executed == []

    def test_storing_shows_value_and_login_to_the_store_alone(
        self, login: Mapping[str, str], service: RunningService, tmp_path: Path
    ) -> None:
        job = Job(tmp_path / "job", service)
        job.terminal.environ |= login
        request = asked_at_once(job)
        given = request.answer()
        seen = watch(job.terminal, [*SEALPIPE, *request.words(self.target), "--debug"])
        assert seen.done.code == 0, seen.done
        hidden = {"value": given.password, **self.secrets(login)}
        there, elsewhere = sides(seen.places(), self.port, hidden)
        assert (there >= self.stored_there, elsewhere) == (True, set())
        assert seen.executed == []
