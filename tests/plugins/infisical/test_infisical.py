"""infisical: on a fake from Infisical's public reference."""

from __future__ import annotations

import string
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.infisical.conftest import Registries
from plugins.infisical.fake_infisical import (
    CLIENT_ID,
    CLIENT_SECRET,
    IDENTITY,
    PROJECT,
    SLUG,
    TOKEN,
    FakeInfisical,
    Kept,
)
from sealpipe.errors import (
    PluginError,
    SecretNotFoundError,
    UnsupportedError,
    WriteConflictError,
)
from sealpipe.plugin import Document, Locator
from sealpipe.registry import Registry
from sealpipe_plugins.infisical.folders import parse_folder
from sealpipe_plugins.infisical.writing import ENTRY
from support.backends import answers, opened, put_by, resolved
from support.ci_jobs import job_token
from support.fake_web import first, meanwhile

CANARY = "Canary-7d2e_Zk3Qx0Vn8Jw"
DEV = f"infisical:{PROJECT}/dev"
STORE = "SEALPIPE_STORE__OTHER__"


def kept(fake: FakeInfisical, path: str = "/") -> Mapping[str, str]:
    return {name: each.value for name, each in fake.folders["dev", path].items()}


def markers(fake: FakeInfisical, name: str = "PW") -> list[dict[str, Any]]:
    return fake.folders["dev", "/"][name].metadata


def writes(fake: FakeInfisical) -> list[str]:
    return [f"{asked.method} {asked.parts[-1]}" for asked in fake.asked if asked.method != "GET"]


class TestReading:
    def test_references_and_imports_are_followed_unless_raw(
        self, fake: FakeInfisical, at: Registries
    ) -> None:
        fake.folder(
            "dev", "/", HOST="db.example", URL="https://${HOST}/${dev.common.PATH}", TWICE="own"
        )
        fake.folder("dev", "/common", PATH="x", TWICE="common", BOTH="common")
        fake.folder("dev", "/later", BOTH="later")
        fake.imports["dev", "/"] = [("dev", "/common"), ("dev", "/later")]
        texts = [f"{DEV}#URL,TWICE,BOTH,PATH", f"Raw={DEV}?raw=1#URL"]
        assert [(each.key, opened(each)) for each in resolved(at(), *texts)] == [
            ("URL", b"https://db.example/x"),
            ("TWICE", b"own"),
            ("BOTH", b"later"),
            ("PATH", b"x"),
            ("Raw", b"https://${HOST}/${dev.common.PATH}"),
        ]
        with pytest.raises(SecretNotFoundError):
            resolved(at(), f"{DEV}?raw=1#PATH")

    def test_all_of_a_folder_is_one_request(self, fake: FakeInfisical, at: Registries) -> None:
        fake.folder("dev", "/app/db", **{f"KEY_{number}": "x" for number in range(50)})
        assert len(resolved(at(), *(f"{DEV}/app/db#KEY_{number}" for number in range(50)))) == 50
        assert len(fake.asked) == 1

    def test_a_project_is_named_by_its_id_or_its_slug(
        self, fake: FakeInfisical, at: Registries
    ) -> None:
        fake.folder("dev", "/", PW=CANARY)
        for project in (PROJECT, SLUG):
            assert [opened(each) for each in resolved(at(), f"infisical:{project}/dev/#PW")] == [
                CANARY.encode()
            ]
        assert [sorted(asked.query)[-1] for asked in fake.asked] == ["workspaceId", "workspaceSlug"]

    def test_what_is_hidden_is_left_out_and_counted(
        self, fake: FakeInfisical, at: Registries
    ) -> None:
        fake.folder("dev", "/", SEEN="x")["HIDDEN"] = Kept(CANARY, hidden=True)
        (document,) = answers(at(), DEV)
        assert isinstance(document, Document)
        assert (document.content, document.remark.partition(" is hidden")[0]) == (
            {"SEEN": "x"},
            "1 secret",
        )


class TestLogin:
    def by_job(
        self, fake: FakeInfisical, at: Registries, token: str = job_token("infisical")
    ) -> Registry:
        fake.identities[IDENTITY] = job_token("infisical")
        named = {
            "PLUGIN": "infisical",
            "URL": fake.base_url,
            "IDENTITY_ID": IDENTITY,
            "AUDIENCE": "infisical",
        }
        job = {"GITLAB_CI": "true", "VAULT_ID_TOKEN": token}
        return at(**{f"{STORE}{name}": value for name, value in named.items()}, **job)

    def test_a_job_logs_in_once_and_revokes_its_token(
        self, fake: FakeInfisical, at: Registries
    ) -> None:
        fake.folder("dev", "/", PW=CANARY)
        fake.folder("dev", "/app", PW=CANARY)
        registry = self.by_job(fake, at)
        texts = [f"other:{PROJECT}/dev{folder}#PW" for folder in ("", "/app")]
        assert len(resolved(registry, *texts)) == 2
        assert writes(fake) == ["POST login"]
        registry.close()
        assert len(fake.revoked) == 1
        assert fake.tokens == {TOKEN}

    def test_a_client_secret_logs_in(self, fake: FakeInfisical, at: Registries) -> None:
        fake.folder("dev", "/", PW=CANARY)
        login = {
            "INFISICAL_UNIVERSAL_AUTH_CLIENT_ID": CLIENT_ID,
            "INFISICAL_UNIVERSAL_AUTH_CLIENT_SECRET": CLIENT_SECRET,
        }
        assert [opened(each) for each in resolved(at("", **login), f"{DEV}#PW")] == [
            CANARY.encode()
        ]


class TestStoring:
    def test_each_secret_is_written_with_its_marker(
        self, fake: FakeInfisical, at: Registries
    ) -> None:
        theirs = [{"key": "owner", "value": "ann", "isEncrypted": False}]
        fake.folder("dev", "/")["PW"] = Kept("old", comment="Ask Ann.", metadata=theirs)
        put_by(at(), DEV, {"PW": CANARY, "USER": "bob"}, "replace")
        assert kept(fake) == {"PW": CANARY, "USER": "bob"}
        assert writes(fake) == ["PATCH PW", "POST USER"]
        assert fake.folders["dev", "/"]["PW"].comment == "Ask Ann."
        assert {each["key"]: each["value"] for each in markers(fake)} == {
            "owner": "ann",
            ENTRY: "m1",
        }

    def test_a_slug_names_the_project_to_write_in(
        self, fake: FakeInfisical, at: Registries
    ) -> None:
        put_by(at(), f"infisical:{SLUG}/dev", {"PW": CANARY})
        assert kept(fake) == {"PW": CANARY}

    def test_references_and_imports_are_off_when_reading_to_write(
        self, fake: FakeInfisical, at: Registries
    ) -> None:
        fake.folder("dev", "/", PW="${dev.common.PW}")
        fake.folder("dev", "/common", PW=CANARY, OTHER=CANARY)
        fake.imports["dev", "/"] = [("dev", "/common")]
        with pytest.raises(WriteConflictError):
            put_by(at(), DEV, {"PW": CANARY})
        put_by(at(), DEV, {"OTHER": CANARY})
        assert kept(fake) == {"PW": "${dev.common.PW}", "OTHER": CANARY}

    def test_what_is_deleted_in_between_is_created(
        self, fake: FakeInfisical, at: Registries
    ) -> None:
        fake.folder("dev", "/", PW="old")
        fake.rule = first(
            lambda asked: asked.method == "PATCH", meanwhile(fake.folders["dev", "/"].clear)
        )
        put_by(at(), DEV, {"PW": CANARY}, "replace")
        assert (kept(fake), writes(fake)) == ({"PW": CANARY}, ["PATCH PW", "POST PW"])

    def test_what_was_rotated_stays_where_another_secret_is_added(
        self, fake: FakeInfisical, at: Registries
    ) -> None:
        put_by(at(), DEV, {"PW": CANARY})
        fake.folders["dev", "/"]["PW"].value = "rotated"
        put_by(at(), DEV, {"PW": CANARY, "USER": "bob"}, "merge")
        assert kept(fake) == {"PW": "rotated", "USER": "bob"}

    def test_a_value_that_does_not_read_back_is_an_error(
        self, fake: FakeInfisical, at: Registries
    ) -> None:
        other = meanwhile(lambda: fake.folders["dev", "/"].update(PW=Kept("theirs")), after=True)
        fake.rule = first(lambda asked: asked.method == "POST", other)
        with pytest.raises(PluginError, match="did not read back as it was written"):
            put_by(at(), DEV, {"PW": CANARY})

    def test_an_equal_value_gets_the_marker_alone(
        self, fake: FakeInfisical, at: Registries
    ) -> None:
        fake.folder("dev", "/", PW=CANARY)
        assert put_by(at(), DEV, {"PW": CANARY}).already
        assert (fake.folders["dev", "/"]["PW"].value, markers(fake)[0]["value"]) == (CANARY, "m1")
        assert "secretValue" not in fake.asked[-1].json

    def test_encrypted_metadata_is_left_alone(self, fake: FakeInfisical, at: Registries) -> None:
        theirs = [{"key": "owner", "value": "***", "isEncrypted": True}]
        fake.folder("dev", "/")["PW"] = Kept("old", metadata=theirs)
        assert not put_by(at(), DEV, {"PW": CANARY}, "replace").already
        assert (kept(fake), markers(fake)) == ({"PW": CANARY}, theirs)
        assert put_by(at(), DEV, {"PW": CANARY}).already

    def test_a_change_that_waits_for_approval_is_not_stored(
        self, fake: FakeInfisical, at: Registries
    ) -> None:
        fake.approval = True
        with pytest.raises(UnsupportedError, match="a policy wants the change to be approved"):
            put_by(at(), DEV, {"PW": CANARY})

    @pytest.mark.parametrize(
        "value", ["${ADMIN_PW}", "a${dev.x.PW}", " x", "x ", "x\n\n", "\tx", "x\u00a0", "\0"]
    )
    def test_a_value_that_would_not_stay_as_it_is_is_refused(
        self, fake: FakeInfisical, at: Registries, value: str
    ) -> None:
        with pytest.raises(UnsupportedError):
            put_by(at(), DEV, {"OK": "x", "PW": value})
        assert fake.asked == []

    @pytest.mark.parametrize("value", ["x\n", "a\nb", "\n", "x y", ""])
    def test_white_space_that_stays_is_stored(
        self, fake: FakeInfisical, at: Registries, value: str
    ) -> None:
        put_by(at(), DEV, {"PW": value})
        assert kept(fake) == {"PW": value}

    def test_what_is_written_unseen_is_not_called_confirmed(
        self, fake: FakeInfisical, at: Registries
    ) -> None:
        fake.folder("dev", "/")["PW"] = Kept("old", hidden=True)
        with pytest.raises(WriteConflictError):
            put_by(at(), DEV, {"PW": CANARY})
        assert not put_by(at(), DEV, {"PW": CANARY}, "replace").known


_WORDS = st.text(f"{string.ascii_letters}{string.digits}_-", min_size=1, max_size=20)


@given(_WORDS, _WORDS, st.lists(_WORDS, max_size=4))
def test_a_reference_names_exactly_one_folder(
    project: str, environment: str, parts: list[str]
) -> None:
    body = "/".join([project, environment, *parts])
    for text in (body, f"{body}/"):
        folder = parse_folder(Locator("infisical", text, (), "text"))
        assert (folder.project, folder.environment, folder.path) == (
            project,
            environment,
            "/" + "/".join(parts),
        )
        assert str(folder) == body
