"""gitlab-variable: on a fake from GitLab's public documentation; python-gitlab, which its users
use, gets on with the same fake."""

from __future__ import annotations

from typing import Any

import gitlab
import pytest

from plugins.github_gitlab.using import CANARY, Storing
from sealpipe.errors import (
    AccessDeniedError,
    BackendAuthError,
    NotConfiguredError,
    PluginError,
    ReferenceValueError,
    SecretNotFoundError,
    UnavailableError,
    UnknownOutcomeError,
    UnsupportedError,
    WriteConflictError,
)
from sealpipe.plugin import Mode
from sealpipe_plugins.gitlab.variables import add_mark
from support import fake_gitlab
from support.fake_gitlab import FakeGitLab
from support.fake_web import Asked, FakeWeb, Reply, drop, drop_after

APP, GROUP = ("projects", "acme/sub/app"), ("groups", "acme/sub")
TARGET = "acme/sub/app"


@pytest.fixture
def using(lab: FakeGitLab) -> Storing:
    return at(lab.base_url)


def at(url: str) -> Storing:
    return Storing("gitlab-variable", {"GITLAB_TOKEN": fake_gitlab.TOKEN, "CI_SERVER_URL": url})


def methods(lab: FakeGitLab) -> list[str]:
    return [asked.method for asked in lab.asked]


def person(lab: FakeGitLab, **members: Any) -> dict[str, Any]:
    """A variable that somebody made by hand."""
    made = {
        "key": "PW",
        "value": "by-hand-1",
        "variable_type": "env_var",
        "protected": False,
        "masked": False,
    }
    made |= {"raw": True, "hidden": False, "environment_scope": "*", "description": None, **members}
    lab.shelves.places[APP].append(made)
    return made


class TestStoring:
    @pytest.mark.parametrize(("target", "place"), [(TARGET, APP), ("groups/acme/sub", GROUP)])
    def test_a_new_variable_is_masked_protected_and_not_expanded(
        self, lab: FakeGitLab, using: Storing, target: str, place: tuple[str, str]
    ) -> None:
        receipt = using.put(target, PW=CANARY)
        assert lab.shelves.places[place] == [
            {"key": "PW", "value": CANARY, "variable_type": "env_var", "protected": True,
                "masked": True, "raw": True,
             "hidden": False, "environment_scope": "*", "description": "[sealpipe: m1]"}
        ]  # fmt: skip
        assert (receipt.known, receipt.already) == (True, False)
        assert methods(lab) == ["GET", "POST", "GET"]

    def test_python_gitlab_reads_and_writes_the_same(self, lab: FakeGitLab, using: Storing) -> None:
        using.put(f"{TARGET}?environment=review/*", PW=CANARY)
        with gitlab.Gitlab(lab.base_url, private_token=fake_gitlab.TOKEN) as api:
            project = api.projects.get(TARGET, lazy=True)
            found = project.variables.get("PW", filter={"environment_scope": "review/*"})
            assert (found.value, found.masked, found.raw) == (CANARY, True, True)
            project.variables.create(
                {"key": "OTHER", "value": "theirs", "description": "made by hand"}
            )
            using.put(TARGET, "replace", OTHER="$ours-now")
            assert project.variables.get("OTHER").value == "$ours-now"
            assert project.variables.get("OTHER").description == "made by hand [sealpipe: m1]"
            group = api.groups.get("acme/sub", lazy=True)
            group.variables.create({"key": "PW", "value": "theirs"})
            using.fails(WriteConflictError, "groups/acme/sub")

    @pytest.mark.parametrize(
        "value",
        ["two\nlines\n", "::add-mask::x\n<<EOF\nEOF\n", "\x1b]0;x\x07", "", "short", "a b c d e"],
    )
    def test_what_cannot_be_masked_is_stored_only_where_that_is_said(
        self, lab: FakeGitLab, using: Storing, value: str
    ) -> None:
        error = using.fails(UnsupportedError, TARGET, OK=CANARY, PW=value)
        assert "could not mask the value for PW of the project acme/sub/app" in error.message
        assert "masked=0" in error.remedy
        assert lab.shelves.places[APP] == []
        using.put(f"{TARGET}?masked=0", PW=value)
        assert lab.shelves.find(APP, "PW")["value"] == value

    @pytest.mark.parametrize(
        "value",
        ["pa$$w0rd$HOME", "!\"#%&'()*,;<>?[]^`{|}", "passwörd", "x" * 20_000, "\x1b[31m-red\x07"],
    )
    def test_signs_and_letters_of_every_kind_are_masked(
        self, lab: FakeGitLab, using: Storing, value: str
    ) -> None:
        using.put(TARGET, PW=value)
        assert (lab.shelves.find(APP, "PW")["value"], lab.shelves.find(APP, "PW")["masked"]) == (
            value,
            True,
        )

    @pytest.mark.parametrize("value", [b"longer\0than", b"\xff\xfe12345678", b"x" * 128 * 1024])
    def test_what_no_variable_can_be_is_refused_with_nothing_written(
        self, lab: FakeGitLab, using: Storing, value: bytes
    ) -> None:
        assert using.fails(UnsupportedError, TARGET, OK=CANARY, PW=value).remedy
        assert lab.shelves.places[APP] == []

    def test_flags_can_be_given(self, lab: FakeGitLab, using: Storing) -> None:
        using.put(f"{TARGET}?protected=0&masked=0", PW=CANARY)
        made = lab.shelves.find(APP, "PW")
        assert (made["protected"], made["masked"], made["raw"]) == (False, False, True)


class TestThere:
    def test_all_are_looked_at_before_one_is_written(self, lab: FakeGitLab, using: Storing) -> None:
        person(lab, key="B")
        error = using.fails(WriteConflictError, TARGET, A=CANARY, B=CANARY)
        assert error.message == "B of the project acme/sub/app exists already with another value"
        assert set(methods(lab)) == {"GET"}

    @pytest.mark.parametrize("mode", ["replace", "merge"])
    def test_a_variable_that_is_there_keeps_what_it_is(
        self, lab: FakeGitLab, using: Storing, mode: Mode
    ) -> None:
        made = person(lab, variable_type="file", description="ask Ann")
        other = dict(person(lab, key="OTHER"))
        using.put(TARGET, mode, PW="two\nlines")
        assert made == made | {"value": "two\nlines", "variable_type": "file", "protected": False,
            "masked": False,
                               "raw": True, "description": "ask Ann [sealpipe: m1]"}  # fmt: skip
        assert lab.shelves.find(APP, "OTHER") == other

    def test_unless_the_target_says_otherwise(self, lab: FakeGitLab, using: Storing) -> None:
        made = person(lab)
        using.put(f"{TARGET}?masked=1&protected=1", "replace", PW=CANARY)
        assert (made["masked"], made["protected"]) == (True, True)

    def test_one_that_is_masked_takes_no_value_that_cannot_be(
        self, lab: FakeGitLab, using: Storing
    ) -> None:
        made = person(lab, masked=True)
        using.fails(UnsupportedError, TARGET, "replace", PW="two\nlines")
        assert made["value"] == "by-hand-1"
        using.put(f"{TARGET}?masked=0", "replace", PW="two\nlines")
        assert made["masked"] is False

    def test_what_is_expanded_is_not_the_same_value(self, lab: FakeGitLab, using: Storing) -> None:
        made = person(lab, value="pa$$w0rd", raw=False)
        using.fails(WriteConflictError, TARGET, PW="pa$$w0rd")
        assert using.put(TARGET, "replace", PW="pa$$w0rd").already is False
        assert made["raw"] is True

    def test_a_hidden_one_is_replaced_and_not_known(self, lab: FakeGitLab, using: Storing) -> None:
        made = person(lab, hidden=True, masked=True)
        using.fails(WriteConflictError, TARGET)
        assert using.put(TARGET, "replace", PW=CANARY).known is False
        assert made["value"] == CANARY
        again = using.put(TARGET, "create", PW=CANARY)
        assert (again.already, again.known) == (True, False)


class TestScopes:
    def test_each_scope_is_a_variable_of_its_own(self, lab: FakeGitLab, using: Storing) -> None:
        using.put(TARGET, PW="for-all-of-them")
        using.put(f"{TARGET}?environment=production", PW="for-production")
        using.put(f"{TARGET}?environment=review/*", PW="for-review-apps")
        using.put(f"{TARGET}?environment=production", "replace", marker="m2", PW="for-production-2")
        found = {each["environment_scope"]: each["value"] for each in lab.shelves.places[APP]}
        assert found == {
            "*": "for-all-of-them",
            "production": "for-production-2",
            "review/*": "for-review-apps",
        }

    def test_a_scope_is_never_part_of_the_question(self, lab: FakeGitLab, using: Storing) -> None:
        using.fails(UnsupportedError, f"{TARGET}?environment=a%26b%25#x".partition("#")[0])
        assert lab.asked[0].query == {"filter[environment_scope]": "a&b%"}
        assert lab.shelves.places[APP] == []

    def test_a_group_without_scopes_says_what_it_did(self, lab: FakeGitLab, using: Storing) -> None:
        lab.shelves.scopes_in_groups = False
        error = using.fails(PluginError, "groups/acme/sub?environment=production")
        assert "for every environment" in error.message
        assert "Premium" in error.remedy

    def test_an_old_gitlab_that_cannot_tell_them_apart_says_so(
        self, lab: FakeGitLab, using: Storing
    ) -> None:
        for scope in ("production", "staging"):
            using.put(f"groups/acme/sub?environment={scope}", PW=CANARY)
        lab.shelves.filters_in_groups = False
        error = using.fails(UnsupportedError, "groups/acme/sub?environment=production", "replace")
        assert "by environment" in error.message

    def test_another_scope_is_never_taken_for_the_one_that_was_asked_for(
        self, lab: FakeGitLab, using: Storing
    ) -> None:
        using.put("groups/acme/sub?environment=staging", PW="for-staging-only")
        lab.shelves.filters_in_groups = False
        using.fails(UnsupportedError, "groups/acme/sub?environment=production", "replace")
        assert lab.shelves.find(GROUP, "PW", "staging")["value"] == "for-staging-only"


class TestMarks:
    def test_what_people_wrote_stays_and_markers_add_up(
        self, lab: FakeGitLab, using: Storing
    ) -> None:
        made = person(lab, description="for [prod], ask Ann")
        using.put(TARGET, "replace", "m1", PW="first-value")
        using.put(TARGET, "replace", "m2", PW="second-value")
        assert made["description"] == "for [prod], ask Ann [sealpipe: m1 m2]"
        assert using.put(TARGET, "replace", "m1", PW="first-value").already
        assert made["value"] == "second-value"

    def test_an_equal_value_gets_the_marker_and_counts_as_there(
        self, lab: FakeGitLab, using: Storing
    ) -> None:
        made = person(lab)
        assert using.put(TARGET, PW="by-hand-1").already
        assert made["description"] == "[sealpipe: m1]"
        assert (made["masked"], made["protected"]) == (False, False)

    @pytest.mark.parametrize("length", [0, 1, 80, 161, 162, 163, 255])
    def test_a_description_never_grows_too_long(self, length: int) -> None:
        text, long = "d" * length, [f"{number:0>79}." for number in range(5)]
        for marker in long:
            text = add_mark(text, marker)
            assert len(text) <= 255
            assert text.startswith("d" * length)
        assert (f"{long[-1]}]" in text) == (length <= 255 - 80 - len(" [sealpipe: ]"))

    @pytest.mark.parametrize(
        "text", ["[sealpipe: ]", "[sealpipe: a b", "x [sealpipe: ü]", "[sealpipe: m1] and more", ""]
    )
    def test_text_that_looks_like_a_marker_is_kept(
        self, lab: FakeGitLab, using: Storing, text: str
    ) -> None:
        made = person(lab, description=text)
        using.put(TARGET, "replace", PW=CANARY)
        assert made["description"] == f"{text} [sealpipe: m1]".strip()

    def test_where_there_is_no_room_an_equal_value_decides(
        self, lab: FakeGitLab, using: Storing
    ) -> None:
        made = person(lab, description="d" * 255)
        assert using.put(TARGET, "replace", PW=CANARY).already is False
        assert using.put(TARGET, "create", PW=CANARY).already
        assert (made["value"], made["description"]) == (CANARY, "d" * 255)

    def test_an_old_gitlab_without_descriptions_goes_by_the_value(
        self, lab: FakeGitLab, using: Storing
    ) -> None:
        lab.shelves.descriptions = False
        assert using.put(TARGET, PW=CANARY).already is False
        assert using.put(TARGET, PW=CANARY).already
        using.fails(WriteConflictError, TARGET, PW=CANARY + "2")


class TestOldOnes:
    def test_a_gitlab_that_masks_less_says_so(self, lab: FakeGitLab, using: Storing) -> None:
        lab.shelves.masks_raw = False
        using.put(TARGET, OK=CANARY)
        error = using.fails(UnsupportedError, TARGET, PW="pa$$w0rd!")
        assert "_+=/@:.~-: masked=0" in error.remedy

    def test_a_gitlab_that_always_expands_is_reported(
        self, lab: FakeGitLab, using: Storing
    ) -> None:
        lab.shelves.raws = False
        using.put(TARGET, OK=CANARY)
        assert "15.7" in using.fails(UnsupportedError, f"{TARGET}?masked=0", PW="pa$$w0rd!").remedy


class TestTargets:
    @pytest.mark.parametrize(
        "target",
        ["", "/", "acme", "acme/", "/acme/app", "acme//app", "../app", "acme/..", "acme/./app",
            "acme/app/",
         "acme/a%252Fb", "acme/a%3Fb", "acme/a%23b", "ac me/app", "groups", "groups/", "groups/..",
         "groups/acme/", "https://gitlab.com/a/b", "acme/-/app",
         f"{TARGET}?masked=true", f"{TARGET}?protected=", f"{TARGET}?environment=",
         f"{TARGET}?environment=" + "x" * 256],
    )  # fmt: skip
    def test_what_is_no_place_is_refused_unasked(
        self, lab: FakeGitLab, using: Storing, target: str
    ) -> None:
        assert using.fails(ReferenceValueError, target).remedy
        with pytest.raises(ReferenceValueError):
            using.describe(target)
        assert lab.asked == []

    @pytest.mark.parametrize(
        "key", ["", "A-B", "A B", "..", "A/B", "A%2FB", "A?B", "A\n", "É", "x" * 256]
    )
    def test_what_is_no_key_is_refused_unasked(
        self, lab: FakeGitLab, using: Storing, key: str
    ) -> None:
        assert using.fails(ReferenceValueError, TARGET, **{"A": CANARY, key: CANARY}).remedy
        assert lab.asked == []

    def test_it_says_what_it_would_do(self, lab: FakeGitLab, using: Storing) -> None:
        assert using.describe(TARGET) == (
            "store variables of the project acme/sub/app at GitLab, masked and protected, if none "
            "has this key; its other variables stay"
        )
        told = using.describe("groups/acme?environment=prod&masked=0", "merge")
        assert (
            "of the group acme for the environment prod at GitLab, not masked and "
            "protected, replacing any"
        ) in told
        assert lab.asked == []


class TestTrouble:
    @pytest.mark.parametrize(
        ("reply", "kind", "says"),
        [
            (Reply(401), BackendAuthError, "CI_JOB_TOKEN"),
            (Reply(403), AccessDeniedError, "give it the role Maintainer and the scope api"),
            (Reply(429, "", {"Retry-After": "11"}), UnavailableError, ""),
            (Reply(503, "", {"Retry-After": "11"}), UnavailableError, ""),
        ],
    )
    @pytest.mark.parametrize("answered", [0, 1])
    def test_each_refusal_says_what_to_do(
        self,
        lab: FakeGitLab,
        using: Storing,
        reply: Reply,
        kind: type[PluginError],
        says: str,
        answered: int,
    ) -> None:
        lab.instead = [*[None] * answered, reply]
        error = using.fails(kind, TARGET)
        assert says in error.remedy
        assert len(lab.asked) == answered + 1
        assert lab.shelves.places[APP] == []

    @pytest.mark.parametrize("status", [400, 404, 409, 422, 301])
    def test_a_refused_write_is_reported_if_nothing_is_stored(
        self, lab: FakeGitLab, using: Storing, status: int
    ) -> None:
        lab.instead = [None, Reply(status, {"message": {"value": [CANARY]}})]
        error = using.fails(
            SecretNotFoundError if status in (404, 301) else UnsupportedError, TARGET
        )
        assert f"({status})" in error.message
        assert methods(lab) == ["GET", "POST", "GET"]

    @pytest.mark.parametrize(
        ("target", "role"), [(TARGET, "Maintainer"), ("groups/acme/sub", "Owner")]
    )
    def test_an_error_names_the_permission_that_a_token_lacks(
        self, lab: FakeGitLab, using: Storing, target: str, role: str
    ) -> None:
        lab.shelves.maintainer = False
        assert (
            using.fails(AccessDeniedError, target).remedy
            == f"give it the role {role} and the scope api"
        )

    @pytest.mark.parametrize("target", ["acme/sub/lost", "groups/lost"])
    def test_a_place_that_is_not_there_is_not_found(self, using: Storing, target: str) -> None:
        assert "does not find the" in using.fails(SecretNotFoundError, target).message

    @pytest.mark.parametrize("status", [500, 502])
    def test_a_failed_write_is_looked_up(
        self, lab: FakeGitLab, using: Storing, status: int
    ) -> None:
        lab.instead = [None, Reply(status)]
        using.fails(UnavailableError, TARGET)
        assert methods(lab) == ["GET", "POST", "GET"]

    def test_a_lost_answer_to_the_marker_alone_is_looked_up_too(
        self, lab: FakeGitLab, using: Storing
    ) -> None:
        person(lab)
        lab.instead = [None, drop]
        using.fails(UnknownOutcomeError, TARGET, PW="by-hand-1")
        lab.instead = [None, drop_after]
        assert using.put(TARGET, PW="by-hand-1").already

    @pytest.mark.parametrize(
        "answer",
        ["<html>", [], {"key": "OTHER", "value": "x"}, {"key": "PW"}, {"key": "PW", "value": 7}],
    )
    def test_what_is_no_variable_stops(self, lab: FakeGitLab, using: Storing, answer: Any) -> None:
        lab.instead.append(Reply(200, answer))
        assert "not GitLab's" in using.fails(PluginError, TARGET, "replace").message
        assert methods(lab) == ["GET"]

    def test_a_flag_that_gitlab_ignores_is_reported(self, lab: FakeGitLab, using: Storing) -> None:
        def unmasked(fake: FakeWeb, asked: Asked) -> Reply:
            reply = fake.answer(asked)
            lab.shelves.find(APP, "PW")["masked"] = False
            return reply

        lab.instead = [None, unmasked]
        assert "with other flags than requested: masked" in using.fails(PluginError, TARGET).message


class TestTwoAtOnce:
    def test_one_that_goes_meanwhile_is_made_again(self, lab: FakeGitLab, using: Storing) -> None:
        def meanwhile(fake: FakeWeb, asked: Asked) -> Reply:
            lab.shelves.places[APP].clear()
            return fake.answer(asked)

        person(lab)
        lab.instead = [None, meanwhile]
        using.put(TARGET, "replace", PW=CANARY)
        assert lab.shelves.find(APP, "PW")["masked"] is True

    def test_a_write_right_afterwards_is_noticed(self, lab: FakeGitLab, using: Storing) -> None:
        def meanwhile(fake: FakeWeb, asked: Asked) -> Reply:
            reply = fake.answer(asked)
            lab.shelves.find(APP, "PW")["value"] = "somebody-elses"
            return reply

        lab.instead = [None, meanwhile]
        assert "has another value now" in using.fails(PluginError, TARGET).message


class TestWays:
    def test_its_health_changes_nothing(self, lab: FakeGitLab, using: Storing) -> None:
        assert using.check().detail.startswith("GitLab 17.5.1")
        assert [asked.target for asked in lab.asked] == ["/api/v4/version"]

    def test_without_a_token_it_says_that_a_jobs_own_will_not_do(self) -> None:
        with pytest.raises(NotConfiguredError) as caught:
            Storing("gitlab-variable", {"CI_JOB_TOKEN": "x"}).put(TARGET, PW=CANARY)
        assert "CI_JOB_TOKEN, cannot write notes or variables" in caught.value.remedy

    def test_values_are_in_no_address(self, lab: FakeGitLab, using: Storing) -> None:
        using.put(TARGET, PW=CANARY)
        using.put(TARGET, "replace", "m2", PW=CANARY + "2")
        assert not any(CANARY in asked.target for asked in lab.asked)
