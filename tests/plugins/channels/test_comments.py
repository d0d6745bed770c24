"""github-comment: and gitlab-note: on fakes from the vendors' public documentation; PyGithub and
python-gitlab, which their users use, get on with the same fakes. What both channels promise is
tested of both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gitlab
import pytest
from github import Auth, Github

from plugins.channels.using import LINK, Using, share, told
from sealpipe.errors import (
    AccessDeniedError,
    BackendAuthError,
    NotConfiguredError,
    PluginError,
    ReferenceValueError,
    SecretNotFoundError,
    UnavailableError,
    UnknownOutcomeError,
)
from sealpipe.registry.channels import confirms_delivery
from support import fake_github, fake_gitlab
from support.fake_github import FakeGitHub
from support.fake_gitlab import FakeGitLab
from support.fake_web import FakeWeb, Reply, drop


@dataclass
class Place:
    """Where comments go: a fake, the channel that uses it, its recipients, and what was written
    there.
    """

    fake: FakeWeb
    using: Using
    to: str
    public: str
    bodies: Callable[[], list[str]]
    make: Callable[..., Using]
    token: str


def github_comment(hub: FakeGitHub, **more: str) -> Using:
    environ = {"GITHUB_TOKEN": fake_github.TOKEN, "GITHUB_API_URL": hub.base_url, **more}
    return Using("github-comment", {name: value for name, value in environ.items() if value})


def gitlab_note(lab: FakeGitLab, **more: str) -> Using:
    environ = {"GITLAB_TOKEN": fake_gitlab.TOKEN, "CI_API_V4_URL": f"{lab.base_url}/api/v4", **more}
    return Using("gitlab-note", {name: value for name, value in environ.items() if value})


@pytest.fixture(params=["github-comment", "gitlab-note"])
def place(request: pytest.FixtureRequest) -> Place:
    if request.param == "github-comment":
        hub: FakeGitHub = request.getfixturevalue("hub")
        make = lambda **more: github_comment(hub, **more)  # noqa: E731
        return Place(hub, make(), "acme/app#7", "acme/open#7", hub.bodies, make, fake_github.TOKEN)
    lab: FakeGitLab = request.getfixturevalue("lab")
    make = lambda **more: gitlab_note(lab, **more)  # noqa: E731
    return Place(lab, make(), "acme/sub/app!4", "acme/open#4", lab.bodies, make, fake_gitlab.TOKEN)


class TestBoth:
    """What holds for either."""

    def test_the_comment_is_made_once_and_read_back(self, place: Place) -> None:
        delivery = place.using.send(place.to)
        assert (delivery.confirmed, bool(delivery.id)) == (True, True)
        [body] = place.bodies()
        assert f"\n<{LINK}>\n" in body
        assert [asked.method for asked in place.fake.asked].count("POST") == 1

    def test_what_is_there_already_is_not_made_again(self, place: Place) -> None:
        first, second = place.using.send(place.to), place.using.send(place.to)
        assert first == second
        assert len(place.bodies()) == 1
        place.using.send(place.to, share(f"Another one: {LINK}x", link=f"{LINK}x"))
        assert len(place.bodies()) == 2
        assert confirms_delivery(place.using.registry, place.using.name)

    def test_it_is_found_among_many_others(self, place: Place) -> None:
        place.using.send(place.to)
        for number in range(120):
            _add(place, f"comment {number}")
        assert place.using.send(place.to).confirmed
        assert len([body for body in place.bodies() if LINK in body]) == 1

    @pytest.mark.parametrize("fault", [drop, Reply(502, "bad gateway"), Reply(201, "no JSON")])
    def test_what_did_not_turn_up_is_unclear(self, place: Place, fault: Any) -> None:
        place.fake.instead += [None, None, fault]
        error = place.using.fails(UnknownOutcomeError, place.to)
        assert error.remedy == "check there before you send it again"
        assert place.bodies() == []

    def test_what_cannot_be_read_back_is_delivered_and_not_confirmed(self, place: Place) -> None:
        place.fake.instead += [None, None, None, Reply(500)]
        assert place.using.send(place.to).confirmed is False
        assert len(place.bodies()) == 1

    def test_a_public_place_is_refused_unless_that_is_allowed(self, place: Place) -> None:
        error = place.using.fails(AccessDeniedError, place.public)
        assert "is public: anyone could read" in error.message
        assert [asked.method for asked in place.fake.asked] == ["GET"]
        setting = f"SEALPIPE_PLUGIN_{place.using.name.upper().replace('-', '_')}__PUBLIC"
        assert place.make(**{setting: "true"}).send(place.public).confirmed

    def test_a_place_that_does_not_say_what_it_is_counts_as_public(self, place: Place) -> None:
        place.fake.instead.append(Reply(200, {"id": 1}))
        place.using.fails(AccessDeniedError, place.to)
        place.fake.instead.append(Reply(200, "<html>private</html>"))
        place.using.fails(AccessDeniedError, place.to)

    @pytest.mark.parametrize(
        ("reply", "kind"),
        [
            (Reply(401, {"message": "Bad credentials"}), BackendAuthError),
            (Reply(403, {"message": "no"}), AccessDeniedError),
            (Reply(404, {"message": "Not Found"}), SecretNotFoundError),
            (Reply(429, "", {"Retry-After": "11"}), UnavailableError),
            (Reply(503, "", {"Retry-After": "11"}), UnavailableError),
            (Reply(301, "", {"Location": "/elsewhere"}), SecretNotFoundError),
            (drop, UnavailableError),
            (Reply(500, ""), UnavailableError),
        ],
    )
    def test_a_reading_that_fails_writes_nothing(
        self, place: Place, reply: Any, kind: type[PluginError]
    ) -> None:
        place.fake.instead.append(reply)
        error = place.using.fails(kind, place.to)
        if isinstance(error, UnavailableError) and isinstance(reply, Reply) and reply.headers:
            assert error.retry_after == 11
        assert len(place.fake.asked) == 1
        assert place.bodies() == []

    def test_a_token_is_needed_and_is_one(self, place: Place) -> None:
        error = place.make(GITHUB_TOKEN="", GITLAB_TOKEN="").fails(NotConfiguredError, place.to)
        assert error.message.startswith("no Git")
        for token in ("two\nlines Canary", "a b c Canary", "schlüssel-Canary"):
            error = place.make(GITHUB_TOKEN=token, GITLAB_TOKEN=token).fails(
                NotConfiguredError, place.to
            )
            assert "contains invalid characters" in error.message
            assert "Canary" not in told(error)

    def test_no_token_goes_out_in_clear(self, place: Place) -> None:
        url = "http://git.acme.example/api"
        error = place.make(GITHUB_API_URL=url, CI_API_V4_URL=url).fails(
            NotConfiguredError, place.to
        )
        assert "https" in error.message

    def test_check_writes_nothing(self, place: Place) -> None:
        assert place.using.check().ok
        assert [asked.method for asked in place.fake.asked] == ["GET"]
        with pytest.raises(BackendAuthError):
            place.make(GITHUB_TOKEN="x", GITLAB_TOKEN="x").check()


class TestGitHub:
    """github-comment:"""

    def test_pygithub_reads_what_we_write_and_we_find_what_it_writes(self, hub: FakeGitHub) -> None:
        theirs = Github(
            auth=Auth.Token(fake_github.TOKEN),
            base_url=hub.base_url,
            retry=None,
            seconds_between_requests=0,
        )
        repo = theirs.get_repo("acme/app")
        assert repo.private
        github_comment(hub).send("acme/app#7")
        [comment] = repo.get_issue(7).get_comments()
        assert LINK in comment.body
        theirs_made = repo.get_issue(7).create_comment("theirs")
        assert repo.get_issue(7).get_comment(theirs_made.id).body == "theirs"
        ours, other = [asked for asked in hub.asked if asked.method == "POST"]
        assert ours.target == other.target
        assert set(ours.json) == set(other.json) == {"body"}
        theirs.close()

    @pytest.mark.parametrize(
        "to",
        ["", "acme/app", "acme/app#", "acme/app#0", "acme/app#7,acme/app#8", "acme/app#7\n",
            "acme/app#7?x=y",
         "app#7", "/app#7", "acme/#7", "acme/..#7", "acme/.#7", "acme/a/b#7", "acme/app#7/../8",
         "acme%2fapp#7",
         "-acme/app#7", "acme/app#-7", "acme/app #7", "acme/app#7#8", "acme/app#\u0667",
         "../acme/app#7"],
    )  # fmt: skip
    def test_what_is_not_one_issue_is_refused_before_anything_is_sent(
        self, hub: FakeGitHub, to: str
    ) -> None:
        error = github_comment(hub).fails(ReferenceValueError, to)
        assert error.remedy == "write it as github-comment:owner/repo#123"
        assert not hub.asked

    def test_what_is_not_there_and_what_may_not_be_written_read_differently(
        self, hub: FakeGitHub
    ) -> None:
        channel = github_comment(hub)
        assert (
            "has no repository acme/nosuch"
            in channel.fails(SecretNotFoundError, "acme/nosuch#7").message
        )
        assert "has no acme/app#8" in channel.fails(SecretNotFoundError, "acme/app#8").message
        hub.may_write = False
        error = channel.fails(AccessDeniedError, "acme/app#7")
        assert error.message == "GitHub does not let this token comment on acme/app#7 (403)"
        assert "issues: write" in error.remedy

    @pytest.mark.parametrize(
        "headers",
        [{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "99999999999"}, {"Retry-After": "60"}],
    )
    def test_a_rate_limit_that_answers_403_is_no_refusal(
        self, hub: FakeGitHub, headers: dict[str, str]
    ) -> None:
        hub.instead += [None, None, Reply(403, {"message": "rate limit exceeded"}, headers)]
        error = github_comment(hub).fails(UnavailableError, "acme/app#7")
        assert error.retry_after is not None
        assert error.retry_after >= 60

    def test_a_server_of_ones_own_is_a_named_store(self, hub: FakeGitHub) -> None:
        environ = {
            "SEALPIPE_STORE__GHE__PLUGIN": "github-comment",
            "SEALPIPE_STORE__GHE__API_URL": f"{hub.base_url}/api/v3",
            "SEALPIPE_STORE__GHE__TOKEN": "ghp_other",
            "GITHUB_TOKEN": fake_github.TOKEN,
        }
        Using("ghe", environ).fails(BackendAuthError, "acme/app#7")
        assert hub.asked[0].target == "/api/v3/repos/acme/app"
        assert hub.asked[0].headers["authorization"] == "Bearer ghp_other"


class TestGitLab:
    """gitlab-note:"""

    def test_python_gitlab_reads_what_we_write_and_writes_in_the_same_form(
        self, lab: FakeGitLab
    ) -> None:
        theirs = gitlab.Gitlab(lab.base_url, private_token=fake_gitlab.TOKEN)
        project = theirs.projects.get("acme/sub/app")
        assert project.visibility == "private"
        gitlab_note(lab).send("acme/sub/app!4")
        request = project.mergerequests.get(4)
        [note] = request.notes.list(get_all=True)
        assert LINK in note.body
        assert note.internal
        made = request.notes.create({"body": "theirs", "internal": True})
        assert request.notes.get(made.id).body == "theirs"
        ours, other = [asked for asked in lab.asked if asked.method == "POST"]
        assert ours.path == other.path
        assert ours.json.keys() == other.json.keys()
        theirs.session.close()

    @pytest.mark.parametrize(
        ("to", "kind"), [("acme/sub/app!4", "merge_requests"), ("acme/sub/app#4", "issues")]
    )
    def test_merge_requests_and_issues(self, lab: FakeGitLab, to: str, kind: str) -> None:
        gitlab_note(lab).send(to)
        assert len(lab.bodies(kind=kind)) == 1
        assert len(lab.bodies(kind="issues")) + len(lab.bodies()) == 1

    def test_notes_are_internal_by_default(self, lab: FakeGitLab) -> None:
        lab.role = "guest"
        error = gitlab_note(lab).fails(AccessDeniedError, "acme/sub/app!4")
        assert "internal = false" in error.remedy
        gitlab_note(lab, SEALPIPE_PLUGIN_GITLAB_NOTE__INTERNAL="false").send("acme/sub/app!4")
        assert [note["internal"] for note in lab.notes["acme/sub/app", "merge_requests", 4]] == [
            False
        ]

    def test_an_internal_project_is_not_public(self, lab: FakeGitLab) -> None:
        assert gitlab_note(lab).send("acme/house#4").confirmed

    @pytest.mark.parametrize(
        "to",
        ["", "acme/app", "app!4", "acme/app!", "acme/app!0", "acme/app!4,acme/app!5",
            "acme/app!4\n", "acme/app!4?x=y",
         "acme/../app!4", "acme/app!4#5", "acme//app!4", "acme/app/!4", "/acme/app!4", "acme/app~4",
         "acme/app !4",
         "acme%2Fapp!4", "acme/-app!4", "acme/app!4/notes"],
    )  # fmt: skip
    def test_what_is_not_one_place_is_refused_before_anything_is_sent(
        self, lab: FakeGitLab, to: str
    ) -> None:
        gitlab_note(lab).fails(ReferenceValueError, to)
        assert not lab.asked

    def test_the_server_around_the_job_is_the_default(self, lab: FakeGitLab) -> None:
        environ = {"GITLAB_TOKEN": fake_gitlab.TOKEN, "CI_SERVER_URL": f"{lab.base_url}/"}
        Using("gitlab-note", environ).send("acme/sub/app!4")
        assert lab.asked[0].target == "/api/v4/projects/acme%2Fsub%2Fapp"


def _add(place: Place, body: str) -> None:
    if isinstance(place.fake, FakeGitHub):
        place.fake.add("acme/app", 7, body)
    elif isinstance(place.fake, FakeGitLab):
        notes = place.fake.notes["acme/sub/app", "merge_requests", 4]
        notes.append({**notes[0], "id": 300 + len(notes), "body": body})
