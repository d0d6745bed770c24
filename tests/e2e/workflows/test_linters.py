"""Linters find nothing in our workflows, in the actions, in the workflows to copy, and in any
script.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from support.parts import ROOT, check_schema, program

WORKFLOWS = sorted(
    [
        *(ROOT / ".github/workflows").glob("*.yml"),
        *(ROOT / "docs/how-to/ci/workflows").glob("*.yml"),
        *Path(__file__).parent.glob("*.yml"),
    ]
)
ACTIONS = sorted(ROOT.glob("actions/*/action.yml"))
PIN = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}|\$/[\w./-]+")


def scripts() -> list[Path]:
    """Every file of the project that a shell reads."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    ).stdout.split("\n")  # fmt: skip
    files = [ROOT / name for name in listed if name]
    found = []
    for file in files:
        if file.is_file():
            with file.open("rb") as stream:
                first = stream.readline(64)
            if file.suffix == ".sh" or re.match(rb"#!.*\b(ba|da)?sh\b", first):
                found.append(file)
    return found


def lint(name: str, *words: str | Path) -> None:
    done = subprocess.run(
        [program(name), *words], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_there_is_something_to_look_at() -> None:
    assert {"actions.yml", "release.yml", "share.yml", "tests.yml", "end_to_end.yml"} <= {
        each.name for each in WORKFLOWS
    }
    assert [each.parent.name for each in ACTIONS] == [
        "batch",
        "collect",
        "expire",
        "request",
        "share",
        "unseal",
    ]
    assert {"run", "setup.sh", "extras.sh"} <= {each.name for each in scripts()}


def test_actionlint() -> None:
    lint("actionlint", *WORKFLOWS)


def test_zizmor_as_an_auditor() -> None:
    lint(
        "zizmor",
        "--offline",
        "--persona",
        "auditor",
        "--no-ignores",
        "--strict-collection",
        *WORKFLOWS,
        *ACTIONS,
    )


@pytest.mark.parametrize(
    ("schema", "files"), [("github-workflows", WORKFLOWS), ("github-actions", ACTIONS)]
)
def test_the_schemas(schema: str, files: list[Path]) -> None:
    check_schema(f"vendor.{schema}", *files)


def test_shellcheck_of_every_script() -> None:
    lint("shellcheck", "--severity=style", *scripts())


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_a_workflow_is_pinned_bounded_and_has_no_right_that_a_job_does_not_name(file: Path) -> None:
    workflow = yaml.safe_load(file.read_text(encoding="utf-8"))
    called = list(workflow[True]) == ["workflow_call"]  # YAML 1.1 reads `on` as true
    assert workflow["permissions"] == {}
    assert called or "cancel-in-progress" in workflow["concurrency"]
    for job in workflow["jobs"].values():
        assert "uses" in job or job["timeout-minutes"] <= 90
        for step in [job, *job.get("steps", [])]:
            assert PIN.fullmatch(step.get("uses", "$/none")), step
            if "actions/checkout@" in step.get("uses", ""):
                assert step["with"]["persist-credentials"] is False


def test_a_pin_says_its_version_and_one_version_has_one_pin() -> None:
    text = "".join(file.read_text(encoding="utf-8") for file in WORKFLOWS)
    found = set(
        re.findall(
            r"uses: ((?!OWNER/sealpipe)[\w.-]+/[\w./-]+)@([0-9a-f]{40})  # v(\d+\.\d+\.\d+)\n", text
        )
    )
    assert len(found) == len({name for name, *_ in found})
    assert len(re.findall(r"uses: (?!OWNER/sealpipe)[\w.-]+/[\w./-]+@", text)) == len(
        re.findall(r"uses: (?!OWNER/sealpipe)\S+@[0-9a-f]{40}  # v\d", text)
    )


@pytest.mark.parametrize(
    "file", [*WORKFLOWS, *ACTIONS], ids=lambda file: f"{file.parent.name}-{file.stem}"
)
def test_no_expression_stands_in_a_script(file: Path) -> None:
    read = yaml.safe_load(file.read_text(encoding="utf-8"))
    jobs = read["jobs"].values() if "jobs" in read else [read["runs"]]
    assert [
        step for job in jobs for step in job.get("steps", []) if "${{" in step.get("run", "")
    ] == []


def test_every_script_stops_at_what_fails_and_none_traces() -> None:
    for file in scripts():
        text = file.read_text(encoding="utf-8")
        sourced = not text.startswith("#!")
        assert sourced or re.search(r"^set (\+x )?-eu(o pipefail)?$", text, re.MULTILINE), file
        assert not re.search(r"\bset -[a-z]*x|\bbash -[a-z]*x|-o xtrace", text), file


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("actionlint", "${{ no.such.context }}", "undefined variable"),
        ("zizmor", "${{ github.event.issue.title }}", "template-injection"),
    ],
)
def test_they_find_what_they_should(tmp_path: Path, name: str, text: str, said: str) -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text(encoding="utf-8"))
    workflow["on"] = workflow.pop(True)
    workflow["jobs"]["gate"]["steps"][-1]["run"] = f"echo {text}"
    bad = tmp_path / "bad.yml"
    bad.write_text(yaml.safe_dump(workflow))
    with pytest.raises(AssertionError, match=said):
        lint(name, *(["--offline"] if name == "zizmor" else []), bad)
