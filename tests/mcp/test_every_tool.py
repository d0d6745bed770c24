"""Every tool by the official client, at real servers: over stdio and HTTP, in both eras, with a
person and alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any, NamedTuple

import pytest
from mcp import StdioServerParameters
from mcp.client.stdio import stdio_client

from sealpipe.mcp.tools import TOOLS
from sealpipe_rehearsal.running_service import RunningService
from support.commands import SEALPIPE
from support.job import Job
from support.leaks import Detector
from support.mailbox import Mailbox
from support.ports import free_port
from support.terminal import opened
from support.typing_person import Person as Typist

POLICY = """
schema = 1
[per_hour]
request_secret = 100
share_secret = 100
run_with_secrets = 100
[request]
sinks = ["file:{here}/*"]
[share]
sources = ["env:DB_PASSWORD"]
recipients = ["email:*@example.com"]
[run]
sources = ["env:DB_PASSWORD"]
variables = ["PGPASSWORD"]
commands = [["printenv", "PGPASSWORD"]]
"""
RUN: dict[str, Any] = {
    "command": ["printenv", "PGPASSWORD"],
    "environment": {"PGPASSWORD": "env:DB_PASSWORD"},
}
SUBMITTED = 'cänary-from-a-person "x"'


class World(NamedTuple):
    """A job with a policy and a mailbox."""

    job: Job
    mailbox: Mailbox
    here: Path


@pytest.fixture(scope="module")
def world(service: RunningService, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    here = tmp_path_factory.mktemp("world")
    job = Job(here, service)
    policy = here / "mcp.toml"
    policy.write_text(POLICY.replace("{here}", str(here)))
    with Mailbox(here) as mailbox:
        job.terminal.environ.update(mailbox.environ(), SEALPIPE_MCP_POLICY=str(policy))
        yield World(job, mailbox, here)


@pytest.fixture(scope="module")
def http_server(world: World) -> Iterator[tuple[str, str]]:
    """The address of one server over HTTP for all tests, and its token."""
    command = [*SEALPIPE, "mcp", "--http", f"127.0.0.1:{free_port()}"]
    environ = world.job.terminal.with_environ({})
    with Popen(command, env=environ, stdout=PIPE, stderr=PIPE, start_new_session=True) as server:
        assert server.stderr is not None
        found = re.search(
            r"serving on (\S+); the token is in (\S+)", server.stderr.readline().decode()
        )
        assert found is not None
        yield found[1], Path(found[2]).read_text().strip()
        server.terminate()
        out, err = server.communicate(timeout=30)
    assert (server.returncode, out, err.partition(b"\n")[0]) == (0, b"", b"stopped")


@pytest.fixture
def server(request: pytest.FixtureRequest, transport: str, over_http: Any, world: World) -> Any:
    """What the client connects to."""
    if transport == "http":
        return over_http(*request.getfixturevalue("http_server"))
    program, *words = map(str, SEALPIPE)
    environ = world.job.terminal.with_environ({})
    return stdio_client(StdioServerParameters(command=program, args=[*words, "mcp"], env=environ))


@pytest.mark.parametrize("way", ["asking", "alone"])
@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("transport", ["http", "stdio"])
def test_every_tool(
    server: Any, mode: str, way: str, world: World, person: Any, connect_to: Any
) -> None:
    job, used, has_person = world.job, set[str](), way == "asking"
    assistant = connect_to(server, mode, person if has_person else None)

    def call(tool: str, **arguments: Any) -> Any:
        used.add(tool)
        return assistant.call(tool, **arguments)

    assert {each["state"] for each in call("check")["findings"]} <= {"ok", "warn"}
    target = f"file:{world.here}/{len(list(world.here.iterdir()))}"
    asked = call("request_secret", prompts=[{"text": "Password"}], to=target)
    assert ("link" in asked) is not has_person
    link = person.asked[-1].url if has_person else asked["link"]
    assert call("wait_for_submission", code=asked["code"], seconds=0)["state"] == "pending"
    job.service.submitter().submit(link, {"Password": SUBMITTED})
    assert call("wait_for_submission", code=asked["code"], seconds=60) == {
        "state": "submitted",
        "submissions": 1,
    }
    assert call("status", code=asked["code"])["submissions"] == 1
    assert call("collect_secret", code=asked["code"])["request"] == "expired"
    assert Path(target.removeprefix("file:")).read_text() == SUBMITTED
    unused = call("request_secret", prompts=[{"text": "Password"}], to=f"{target}-2")
    assert call("expire", code=unused["code"])["outcome"] == "expired"
    share = {
        "fields": [{"reference": "env:DB_PASSWORD"}],
        "to": "email:ann@example.com",
        "title": f"{target}{mode}",
    }
    if has_person:
        before = len(world.mailbox.received)
        shared = call("share_secret", **share)
        (mail,) = world.mailbox.received[before:]
        (sent,) = re.findall(r"http://\S+#\S+", mail.body())
        assert opened(job.service, sent) == {"DB_PASSWORD": job.secret}
        assert call("run_with_secrets", **RUN)["stdout"] == {"untrusted": "***\n"}
        assert shared["code"] in [row["code"] for row in call("list")["made"]]
        assert used == set(TOOLS)
    else:
        for tool, arguments in (("share_secret", share), ("run_with_secrets", RUN)):
            assert "no way to ask" in assistant.fail(tool, **arguments)["message"]
        assert asked["code"] in [row["code"] for row in call("list")["made"]]
    secrets = {"theirs": SUBMITTED, "ours": job.secret, "key": job.api_key}
    detector = Detector({name: value.encode() for name, value in secrets.items()})
    assert detector.find("".join(assistant.received).encode()) == set()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_who_started_the_server_confirms_on_its_terminal(
    world: World, mode: str, over_http: Any, connect_to: Any
) -> None:
    job, port = world.job, free_port()
    words = [
        "sh",
        "-c",
        'exec "$0" "$@" 2>/dev/tty',
        *SEALPIPE,
        "mcp",
        "--http",
        f"127.0.0.1:{port}",
    ]
    with Typist(words, job.terminal.with_environ({}), world.here) as typist:
        typist.waits_for("the token is in")
        token = (job.state / "mcp/http-token").read_text().strip()
        assistant = connect_to(over_http(f"http://127.0.0.1:{port}/mcp", token), mode)
        for answer, is_refused in (("yes", False), ("no", True), ("", True)):
            calling = assistant.portal.start_task_soon(
                assistant.client.call_tool, "run_with_secrets", RUN
            )
            typist.answers("Type yes to allow it:", answer)
            assert calling.result(60).is_error is is_refused
        question = typist.seen.decode()
        assert "run_with_secrets" in question
        assert "env:DB_PASSWORD" in question
        typist.types("\x03")
        assert typist.done().code == 0
    assert job.secret not in typist.seen.decode()
