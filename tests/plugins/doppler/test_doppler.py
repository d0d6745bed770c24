"""doppler: on a fake from Doppler's public reference."""

from __future__ import annotations

import string
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.doppler.fake_doppler import (
    ACCOUNT,
    IDENTITY,
    PERSONAL,
    SERVICE,
    FakeDoppler,
    Kept,
)
from sealpipe.errors import (
    PluginError,
    SecretNotFoundError,
    UnavailableError,
    UnsupportedError,
    WriteConflictError,
)
from sealpipe.plugin import Document, Locator, Mode, WriteResult
from sealpipe.registry import Registry
from sealpipe.secret import Secret
from sealpipe_plugins.doppler.configs import parse_config
from sealpipe_plugins.login_token import LoginToken
from sealpipe_plugins.text_markers import append_marker, split_markers
from support.backends import answers, put_by, registries, resolved
from support.ci_jobs import job_token
from support.fake_web import Reply, first, meanwhile

CANARY = "Canary-1c9e_Zk3Qx0Vn8Jw"
STORE = "SEALPIPE_STORE__OTHER__"

Registries = Callable[..., Registry]


@pytest.fixture
def at(fake: FakeDoppler) -> Iterator[Registries]:
    """Makes registries with a token, and closes them."""
    with registries(DOPPLER_API_HOST=fake.base_url) as make:
        yield lambda token=ACCOUNT, **environ: make(DOPPLER_TOKEN=token, **environ)


def put(registry: Registry, target: str, mode: Mode = "create", **values: str) -> WriteResult:
    return put_by(registry, f"doppler:{target}", values, mode)


def kept(fake: FakeDoppler, config: str = "dev") -> Mapping[str, str]:
    return {name: each.raw for name, each in fake.configs["app", config].items()}


def posts(fake: FakeDoppler, path: str = "/v3/configs/config/secrets") -> list[Any]:
    return [asked.json for asked in fake.asked if (asked.method, asked.path) == ("POST", path)]


class TestReading:
    def test_values_are_computed_unless_raw_is_asked_for(
        self, fake: FakeDoppler, at: Registries
    ) -> None:
        fake.config("app", "dev", HOST="db.example", URL="https://${HOST}/", PORT="5432")
        fields = resolved(at(), "doppler:app/dev#URL,Port=PORT", "Raw=doppler:app/dev?raw=1#URL")
        assert [
            (each.key, each.value.reveal()) for each in fields if isinstance(each.value, Secret)
        ] == [
            ("URL", "https://db.example/"),
            ("Port", "5432"),
            ("Raw", "https://${HOST}/"),
        ]

    def test_all_of_a_config_is_one_request_and_names_what_is_missing(
        self, fake: FakeDoppler, at: Registries
    ) -> None:
        fake.config("app", "dev", **{f"KEY_{number}": "x" for number in range(50)})
        assert len(resolved(at(), *(f"doppler:app/dev#KEY_{number}" for number in range(50)))) == 50
        assert len(fake.asked) == 1
        with pytest.raises(SecretNotFoundError, match='there is no key "NONE"'):
            resolved(at(), "doppler:app/dev#NONE")

    def test_the_names_that_doppler_adds_are_no_secrets(
        self, fake: FakeDoppler, at: Registries
    ) -> None:
        fake.config("app", "dev", ONLY="x")
        assert [each.key for each in resolved(at(), "doppler:app/dev#*")] == ["ONLY"]

    def test_a_service_token_has_a_config_of_its_own(
        self, fake: FakeDoppler, at: Registries
    ) -> None:
        fake.config("app", "dev", PW=CANARY)
        for text in ("doppler:#PW", "doppler:app/dev#PW"):
            assert [each.key for each in resolved(at(SERVICE), text)] == ["PW"]

    def test_what_is_hidden_from_a_person_is_left_out_and_counted(
        self, fake: FakeDoppler, at: Registries
    ) -> None:
        fake.config("app", "dev", SEEN="x")["HIDDEN"] = Kept(CANARY, "restricted")
        (document,) = answers(at(PERSONAL), "doppler:app/dev")
        assert isinstance(document, Document)
        assert (document.content, document.remark.partition(" is hidden")[0]) == (
            {"SEEN": "x"},
            "1 secret",
        )
        assert [each.key for each in resolved(at(ACCOUNT), "doppler:app/dev#HIDDEN")] == ["HIDDEN"]


class TestLogin:
    NAMED: Mapping[str, str] = {
        f"{STORE}PLUGIN": "doppler",
        f"{STORE}IDENTITY": IDENTITY,
        f"{STORE}AUDIENCE": "doppler",
        "GITLAB_CI": "true",
    }

    def named(self, fake: FakeDoppler, at: Registries, **environ: str) -> Registry:
        token = job_token("doppler")
        fake.identities[IDENTITY] = token
        return at(
            "",
            **{**self.NAMED, f"{STORE}API_HOST": fake.base_url, "VAULT_ID_TOKEN": token, **environ},
        )

    def test_a_job_logs_in_once_and_revokes_its_token(
        self, fake: FakeDoppler, at: Registries
    ) -> None:
        fake.config("app", "prd", PW=CANARY)
        fake.config("app", "dev", PW=CANARY)
        registry = self.named(fake, at)
        assert len(resolved(registry, "other:app/dev#PW", "other:app/prd#PW")) == 2
        assert len(posts(fake, "/v3/auth/oidc")) == 1
        registry.close()
        assert len(fake.revoked) == 1
        assert fake.revoked[0] not in fake.tokens

    def test_a_token_is_renewed_before_it_ends(self) -> None:
        made = iter([(Secret("first"), 0.0), (Secret("second"), 3600.0), (Secret("third"), 3600.0)])
        token = LoginToken(lambda: next(made))
        assert [token.get().reveal() for _ in range(3)] == ["first", "second", "second"]


class TestStoring:
    def test_two_secrets_are_one_change_and_their_notes_keep_the_marker(
        self, fake: FakeDoppler, at: Registries
    ) -> None:
        fake.config("app", "dev", PW="old")
        fake.notes["app", "PW"] = "Ask Ann [first]."
        put(at(), "app/dev", "replace", PW=CANARY, USER="bob")
        assert kept(fake) == {"PW": CANARY, "USER": "bob"}
        (change,) = posts(fake)
        assert change["change_requests"] == [
            {"name": "PW", "originalName": "PW", "value": CANARY, "originalValue": "old"},
            {"name": "USER", "originalName": None, "value": "bob"},
        ]
        assert fake.notes == {
            ("app", "PW"): "Ask Ann [first]. [sealpipe: dev/m1]",
            ("app", "USER"): "[sealpipe: dev/m1]",
        }
        assert [asked.method for asked in fake.asked] == ["GET", "POST", "GET", "POST", "POST"]

    def test_a_note_is_shared_by_configs_but_not_the_marker(
        self, fake: FakeDoppler, at: Registries
    ) -> None:
        fake.config("app", "prd", PW="theirs")
        put(at(), "app/dev", PW=CANARY)
        with pytest.raises(WriteConflictError):
            put(at(), "app/prd", PW=CANARY)
        put(at(), "app/prd", "replace", PW=CANARY)
        assert fake.notes["app", "PW"] == "[sealpipe: dev/m1 prd/m1]"

    def test_one_secret_beside_an_equal_one_is_created(
        self, fake: FakeDoppler, at: Registries
    ) -> None:
        fake.config("app", "dev", PW=CANARY, THEIRS="x")
        assert not put(at(), "app/dev", PW=CANARY, USER="bob").already
        assert kept(fake) == {"PW": CANARY, "THEIRS": "x", "USER": "bob"}

    def test_a_value_that_changes_in_between_is_seen(
        self, fake: FakeDoppler, at: Registries
    ) -> None:
        secrets = fake.config("app", "dev", PW="first")
        change = meanwhile(lambda: secrets.update(PW=Kept("second")))
        fake.rule = first(lambda asked: asked.method == "POST", change)
        put(at(), "app/dev", "replace", PW=CANARY)
        assert [each["change_requests"][0]["originalValue"] for each in posts(fake)] == [
            "first",
            "second",
        ]
        assert kept(fake) == {"PW": CANARY}

    @pytest.mark.parametrize("value", ["${ADMIN_PASSWORD}", "x${app.prd.PW}", "a ${ b", "\0"])
    def test_a_value_that_doppler_would_expand_is_refused(
        self, fake: FakeDoppler, at: Registries, value: str
    ) -> None:
        with pytest.raises(UnsupportedError):
            put(at(), "app/dev", PW=value, OK="x")
        assert fake.asked == []

    def test_without_access_to_notes_the_value_is_stored_all_the_same(
        self, fake: FakeDoppler, at: Registries
    ) -> None:
        fake.tokens[SERVICE].notes = False
        assert not put(at(SERVICE), "", PW=CANARY).already
        assert (kept(fake), fake.notes) == ({"PW": CANARY}, {})

    def test_what_was_rotated_stays_where_another_secret_is_added(
        self, fake: FakeDoppler, at: Registries
    ) -> None:
        put(at(), "app/dev", PW=CANARY)
        fake.configs["app", "dev"]["PW"] = Kept("rotated")
        put(at(), "app/dev", "merge", PW=CANARY, USER="bob")
        assert kept(fake) == {"PW": "rotated", "USER": "bob"}

    def test_a_value_that_does_not_read_back_is_an_error(
        self, fake: FakeDoppler, at: Registries, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        other = meanwhile(lambda: fake.configs["app", "dev"].update(PW=Kept("theirs")), after=True)
        fake.rule = first(lambda asked: asked.method == "POST", other)
        with pytest.raises(PluginError, match="did not read back as it was written"):
            put(at(), "app/dev", PW=CANARY)
        monkeypatch.setattr(fake, "_compute", lambda _where, raw: f"expanded {raw}")
        with pytest.raises(PluginError, match="did not read back as it was written"):
            put(at(), "app/dev", USER=CANARY)

    def test_a_service_token_stores_in_its_own_config(
        self, fake: FakeDoppler, at: Registries
    ) -> None:
        put(at(SERVICE), "", PW=CANARY)
        assert (kept(fake), fake.notes) == ({"PW": CANARY}, {("app", "PW"): "[sealpipe: dev/m1]"})
        assert put(at(SERVICE), "app/dev", PW=CANARY).already

    def test_the_marker_is_added_where_it_is_missing(
        self, fake: FakeDoppler, at: Registries
    ) -> None:
        fake.rule = first(lambda asked: asked.path.endswith("/note"), Reply(503))
        with pytest.raises(UnavailableError):
            put(at(), "app/dev", PW=CANARY)
        assert put(at(), "app/dev", PW=CANARY).already
        assert fake.notes["app", "PW"] == "[sealpipe: dev/m1]"

    def test_what_is_written_unseen_is_not_called_confirmed(
        self, fake: FakeDoppler, at: Registries
    ) -> None:
        fake.config("app", "dev")["PW"] = Kept("old", "restricted")
        fake.tokens[PERSONAL].projects = {"app"}
        with pytest.raises(WriteConflictError):
            put(at(PERSONAL), "app/dev", PW=CANARY)
        assert not put(at(PERSONAL), "app/dev", "replace", PW=CANARY).known
        assert fake.configs["app", "dev"]["PW"] == Kept(CANARY, "restricted")


_LETTERS = string.ascii_letters + string.digits
_PARTS = st.builds(
    "".join, st.tuples(st.sampled_from(_LETTERS), st.text(f"{_LETTERS}_.-", max_size=20))
)
_MARKERS = st.lists(st.text(f"{_LETTERS}._/-", min_size=1, max_size=80), max_size=8, unique=True)


@given(_PARTS, _PARTS)
def test_a_reference_names_exactly_one_config(project: str, config: str) -> None:
    locator = Locator("doppler", f"{project}/{config}", (), "text")
    assert parse_config(locator, has_service_token=False) == (project, config, "text")


@given(st.text(max_size=60), _MARKERS, st.integers(30, 400))
def test_markers_are_found_again_and_the_text_stays(
    text: str, markers: list[str], limit: int
) -> None:
    own, _ = split_markers(text)
    marked = text
    for marker in markers:
        before, marked = marked, append_marker(marked, marker, limit)
        assert marked == before or len(marked) <= limit
        fits = len(f"{own} [sealpipe: {marker}]".lstrip(" ")) <= limit
        assert (split_markers(marked)[1][-1:] == [marker]) is fits or marked == before
    assert split_markers(marked)[0].strip(" ") == own.strip(" ")
