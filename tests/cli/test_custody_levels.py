"""A key without custody: what its first refusal taught is remembered, so that the next share makes
one POST.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from sealpipe import Client
from sealpipe.api.account import Capabilities
from sealpipe.minting import mint
from sealpipe.state.custody import REMEMBERED, CustodyLevels
from sealpipe_rehearsal import control_client
from sealpipe_rehearsal.running_service import RunningService
from support.faulty import Faulty
from support.terminal import Terminal, created, opened

SHARE = ("share", "-f", "text:x")
WARNING = (
    "the key has no custody level: the share was made without a wrap, only its link can open it"
)


@pytest.fixture
def none(bare: Terminal, service: RunningService) -> Terminal:
    """A terminal with a full credential, of a key without custody."""
    return bare.at(service, custody="none")


def wraps(service: RunningService) -> list[bool]:
    """For each create that was sent, whether it had a wrap."""
    return ["item_key_wrap" in body for body in created(service)]


def memory(user: Terminal) -> list[Path]:
    return list((user.home / ".local/state/sealpipe/custody").glob("*"))


def test_the_second_share_makes_one_post(none: Terminal, service: RunningService) -> None:
    first, second = none.sealpipe(*SHARE), none.sealpipe(*SHARE)
    assert wraps(service) == [True, False, False]
    for done in (first, second):
        assert f"sealpipe: {WARNING}" in done.err.splitlines()
        assert opened(service, done.out) == {"x": "x"}
    assert WARNING in none.sealpipe(*SHARE, "--dry-run").out
    (file,) = memory(none)
    assert file.stat().st_mode & 0o777 == 0o600
    _, auth, custody = none.environ["SEALPIPE_API_KEY"].split(".")
    assert not any(secret in file.read_text() for secret in (auth, custody))


def test_with_require_it_is_asked_each_time(none: Terminal, service: RunningService) -> None:
    codes = [none.sealpipe(*SHARE, "--custody", "require").code for _ in range(2)]
    assert (codes, wraps(service)) == ([5, 5], [True, True])
    none.sealpipe(*SHARE)
    assert wraps(service) == [True, True, False], "what it taught serves the others"


def test_another_key_and_another_address_are_asked(none: Terminal, service: RunningService) -> None:
    none.sealpipe(*SHARE)
    none.sealpipe(*SHARE, SEALPIPE_API_KEY=service.create_key().reveal())
    with Faulty(service.address) as elsewhere:
        none.sealpipe(*SHARE, SEALPIPE_BASE_URL=elsewhere.base_url)
    assert wraps(service) == [True, False, True, True, False]


def test_it_is_asked_again_after_an_hour(none: Terminal, service: RunningService) -> None:
    none.sealpipe(*SHARE)
    (file,) = memory(none)
    members = json.loads(file.read_text())
    for age, asked in ((REMEMBERED - 60, False), (REMEMBERED + 1, True), (-60, True)):
        file.write_text(json.dumps({**members, "taught_at": time.time() - age}))
        service.service.log.clear()
        none.sealpipe(*SHARE)
        assert wraps(service)[0] is asked


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"\xff", b'{"schema": 2}', b'{"schema":1,"base_url":1}', b"[" * 100_000],
)
def test_a_memory_that_cannot_be_read_is_none(
    none: Terminal, service: RunningService, content: bytes
) -> None:
    none.sealpipe(*SHARE)
    (file,) = memory(none)
    file.write_bytes(content)
    assert none.sealpipe(*SHARE).code == 0
    assert wraps(service) == [True, False, True, False]


@pytest.mark.parametrize("flaw", ["writable", "pipe", "huge"])
def test_what_others_can_write_takes_no_wrap(
    none: Terminal, service: RunningService, flaw: str
) -> None:
    none.sealpipe(*SHARE)
    (file,) = memory(none)
    if flaw == "pipe":
        file.unlink()
        os.mkfifo(file)
    elif flaw == "huge":
        file.write_text(json.dumps({**json.loads(file.read_text()), "taught_at": 10**400}))
    else:
        file.chmod(0o666)
    assert none.sealpipe(*SHARE).code == 0
    assert wraps(service) == [True, False, True, False]


def register(service: RunningService, user: Terminal) -> None:
    """Raise the key's level: the app registers a custody public key for it."""
    key_id = user.environ["SEALPIPE_API_KEY"].partition("_sk_live_")[2].partition(".")[0]
    members = {"custody_public_key": mint().custody_public_key}
    control_client.call_control_api(service.origin, "POST", f"/keys/{key_id}/custody", members)


def test_doctor_teaches_it_and_the_opposite(bare: Terminal, extended: RunningService) -> None:
    user = bare.at(extended, register=False)
    probe = False  # an empty body
    user.sealpipe("doctor")
    user.sealpipe(*SHARE)
    assert wraps(extended) == [probe, False]
    register(extended, user)
    user.sealpipe("doctor")
    user.sealpipe(*SHARE)
    assert (wraps(extended), memory(user)) == ([probe, False, probe, True], [])


def test_the_test_share_of_doctor_asks_whatever_was_taught(
    bare: Terminal, service: RunningService
) -> None:
    user = bare.at(service, register=False)
    user.sealpipe("doctor", "--roundtrip")
    user.sealpipe(*SHARE)
    register(service, user)
    user.sealpipe("doctor", "--roundtrip")
    user.sealpipe(*SHARE)
    probe = False  # an empty body
    assert wraps(service) == [probe, True, False, False, probe, True, True]


def test_a_client_remembers_it_in_memory(none: Terminal, service: RunningService) -> None:
    key, base_url, links = none.environ["SEALPIPE_API_KEY"], service.base_url, service.link_base_url
    with Client(api_key=key, base_url=base_url, link_base_url=links) as made:
        shares = [made.share(["text:x"]) for _ in range(2)]
    assert (wraps(service), [share.warnings for share in shares]) == (
        [True, False, False],
        [(WARNING,)] * 2,
    )
    assert memory(none) == []


def test_capabilities_teach_a_client(bare: Terminal, extended: RunningService) -> None:
    user = bare.at(extended, register=False)
    with Client(
        api_key=user.environ["SEALPIPE_API_KEY"],
        base_url=extended.base_url,
        link_base_url=extended.link_base_url,
    ) as client:
        client.get_capabilities()
        client.share(["text:x"])
        register(extended, user)
        client.get_capabilities()
        client.share(["text:x"])
    assert wraps(extended) == [False, True]


@pytest.mark.parametrize("level", [0, "0", "none", 1, 2, "self", None])
def test_what_a_service_says_of_the_level(level: object) -> None:
    key = {} if level is None else {"custody_level": level}
    told = Capabilities(None, key, {}, {}, {}).has_custody
    assert told is (None if level is None else level not in (0, "0", "none"))


def test_a_folder_that_cannot_be_written_costs_only_the_second_post(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    levels = CustodyLevels(lambda: tmp_path / "file" / "custody")
    levels.note("https://a/v1", "k", is_none=True)
    assert levels.is_none("https://a/v1", "k")
    assert not CustodyLevels(lambda: tmp_path / "file" / "custody").is_none("https://a/v1", "k")
