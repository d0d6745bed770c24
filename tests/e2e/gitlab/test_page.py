"""The pipelines on the page are ones that GitLab and the templates take."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.gitlab.gitlab_ci import Template
from sealpipe import parsing
from sealpipe.reference import parse
from sealpipe_rehearsal.running_service import RunningService
from support.mailbox import Mailbox, open_mailed_link
from support.parts import ROOT, check_schema
from support.terminal import Terminal

PAGE = (ROOT / "docs/how-to/ci/gitlab.md").read_text(encoding="utf-8")
ADOPTING = (ROOT / "docs/how-to/adopt.md").read_text(encoding="utf-8")
PIPELINES: list[dict[str, Any]] = [
    yaml.safe_load(block)
    for block in re.findall(r"^```yaml\n(.*?)^```", PAGE + ADOPTING, re.DOTALL | re.MULTILINE)
]


@pytest.mark.parametrize("pipeline", PIPELINES, ids=lambda pipeline: " ".join(pipeline["stages"]))
def test_a_pipeline_of_the_page_is_one(pipeline: dict[str, Any], tmp_path: Path) -> None:
    jobs: dict[str, Any] = {}
    for include in pipeline["include"]:
        if "component" in include:
            component = re.fullmatch(
                r"\$CI_SERVER_FQDN/acme/sealpipe-components/(\w+)@1\.0\.0", include["component"]
            )
            assert component is not None
            name, default = component[1], {"image": "made-by-the-component"}
        else:
            assert include["ref"] == "0" * 40
            assert (ROOT / include["file"]).exists()
            name, default = Path(include["file"]).stem, {}
        inputs = {**default, **include["inputs"]}
        jobs |= Template.read(name).filled(
            **{name.replace("-", "_"): value for name, value in inputs.items()}
        )
    stages = {*pipeline["stages"], ".post"}
    assert {job["stage"] for job in jobs.values()} <= stages
    whole = tmp_path / "pipeline.json"
    whole.write_text(json.dumps({**pipeline, **jobs}))
    check_schema("vendor.gitlab-ci", whole)


def test_its_references_and_prompts_are_ones() -> None:
    includes = [
        include for pipeline in PIPELINES for include in pipeline["include"] if "file" in include
    ]
    inputs = {include["file"]: include["inputs"] for include in includes}
    sink = parse(inputs["containers/gitlab/collect.yml"]["to"])
    assert sink.name == "vault"
    asked = [
        parsing.parse_ask(line)
        for line in inputs["containers/gitlab/request.yml"]["ask"].splitlines()
    ]
    assert len(asked) == 2


def test_the_jobs_of_its_loop_hand_over_to_each_recipient_once(
    user: Terminal, tmp_path: Path
) -> None:
    (loop,) = re.findall(r"^```sh\n(awk .*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    everybody = [f"person-{number}@example.com" for number in range(5)]
    user.file("recipients.txt", "".join(f"{address}\n" for address in everybody))
    with Mailbox(tmp_path) as mailbox:
        mail = {
            **mailbox.environ(),
            "DB_PASSWORD": "canary-of-many",
        }
        shares = []
        for node in (1, 2):
            before = len(mailbox.received)
            job = {"GITLAB_CI": "true", "CI_NODE_INDEX": str(node), "CI_NODE_TOTAL": "2"}
            done = user.run(["sh", "-ec", loop], environ={**mail, **job})
            assert done.code == 0, done
            shares.append(
                [address for got in mailbox.received[before:] for address in got.recipients]
            )
    assert shares == [everybody[::2], everybody[1::2]]


def test_a_job_goes_on_once_the_recipient_has_opened_the_link(
    user: Terminal, service: RunningService, tmp_path: Path
) -> None:
    (script,) = re.findall(r"^```sh\n(sealpipe share .*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    with Mailbox(tmp_path) as mailbox, ThreadPoolExecutor() as threads:
        reader = threads.submit(open_mailed_link, mailbox, service)
        given = {
            "GITLAB_CI": "true",
            "DB_PASSWORD": "canary-of-a-job",
            "CONTRACTOR_MAIL": "a@b.example",
        }
        done = user.run(["sh", "-ec", script], environ={**mailbox.environ(), **given})
    assert (done.code, reader.result()) == (0, {"DB_PASSWORD": "canary-of-a-job"}), done
    assert done.err.endswith("has ended, and was opened\n")


def test_every_build_argument_of_the_page_is_one_of_the_dockerfile() -> None:
    declared = set(
        re.findall(r"^ARG (\w+)", (ROOT / "containers/Dockerfile").read_text(), re.MULTILINE)
    )
    page = (ROOT / "docs/reference/image.md").read_text(encoding="utf-8")
    part = page.partition("## Build arguments")[2].partition("\n## ")[0]
    assert set(re.findall(r"^- `([A-Z_]+)`:", part, re.MULTILINE)) == declared
