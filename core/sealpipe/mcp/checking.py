"""The tool `check`: the doctor's findings as names and states, and which tools the policy offers.

A finding's detail names hosts, paths and people; it is for the user's terminal, not for an
assistant.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import Field

from sealpipe.api.responses import escape_text
from sealpipe.client_base import registry
from sealpipe.doctor.all_checks import check_everything
from sealpipe.doctor.machine import GivenSetting
from sealpipe.mcp.models import Model, Nothing, Text
from sealpipe.mcp.tools import TOOLS, Answer, Call, Tool, Use
from sealpipe.settings import GLOBAL

State = Literal["ok", "warn", "fail"]
"""From the best to the worst."""
_VARIABLES: Final = {setting.name: setting.get_variable() for setting in GLOBAL}
_LONGEST_NAME: Final = 60
_WRITE_A_POLICY: Final = (
    "No policy offers other tools. A person writes one: `sealpipe mcp policy init` makes a file "
    "with comments; then restart this server."
)
_SET_VARIABLES: Final = (
    "This server has no {}: many clients pass on none of a shell's variables. A person sets them "
    "in `env` of this server's entry in the client's configuration, or writes them into sealpipe's "
    "config file, and restarts the server."
)
_RUN_DOCTOR: Final = (
    "A person runs `sealpipe doctor` in a terminal: it says what is wrong and what to do."
)


Name = Annotated[str, Field(min_length=1, max_length=_LONGEST_NAME)]


class Found(Model):
    """The findings of one check, as one."""

    check: Name = Field(description="Its name.")
    state: State = Field(description="The worst of its findings.")


class CheckAnswer(Model):
    """The answer of `check`."""

    findings: list[Found] = Field(max_length=1000, description="What was checked, and how it is.")
    tools: list[Name] = Field(
        max_length=len(TOOLS), description="The tools that the policy offers."
    )
    next: list[Text] = Field(max_length=2, description="What a person can do.")


async def run_checks(call: Call, _: Nothing) -> Answer:
    """Run the doctor's checks. Changes nothing; calls the service if there is a credential."""
    states = await asyncio.to_thread(_find_states, call)
    tools = [name for name in TOOLS if call.policy.allows(name)]
    missing = list_missing_settings(call.values, call.config.environ)
    lines = [_SET_VARIABLES.format(" and ".join(missing))] if missing else []
    # A person's terminal has variables that the client has not passed on: there, the doctor would
    # find nothing.
    lines += [_RUN_DOCTOR] if "fail" in states.values() and not missing else []
    lines += [_WRITE_A_POLICY] if tools in ([], [CHECK.name]) else []
    call.publish(*states, *lines)
    findings = [Found(check=name, state=state) for name, state in states.items()]
    return Answer(CheckAnswer(findings=findings, tools=tools, next=lines))


def list_missing_settings(values: Mapping[str, Any], environ: Mapping[str, str]) -> list[str]:
    """Return the variables that every call needs and that this server did not get."""
    missing = [_VARIABLES[name] for name in ("base_url", "link_base_url") if not values.get(name)]
    has_key = values.get("api_key_file") or environ.get("SEALPIPE_API_KEY")
    return missing if has_key else [*missing, _VARIABLES["api_key_file"]]


def _find_states(call: Call) -> dict[str, State]:
    """Return the worst state of each check, by its name. Blocks."""

    names = [setting.name for setting in GLOBAL if not setting.secret]
    settings = {name: GivenSetting(call.values.get(name), "") for name in names}
    plugins = partial(registry, config=lambda: call.config.user)
    states: dict[str, State] = {}
    for finding in check_everything(settings, call.config, plugins):
        name = escape_text(finding.check, _LONGEST_NAME)
        states[name] = max(states.get(name, "ok"), finding.status, key=get_args(State).index)
    return states


CHECK: Final = Tool(
    "check",
    "Check the set-up",
    "Check settings, credential, connection and scopes. Returns the name and the state of each "
    "check, and which tools the policy offers. Changes nothing.",
    Nothing,
    CheckAnswer,
    lambda given: given,
    lambda _: Use("check"),
    run_checks,
    is_read_only=True,
)
