"""Request, answer, collect into the real OpenBao, and read back with the vendor's own client."""

from __future__ import annotations

import secrets

import pytest

from support.fake_web import FrontDoor, drop
from support.job import Job
from support.openbao import Bao, InVault
from support.storing import Asked, Given, Into, asked, asked_at_once


@pytest.fixture
def request_(job: Job, into: Into) -> Asked:
    """A request of a job that is logged in at OpenBao."""
    into("vault")
    return asked_at_once(job)


def marker(code: str, done_json: object) -> str:
    """The name of a submission in places, from a command's result."""
    (name,) = {row["submission"] for row in done_json["stored"]}  # type: ignore[index]
    # One code in 32 begins with a sign that no name begins with.
    assert name.startswith("x." if code[0] in "-_" else f"{code}.")
    return str(name)


def test_the_vendors_credentials_reach_vault_without_copying(
    job: Job, into: Into, vault: InVault, group: str
) -> None:
    into("vault")
    request = asked(job)
    given = request.answer()
    targets = [f"vault:secret/{group}#password=Staging password", f"vault:secret/{group}#user"]
    done = request.stores(*targets, more=("--after", "expire", "--output", "json"))
    assert vault.there(group) == given.values()
    assert vault.writes(group) == 1, "two targets of one place are one write"
    assert vault.marks(group) == [marker(given.code, done.json)]
    assert request.is_over()
    assert job.run("share", "-f", f"Password=vault:secret/{group}#password").code == 0, (
        "the source reads it there"
    )


def test_a_submission_is_marked_by_the_same_name_everywhere(
    request_: Asked, vault: InVault, group: str
) -> None:
    given = request_.answer()
    done = request_.stores(*vault.each(group), more=("--output", "json", "--pick", "each"))
    assert vault.names(group) == [marker(given.code, done.json)]
    assert vault.marks(f"{group}/{vault.names(group)[0]}") == vault.names(group)


def test_merged_into_what_is_there_the_keys_of_others_stay(
    request_: Asked, vault: InVault, bao: Bao, group: str
) -> None:
    bao.call("POST", f"secret/data/{group}", {"data": {"host": "db.example", "password": "old"}})
    given = request_.answer()
    request_.stores(*vault.single(group), code=14)
    request_.stores(*vault.single(group), more=("--mode", "merge"))
    assert vault.there(group) == {"host": b"db.example", **given.values()}
    assert vault.writes(group) == 2


def test_an_engine_without_versions_takes_it_too(request_: Asked, bao: Bao, group: str) -> None:
    given = request_.answer()
    target = f"vault:kv1/{group}#password=staging_password,user"
    request_.stores(target)
    assert bao.call("GET", f"kv1/{group}") == {
        key: value.decode() for key, value in given.values().items()
    }
    assert request_.stores(target).out.endswith("already there\n")


def test_several_requests_each_into_a_place_of_its_own(
    job: Job, into: Into, vault: InVault, group: str
) -> None:
    into("vault")
    requests = [asked_at_once(job, f"{number}.json") for number in range(3)]
    given = {request.code: request.answer() for request in requests}
    words = [str(request.receipt) for request in requests]
    target = f"vault:secret/{group}/{{request}}#password=staging_password,user"
    done = job.run("collect", *words, "--to", target, "--after", "expire")
    assert done.code == 0, done
    assert {code: vault.there(f"{group}/{code}") for code in vault.names(group)} == {
        # A code that is no plain name stands there by its digest.
        name: given[code].values()
        for code, name in zip(
            given,
            [line.split("\t")[2].rpartition("/")[2] for line in done.out.splitlines()],
            strict=True,
        )
    }
    assert all(request.is_over() for request in requests)


def test_a_key_pair_whose_seed_is_in_vault_opens_what_came(
    job: Job, into: Into, vault: InVault, group: str
) -> None:
    into("vault")
    seed = f"vault:secret/{group}-seed#seed"
    made = job.run(
        "request", "-a", "Staging password", "-a", "user=User name:text", "--key", "new",
        "--seed-to", seed, "--receipt", "new.json", "--output", "json",
    )  # fmt: skip
    assert made.code == 0, made
    request = Asked(
        job, made.json["short_code"], made.json["collect_link"], job.terminal.here / "new.json"
    )
    given = request.answer()
    request.stores(*vault.single(group), more=("--key", seed))
    assert vault.there(group) == given.values()


@pytest.fixture
def front(bao: Bao) -> FrontDoor:
    """What stands between the command and OpenBao."""
    return FrontDoor(bao.addr)


def hard(request: Asked) -> Given:
    """Somebody types what a shell, JSON, a terminal and a CI's log would each take for something
    else.
    """
    password = (
        f'pw- "\\$(id)`\r\n::add-mask::x\n%0A\x1b[31m\u202e\u20ac\U0001f511{secrets.token_hex(8)}'
    )
    given = {"Staging password": password, "User name": "{{ .Data }}"}
    return Given(
        request.job.service.submitter().submit(request.link, given), password, "{{ .Data }}"
    )


def test_what_was_typed_is_stored_exactly(request_: Asked, vault: InVault, group: str) -> None:
    given = hard(request_)
    request_.stores(*vault.single(group))
    assert vault.there(group) == given.values()


def test_a_dry_run_asks_vault_nothing(
    request_: Asked, vault: InVault, front: FrontDoor, group: str
) -> None:
    request_.answer()
    with front:
        done = request_.stores(*vault.single(group), more=("--dry-run",), VAULT_ADDR=front.base_url)
    assert front.asked == []
    assert f"would store secret/{group} in Vault at" in done.out
    assert "(password, user)" in done.out


def test_while_vault_is_away_nothing_is_lost_or_ended_and_the_next_run_stores_it(
    request_: Asked, vault: InVault, front: FrontDoor, group: str
) -> None:
    given = request_.answer()
    front.rule = lambda _: drop
    with front:
        done = request_.stores(
            *vault.single(group), more=("--after", "expire"), code=14, VAULT_ADDR=front.base_url
        )
        assert "kept the ciphertext in" in done.err
        assert (request_.is_over(), request_.deletes()) == (False, 0)
        front.rule = lambda _: None
        request_.stores(*vault.single(group), more=("--after", "expire"), VAULT_ADDR=front.base_url)
    assert vault.there(group) == given.values()
    assert (request_.is_over(), request_.deletes()) == (True, 1)


def test_one_place_that_refuses_keeps_the_request_alive_and_the_others_get_theirs(
    request_: Asked, vault: InVault, bao: Bao, group: str
) -> None:
    bao.call("POST", f"secret/data/{group}-taken", {"data": {"password": "somebody's"}})
    given = request_.answer()
    targets = [*vault.single(f"{group}-taken"), *vault.single(group)]
    done = request_.stores(*targets, more=("--after", "expire"), code=14)
    assert f"vault:secret/{group}\tstored" in done.out
    assert vault.there(group) == given.values()
    assert vault.there(f"{group}-taken") == {"password": b"somebody's"}
    assert (request_.is_over(), request_.deletes()) == (False, 0)
