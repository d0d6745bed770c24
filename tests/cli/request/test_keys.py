"""Whose key a request is sealed to: the credential's, a fresh one whose seed is put away first, or
a pair of yours.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.request.seen import (
    ANSWERS,
    ASK,
    answer,
    codes,
    creates,
    custody_seeds,
    lost,
    nothing_shown,
    read,
    swaps,
)  # fmt: skip
from sealpipe.state import receipt as receipts
from sealpipe.wire import keys
from sealpipe.wire.encoding import decode_base64url, encode_base64url
from support import fake_github
from support.distributions import Site
from support.fake_github import FakeGitHub
from support.faults import envelope, rewrites, unauthorized
from support.faulty import Exchange, Faulty, passes
from support.job import PAIR, Caller, Job
from support.openbao import Bao
from support.terminal import Done

NEW = (*ASK, "--key", "new", "--seed-to")


def pair_of(seed: str) -> keys.KeyPair:
    return keys.from_seed(decode_base64url(seed))


def in_vault(bao: Bao) -> dict[str, str]:
    return {"VAULT_ADDR": bao.addr, "VAULT_TOKEN": bao.root}


def place() -> str:
    """Where in the vault nothing is yet."""
    return f"requests/{secrets.token_hex(6)}"


# -- the credential's ---------------------------------------------------------------------------


def test_a_credential_of_two_parts_is_refused_with_what_to_do(job: Job) -> None:
    before = len(job.service.seen())
    done = job.run(*ASK, SEALPIPE_API_KEY=job.api_key.rpartition(".")[0])
    assert (done.code, done.out, len(job.service.seen())) == (2, "", before)
    assert "the credential has no custody secret" in done.err
    assert "--key new with --seed-to" in done.err


def test_with_two_parts_a_fresh_key_does(job: Job) -> None:
    done = job.run(*NEW, "file:seed", SEALPIPE_API_KEY=job.api_key.rpartition(".")[0])
    assert done.code == 0, done
    answer(job, done.out)
    assert read(job, codes(job)[0], pair_of((job.terminal.here / "seed").read_text())) == [ANSWERS]


@pytest.mark.parametrize(
    "words", [[], ["--key", "new", "--seed-to", "file:seed"], ["--output", "json"]], ids=str
)
def test_the_custody_seed_is_never_shown(job: Job, words: list[str]) -> None:
    done = job.run(*ASK, *words, "--receipt", "r.json")
    assert done.code == 0
    nothing_shown(done, *custody_seeds(job.api_key))
    texts = "".join(file.read_text() for file in job.terminal.here.iterdir())
    assert [seed for seed in custody_seeds(job.api_key) if seed in texts] == []
    sent = "".join(repr(seen) for seen in job.service.seen())
    assert [seed for seed in custody_seeds(job.api_key) if seed in sent] == []


# -- a fresh one --------------------------------------------------------------------------------


def test_its_seed_is_in_a_file_before_the_request_is_made_and_opens_it(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    there: list[str] = []

    def looks(exchange: Exchange) -> None:
        there.append((job.terminal.here / "seed").read_text())
        passes(exchange)

    server = proxied(then=looks)
    job = job_at(server)
    done = job.run(*NEW, "file:seed", "--receipt", "r.json")
    seed = (job.terminal.here / "seed").read_text()
    assert (done.code, there) == (0, [seed])
    assert "the seed of its key is file:seed" in done.err
    nothing_shown(done, seed)
    (body,) = creates(server.received())
    assert body["public_key"] == encode_base64url(pair_of(seed).public_key)
    found = receipts.read_receipt(job.terminal.here / "r.json")
    assert (found.key, found.seed, found.public_key) == ("new", "file:seed", body["public_key"])
    assert seed not in (job.terminal.here / "r.json").read_text()
    answer(job, done.out)
    assert read(job, codes(job)[0], pair_of(seed)) == [ANSWERS]
    # The receipt is all that `collect` needs beside the place of the seed.
    told = job.run("collect", "r.json", "--output", "json").json
    assert {field["key"]: field["value"] for field in told["submissions"][0]["fields"]} == ANSWERS


def test_every_request_has_a_key_of_its_own(job: Job) -> None:
    for number in range(3):
        assert job.run(*NEW, f"file:seed-{number}").code == 0
    seeds = {(job.terminal.here / f"seed-{number}").read_text() for number in range(3)}
    assert len(seeds) == 3


@pytest.mark.parametrize("beside", [{}, {"user": "app"}], ids=["a new secret", "beside other keys"])
def test_its_seed_goes_to_the_vault_under_a_key(job: Job, bao: Bao, beside: dict[str, str]) -> None:
    where = place()
    if beside:
        bao.call("POST", f"secret/data/{where}", {"data": beside})
    mode = "?mode=merge" if beside else ""
    done = job.run(*NEW, f"vault:secret/{where}{mode}#seed", "--receipt", "r.json", **in_vault(bao))
    assert done.code == 0, done
    found = bao.call("GET", f"secret/data/{where}")["data"]
    assert found == {**beside, "seed": found["seed"]}
    assert receipts.read_receipt(job.terminal.here / "r.json").seed == f"vault:secret/{where}#seed"
    nothing_shown(done, found["seed"])
    answer(job, done.out)
    assert read(job, codes(job)[0], pair_of(found["seed"])) == [ANSWERS]
    told = job.run("collect", "r.json", "--output", "json", **in_vault(bao)).json
    assert {field["key"]: field["value"] for field in told["submissions"][0]["fields"]} == ANSWERS


def stops(job: Job, code: int, *words: str, **environ: str) -> Done:
    """It ends with that code before anything is sent, and nothing is left."""
    before = len(job.service.seen())
    done = job.run(*words, **environ)
    assert (done.code, done.out, len(job.service.seen()), job.left()) == (code, "", before, []), (
        done
    )
    return done


def test_a_seed_is_never_overwritten_in_a_file(job: Job) -> None:
    assert job.run(*NEW, "file:seed").code == 0
    seed, made = (job.terminal.here / "seed").read_text(), codes(job)
    done = job.run(*NEW, "file:seed")
    assert (done.code, done.out) == (14, "")
    assert ((job.terminal.here / "seed").read_text(), codes(job)) == (seed, made)


def test_a_seed_is_never_overwritten_in_the_vault(job: Job, bao: Bao) -> None:
    where = place()
    bao.call("POST", f"secret/data/{where}", {"data": {"seed": "older"}})
    stops(job, 14, *NEW, f"vault:secret/{where}#seed", **in_vault(bao))
    assert bao.call("GET", f"secret/data/{where}")["data"] == {"seed": "older"}


def test_a_place_that_may_not_be_written_stops_it(job: Job, bao: Bao) -> None:
    weak = {
        "VAULT_ADDR": bao.addr,
        "VAULT_TOKEN": bao.token(bao.policy("nothing", "secret/data/nothing")),
    }
    done = stops(job, 14, *NEW, f"vault:secret/{place()}#seed", **weak)
    assert "the token has no permission" in done.err


def test_a_map_wants_a_key_for_it(job: Job, bao: Bao) -> None:
    done = stops(job, 2, *NEW, f"vault:secret/{place()}", **in_vault(bao))
    assert "name the key to store it under: #" in done.err


def test_a_sink_that_cannot_be_read_back_is_refused(job: Job) -> None:
    with FakeGitHub() as hub:
        environ = {"GITHUB_TOKEN": fake_github.TOKEN, "GITHUB_API_URL": hub.base_url}
        done = stops(job, 2, *NEW, "github-secret:acme/app#SEED", **environ)
    assert hub.asked == []
    assert "cannot be read back, so the seed would be lost" in done.err


FORGETFUL = """
import os
from sealpipe.plugin import Document, Health, Locator, Sink, Source, WriteResult

FILE = "forgetful.txt"

class It(Sink, Source):
    def describe(self, locator, mode):
        return "keep something"
    def put(self, locator, fields, *, mode, marker):
        with open(FILE, "w") as file:
            file.write(fields[0].value.reveal())
        return WriteResult(locator)
    def fetch(self, locator):
        with open(FILE) as file:
            seed = file.read()
        return Document(("A" if seed[0] != "A" else "B") + seed[1:])
    def check(self):
        return Health("fine")
"""
HOOKS = """
from sealpipe.plugin import SinkInfo, SourceInfo, hookimpl

@hookimpl
def sealpipe_sources(register):
    register(SourceInfo("forgetful", "a test", "MODULE_it:It"))

@hookimpl
def sealpipe_sinks(register):
    register(SinkInfo("forgetful", "a test", "MODULE_it:It"))
"""


def test_a_place_that_gives_back_something_else_stops_it_before_anything_is_sent(
    job: Job, tmp_path: Path
) -> None:
    site = Site(tmp_path / "site")
    site.install("forgetful", HOOKS, FORGETFUL)
    done = stops(job, 14, *NEW, "forgetful:x", PYTHONPATH=site.path)
    assert (
        "forgetful:x does not return the seed that was stored there; no request was created"
        in done.err
    )
    seed = (job.terminal.here / "forgetful.txt").read_text()
    assert len(decode_base64url(seed)) == 32
    nothing_shown(done, seed, seed[:-1])


def test_a_stored_seed_without_a_request_is_reported(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    job = job_at(proxied(then=envelope(403, 61)))
    done = job.run(*NEW, "file:seed")
    assert (done.code, job.entries()) == (4, [])
    assert (
        "a seed was stored in file:seed, and nothing is sealed to its key: remove it there"
        in done.err
    )


# -- one of the caller's ------------------------------------------------------------------------


def test_a_key_pair_of_the_callers_is_used_as_it_is(job: Job, call: Caller) -> None:
    made = call("request", ["Staging password", "user=User name:text"], key=PAIR)
    assert (made.key, made.public_key, made.seed) == (
        "given",
        encode_base64url(PAIR.public_key),
        None,
    )
    assert made.access_link is None
    answer(job, made.collect_link)
    assert read(job, made.short_code, PAIR) == [ANSWERS]
    assert made.receipt.key == "given"


# -- the echo -----------------------------------------------------------------------------------

OTHER = encode_base64url(keys.from_seed(bytes(32)).public_key)


@pytest.mark.parametrize(
    "words",
    [(), ("--key", "new", "--seed-to", "file:seed"), ("--send", "file:link.txt")],
    ids=["credential", "new", "sent"],
)
def test_a_swapped_key_is_not_retried_and_its_link_not_sent(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job], words: tuple[str, ...]
) -> None:
    server = proxied(then=swaps(public_key=OTHER))
    job = job_at(server)
    done = job.run(*ASK, *words, "--receipt", "r.json")
    (code,) = codes(job)
    assert (done.code, done.out, job.left()) == (12, "", []), done
    assert f"sealpipe requests expire -- {code}" in done.err
    assert "/r/" not in done.err
    assert len(server.received()) == 1
    assert not {"r.json", "link.txt"} & {file.name for file in job.terminal.here.iterdir()}
    if "new" in words:
        assert "a seed was stored in file:seed" in done.err


def test_as_json_the_swap_has_its_name(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    job = job_at(proxied(then=swaps(public_key=OTHER)))
    error = job.run(*ASK, "--output", "json").error
    assert (error["type"], error["exit_code"]) == ("PublicKeyMismatchError", 12)
    assert "outbox_id" not in error


def test_a_swap_on_resume_ends_the_entry(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    server = proxied(lost(), then=unauthorized)
    job = job_at(server)
    assert job.run(*ASK).code == 9
    server.plan(then=swaps(public_key=OTHER))
    done = job.resume()
    assert (done.code, done.out, job.left()) == (12, "", [])


@pytest.mark.parametrize("echo", [..., None])
def test_a_missing_echo_is_let_pass(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job], echo: object
) -> None:
    """An idempotency key stands for one body, byte for byte, and so for one public key."""
    job = job_at(proxied(then=rewrites(public_key=echo)))
    done = job.run(*ASK, "--output", "json")
    assert (done.code, json.loads(done.out)["key"]) == (0, "credential")


@pytest.mark.parametrize("code", ["", ".", "..", "a\x1b[2J", 7, None])
def test_a_code_that_is_none_is_refused_and_the_entry_kept(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job], code: object
) -> None:
    job = job_at(proxied(then=swaps(short_code=code)))
    done = job.run(*ASK, "--deadline", "30s")
    assert (done.code, done.out, len(job.entries())) == (12, "", 1)
    assert "\x1b" not in done.err
