"""github-secret: on a fake from GitHub's public documentation, which opens what is sealed to it;
PyGithub, which its users use, gets on with the same fake."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from github import Auth, Github

from plugins.github_gitlab.using import CANARY, Storing
from sealpipe.errors import (
    AccessDeniedError,
    BackendAuthError,
    NotConfiguredError,
    PluginError,
    ReferenceSyntaxError,
    ReferenceValueError,
    SecretNotFoundError,
    UnavailableError,
    UnknownOutcomeError,
    UnsupportedError,
    WriteConflictError,
)
from sealpipe.plugin import BLIND, Mode
from support import fake_github
from support.fake_github import FakeGitHub, Kept
from support.fake_web import Asked, FakeWeb, Reply, drop

REPO, ENVIRONMENT, ORGANISATION = ("acme", "app"), ("acme", "app", "production"), ("acme",)


@pytest.fixture
def using(hub: FakeGitHub) -> Storing:
    return at(hub.base_url)


def at(url: str) -> Storing:
    return Storing("github-secret", {"GITHUB_TOKEN": fake_github.TOKEN, "GITHUB_API_URL": url})


def calls(hub: FakeGitHub) -> list[str]:
    return [f"{asked.method} {asked.path.rpartition('/secrets/')[2]}" for asked in hub.asked]


class TestStoring:
    @pytest.mark.parametrize("place", [REPO, ENVIRONMENT, ORGANISATION])
    def test_a_secret_is_sealed_to_the_key_of_its_place(
        self, hub: FakeGitHub, using: Storing, place: tuple[str, ...]
    ) -> None:
        receipt = using.put("/".join(place), PW=CANARY)
        assert hub.vaults.places[place].opened == {"PW": CANARY.encode()}
        assert not any(kept.opened for each, kept in hub.vaults.places.items() if each != place)
        assert (receipt.known, receipt.already) == (False, False)
        assert receipt.version == hub.vaults.places[place].told["PW"]["updated_at"]
        assert calls(hub) == ["GET public-key", "GET PW", "PUT PW", "GET PW"]

    def test_the_value_is_never_sent_in_clear(self, hub: FakeGitHub, using: Storing) -> None:
        using.put("acme/app", PW=CANARY)
        assert CANARY.encode() not in b"".join(
            asked.body + asked.target.encode() for asked in hub.asked
        )

    def test_pygithub_stores_and_reads_in_the_same_fake(
        self, hub: FakeGitHub, using: Storing
    ) -> None:
        using.put("acme/app", PW=CANARY)
        api = Github(base_url=hub.base_url, auth=Auth.Token(fake_github.TOKEN), retry=None)
        repo = api.get_repo("acme/app")
        assert [secret.name for secret in repo.get_secrets()] == ["PW"]
        repo.create_secret("OTHER", "theirs")
        using.fails(WriteConflictError, "acme/app", other=CANARY)
        using.put("acme/app", "replace", other="ours")
        assert hub.vaults.places[REPO].opened["OTHER"] == b"ours"
        assert repo.get_secret("OTHER").updated_at >= repo.get_secret("PW").updated_at
        assert (
            api.get_organization("acme").get_public_key().key_id
            == hub.vaults.places[ORGANISATION].key_id
        )
        api.close()

    def test_an_environment_has_any_name_and_is_one_segment(
        self, hub: FakeGitHub, using: Storing
    ) -> None:
        using.put("acme/app/review/a b%3F%252F%23c", PW=CANARY)
        assert hub.vaults.places["acme", "app", "review/a b?%2F#c"].opened == {
            "PW": CANARY.encode()
        }
        assert (
            hub.asked[0].path
            == "/repos/acme/app/environments/review%2Fa%20b%3F%252F%23c/secrets/public-key"
        )

    def test_names_are_written_in_capitals(self, hub: FakeGitHub, using: Storing) -> None:
        using.put("acme/app", db_password=CANARY)
        assert list(hub.vaults.places[REPO].opened) == ["DB_PASSWORD"]

    @pytest.mark.parametrize(
        "value", ["two\nlines\n", "::add-mask::x\n<<EOF\nEOF\n", "\x1b]0;x\x07", "x" * 48 * 1024]
    )
    def test_a_hostile_value_is_stored_as_it_is(
        self, hub: FakeGitHub, using: Storing, value: str
    ) -> None:
        using.put("acme/app", PW=value)
        assert hub.vaults.places[REPO].opened["PW"] == value.encode()

    @pytest.mark.parametrize(
        "value", [b"a\0b", b"\xff\xfe", b"x" * (48 * 1024 + 1), "é" * 24 * 1024 + "x"]
    )
    def test_what_no_secret_can_be_is_refused_before_anything_is_asked(
        self, hub: FakeGitHub, using: Storing, value: str | bytes
    ) -> None:
        assert using.fails(UnsupportedError, "acme/app", PW=value).remedy
        assert hub.asked == []


class TestModes:
    def test_all_are_looked_at_before_one_is_written(self, hub: FakeGitHub, using: Storing) -> None:
        using.put("acme/app", B="there")
        error = using.fails(WriteConflictError, "acme/app", A=CANARY, B=CANARY)
        assert error.message.startswith("B of the repository acme/app exists already")
        assert list(hub.vaults.places[REPO].opened) == ["B"]

    @pytest.mark.parametrize("mode", ["replace", "merge"])
    def test_replacing_touches_no_other(self, hub: FakeGitHub, using: Storing, mode: Mode) -> None:
        using.put("acme/app", A="1", B="2")
        using.put("acme/app", mode, A="3")
        using.put("acme/app", mode, A="3")
        assert hub.vaults.places[REPO].opened == {"A": b"3", "B": b"2"}

    def test_a_secret_created_concurrently_is_reported(
        self, hub: FakeGitHub, using: Storing
    ) -> None:
        def meanwhile(fake: FakeWeb, asked: Asked) -> Reply:
            Github(base_url=hub.base_url, auth=Auth.Token(fake_github.TOKEN), retry=None).get_repo(
                "acme/app"
            ).create_secret("PW", "theirs")
            return fake.answer(asked)

        hub.instead += [None, None, meanwhile]
        error = using.fails(UnknownOutcomeError, "acme/app")
        assert "another writer stored" in error.message
        assert "--mode replace" in error.remedy


class TestOrganisation:
    @pytest.mark.parametrize(
        ("target", "visibility"), [("acme", "private"), ("acme?visibility=all", "all")]
    )
    def test_a_new_secret_is_for_private_repositories_by_default(
        self, hub: FakeGitHub, using: Storing, target: str, visibility: str
    ) -> None:
        using.put(target, PW=CANARY)
        assert hub.vaults.places[ORGANISATION].told["PW"]["visibility"] == visibility
        assert visibility in using.describe(target) or "private" in using.describe(target)

    @pytest.mark.parametrize("target", ["acme", "acme?visibility=all"])
    @pytest.mark.parametrize("count", [0, 3, 100, 230])
    def test_one_that_is_there_stays_for_whom_it_was(
        self, hub: FakeGitHub, using: Storing, target: str, count: int
    ) -> None:
        kept = hub.vaults.places[ORGANISATION]
        using.put("acme", PW="first")
        kept.told["PW"]["visibility"], kept.selected["PW"] = "selected", list(range(1, count + 1))
        using.put(target, "replace", PW="second")
        assert kept.opened["PW"] == b"second"
        assert (kept.told["PW"]["visibility"], kept.selected["PW"]) == (
            "selected",
            list(range(1, count + 1)),
        )

    def test_one_for_all_stays_for_all(self, hub: FakeGitHub, using: Storing) -> None:
        using.put("acme?visibility=all", PW="first")
        using.put("acme", "replace", PW="second")
        assert hub.vaults.places[ORGANISATION].told["PW"]["visibility"] == "all"

    @pytest.mark.parametrize(
        "answer", ["<html>", {"repositories": [{"id": "1"}]}, {"repositories": [7]}]
    )
    def test_nothing_is_written_if_its_repositories_are_unknown(
        self, hub: FakeGitHub, using: Storing, answer: Any
    ) -> None:
        using.put("acme", PW="first")
        hub.vaults.places[ORGANISATION].told["PW"]["visibility"] = "selected"
        hub.instead += [None, None, Reply(200, answer)]
        using.fails(PluginError, "acme", "replace")
        assert hub.vaults.places[ORGANISATION].opened["PW"] == b"first"


class TestTargets:
    @pytest.mark.parametrize(
        "target",
        ["", "/", "acme/", "acme/app/", "../app", "acme/..", "acme/.", "acme/../x", "acme/app/..",
            "acme/app/.",
         "acme/a%3Fb", "acme/a%2523", "acme/a%252Fb", "ac me/app", "acme/app/" + "x" * 256,
         "https://github.com/a/b",
         "acme/app?visibility=all", "acme?visibility=selected", "acme/app/prod?visibility=private"],
    )  # fmt: skip
    def test_what_is_no_place_is_refused_unasked(
        self, hub: FakeGitHub, using: Storing, target: str
    ) -> None:
        assert using.fails(ReferenceValueError, target).remedy
        with pytest.raises(ReferenceValueError):
            using.describe(target)
        assert hub.asked == []

    @pytest.mark.parametrize(
        "name",
        [
            "",
            "1PW",
            "A-B",
            "A B",
            "GITHUB_TOKEN",
            "github_x",
            "..",
            "A/B",
            "A%2FB",
            "A?B",
            "A\nB",
            "É",
            "public-key",
        ],
    )
    def test_what_is_no_name_is_refused_unasked(
        self, hub: FakeGitHub, using: Storing, name: str
    ) -> None:
        assert using.fails(ReferenceValueError, "acme/app", **{"A": CANARY, name: CANARY}).remedy
        assert hub.asked == []

    def test_two_names_that_differ_in_capitals_are_one(self, using: Storing) -> None:
        assert "twice" in using.fails(ReferenceValueError, "acme/app", PW=CANARY, pw=CANARY).message

    def test_a_parameter_that_it_has_not_is_refused(self, using: Storing) -> None:
        with pytest.raises(ReferenceSyntaxError):
            using.locator("acme/app?masked=0")

    def test_it_says_what_it_would_do(self, hub: FakeGitHub, using: Storing) -> None:
        assert using.describe("acme/app") == (
            "store secrets of the repository acme/app at GitHub, if none has this name; "
            "its other secrets stay"
        )
        assert "the environment production of acme/app" in using.describe(
            "acme/app/production", "replace"
        )
        assert "(a new one for all its repositories)" in using.describe("acme?visibility=all")
        assert hub.asked == []


class TestKeys:
    @pytest.mark.parametrize("mode", ["create", "replace"])
    def test_a_key_that_is_changed_meanwhile_is_asked_for_again(
        self, hub: FakeGitHub, using: Storing, mode: Mode
    ) -> None:
        def rotated(fake: FakeWeb, asked: Asked) -> Reply:
            hub.vaults.places[REPO].rotate()
            return fake.answer(asked)

        hub.instead += [None, None, None, rotated] if mode == "create" else [None, rotated]
        using.put("acme/app", mode, A="1", B="2")
        assert hub.vaults.places[REPO].opened == {"A": b"1", "B": b"2"}
        assert calls(hub).count("GET public-key") == 2

    def test_it_is_asked_for_again_once(self, hub: FakeGitHub, using: Storing) -> None:
        def rotated(fake: FakeWeb, asked: Asked) -> Reply:
            hub.vaults.places[REPO].rotate()
            return fake.answer(asked)

        hub.instead += [None, rotated, None, rotated]
        using.fails(UnsupportedError, "acme/app", "replace")
        assert calls(hub) == ["GET public-key", "PUT PW", "GET public-key", "PUT PW"]

    def test_a_place_that_is_full_says_so(self, hub: FakeGitHub, using: Storing) -> None:
        hub.vaults.places[REPO] = Kept(limit=1)
        error = using.fails(UnsupportedError, "acme/app", A=CANARY, B=CANARY)
        assert "100 secrets, an organisation 1,000" in error.remedy
        assert error.message == (
            "GitHub does not take B as a secret of the repository acme/app (422); A was "
            "stored before"
        )
        # The key is the same: the value is not sent again.
        assert calls(hub)[-2:] == [
            "PUT B",
            "GET public-key",
        ]

    @pytest.mark.parametrize("key",
        [{}, [], {"key_id": "1", "key": "c2hvcnQ="}, {"key_id": "1", "key": "%"},
                                     {"key_id": None, "key": "A" * 43 + "="},
                                     {"key_id": True, "key": "A" * 43 + "="},
                                     {"key_id": "1", "key": 7}])  # fmt: skip
    def test_what_is_no_key_seals_nothing(self, hub: FakeGitHub, using: Storing, key: Any) -> None:
        hub.instead.append(Reply(200, key))
        assert "no public key" in using.fails(PluginError, "acme/app").message
        assert len(hub.asked) == 1


class TestTrouble:
    @pytest.mark.parametrize(
        ("reply", "kind", "says"),
        [
            (Reply(401), BackendAuthError, "for this GitHub"),
            (Reply(403), AccessDeniedError, "a job's own GITHUB_TOKEN can never have that"),
            (Reply(404), SecretNotFoundError, "Secrets: write (a classic token: repo)"),
            (Reply(409), UnavailableError, ""),
            (Reply(403, "", {"Retry-After": "11"}), UnavailableError, ""),
            (
                Reply(403, "", {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1"}),
                UnavailableError,
                "",
            ),
            (Reply(429, "", {"Retry-After": "11"}), UnavailableError, ""),
            (Reply(301, "", {"Location": "/elsewhere"}), PluginError, "use its current name"),
        ],
    )
    @pytest.mark.parametrize("mode", ["create", "replace"])
    def test_each_refusal_says_what_to_do(
        self,
        hub: FakeGitHub,
        using: Storing,
        reply: Reply,
        kind: type[PluginError],
        says: str,
        mode: Mode,
    ) -> None:
        for answered in range(3 if mode == "create" else 2):
            hub.asked.clear()
            hub.instead = [*[None] * answered, reply]
            if answered == 1 and mode == "create" and reply.status == 404:
                continue  # that there is none is no refusal
            error = using.fails(kind, "acme/app", mode)
            assert says in error.remedy
            assert len(hub.asked) == answered + 1
        assert hub.vaults.places[REPO].opened == {}

    @pytest.mark.parametrize(
        ("target", "needs"),
        [
            ("acme/app", "the permission Secrets: write (a classic token: repo)"),
            ("acme/app/production", "the permission Environments: write (a classic token: repo)"),
            ("acme", "the organisation permission Secrets: write (a classic token: admin:org)"),
        ],
    )
    def test_an_error_names_the_permission_that_a_token_lacks(
        self, hub: FakeGitHub, using: Storing, target: str, needs: str
    ) -> None:
        hub.vaults.may_write = False
        assert needs in using.fails(AccessDeniedError, target).remedy

    @pytest.mark.parametrize("mode", ["create", "replace"])
    def test_a_missing_owner_differs_from_a_missing_secret(
        self, using: Storing, mode: Mode
    ) -> None:
        error = using.fails(SecretNotFoundError, "acme/app/staging", mode)
        assert "GitHub has no the environment staging" not in error.message
        assert "the environment staging of acme/app" in error.message

    @pytest.mark.parametrize("status", [500, 502, 503])
    def test_an_answer_to_writing_that_was_lost_is_unclear_where_nothing_may_be_replaced(
        self, hub: FakeGitHub, using: Storing, status: int
    ) -> None:
        hub.instead += [None, None, Reply(status)]
        error = using.fails(UnknownOutcomeError, "acme/app")
        assert error.message == "GitHub did not say whether it stored PW of the repository acme/app"
        assert len(hub.asked) == 3

    @pytest.mark.parametrize("status", [500, 502, 503])
    def test_and_may_be_written_again_where_anything_may(
        self, hub: FakeGitHub, using: Storing, status: int
    ) -> None:
        hub.instead += [None, Reply(status)]
        using.fails(UnavailableError, "acme/app", "replace")
        using.put("acme/app", "replace", PW=CANARY)
        assert hub.vaults.places[REPO].opened == {"PW": CANARY.encode()}

    @pytest.mark.parametrize("fault", [drop, Reply(500), Reply(200, "<html>")])
    def test_what_github_took_is_stored_even_where_it_cannot_be_looked_at(
        self, hub: FakeGitHub, using: Storing, fault: Any
    ) -> None:
        hub.instead += [None, None, None, fault]
        assert using.put("acme/app", PW=CANARY).version == ""

    def test_what_github_took_and_does_not_have_is_unclear(
        self, hub: FakeGitHub, using: Storing
    ) -> None:
        hub.instead += [None, None, Reply(201)]
        assert "does not have it" in using.fails(UnknownOutcomeError, "acme/app").message

    def test_the_next_try_of_a_call_goes_on_where_it_was(
        self, hub: FakeGitHub, using: Storing
    ) -> None:
        hub.instead += [None, None, None, None, Reply(429)]
        error = using.fails(UnavailableError, "acme/app", A="1", B="2")
        assert error.message.endswith("; A was stored before")
        using.put("acme/app", A="1", B="2")
        assert hub.vaults.places[REPO].opened == {"A": b"1", "B": b"2"}
        assert calls(hub).count("PUT A") == 1
        using.fails(WriteConflictError, "acme/app", A="1", B="2")


class TestWays:
    def test_its_health_costs_nothing_and_changes_nothing(
        self, hub: FakeGitHub, using: Storing
    ) -> None:
        assert using.check().ok
        assert [asked.target for asked in hub.asked] == ["/rate_limit"]

    def test_without_a_token_it_says_so(self) -> None:
        with pytest.raises(NotConfiguredError, match="no GitHub token"):
            Storing("github-secret", {}).put("acme/app", PW=CANARY)

    def test_it_is_known_to_be_blind(self, using: Storing) -> None:
        assert BLIND in using.registry.sink_info("github-secret").capabilities

    def test_only_one_module_imports_pynacl(self) -> None:
        code = (
            "import sys; from sealpipe.registry import Registry; "
            "Registry(environ={}).sink_info('github-secret');"
            "import sealpipe_plugins.github.comment_channel; print('nacl' in sys.modules)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        assert done.stdout == "False\n"
