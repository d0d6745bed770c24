"""OIDC tokens of jobs, by one call for all systems: what each gives, for which audience, and what a
job lacks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from plugins.ci.fakes import CONNECTION, FakeAzure, FakePrograms, make_token
from sealpipe.ci_systems import CI_SYSTEMS, CISystem
from sealpipe.errors import BackendAuthError, NotConfiguredError, PluginError, UnavailableError
from sealpipe.network.plugin_network import PluginNetwork
from sealpipe.registry import Registry
from support.ci_jobs import AZURE, BUILDKITE, CIRCLECI, JENKINS, JOBS, ROWS, titled
from support.fake_web import Reply

VARIABLES = {
    "bitbucket": "BITBUCKET_STEP_OIDC_TOKEN",
    "circleci": "CIRCLE_OIDC_TOKEN_V2",
    "jenkins": "ID_TOKEN",
}
VARIABLES |= {"gitlab": "VAULT_ID_TOKEN"}
AZURES = "api://AzureADTokenExchange"


def registry(environ: Mapping[str, str]) -> Registry:
    return Registry(environ=environ, network=lambda: PluginNetwork(None))


def token(environ: Mapping[str, str], audience: str | None = None) -> str:
    return registry(environ).oidc_token(audience).reveal()


def refusal(environ: Mapping[str, str], audience: str | None = None) -> PluginError:
    with pytest.raises(PluginError) as caught:
        registry(environ).oidc_token(audience)
    return caught.value


@pytest.fixture
def azure() -> Iterator[FakeAzure]:
    with FakeAzure(make_token(AZURES)) as fake:
        yield fake


@pytest.mark.parametrize("row", CI_SYSTEMS, ids=titled)
def test_a_job_without_a_token_says_what_it_needs(row: CISystem) -> None:
    name, _, value = row.indicators[0].partition("=")
    error = refusal(JOBS.get(row.name, {name: value or "true"}), "vault")
    assert isinstance(error, NotConfiguredError)
    assert error.remedy.startswith(row.job.oidc_setup or "authenticate another way")


@pytest.mark.parametrize(("name", "variable"), VARIABLES.items())
def test_a_token_in_a_variable_is_the_one_for_its_audiences(name: str, variable: str) -> None:
    assert ROWS[name].job.oidc == variable
    for audiences in (["vault"], ["other", "vault"]):
        environ = JOBS[name] | {variable: make_token(*audiences)}
        assert token(environ, "vault") == token(environ) == environ[variable]


@pytest.mark.parametrize(
    ("name", "variable"), [each for each in VARIABLES.items() if each[0] != "circleci"]
)
def test_an_audience_that_the_variable_has_not_is_told_with_those_that_it_has(
    name: str, variable: str
) -> None:
    given = make_token("other", "second")
    error = refusal(JOBS[name] | {variable: given}, "vault")
    assert isinstance(error, NotConfiguredError)
    assert (
        error.message
        == f"{variable} is not a token for the audience vault; it is for other, second"
    )
    assert error.remedy == f"the audience: {ROWS[name].job.audience}"
    assert given not in repr(error)


@pytest.mark.parametrize("name", ["gitlab", "jenkins"])
def test_the_settings_name_another_variable(name: str) -> None:
    setting = {f"SEALPIPE_PLUGIN_{name.upper()}__ID_TOKEN_VARIABLE": "AWS_TOKEN"}
    assert token(JOBS[name] | setting | {"AWS_TOKEN": make_token("aws")}, "aws") == make_token(
        "aws"
    )
    error = refusal(JOBS[name] | setting)
    assert "has no AWS_TOKEN" in error.message
    assert "AWS_TOKEN" in error.remedy
    assert f"SEALPIPE_PLUGIN_{name.upper()}__ID_TOKEN_VARIABLE" in error.remedy


# -- CircleCI --------------------------------------------------------------------------------------


def test_circleci_has_a_token_for_another_audience_by_its_program(programs: FakePrograms) -> None:
    programs.set({'va"u lt': make_token("vault")})
    environ = (
        CIRCLECI
        | programs.path
        | {"CIRCLE_OIDC_TOKEN_V2": make_token("org"), "SEALPIPE_API_KEY": "canary"}
    )
    assert token(environ, "org") == make_token("org")
    assert programs.calls == []
    assert token(environ, 'va"u lt') == make_token("vault")
    (call,) = programs.calls
    assert call.argv == ["circleci", "run", "oidc", "get", "--claims", '{"aud": "va\\"u lt"}']
    assert "SEALPIPE_API_KEY" not in call.environ


def test_circleci_without_its_program_says_which_audience_there_is() -> None:
    error = refusal(CIRCLECI | {"CIRCLE_OIDC_TOKEN_V2": make_token("org")}, "vault")
    assert isinstance(error, NotConfiguredError)
    assert (
        error.message == "CIRCLE_OIDC_TOKEN_V2 is not a token for the audience vault; it is for org"
    )
    assert "only the ID of the organization" in error.remedy


# -- Buildkite -------------------------------------------------------------------------------------


def test_buildkite_has_a_token_for_any_audience(programs: FakePrograms) -> None:
    programs.set(
        {"vault": make_token("vault"), "": make_token("buildkite"), "--job=x": make_token("x")}
    )
    environ = BUILDKITE | programs.path
    for audience in ("vault", None, "--job=x"):
        assert token(environ, audience) == make_token(
            audience.removeprefix("--job=") if audience else "buildkite"
        )
    assert [call.argv[3:] for call in programs.calls] == [
        ["--audience=vault"],
        [],
        ["--audience=--job=x"],
    ]


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("fails", BackendAuthError),
        ("", PluginError),
        ("two words", PluginError),
        ("ä", PluginError),
    ],
)
@pytest.mark.parametrize("name", ["buildkite", "circleci"])
def test_a_program_that_prints_no_token_is_told_without_its_words(
    name: str, fault: str, error: type[PluginError], programs: FakePrograms
) -> None:
    programs.set(faults={"oidc": fault, "run": fault})
    found = refusal(JOBS[name] | programs.path, "vault")
    assert type(found) is error
    assert found.message.startswith("no OIDC token: ")
    assert "canary" not in f"{found.message}{found.remedy}{found!r}"
    assert not fault or fault == "fails" or fault not in found.message


def test_a_program_that_hangs_ends_with_the_deadline(programs: FakePrograms) -> None:
    programs.set(faults={"oidc": "hangs"})
    environ = BUILDKITE | programs.path
    with pytest.raises(BackendAuthError, match=r"did not finish within 1 s"):
        Registry(environ=environ, deadline=1).oidc_token("vault")


# -- Azure -----------------------------------------------------------------------------------------


def test_azure_gives_the_token_of_the_service_connection(azure: FakeAzure) -> None:
    assert token(AZURE | azure.environ) == token(AZURE | azure.environ, AZURES) == azure.token
    asked = azure.asked[0]
    assert (asked.method, asked.headers["x-tfs-fedauthredirect"]) == ("POST", "Suppress")
    assert asked.headers["content-type"].startswith("application/json")


def test_azure_knows_the_connection_of_its_own_tasks(azure: FakeAzure) -> None:
    environ = AZURE | azure.environ | {"AZURESUBSCRIPTION_SERVICE_CONNECTION_ID": CONNECTION}
    del environ["SEALPIPE_PLUGIN_AZURE__SERVICE_CONNECTION"]
    assert token(environ) == azure.token


@pytest.mark.parametrize(
    ("variable", "lacking"),
    [
        ("SYSTEM_OIDCREQUESTURI", "SYSTEM_OIDCREQUESTURI"),
        ("SYSTEM_ACCESSTOKEN", "SYSTEM_ACCESSTOKEN"),
        ("SEALPIPE_PLUGIN_AZURE__SERVICE_CONNECTION", "service_connection"),
    ],
)
def test_azure_says_what_the_step_lacks(azure: FakeAzure, variable: str, lacking: str) -> None:
    environ = {name: value for name, value in (AZURE | azure.environ).items() if name != variable}
    error = refusal(environ)
    assert isinstance(error, NotConfiguredError)
    assert f"it has no {lacking}" in error.message
    assert "SYSTEM_ACCESSTOKEN: $(System.AccessToken)" in error.remedy
    assert "SEALPIPE_PLUGIN_AZURE__SERVICE_CONNECTION" in error.remedy
    assert azure.asked == []


def test_azure_cannot_issue_for_another_audience(azure: FakeAzure) -> None:
    error = refusal(AZURE | azure.environ, "vault")
    assert isinstance(error, NotConfiguredError)
    assert error.message.endswith(f"is not a token for the audience vault; it is for {AZURES}")


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Reply(401), BackendAuthError),
        (Reply(403, "no"), BackendAuthError),
        (Reply(404), BackendAuthError),
        (Reply(302, "", {"location": "https://login.example/"}), NotConfiguredError),
        (Reply(429), UnavailableError),
        (Reply(503), UnavailableError),
        (Reply(200, "<html>"), PluginError),
        (Reply(200, {"oidcToken": ""}), PluginError),
        (Reply(200, {"oidcToken": 1}), PluginError),
        (Reply(200, []), PluginError),
    ],
)
def test_azure_without_a_token_says_why_and_shows_no_bearer(
    azure: FakeAzure, reply: Reply, kind: type[PluginError]
) -> None:
    azure.instead.append(reply)
    error = refusal(AZURE | azure.environ)
    assert type(error) is kind
    assert "canary" not in f"{error.message} {error.remedy} {error!r}"
    assert len(azure.asked) == 1


def test_azures_endpoint_must_be_https() -> None:
    environ = AZURE | {
        "SYSTEM_OIDCREQUESTURI": "http://dev.azure.example/x",
        "SYSTEM_ACCESSTOKEN": "t",
    }
    error = refusal(environ | {"SEALPIPE_PLUGIN_AZURE__SERVICE_CONNECTION": CONNECTION})
    assert "SYSTEM_OIDCREQUESTURI" in error.message
    assert "https" in error.message


def test_a_token_of_a_jenkins_credential_is_not_shown_in_a_repr() -> None:
    ci = registry(JENKINS | {"ID_TOKEN": make_token("vault")})
    assert make_token("vault") not in repr([ci.ci(), ci.oidc_token("vault")])
