"""The environment, the config file and the credential's file, read without a process."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sealpipe import Client, CredentialError, SettingError, StateError
from sealpipe.ci_systems import detect_ci_system
from sealpipe.config import Config
from sealpipe.minting import mint
from sealpipe.state.files import find_state_directory, identify_pipeline, identify_run

GOOD = "svc_sk_live_CImPemhu0OnFu67o.qJD_fXTkHteKGs_0yDkgq7OPMa88-U4n6FfN7wYWebI"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / ".config/sealpipe").mkdir(parents=True)
    (tmp_path / ".config/sealpipe/config.toml").write_text('base_url = "https://home.example/v1"\n')
    (tmp_path / "xdg/sealpipe").mkdir(parents=True)
    (tmp_path / "xdg/sealpipe/config.toml").write_text('base_url = "https://xdg.example/v1"\n')
    (tmp_path / "named.toml").write_text('base_url = "https://named.example/v1"\n')
    return tmp_path


def test_the_config_file_is_the_named_one_else_that_of_xdg_else_that_of_the_home(
    home: Path,
) -> None:
    environ = {"HOME": str(home)}
    assert Config(environ).user == {"base_url": "https://home.example/v1"}
    environ["XDG_CONFIG_HOME"] = str(home / "xdg")
    assert Config(environ).user == {"base_url": "https://xdg.example/v1"}
    environ["SEALPIPE_CONFIG"] = str(home / "named.toml")
    assert Config(environ).user == {"base_url": "https://named.example/v1"}


@pytest.mark.parametrize("environ", [{}, {"HOME": ""}, {"XDG_CONFIG_HOME": "xdg"}, {"HOME": "."}])
def test_a_relative_place_is_none(
    home: Path, monkeypatch: pytest.MonkeyPatch, environ: dict[str, str]
) -> None:
    monkeypatch.chdir(home)
    assert Config(environ).path is None


def test_stores_and_plugins_are_left_to_whom_they_belong(home: Path) -> None:
    file = home / "named.toml"
    file.write_text(
        '[stores.prod-vault]\nplugin = "vault"\n[plugins]\nprefer = "x"\n[share]\nviews = 3\n'
    )
    assert Config({"SEALPIPE_CONFIG": str(file)}).user["share"] == {"views": 3}


def test_the_credential_is_the_variable_or_the_file_and_never_both(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(f"{GOOD}\n")
    file.chmod(0o600)
    assert Config({}).read_api_key(None) is None
    assert Config({"SEALPIPE_API_KEY": ""}).read_api_key(None) is None
    for found in (
        Config({"SEALPIPE_API_KEY": GOOD}).read_api_key(None),
        Config({"SEALPIPE_API_KEY": ""}).read_api_key(str(file)),
    ):
        assert found is not None
        assert found.reveal() == GOOD
    with pytest.raises(SettingError, match="both"):
        Config({"SEALPIPE_API_KEY": GOOD}).read_api_key(str(file))


@pytest.mark.parametrize(
    ("content", "read"),
    [
        (f"{GOOD}\n", GOOD),
        (f"{GOOD}\r\n", GOOD),
        (GOOD, GOOD),
        (f"{GOOD}\n\n", f"{GOOD}\n"),
        ("\n", ""),
        (" x ", " x "),
    ],
)
def test_one_final_newline_of_the_file_is_dropped_and_nothing_else(
    tmp_path: Path, content: str, read: str
) -> None:
    file = tmp_path / "key"
    file.write_text(content, newline="")
    file.chmod(0o600)
    found = Config({}).read_api_key(str(file))
    assert found is not None
    assert found.reveal() == read


@pytest.mark.parametrize("content", [b"\xff\xfe", "é".encode()])
def test_a_file_that_is_not_plain_text_is_refused_without_its_content(
    tmp_path: Path, content: bytes
) -> None:
    file = tmp_path / "key"
    file.write_bytes(content)
    file.chmod(0o600)
    with pytest.raises(CredentialError, match="not plain text") as caught:
        Config({}).read_api_key(str(file))
    assert caught.value.__context__ is None


def test_a_file_that_everybody_may_write_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(GOOD)
    file.chmod(0o602)
    with pytest.raises(CredentialError, match="any user can write"):
        Config({}).read_api_key(str(file))


def test_a_credential_file_of_more_than_4096_bytes_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("x" * 4096)
    file.chmod(0o600)
    found = Config({}).read_api_key(str(file))
    assert found is not None
    assert len(found.reveal()) == 4096
    for size in (4097, 1 << 40):  # a file of the second size does not fit into memory
        os.truncate(file, size)
        with pytest.raises(CredentialError) as caught:
            Config({}).read_api_key(str(file))
        assert caught.value.message == f"the credential file {file} is larger than 4096 bytes"
        assert "only the credential" in caught.value.remedy


def test_unknown_names_come_with_the_nearest_known_one() -> None:
    far = "SEALPIPE_" + "XQ" * 20
    environ = {
        "SEALPIPE_DEADLIN": "1s",
        far: "",
        "SEALPIPE_DEADLINE": "1s",
        "SEALPIPE_STORE__X__Y": "z",
    }
    assert Config(environ).find_unknown_variables() == [
        ("SEALPIPE_DEADLIN", "SEALPIPE_DEADLINE"),
        (far, None),
    ]
    assert Config({"PATH": "/bin", "HOME": "/"}).find_unknown_variables() == []


# -- the state folder and the CI run ------------------------------------------------------------

GITHUB = {"GITHUB_ACTIONS": "true", "RUNNER_TEMP": "/runner/temp", "HOME": "/home/me"}
GITLAB = {"GITLAB_CI": "true", "CI_PROJECT_DIR": "/builds/o/r", "HOME": "/home/me"}


@pytest.mark.parametrize(
    ("environ", "named", "folder"),
    [
        ({"HOME": "/home/me"}, "/said", "/said"),
        ({"HOME": "/home/me", "XDG_STATE_HOME": "/xdg"}, None, "/xdg/sealpipe"),
        ({"HOME": "/home/me", "XDG_STATE_HOME": "xdg"}, None, "/home/me/.local/state/sealpipe"),
        ({"HOME": "/home/me", "XDG_STATE_HOME": ""}, None, "/home/me/.local/state/sealpipe"),
        (GITHUB, None, "/runner/temp/sealpipe"),
        (GITHUB | {"XDG_STATE_HOME": "/xdg"}, None, "/xdg/sealpipe"),
        (GITLAB, None, "/builds/o/r.tmp/sealpipe"),
    ],
)
def test_the_state_folder_is_the_first_that_is_known(
    environ: dict[str, str], named: str | None, folder: str
) -> None:
    assert find_state_directory(environ, named) == Path(folder)


@pytest.mark.parametrize("environ", [{}, {"HOME": ""}, {"HOME": "home"}])
def test_without_any_place_there_is_an_error_with_the_next_step(environ: dict[str, str]) -> None:
    with pytest.raises(StateError, match="the state directory cannot be located") as caught:
        find_state_directory(environ, None)
    assert "SEALPIPE_STATE_DIR" in caught.value.remedy


RUNS: dict[str, tuple[dict[str, str], str]] = {
    "github": (
        {
            "GITHUB_ACTIONS": "true",
            "GITHUB_RUN_ID": "7",
            "GITHUB_REPOSITORY": "o/r",
            "GITHUB_RUN_ATTEMPT": "2",
            "GITHUB_JOB": "build",
        },
        "o/r/7/2/build",
    ),
    "gitlab": ({"GITLAB_CI": "true", "CI_JOB_ID": "9", "CI_PROJECT_PATH": "g/p"}, "g/p/9"),
    "azure": (
        {
            "TF_BUILD": "True",
            "SYSTEM_COLLECTIONURI": "https://dev.azure.com/acme/",
            "SYSTEM_TEAMPROJECT": "p",
            "BUILD_BUILDID": "17",
            "SYSTEM_JOBID": "12f1",
        },
        "https://dev.azure.com/acme//p/17/12f1",
    ),
    "jenkins": (
        {"JENKINS_URL": "https://ci.example/", "JOB_NAME": "a/b", "BUILD_NUMBER": "5"},
        "https://ci.example//a/b/5",
    ),
    "circleci": ({"CIRCLECI": "true", "CIRCLE_WORKFLOW_ID": "w1", "CIRCLE_BUILD_NUM": "3"}, "w1/3"),
    "buildkite": (
        {"BUILDKITE": "true", "BUILDKITE_BUILD_ID": "b1", "BUILDKITE_JOB_ID": "j1"},
        "b1/j1",
    ),
    "bitbucket": (
        {
            "BITBUCKET_REPO_FULL_NAME": "o/r",
            "BITBUCKET_BUILD_NUMBER": "4",
            "BITBUCKET_STEP_UUID": "{s}",
        },
        "o/r/4/{s}",
    ),
    "teamcity": (
        {
            "TEAMCITY_VERSION": "2025.1",
            "TEAMCITY_PROJECT_NAME": "P",
            "TEAMCITY_BUILDCONF_NAME": "Deploy",
            "BUILD_NUMBER": "8",
        },
        "P/Deploy/8",
    ),
    "woodpecker": (
        {
            "CI": "woodpecker",
            "CI_REPO": "o/r",
            "CI_PIPELINE_NUMBER": "6",
            "CI_WORKFLOW_NUMBER": "1",
        },
        "o/r/6/1",
    ),
}
"""A job of each system by its documented variables, and what its run is called."""


@pytest.mark.parametrize(
    ("environ", "run"),
    [
        *RUNS.values(),
        ({}, ""),
        ({"CI": "true"}, ""),
        ({"GITHUB_ACTIONS": "true", "GITHUB_RUN_ID": ""}, ""),
        ({"CIRCLECI": "true"}, ""),
    ],
)
def test_a_ci_run_has_a_name_of_its_own(environ: dict[str, str], run: str) -> None:
    assert identify_run(environ) == run


@pytest.mark.parametrize("system", RUNS)
def test_each_part_of_a_run_tells_it_from_others(system: str) -> None:
    environ, run = RUNS[system]
    detected = detect_ci_system(environ)
    assert detected is not None
    indicators = {variable.partition("=")[0] for variable in detected.indicators}
    for name in environ.keys() - (indicators - {"BITBUCKET_BUILD_NUMBER", "BUILD_NUMBER"}):
        assert identify_run({**environ, name: "another"}) != run, name


REPEATED = {
    "github": (
        {"GITHUB_REPOSITORY": "o/r", "GITHUB_RUN_ID": "7"},
        {"GITHUB_RUN_ATTEMPT": "2", "GITHUB_JOB": "x"},
        "github/o/r/7",
    ),
    "gitlab": (
        {"CI_PROJECT_PATH": "g/p", "CI_PIPELINE_ID": "70"},
        {"CI_JOB_ID": "10"},
        "gitlab/g/p/70",
    ),
    "azure": (
        {"SYSTEM_COLLECTIONURI": "https://dev.azure.com/acme/", "BUILD_BUILDID": "17"},
        {"SYSTEM_JOBID": "2"},
        "azure/https://dev.azure.com/acme//17",
    ),
    "buildkite": ({"BUILDKITE_BUILD_ID": "b1"}, {"BUILDKITE_JOB_ID": "j2"}, "buildkite/b1"),
    "bitbucket": (
        {"BITBUCKET_REPO_FULL_NAME": "o/r", "BITBUCKET_BUILD_NUMBER": "4"},
        {"BITBUCKET_STEP_UUID": "{t}"},
        "bitbucket/o/r/4",
    ),
}
"""What names the run of a job, what a repeated job has another value of, and what the run is called
then.
"""


@pytest.mark.parametrize("system", REPEATED)
def test_a_repeated_job_belongs_to_the_same_run(system: str) -> None:
    parts, others, run = REPEATED[system]
    environ = {**RUNS[system][0], **parts}
    assert identify_pipeline(environ) == run
    assert identify_pipeline({**environ, **others}) == run
    for name in parts.keys() - {"BITBUCKET_BUILD_NUMBER"}:
        assert identify_pipeline({**environ, name: "another"}) != run
        assert identify_pipeline({**environ, name: ""}) == ""


@pytest.mark.parametrize("environ", [{}, {"CI": "true"}, RUNS["jenkins"][0]])
def test_elsewhere_nothing_says_to_which_run_a_repeated_job_belongs(
    environ: dict[str, str],
) -> None:
    assert identify_pipeline(environ) == ""


# -- Client.from_settings() ---------------------------------------------------------------------


@pytest.fixture
def clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An environment with what a client needs and no more."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SEALPIPE_API_KEY", GOOD)
    monkeypatch.setenv("SEALPIPE_BASE_URL", "https://api.example/v1")
    monkeypatch.setenv("SEALPIPE_LINK_BASE_URL", "https://links.example")
    return monkeypatch


def test_a_client_is_made_from_the_environment(clean: pytest.MonkeyPatch) -> None:
    clean.setenv("SEALPIPE_DEADLINE", "2m")
    session = Client.from_settings().session
    assert (session.base_url, session.link_base_url) == (
        "https://api.example/v1",
        "https://links.example",
    )
    assert (session.deadline, session.credential.key_id, session.ca_file) == (
        120.0,
        "CImPemhu0OnFu67o",
        None,
    )


def test_the_config_file_serves_where_the_environment_is_silent_or_empty(
    clean: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "named.toml"
    file.write_text(
        'base_url = "https://file.example/v1"\ndeadline = "5s"\nlink_base_url = '
        '"https://file.example"\n'
    )
    clean.setenv("SEALPIPE_CONFIG", str(file))
    clean.setenv("SEALPIPE_BASE_URL", "")
    session = Client.from_settings().session
    assert (session.base_url, session.deadline) == ("https://file.example/v1", 5.0)
    assert session.link_base_url == "https://links.example"


def test_nothing_in_the_working_directory_serves(clean: pytest.MonkeyPatch, tmp_path: Path) -> None:
    clean.delenv("SEALPIPE_BASE_URL")
    (tmp_path / ".env").write_text("SEALPIPE_BASE_URL=https://evil.example/v1\n")
    (tmp_path / "config.toml").write_text('base_url = "https://evil.example/v1"\n')
    (tmp_path / "base_url").write_text("https://evil.example/v1")
    with pytest.raises(SettingError, match="SEALPIPE_BASE_URL is not set"):
        Client.from_settings()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SEALPIPE_BASE_URL", "http://api.example/v1"),
        ("SEALPIPE_LINK_BASE_URL", "links.example"),
        ("SEALPIPE_DEADLINE", "soon"),
        ("SEALPIPE_SERVICE_TAG", "acme"),
        ("SEALPIPE_SERVICE_TAG", "NO"),
        ("SEALPIPE_API_KEY", "not a key"),
        ("SEALPIPE_API_KEY_FILE", "/nowhere"),
    ],
)
def test_what_is_wrong_is_a_setting_error_with_the_next_step(
    clean: pytest.MonkeyPatch, name: str, value: str
) -> None:
    clean.setenv(name, value)
    with pytest.raises(SettingError) as caught:
        Client.from_settings()
    assert caught.value.remedy
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("seconds", "says"),
    [
        (0, "is not positive"),
        (-1, "is not positive"),
        (float("nan"), "is not positive"),
        (20 * 86400 + 1, "is longer than 20 days"),
        (float("inf"), "is longer than 20 days"),
    ],
)
def test_a_deadline_is_positive_and_at_most_twenty_days(seconds: float, says: str) -> None:
    key = mint("svc").credential.reveal()
    addresses = {"base_url": "https://a.example/v1", "link_base_url": "https://a.example/s"}
    with Client(api_key=key, **addresses, deadline=20 * 86400):
        pass
    with pytest.raises(SettingError, match=f"the deadline {says}"):
        Client(api_key=key, **addresses, deadline=seconds)
