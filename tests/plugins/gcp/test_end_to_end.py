"""A secret of Google's in a recipient's hands, and a submitter's in Google's, each by one command."""

from __future__ import annotations

import json
import secrets
from pathlib import Path

import pytest

from plugins.gcp.fake_secret_manager import TOKEN, FakeSecretManager
from sealpipe_rehearsal.running_service import RunningService
from support.commands import SEALPIPE
from support.job import Job
from support.leaks import Detector
from support.storing import asked_at_once
from support.strace import watch
from support.terminal import Terminal, opened

PASSWORD = f"canary-{secrets.token_hex(12)}"
FIELD = "Password=gcp-sm:db#password"


@pytest.fixture(autouse=True)
def _stored(google: FakeSecretManager) -> None:
    google.hold("db", json.dumps({"password": PASSWORD}).encode())


def test_one_command_hands_a_secret_over(environ: dict[str, str], user: Terminal, service: RunningService) -> None:
    done = user.sealpipe("share", "-f", FIELD, **environ)
    assert done.code == 0, done
    assert opened(service, done.out) == {"Password": PASSWORD}


def test_what_somebody_submits_is_stored_once(
    environ: dict[str, str], google: FakeSecretManager, service: RunningService, tmp_path: Path
) -> None:
    request = asked_at_once(Job(tmp_path / "job", service))
    given = request.answer()
    request.stores("gcp-sm:acme#password=Staging password,user=User name", **environ)
    request.stores("gcp-sm:acme#password=Staging password,user=User name", **environ)
    assert json.loads(google.newest("acme")) == {"password": given.password, "user": given.user}
    assert len(google.secrets["acme"].versions) == 1


@pytest.mark.parametrize("name", ["db", "nothing"])
def test_no_login_and_no_value_shows_in_any_place(
    name: str, environ: dict[str, str], google: FakeSecretManager, user: Terminal
) -> None:
    words = [*SEALPIPE, "share", "-f", f"Password=gcp-sm:{name}#password", "--output", "json"]
    seen = watch(user, words, environ=environ)
    assert seen.done.code == (0 if name == "db" else 14), seen.done
    key = json.loads(Path(environ["GOOGLE_APPLICATION_CREDENTIALS"]).read_text())["private_key"]
    needles = {"value": PASSWORD, "token": f"{TOKEN}0", "key": key.splitlines()[1]}
    detector = Detector({name: value.encode() for name, value in needles.items()})
    address = f"127.0.0.1:{google.port}".encode()
    places = [(where, data, where.startswith("TCP") and address in data) for where, data in seen.places()]
    assert any(is_google for *_, is_google in places), "what went to Google was seen, too"
    leaks = {leak for where, data, is_google in places if not is_google for leak in detector.find(data, where)}
    assert leaks == set()
