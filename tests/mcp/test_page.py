"""The blocks of docs/how-to/assistants.md that are a whole run: a script, a command, a secret that
is replaced.

Stores are files here: a test with a real Vault is `tests/e2e/browser/test_assistant.py`.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from support.job import Job
from support.parts import ROOT

PAGE = (ROOT / "docs/how-to/assistants.md").read_text(encoding="utf-8")
SECRET = "canary-of-the-page"


def read_blocks(heading: str, language: str) -> list[str]:
    """The blocks of a section."""
    section = re.split(r"\n##+ ", PAGE.partition(f"# {heading}\n")[2])[0]
    return re.findall(rf"(?s)```{language}\n(.*?)```", section)


def in_files(text: str, folder: Path) -> str:
    """The same with a file for each secret of the page's Vault."""
    return text.replace("vault:secret/app", f"dotenv:{folder}")


def test_the_script_lists_the_tools_and_checks_the_set_up(job: Job) -> None:
    """By the official client, which passes on no variable of sealpipe by itself."""
    (script,) = read_blocks("Connect a client", "python")
    job.terminal.file("ask.py", script)
    done = job.terminal.run([sys.executable, "ask.py"])
    assert done.code == 0, done
    tools, advice = done.out.splitlines()
    assert tools == "['check']"
    assert advice.startswith("['No policy offers other tools.")
    less = script.replace('name.startswith("SEALPIPE_")', "False")
    assert less != script
    job.terminal.file("ask.py", less)
    assert (
        "This server has no SEALPIPE_BASE_URL and"
        in job.terminal.run([sys.executable, "ask.py"]).out
    )


def test_a_command_runs_with_a_secret_as_the_page_says(start: Any, tmp_path: Path) -> None:
    (policy,) = read_blocks("Send, run, end", "toml")
    call, answer = map(json.loads, read_blocks("Send, run, end", "json"))
    (tmp_path / "app").mkdir()
    (tmp_path / "app/db").write_text(f"password={SECRET}\n")
    program = tmp_path / "bin/pg_dump"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\n[ "$PGPASSWORD" = {SECRET} ] && echo "CREATE TABLE orders (id integer);"\n'
    )
    program.chmod(0o700)
    folder = tmp_path / "app"
    assistant = start(in_files(policy, folder), PATH=f"{program.parent}:/usr/bin:/bin")
    call = json.loads(in_files(json.dumps(call), folder))
    assert assistant.call("run_with_secrets", **call) == answer
    more = {**call, "command": [*call["command"], "--file=/tmp/x"]}
    assert assistant.fail("run_with_secrets", **more)["kind"] == "PolicyError"


def test_a_stored_secret_is_replaced_where_the_policy_spells_it(
    start: Any, job: Job, tmp_path: Path
) -> None:
    (policy,) = read_blocks("Replace a stored secret", "toml")
    (call,) = map(json.loads, read_blocks("Replace a stored secret", "json"))
    (tmp_path / "db").write_text("password=old\n")
    assistant = start(in_files(policy, tmp_path))

    def ask(target: str) -> str:
        made = assistant.call("request_secret", **{**call, "to": target})
        job.service.submitter().submit(made["link"], {"New database password": SECRET})
        return str(made["code"])

    target = in_files(call["to"], tmp_path)
    assert "replace" in target
    refused = assistant.fail("collect_secret", code=ask(target.replace("?mode=replace", "")))
    assert refused["kind"] == "WriteConflictError"
    assert (tmp_path / "db").read_text() == "password=old\n"
    assert assistant.call("collect_secret", code=ask(target))["stored"]
    assert (tmp_path / "db").read_text() == f"password={SECRET}\n"


def test_a_relative_path_is_of_the_working_directory_of_the_server(
    start: Any, job: Job, tmp_path: Path
) -> None:
    assistant = start('schema = 1\n[request]\nsinks = ["file:relative/*"]\n')
    (tmp_path / "relative").mkdir()
    made = assistant.call("request_secret", prompts=[{"text": "Password"}], to="file:relative/db")
    job.service.submitter().submit(made["link"], {"Password": SECRET})
    assistant.call("collect_secret", code=made["code"])
    assert (tmp_path / "relative/db").read_text() == SECRET
