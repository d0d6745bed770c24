"""Outputs, annotations and summaries: no value of them is another command, and a program that fails
costs no link.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from plugins.ci.fakes import FakePrograms, read_azure_commands, read_env_file
from sealpipe.client_base import create_file
from sealpipe.errors import PluginError, UnsupportedError
from sealpipe.plugin import CI, Secret
from sealpipe.registry import Registry
from sealpipe_plugins.buildkite.ci import escape_markdown
from support.ci_jobs import AZURE, BITBUCKET, BUILDKITE, GITLAB, JOBS
from support.github_log import command
from support.terminal import ABROAD, Terminal

HOSTILE = [
    "a\nb",
    "a\r\n##vso[task.setvariable variable=PATH]/tmp",
    "]##vso[task.setvariable variable=PATH]/tmp",
    "x##vso[task.setvariable variable=PATH]/tmp",
    "a]b",
    "a;isSecret=true",
    "a|b|'|n|]",
    "##teamcity[setParameter name='env.PATH' value='/tmp']",
    "']\n##teamcity[buildStop comment='x']",
    "::set-output name=x::y",
    "100%%0A%3B%AZP25%5D",
    "a=b\nPATH=/tmp",
    "$(id) `id` ${PATH}",
    " <b>[x](https://e.example)</b> ![](y) :tada: **z**",
]


def found(environ: Mapping[str, str]) -> CI:
    ci = Registry(environ=environ, new_file=create_file).ci()
    assert ci is not None
    return ci


DO = """
import json, os, sys
from sealpipe.client_base import create_file
from sealpipe.registry import Registry
ci = Registry(environ=dict(os.environ), new_file=create_file).ci()
for method, *arguments in json.loads(sys.argv[1]):
    getattr(ci, method)(*arguments)
"""


def logged(environ: Mapping[str, str], *calls: tuple[str, ...]) -> str:
    """What calls of the plugin write into the job's log; nothing may be on stdout."""
    words = [sys.executable, "-c", DO, json.dumps(calls)]
    done = subprocess.run(words, env={**os.environ, **environ}, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, b""), done
    return done.stderr.decode()


def test_azure_gets_each_output_as_one_command_with_that_value() -> None:
    log = logged(AZURE, *(("set_output", "short-code", value) for value in HOSTILE))
    properties = {"variable": "SHORT_CODE", "isOutput": "true"}
    assert read_azure_commands(log) == [
        ("task.setvariable", properties, value) for value in HOSTILE
    ]
    assert log.count("\n") == len(HOSTILE)


def test_azure_gets_each_annotation_as_one_command_with_that_text() -> None:
    log = logged(AZURE, *(("annotate", "error", value) for value in HOSTILE))
    assert read_azure_commands(log) == [
        ("task.logissue", {"type": "error"}, value) for value in HOSTILE
    ]
    assert log.count("\n") == len(HOSTILE)


@pytest.mark.parametrize("name", ["a;isSecret=true", "a]b", "a b", "a\nb", "1a", "", "a=b", "ä"])
@pytest.mark.parametrize("job", [BITBUCKET, GITLAB], ids=["bitbucket", "gitlab"])
def test_a_name_that_is_no_variable_is_no_output(
    job: dict[str, str], name: str, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    files = {
        "BITBUCKET_PIPELINES_VARIABLES_PATH": str(file),
        "SEALPIPE_PLUGIN_GITLAB__DOTENV": str(file),
    }
    with pytest.raises(PluginError, match=r"the output .* cannot be written to"):
        found({**job, **files}).set_output(name, "x")
    assert not file.exists()


def test_a_name_that_is_no_variable_is_no_command_to_azure(
    capfd: pytest.CaptureFixture[str],
) -> None:
    ci = found(AZURE)
    for name in ("a;isSecret=true", "a]b", "a\nb", ""):
        with pytest.raises(PluginError):
            ci.set_output(name, "x")
    assert "##vso" not in capfd.readouterr().err


@pytest.mark.parametrize(
    "value", [value for value in HOSTILE if not re.fullmatch(r"[\w%]+", value)]
)
def test_bitbucket_and_gitlab_get_no_value_that_needs_quotes(value: str, tmp_path: Path) -> None:
    for job, variable in (
        (BITBUCKET, "BITBUCKET_PIPELINES_VARIABLES_PATH"),
        (GITLAB, "SEALPIPE_PLUGIN_GITLAB__DOTENV"),
    ):
        file = tmp_path / variable
        ci = found({**job, variable: str(file)})
        ci.set_output("before", "1")
        with pytest.raises(
            PluginError, match="this value of SHORT_CODE cannot be written to"
        ) as refused:
            ci.set_output("short-code", value)
        assert value not in f"{refused.value} {refused.value.remedy}"
        assert read_env_file(file) == {"BEFORE": "1"}


def test_the_last_output_of_a_name_counts_in_bitbucket(tmp_path: Path) -> None:
    file = tmp_path / "variables"
    ci = found({**BITBUCKET, "BITBUCKET_PIPELINES_VARIABLES_PATH": str(file)})
    for value in ("AbC", "2026-11-24T10:00:00Z", ""):
        ci.set_output("expires-at", value)
        assert read_env_file(file) == {"EXPIRES_AT": value}


@pytest.mark.parametrize("value", HOSTILE)
def test_buildkite_gets_an_output_on_stdin_byte_for_byte(
    value: str, programs: FakePrograms
) -> None:
    found({**BUILDKITE, **programs.path}).set_output("short-code", value)
    assert [call.argv for call in programs.calls] == [
        ["buildkite-agent", "meta-data", "set", "sealpipe:short-code"]
    ]
    assert programs.meta_data == {"sealpipe:short-code": value}


def test_buildkite_stores_no_empty_value_and_no_odd_name(programs: FakePrograms) -> None:
    ci = found({**BUILDKITE, **programs.path})
    ci.set_output("expires-at", "")
    ci.set_output("--job=other x", "1")
    assert programs.meta_data == {"sealpipe:expires-at": "-", "sealpipe:--job_other_x": "1"}


@pytest.mark.parametrize("value", HOSTILE)
def test_buildkite_shows_an_annotation_as_text(value: str, programs: FakePrograms) -> None:
    found({**BUILDKITE, **programs.path}).annotate("error", value)
    (call,) = programs.calls
    assert call.argv[1:] == ["annotate", "--append", "--style=error", "--context=sealpipe-error"]
    assert re.fullmatch(r"(?:\\[!-/:-@\[-`{-~]|[^!-/:-@\[-`{-~\n])+\n\n", call.stdin)
    assert re.sub(r"\\(.)", r"\1", call.stdin).strip() == " ".join(value.split())


def test_all_punctuation_is_escaped_in_markdown() -> None:
    text = "".join(map(chr, range(33, 127)))
    assert re.sub(r"\\([^A-Za-z0-9])", "", escape_markdown(text)) == "".join(
        filter(str.isalnum, text)
    )


@pytest.mark.parametrize(
    "name", ["bitbucket", "circleci", "gitlab", "jenkins", "teamcity", "woodpecker"]
)
def test_a_system_without_annotations_and_summary_gets_no_command(name: str) -> None:
    assert logged(JOBS[name], ("annotate", "error", HOSTILE[1]), ("summary", HOSTILE[1])) == ""


@pytest.mark.parametrize("name", ["circleci", "jenkins", "teamcity", "woodpecker"])
def test_a_system_without_outputs_says_so(name: str) -> None:
    with pytest.raises(UnsupportedError, match="takes no outputs"):
        found(JOBS[name]).set_output("short-code", "x")


def test_a_program_or_file_that_is_missing_is_no_output() -> None:
    with pytest.raises(UnsupportedError, match="BITBUCKET_PIPELINES_VARIABLES_PATH"):
        found(BITBUCKET).set_output("short-code", "x")
    with pytest.raises(UnsupportedError, match="buildkite-agent is not on PATH"):
        found(BUILDKITE).set_output("short-code", "x")


def test_azure_uploads_a_summary_that_only_the_agents_user_can_read(tmp_path: Path) -> None:
    log = logged({**AZURE, "AGENT_TEMPDIRECTORY": str(tmp_path)}, ("summary", "# Shared"))
    (one,) = read_azure_commands(log)
    (file,) = tmp_path.iterdir()
    assert (one.name, one.properties, one.data) == ("task.uploadsummary", {}, str(file))
    assert (file.suffix, file.read_text(), file.stat().st_mode & 0o777) == (
        ".md",
        "# Shared",
        0o600,
    )
    with pytest.raises(UnsupportedError, match="AGENT_TEMPDIRECTORY"):
        found(AZURE).summary("x")


def test_buildkite_shows_a_summary_as_an_annotation(programs: FakePrograms) -> None:
    found({**BUILDKITE, **programs.path}).summary("# Shared")
    (call,) = programs.calls
    assert (call.argv[3], call.stdin) == ("--style=info", "# Shared\n")


# -- Buildkite's program ---------------------------------------------------------------------------


def test_buildkite_masks_lines_of_values_by_one_call(programs: FakePrograms) -> None:
    ci = found({**BUILDKITE, **programs.path})
    ci.mask([Secret("  first line\nab\n'last' \"one\""), Secret("once")])
    assert programs.redacted == {
        "  first line\nab\n'last' \"one\"",
        "  first line",
        "'last' \"one\"",
        "once",
    }
    assert len(programs.calls) == 1
    ci.mask([])
    assert len(programs.calls) == 1


def test_the_program_gets_no_secret_in_arguments_or_environment(
    user: Terminal, programs: FakePrograms
) -> None:
    environ = BUILDKITE | programs.path | ABROAD
    done = user.sealpipe("share", "-f", "env:DB", "--print", DB="canary-of-the-database", **environ)
    link = done.out.strip()
    assert link
    assert {call.argv[1] for call in programs.calls} == {"redactor", "meta-data"}
    for call in programs.calls:
        assert not [name for name in call.environ if name.startswith("SEALPIPE_")]
        assert call.environ["BUILDKITE_JOB_ID"] == BUILDKITE["BUILDKITE_JOB_ID"]
        assert link.partition("#")[2][1:] not in json.dumps([call.argv, call.environ])
        assert user.environ["SEALPIPE_API_KEY"] not in json.dumps(
            [call.argv, call.environ, call.stdin]
        )


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("fails", "buildkite-agent redactor add ended with status 1"),
        ("hangs", "buildkite-agent redactor add did not finish within 5 s"),
    ],
)
def test_an_agent_that_cannot_mask_is_noted_and_costs_no_link(
    fault: str, reason: str, user: Terminal, programs: FakePrograms
) -> None:
    programs.set(faults={"redactor": fault, "meta-data": "fails"})
    words = ("share", "-f", "text:x", "--print", "--deadline", "5s")
    done = user.sealpipe(*words, **BUILDKITE, **programs.path, **ABROAD)
    assert (done.code, done.out.startswith("https://share.example/")) == (0, True), done
    assert f"sealpipe: not masked in this log: {reason}\n" in done.err
    assert "could not set the output short-code (PluginError)" in done.err
    assert "canary" not in done.err


def test_a_container_without_the_agent_is_noted_and_gets_the_link(user: Terminal) -> None:
    done = user.sealpipe("share", "-f", "text:x", "--print", **BUILDKITE, **ABROAD)
    assert (done.code, done.out.startswith("https://share.example/")) == (0, True), done
    assert "not masked in this log: the program buildkite-agent is not on PATH" in done.err
    assert "output" not in done.err


def test_an_error_in_a_buildkite_job_is_an_annotation(
    user: Terminal, programs: FakePrograms
) -> None:
    done = user.sealpipe(
        "share", "-f", "env:NOT_SET", "--print", **BUILDKITE, **programs.path, **ABROAD
    )
    assert done.code == 14
    assert [call.argv[1] for call in programs.calls] == ["annotate"]
    assert "NOT\\_SET" in programs.calls[0].stdin


def test_a_hostile_name_of_a_field_runs_no_command_in_any_job(
    user: Terminal, programs: FakePrograms
) -> None:
    name = "x ##vso[task.debug]x ##teamcity[buildStop] ::add-mask::y"
    for job in JOBS.values():
        done = user.sealpipe(
            "share", "-f", f"env:{name}", "--link-file", "link", **job, **programs.path
        )
        assert done.code == 14
        commands = [each.name for each in read_azure_commands(done.err)]
        assert commands == (["task.logissue"] if "TF_BUILD" in job else [])
        assert "##teamcity[" not in done.err.replace("##vso[task.logissue", "")
        assert {found.name for found in map(command, done.err.splitlines()) if found} <= {"error"}
