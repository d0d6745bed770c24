"""The tool `check`: the doctor's findings as names and states, and which tools the policy offers.

A finding's detail names hosts, paths and people; it is for the user's terminal, not for an assistant.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final

from sealpipe.api.responses import escape_text
from sealpipe.mcp.arguments import make_list, make_object, make_text
from sealpipe.mcp.tools import TOOLS, Answer, Call, Tool, Use

_STATES: Final = ("ok", "warn", "fail")
"""From the best to the worst."""
_LONGEST_NAME: Final = 60
_WRITE_A_POLICY: Final = (
    "No policy offers other tools. A person writes one: `sealpipe mcp policy init` makes a file with comments; then "
    "restart this server."
)
_RUN_DOCTOR: Final = "A person runs `sealpipe doctor` in a terminal: it says what is wrong and what to do."


async def run_checks(call: Call, _: None) -> Answer:
    """Run the doctor's checks. Changes nothing; calls the service if there is a credential."""
    states = await asyncio.to_thread(_find_states, call)
    tools = [name for name in TOOLS if call.policy.allows(name)]
    lines = [_RUN_DOCTOR] if "fail" in states.values() else []
    lines += [_WRITE_A_POLICY] if tools in ([], [CHECK.name]) else []
    call.publish(*states, *lines)
    findings = [{"check": name, "state": state} for name, state in states.items()]
    return Answer({"findings": findings, "tools": tools, "next": lines})


def _find_states(call: Call) -> dict[str, str]:
    """Return the worst state of each check, by its name. Blocks."""
    from sealpipe.client_base import registry
    from sealpipe.doctor import check_everything
    from sealpipe.doctor.machine import GivenSetting
    from sealpipe.settings import GLOBAL

    names = [setting.name for setting in GLOBAL if not setting.secret]
    settings = {name: GivenSetting(call.values.get(name), "") for name in names}
    plugins = partial(registry, config=lambda: call.config.user)
    states: dict[str, str] = {}
    for finding in check_everything(settings, call.config, plugins):
        name = escape_text(finding.check, _LONGEST_NAME)
        states[name] = max(states.get(name, "ok"), finding.status, key=_STATES.index)
    return states


CHECK: Final = Tool(
    "check",
    "Check the set-up",
    "Check settings, credential, connection and scopes. Returns the name and the state of each check, and which tools "
    "the policy offers. Changes nothing.",
    make_object({}),
    make_object(
        {
            "findings": make_list(
                make_object(
                    {
                        "check": make_text("Its name.", longest=_LONGEST_NAME),
                        "state": make_text("The worst of its findings.", choices=_STATES),
                    }
                ),
                "What was checked, and how it is.",
                most=1000,
            ),
            "tools": make_list(make_text(longest=_LONGEST_NAME), "The tools that the policy offers.", most=len(TOOLS)),
            "next": make_list(make_text(), "What a person can do.", most=2),
        }
    ),
    lambda _: None,
    lambda _: Use("check"),
    run_checks,
    is_read_only=True,
)
