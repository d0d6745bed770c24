"""The template of batches: what its script starts, and a batch that goes on from pipeline to
pipeline by its cache.
"""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from e2e.gitlab.gitlab_ci import Pipeline, handed
from sealpipe_rehearsal.running_service import RunningService
from support.ci_jobs import later_sealpipe

CANARY = "canary-7f3a91"
VARIABLES = {
    "SEALPIPE_BATCH_DATABASE": "",
    "SEALPIPE_BATCH_ONLY": "",
    "SEALPIPE_BATCH_OUT": "plan.json",
    "TEMPLATE_FILE": "vendors.toml",
    "TEMPLATE_NAME": "vendors",
    "TEMPLATE_BEGIN": "$NEVER_SET",
}
KEYS = ("#x", "# x y", "$(touch pwned)", "-x", "*", "END", "\\")


def call(command: str, *words: str) -> list[str]:
    return ["batch", command, "--output", "text", "--", *(words or ("vendors.toml",))]


@pytest.mark.parametrize(
    ("command", "environ", "calls"),
    [
        ("run", {}, [call("adopt"), call("run")]),
        ("run", {"TEMPLATE_BEGIN": "true"}, [call("run")]),
        ("run", {"SEALPIPE_BATCH_DATABASE": "env:DATABASE_URL"}, [call("run")]),
        ("plan", {}, [call("plan")]),
        ("adopt", {}, [call("adopt")]),
        ("collect", {}, [call("collect", "vendors")]),
        ("collect", {"SEALPIPE_BATCH_ONLY": "acme"}, [call("collect", "vendors", "acme")]),
        ("remind", {"SEALPIPE_BATCH_ONLY": "\n".join(KEYS)}, [call("remind", "vendors", *KEYS)]),
    ],
)
def test_only_a_run_that_may_have_lost_its_cache_adopts_first(
    tmp_path: Path, command: str, environ: dict[str, str], calls: list[list[str]]
) -> None:
    given = {**VARIABLES, "TEMPLATE_COMMAND": command, **environ}
    assert handed("batch", tmp_path, given, code=0) == (0, calls)
    assert not (tmp_path / "pwned").exists()
    assert (tmp_path / "sealpipe-batch.tar").exists() == (command != "plan"), "a plan is no run"


def test_a_run_with_its_cache_unpacks_it(tmp_path: Path) -> None:
    (tmp_path / "batch").mkdir()
    (tmp_path / "batch/database").touch()
    with tarfile.open(tmp_path / "sealpipe-batch.tar", "w") as tar:
        tar.add(tmp_path / "batch", "batch")
    assert handed("batch", tmp_path, {**VARIABLES, "TEMPLATE_COMMAND": "run"}, code=18) == (
        18,
        [call("run")],
    )
    assert (tmp_path / ".sealpipe/batch/database").exists()
    assert (tmp_path / ".sealpipe").stat().st_mode & 0o777 == 0o700


def test_an_adoption_that_fails_is_repeated_by_the_next_run(tmp_path: Path) -> None:
    assert handed("batch", tmp_path, {**VARIABLES, "TEMPLATE_COMMAND": "run"}, code=10) == (
        10,
        [call("adopt")],
    )
    assert not (tmp_path / "sealpipe-batch.tar").exists()


def test_a_decision_needs_the_key_of_a_row(tmp_path: Path) -> None:
    assert handed("batch", tmp_path, {**VARIABLES, "TEMPLATE_COMMAND": "cancel"}) == (2, [])


BATCH = """
name = "vendors"
kind = "request"
key = "name"
[request]
ask = ["Password"]
send = ["file:OUT/{name}.link"]
[collect]
to = ["file:OUT/{name}.secret"]
[[row]]
name = "acme"
[[row]]
name = "bolt"
"""


def test_a_batch_goes_on_in_the_next_pipeline_by_its_cache(
    pipeline: Pipeline, service: RunningService, tmp_path: Path
) -> None:
    (pipeline.place / "vendors.toml").write_text(BATCH.replace("OUT", str(tmp_path)))
    scheduled = {"file": "vendors.toml", "detailed-exit-code": "true"}
    first = pipeline.run(
        (
            "batch",
            {"file": "vendors.toml", "job-name": "plan", "command": "plan", "stage": "before"},
        ),
        (
            "batch",
            {**scheduled, "job-name": "approved", "plan": "sealpipe-plan.json", "begin": "true"},
        ),
    )
    assert "WARN 15" in first.log, first.log
    assert "vendors\t2 rows: 2 waiting" in first.log
    for name in ("acme", "bolt"):
        link = next(
            word
            for word in (tmp_path / f"{name}.link").read_text().split()
            if word.startswith("http")
        )
        service.submitter().submit(link, {"Password": f"{CANARY}-{name}"})
    pipeline.sealpipe = later_sealpipe(tmp_path / "later", 120)
    second = pipeline.run(("batch", scheduled))
    assert (second.code, "vendors\t2 rows: 2 done" in second.log) == (0, True), second.log
    assert (tmp_path / "acme.secret").read_text() == f"{CANARY}-acme"
    assert CANARY not in first.log + second.log
