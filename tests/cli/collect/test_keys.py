"""What opens a request: the credential, the one before it, a seed, a link; and how a key that is
not ours stops.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.collect.submitter import Asked, ask, on, values
from sealpipe import Client, Secret, UsageError
from sealpipe.collect.open import key_pair
from sealpipe.errors import PublicKeyMismatchError, WrongKeyError
from sealpipe.wire import keys, link
from sealpipe.wire.encoding import encode_base64url
from support.faults import rewrites
from support.job import PAIR, Caller, Job, Proxied, deletes

SEED = encode_base64url(bytes(PAIR.seed))
FRAGMENT = link.encode_fragment(bytes(PAIR.seed))
OTHER = encode_base64url(keys.from_seed(bytes(32)).public_key)
FORMS = {
    "a seed": SEED,
    "a seed in hex, as the vendor's SDK has it stored": bytes(PAIR.seed).hex() + "\n",
    "a seed in capital hex": bytes(PAIR.seed).hex().upper(),
    "a seed and a newline": SEED + "\n",
    "a fragment": FRAGMENT,
    "a fragment behind #": "#" + FRAGMENT,
    "an access link": f"https://links.example/r/code#{FRAGMENT}",
}


@pytest.fixture
def ours(job: Job) -> Asked:
    """A request under a key pair of ours, answered."""
    asked = ask(job, key=PAIR)
    asked.answer()
    return asked


def test_the_key_pair_itself_opens_it(call: Caller, ours: Asked) -> None:
    assert values(call("collect", ours.code, key=PAIR)) == [["hunter2", "bob"]]


@pytest.mark.parametrize("form", FORMS)
def test_a_seed_in_any_of_its_forms_opens_it(
    call: Caller, ours: Asked, form: str, tmp_path: Path
) -> None:
    file = tmp_path / "seed"
    file.write_text(FORMS[form])
    file.chmod(0o600)
    for key in (Secret(FORMS[form]), f"file:{file}"):
        assert values(call("collect", ours.code, key=key)) == [["hunter2", "bob"]]


def test_a_credential_by_reference_opens_what_was_sealed_to_it(
    call: Caller, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ask(job)
    asked.answer()
    monkeypatch.setenv("OLD_KEY", job.api_key)
    other = dataclasses.replace(call, api_key=job.service.create_key(account=job.account).reveal())
    assert values(other("collect", asked.code, key="env:OLD_KEY")) == [["hunter2", "bob"]]


def test_the_previous_credential_opens_what_was_sealed_to_it_and_is_never_sent(job: Job) -> None:
    asked = ask(job)
    asked.answer()
    new = job.service.create_key(account=job.account)
    with Client(
        api_key=new,
        base_url=job.service.base_url,
        link_base_url=job.service.link_base_url,
        api_key_previous=job.api_key,
    ) as client:
        before = len(job.service.seen())
        assert values(client.collect(asked.code)) == [["hunter2", "bob"]]
    told = [value for seen in job.service.seen()[before:] for _, value in seen.headers]
    assert any(new.reveal().split(".")[1] in value for value in told)
    assert not any(job.api_key.split(".")[1] in value for value in told)


def test_a_receipt_finds_its_own_seed(call: Caller, job: Job, tmp_path: Path) -> None:
    asked = ask(job, key="new", seed_to=f"file:{tmp_path}/seed")
    asked.answer()
    assert values(call("collect", asked.receipt)) == [["hunter2", "bob"]]
    with pytest.raises(WrongKeyError) as caught:
        call("collect", asked.code)
    assert caught.value.exit_code == 13


def test_a_receipt_whose_seed_is_gone_fails_alone(call: Caller, job: Job, tmp_path: Path) -> None:
    lost, fine = ask(job, key="new", seed_to=f"file:{tmp_path}/seed"), ask(job)
    lost.answer()
    fine.answer()
    (tmp_path / "seed").unlink()
    for receipts in ([lost.receipt, fine.receipt], [fine.receipt, lost.receipt]):
        results = {each.short_code: each for each in call("collect_each", receipts)}
        failed = results[lost.code]
        assert (failed.status, failed.problem().exit_code, failed.skipped) == ("failed", 14, 0)
        assert values(results[fine.code]) == [["hunter2", "bob"]]


@pytest.mark.parametrize("by_receipt", [False, True])
def test_another_key_than_those_in_hand_is_13_and_nothing_is_read(
    call: Caller, job: Job, ours: Asked, *, by_receipt: bool
) -> None:
    with pytest.raises(WrongKeyError, match="key") as caught:
        call("collect", ours.receipt if by_receipt else ours.code)
    assert caught.value.exit_code == 13
    assert not any(seen.target.endswith(f"{ours.code}/submissions") for seen in job.service.seen())


@pytest.mark.parametrize("by_receipt", [False, True])
def test_a_key_that_the_service_swapped_stops_and_the_ciphertext_is_kept(
    call_at: Any, proxied: Proxied, job: Job, tmp_path: Path, *, by_receipt: bool
) -> None:
    asked = ask(job)
    asked.answer()
    server = proxied(then=on(asked.code, rewrites(public_key=OTHER)))
    with pytest.raises(PublicKeyMismatchError if by_receipt else WrongKeyError) as caught:
        call_at(server.base_url)(
            "collect",
            asked.receipt if by_receipt else asked.code,
            to=[
                f"file:{tmp_path}/pw#staging_password"
                if by_receipt
                else f"file:{tmp_path}/pw#Staging password"
            ],
            after="expire",
            state=tmp_path / "state",
        )
    assert caught.value.exit_code == (12 if by_receipt else 13)
    assert not (tmp_path / "pw").exists()
    assert deletes(server) == 0
    if by_receipt:
        assert caught.value.collected.kept_in.is_file()
        assert '"data"' in caught.value.collected.kept_in.read_text()


@pytest.mark.parametrize(
    "members", [{"public_key": None}, {"public_key": ...}], ids=["null", "absent"]
)
@pytest.mark.parametrize("ended", [False, True])
def test_a_missing_public_key_does_not_stop(
    call_at: Any, proxied: Proxied, job: Job, members: dict[str, Any], *, ended: bool
) -> None:
    asked = ask(job)
    asked.answer()
    if ended:
        asked.end()
    server = proxied(then=on(asked.code, rewrites(**members)))
    assert values(call_at(server.base_url)("collect", asked.receipt)) == [["hunter2", "bob"]]


def test_an_expired_request_is_still_read(call: Caller, job: Job) -> None:
    asked = ask(job)
    asked.answer()
    asked.end()
    assert values(call("collect", asked.code)) == [["hunter2", "bob"]]


def test_without_a_custody_secret_the_own_key_has_to_be_named(
    call: Caller, ours: Asked, job: Job
) -> None:
    two_parts = dataclasses.replace(call, api_key=job.api_key.rpartition(".")[0])
    assert values(two_parts("collect", ours.code, key=Secret(SEED))) == [["hunter2", "bob"]]
    with pytest.raises(UsageError, match="no custody secret"):
        two_parts("collect", ours.code)


@given(st.text(max_size=60))
def test_what_is_no_key_is_refused_with_the_same_words_whatever_it_is(text: str) -> None:
    told = refusal(text)
    if "_sk_live_" in text:  # a credential's refusal says what is wrong with it
        part = max(text.split("_sk_live_"), key=len)
        assert len(part) < 6 or part not in (told or "")
    else:
        assert told in (refusal("junk"), None)  # None: what hypothesis drew happens to be a seed


def refusal(text: str) -> str | None:
    try:
        key_pair(Secret(text), "svc")
    except UsageError as error:
        return f"{error.message} {error.remedy}"
    return None


def test_junk_is_no_key() -> None:
    assert "43 characters" in str(refusal("junk"))
