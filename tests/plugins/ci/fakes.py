"""Fakes of what CI systems offer to a job, written from their own pages and published programs.

Programs: buildkite-agent (clicommand/redactor_add.go, meta_data_set.go, annotate.go,
oidc_request_token.go of its repository) and circleci (its page on OIDC tokens with custom claims).
Azure's token endpoint: the page of its REST API. Azure's commands: Command.TryParse and
CommandStringConvertor of the agent's repository. Runners themselves cannot be had on a machine
without their services.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from support.fake_web import Asked, FakeWeb, Reply
from support.github_log import read_lines
from support.parts import shebang


def make_token(*audiences: str) -> str:
    """A token that nobody signed, for the audiences."""
    claims = json.dumps({"aud": audiences[0] if len(audiences) == 1 else list(audiences)})
    return f"e30.{base64.urlsafe_b64encode(claims.encode()).decode().rstrip('=')}.c2ln"


_PROGRAM = """{shebang}import json, os, sys, time
from pathlib import Path
folder = Path({folder!r})
words = sys.argv[1:]
options = dict(word.split("=", 1) for word in words if word.startswith("--") and "=" in word)
stdin = "" if words[0] in ("oidc", "run") else sys.stdin.read()
call = {{"argv": [{name!r}, *words], "environ": dict(os.environ), "stdin": stdin}}
with (folder / "calls.jsonl").open("a") as file:
    file.write(json.dumps(call) + "\\n")
faults = json.loads((folder / "faults.json").read_text())
fault = faults.get(words[0])
if fault == "hangs":
    time.sleep(60)
if fault == "fails":
    sys.exit("fatal: canary-of-the-programs-stderr")
if fault is not None:
    print(fault)
    sys.exit(0)
tokens = json.loads((folder / "tokens.json").read_text())
{body}
"""
_BUILDKITE = """
if words[:2] == ["redactor", "add"]:
    if not os.environ.get("BUILDKITE_AGENT_JOB_API_SOCKET"):
        sys.exit("Job API is unavailable")
    values = json.loads(stdin) if words[2:] == ["--format", "json"] else {"": stdin.strip()}
    sys.exit(0 if all(isinstance(value, str) for value in values.values()) else 1)
if not os.environ.get("BUILDKITE_AGENT_ACCESS_TOKEN") or not os.environ.get("BUILDKITE_JOB_ID"):
    sys.exit("no access token")
if words[:2] == ["meta-data", "set"] and len(words) == 3:
    sys.exit(0 if words[2].strip() and stdin.strip() else 1)
if words[0] == "annotate" and stdin:
    sys.exit(0)
if words[:2] == ["oidc", "request-token"]:
    print(tokens[options.get("--audience", "")])
    sys.exit(0)
sys.exit("unknown command")
"""
_CIRCLECI = """
if words[:4] == ["run", "oidc", "get", "--claims"] and len(words) == 5:
    print(tokens[json.loads(words[4])["aud"]])
    sys.exit(0)
sys.exit("unknown command")
"""


class Call(NamedTuple):
    """How a program was started, and what it read."""

    argv: list[str]
    environ: dict[str, str]
    stdin: str


class FakePrograms:
    """The programs, their tokens by audience, and their faults by first word: `fails`, `hangs` or
    what it prints.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        for name, body in (("buildkite-agent", _BUILDKITE), ("circleci", _CIRCLECI)):
            file = folder / name
            file.write_text(
                _PROGRAM.format(shebang=shebang("-IS"), folder=str(folder), name=name, body=body)
            )
            file.chmod(0o755)
        self.set()

    def set(
        self, tokens: Mapping[str, str] | None = None, faults: Mapping[str, str] | None = None
    ) -> None:
        (self.folder / "tokens.json").write_text(json.dumps(tokens or {}))
        (self.folder / "faults.json").write_text(json.dumps(faults or {}))

    @property
    def path(self) -> dict[str, str]:
        """PATH with the programs."""
        return {
            "PATH": os.pathsep.join(
                [str(self.folder), str(Path(sys.executable).parent), os.defpath]
            )
        }

    @property
    def calls(self) -> list[Call]:
        file = self.folder / "calls.jsonl"
        return (
            [Call(**json.loads(line)) for line in file.read_text().splitlines()]
            if file.exists()
            else []
        )

    def inputs(self, *words: str) -> list[str]:
        """What was written to a command of buildkite-agent, call by call."""
        return [call.stdin for call in self.calls if call.argv[1 : 1 + len(words)] == list(words)]

    @property
    def redacted(self) -> set[str]:
        """The values that the agent redacts from now on."""
        return {
            value for text in self.inputs("redactor", "add") for value in json.loads(text).values()
        }

    @property
    def meta_data(self) -> dict[str, str]:
        return {
            call.argv[3]: call.stdin
            for call in self.calls
            if call.argv[1:3] == ["meta-data", "set"]
        }


CONNECTION = "b2c5b8f4-7c3b-4b0e-9a8e-2f1d3c4b5a69"


class FakeAzure(FakeWeb):
    """The endpoint of a job's OIDC tokens.

    It wants the job's access token, and knows one service connection.
    """

    def __init__(self, token: str) -> None:
        super().__init__()
        self.token = token

    @property
    def environ(self) -> dict[str, str]:
        """What the step needs."""
        return {
            "SYSTEM_OIDCREQUESTURI": f"{self.base_url}/plans/1/jobs/2/oidctoken",
            "SYSTEM_ACCESSTOKEN": "canary-of-the-access-token",
            "SEALPIPE_PLUGIN_AZURE__SERVICE_CONNECTION": CONNECTION,
        }

    def answer(self, asked: Asked) -> Reply:
        if asked.headers.get("authorization") != "Bearer canary-of-the-access-token":
            return Reply(401)
        if asked.method != "POST" or asked.path != "/plans/1/jobs/2/oidctoken":
            return Reply(404)
        if asked.query != {"api-version": "7.1", "serviceConnectionId": CONNECTION}:
            return Reply(400)
        return Reply(200, {"oidcToken": self.token})


class AzureCommand(NamedTuple):
    """A command to Azure's agent."""

    name: str
    properties: dict[str, str]
    data: str


_ESCAPES = ((";", "%3B"), ("\r", "%0D"), ("\n", "%0A"), ("]", "%5D"), ("%", "%AZP25"))


def read_azure_commands(text: str) -> list[AzureCommand]:
    """What the agent takes for commands in a log: one in a line, wherever it begins."""
    found = []
    for line in read_lines(text):
        _, prefix, rest = line.partition("##vso[")
        info, bracket, data = rest.partition("]")
        name, _, properties = info.partition(" ")
        if prefix and bracket and name.count(".") == 1:
            pairs = [part.split("=", 1) for part in properties.split(";") if "=" in part]
            found.append(
                AzureCommand(name, {key: _unescape(value) for key, value in pairs}, _unescape(data))
            )
    return found


def _unescape(text: str) -> str:
    for token, replacement in _ESCAPES:
        text = text.replace(replacement, token)
    return text


def read_env_file(file: Path) -> dict[str, Any]:
    """NAME=VALUE lines, the last of a name counts."""
    return dict(line.split("=", 1) for line in file.read_text().splitlines())
