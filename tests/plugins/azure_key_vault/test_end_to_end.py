"""A secret of a vault's in a recipient's hands, and a submitter's in a vault, each by one command and Azure's names."""

from __future__ import annotations

import json
import secrets
from pathlib import Path

import pytest

from plugins.azure_key_vault.fake_key_vault import SECRET, TOKEN, VAULT, FakeKeyVault
from sealpipe_rehearsal.running_service import RunningService
from support.commands import SEALPIPE
from support.job import Job
from support.leaks import Detector
from support.storing import asked_at_once
from support.strace import watch
from support.terminal import Terminal, opened

PASSWORD = f"canary-{secrets.token_hex(12)}"
FIELD = f"Password=azure-kv:{VAULT}/db#password"


@pytest.fixture(autouse=True)
def _stored(azure: FakeKeyVault) -> None:
    azure.hold("db", json.dumps({"password": PASSWORD}))


def test_one_command_hands_a_secret_over(behind: dict[str, str], user: Terminal, service: RunningService) -> None:
    done = user.sealpipe("share", "-f", FIELD, **behind)
    assert done.code == 0, done
    assert opened(service, done.out) == {"Password": PASSWORD}


def test_what_somebody_submits_is_stored_once(
    behind: dict[str, str], azure: FakeKeyVault, service: RunningService, tmp_path: Path
) -> None:
    request = asked_at_once(Job(tmp_path / "job", service))
    given = request.answer()
    for _ in range(2):
        request.stores(f"azure-kv:{VAULT}/vendor#password=Staging password,user=User name", **behind)
    assert json.loads(azure.newest("vendor")) == {"password": given.password, "user": given.user}
    assert len(azure.secrets["vendor"].versions) == 1


@pytest.mark.parametrize("name", ["db", "nothing"])
def test_no_login_and_no_value_shows_in_any_place(name: str, behind: dict[str, str], user: Terminal) -> None:
    words = [*SEALPIPE, "share", "-f", f"Password=azure-kv:{VAULT}/{name}#password", "--output", "json"]
    seen = watch(user, words, environ=behind)
    assert seen.done.code == (0 if name == "db" else 14), seen.done
    needles = {"value": PASSWORD, "token": TOKEN, "secret": SECRET}
    detector = Detector({each: value.encode() for each, value in needles.items()})
    assert {leak for where, data in seen.places() for leak in detector.find(data, where)} == set()
