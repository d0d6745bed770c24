"""By which credentials Google is asked, and what is said of those that do not work."""

from __future__ import annotations

import itertools
import json
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from plugins.gcp.fake_secret_manager import (
    EMAIL,
    PROJECT,
    PROVIDER,
    TOKEN,
    FakeMetadata,
    FakeSecretManager,
)
from sealpipe.errors import (
    AccessDeniedError,
    NotConfiguredError,
    PluginError,
)
from sealpipe_plugins import machine_service
from sealpipe_plugins.gcp import transport
from sealpipe_plugins.gcp.login import is_googles
from support.backends import failed, refused, registry, values
from support.ci_jobs import job_token
from support.ports import silent_port

STORE = "SEALPIPE_STORE__OTHER__"


@pytest.fixture(autouse=True)
def secret(google: FakeSecretManager) -> None:
    google.hold("db", b"x")


@pytest.fixture
def named(google: FakeSecretManager, environ: dict[str, str]) -> dict[str, str]:
    """A store of another name, beside the variables of the default store."""
    return {
        **environ,
        f"{STORE}PLUGIN": "gcp-sm",
        f"{STORE}URL": google.base_url,
        f"{STORE}PROJECT": PROJECT,
    }


@pytest.fixture
def federated(named: dict[str, str]) -> dict[str, str]:
    """The same in a job whose CI system issues it a token."""
    job = {
        "CIRCLECI": "true",
        "CIRCLE_OIDC_TOKEN_V2": job_token(f"https://iam.googleapis.com/{PROVIDER}"),
    }
    return {**named, **job, f"{STORE}WORKLOAD_IDENTITY_PROVIDER": PROVIDER}


def paths(google: FakeSecretManager) -> list[str]:
    return [asked.path for asked in google.asked if not asked.path.endswith(":access")]


def test_a_service_account_logs_in_by_its_key(
    google: FakeSecretManager, keyed: dict[str, str]
) -> None:
    assert values(keyed, "gcp-sm:db") == [b"x"]
    assert paths(google) == ["/token"]


class TestFiles:
    @pytest.fixture
    def file(self, environ: dict[str, str]) -> Path:
        return Path(environ["GOOGLE_APPLICATION_CREDENTIALS"])

    def test_a_users_own_login(
        self, google: FakeSecretManager, environ: dict[str, str], file: Path
    ) -> None:
        file.write_text(google.user_credentials(quota_project_id="billed"))
        assert values(environ, "gcp-sm:db") == [b"x"]
        assert google.asked[-1].headers["x-goog-user-project"] == "billed"

    @pytest.mark.parametrize(("source", "asked"), [("file", []), ("url", ["/id-token"])])
    def test_the_file_that_a_federated_job_is_given(
        self,
        google: FakeSecretManager,
        environ: dict[str, str],
        file: Path,
        tmp_path: Path,
        source: str,
        asked: list[str],
    ) -> None:
        """It names where the job's own token is: a file, or an address with a query."""
        (tmp_path / "token").write_text(job_token(f"https://iam.googleapis.com/{PROVIDER}"))
        url = f"{google.base_url}/id-token?api-version=2.0&audience=a"
        token_format = {"type": "json", "subject_token_field_name": "value"}
        sources = {
            "file": {"file": str(tmp_path / "token")},
            "url": {"url": url, "format": token_format},
        }
        members = {
            "audience": f"//iam.googleapis.com/{PROVIDER}",
            "token_url": f"{google.base_url}/v1/token",
        }
        kind = {
            "type": "external_account",
            "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
        }
        file.write_text(json.dumps({**kind, **members, "credential_source": sources[source]}))
        assert values(environ, "gcp-sm:db") == [b"x"]
        assert paths(google) == [*asked, "/v1/token"]

    def test_an_impersonated_account(
        self, google: FakeSecretManager, environ: dict[str, str], file: Path
    ) -> None:
        account = f"projects/-/serviceAccounts/{EMAIL}"
        url = f"https://iamcredentials.googleapis.com/v1/{account}:generateAccessToken"
        kind = {"type": "impersonated_service_account", "service_account_impersonation_url": url}
        file.write_text(
            json.dumps({**kind, "source_credentials": json.loads(google.credentials())})
        )
        assert values(environ, "gcp-sm:db") == [b"x"]
        assert paths(google) == [
            "/token",
            f"/v1/projects/-/serviceAccounts/{EMAIL}:generateAccessToken",
        ]

    def test_of_gcloud_is_found_where_no_other_is_named(
        self, google: FakeSecretManager, environ: dict[str, str], tmp_path: Path
    ) -> None:
        del environ["GOOGLE_APPLICATION_CREDENTIALS"]
        (tmp_path / "application_default_credentials.json").write_text(google.user_credentials())
        assert values({**environ, "CLOUDSDK_CONFIG": str(tmp_path)}, "gcp-sm:db") == [b"x"]

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (None, "No such file"),
            ("{", "not a file with Google credentials"),
            ("[]", "not a file with Google credentials"),
            (
                '{"type": "service_account", "private_key": "Canary"}',
                "not a file with Google credentials",
            ),
            (
                (
                    '{"type": "external_account", "credential_source": {"executable": '
                    '{"command": "id"}}}'
                ),
                "not a file",
            ),
            ('{"type": "gdch_service_account"}', "its type is not one of"),
        ],
    )
    def test_that_cannot_be_used_say_so(
        self, content: str | None, words: str, environ: dict[str, str], file: Path
    ) -> None:
        file.unlink() if content is None else file.write_text(content)
        refused(environ, "gcp-sm:db", NotConfiguredError, words)

    def test_do_not_send_the_login_unencrypted(
        self, google: FakeSecretManager, environ: dict[str, str], file: Path
    ) -> None:
        file.write_text(google.credentials(token_uri="http://accounts.google.com/o/oauth2/token"))
        refused(environ, "gcp-sm:db", NotConfiguredError, "must be an https address")

    def test_that_name_a_stranger_send_no_file_there(
        self, environ: dict[str, str], file: Path, tmp_path: Path
    ) -> None:
        (tmp_path / "token").write_text("Canary")
        known = {
            "type": "external_account",
            "audience": f"//iam.googleapis.com/{PROVIDER}",
            "subject_token_type": "x",
            "credential_source": {"file": f"{tmp_path}/token"},
        }
        hosts = "elsewhere.example", "googleapis.com.example", "sts.googleapis.com@x.example"
        members = "token_url", "service_account_impersonation_url", "universe_domain"
        for host, member, part in itertools.product(hosts, members, ("", "source_credentials")):
            address = f"https://{host}/v1/projects/-/serviceAccounts/x:generateAccessToken"
            changed = {member: host if member == "universe_domain" else address}
            file.write_text(json.dumps({**known, **({part: changed} if part else changed)}))
            refused(environ, "gcp-sm:db", NotConfiguredError, "an address in it is not Google's")

    def test_of_another_cloud_of_googles_send_there(self) -> None:
        assert is_googles(
            "https://sts.apis-tpc.example/v1/token", "https://secretmanager.apis-tpc.example"
        )


class TestNamedStores:
    def test_never_take_what_serves_the_default_store(
        self, google: FakeSecretManager, named: dict[str, str], tmp_path: Path
    ) -> None:
        (tmp_path / "application_default_credentials.json").write_text(google.user_credentials())
        found = {**named, "CLOUDSDK_CONFIG": str(tmp_path)}
        refused(found, "other:db", NotConfiguredError, "apply to the default store only")
        assert google.asked == []

    def test_take_their_own_file(self, named: dict[str, str]) -> None:
        file = {f"{STORE}CREDENTIALS_FILE": named["GOOGLE_APPLICATION_CREDENTIALS"]}
        assert values({**named, **file}, "other:db") == [b"x"]

    def test_take_the_token_of_the_job(
        self, google: FakeSecretManager, federated: dict[str, str]
    ) -> None:
        assert values(federated, "other:db") == [b"x"]
        assert paths(google) == ["/v1/token"]

    def test_act_as_a_service_account_with_it(
        self, google: FakeSecretManager, federated: dict[str, str]
    ) -> None:
        assert values({**federated, f"{STORE}SERVICE_ACCOUNT": EMAIL}, "other:db") == [b"x"]
        assert paths(google) == [
            "/v1/token",
            f"/v1/projects/-/serviceAccounts/{EMAIL}:generateAccessToken",
        ]

    @pytest.mark.parametrize(
        ("more", "kind", "words"),
        [
            (
                {"WORKLOAD_IDENTITY_PROVIDER": "projects/1/none"},
                NotConfiguredError,
                "does not know the workload",
            ),
            ({"AUDIENCE": "another"}, NotConfiguredError, "another"),
            (
                {"SERVICE_ACCOUNT": "other@x.iam.gserviceaccount.com"},
                AccessDeniedError,
                "may not act as",
            ),
        ],
    )
    def test_say_why_the_job_gets_no_token(
        self, more: dict[str, str], kind: type[PluginError], words: str, federated: dict[str, str]
    ) -> None:
        changed = {**federated, **{f"{STORE}{name}": value for name, value in more.items()}}
        if "WORKLOAD_IDENTITY_PROVIDER" in more:
            changed["CIRCLE_OIDC_TOKEN_V2"] = job_token(
                "https://iam.googleapis.com/projects/1/none"
            )
        refused(changed, "other:db", kind, words)

    def test_need_a_provider_to_act_as_an_account(self, named: dict[str, str]) -> None:
        refused(
            {**named, f"{STORE}SERVICE_ACCOUNT": EMAIL},
            "other:db",
            NotConfiguredError,
            "no workload_identity",
        )


class TestOnAMachine:
    @pytest.fixture
    def bare(self, environ: dict[str, str]) -> dict[str, str]:
        del environ["GOOGLE_APPLICATION_CREDENTIALS"]
        return environ

    def test_of_googles_its_own_account_is_used(
        self, google: FakeSecretManager, bare: dict[str, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        google.tokens.add(f"{TOKEN}machine")
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{silent_port()}")
        with FakeMetadata(f"{TOKEN}machine") as metadata:
            host = f"127.0.0.1:{metadata.port}"
            assert values({**bare, "GCE_METADATA_HOST": host}, "gcp-sm:db") == [b"x"]

    def test_of_somebody_else_nothing_is_found(self, bare: dict[str, str]) -> None:
        with FakeMetadata("x", flavor="Other") as metadata:
            environ = {**bare, "GCE_METADATA_HOST": f"127.0.0.1:{metadata.port}"}
            refused(environ, "gcp-sm:db", NotConfiguredError, "no Google credentials were found")
        assert [asked.path for asked in metadata.asked] == ["/"]

    def test_that_does_not_answer_nothing_hangs(
        self, bare: dict[str, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(transport, "_METADATA_TIMEOUT", 0.1)
        with socket.create_server(("127.0.0.1", 0)) as silent:
            environ = {**bare, "GCE_METADATA_HOST": f"127.0.0.1:{silent.getsockname()[1]}"}
            refused(environ, "gcp-sm:db", NotConfiguredError, "has no metadata server")

    def test_that_answers_for_ever_nothing_hangs(
        self, bare: dict[str, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Elsewhere, anybody in the network may have the address of Google's metadata server."""
        monkeypatch.setattr(machine_service, "DEADLINE", 0.2)
        sent = list[int]()
        with socket.create_server(("127.0.0.1", 0)) as server:

            def drip() -> None:
                line, _ = server.accept()
                with line, suppress(OSError):
                    line.sendall(b"HTTP/1.1 200 OK\r\nMetadata-Flavor: Google\r\nX: ")
                    for number in range(600):
                        line.sendall(b"x")
                        sent.append(number)
                        time.sleep(0.05)

            thread = threading.Thread(target=drip, daemon=True)
            thread.start()
            environ = {**bare, "GCE_METADATA_HOST": f"127.0.0.1:{server.getsockname()[1]}"}
            assert isinstance(failed(registry(environ), "gcp-sm:db"), NotConfiguredError)
            thread.join(20)
        assert 0 < len(sent) < 600
