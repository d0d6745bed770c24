"""The commands that `exec:` may start. Only the config file names them (DESIGN section 5).

[plugins.exec.commands.db-password]
argv = ["/usr/local/bin/db-password", "--service", "{arg}"]
arg_pattern = "[a-z-]+"
"""

from __future__ import annotations

import re

from pydantic import BaseModel, ConfigDict, Field

from sealpipe.plugin.settings import PluginSettings


class Command(BaseModel):
    """One command. In the words of `argv` after the first, `{arg}` stands for the reference's `arg=`.

    `arg_pattern` is a regular expression that the whole of `arg=` has to match. `timeout` is in seconds (None: the
    plugin's); `allow_dash` lets `arg=` begin with a dash.
    """

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True, frozen=True)

    argv: tuple[str, ...] = Field(min_length=1)
    arg_pattern: re.Pattern[str] | None = None
    allow_dash: bool = False
    timeout: float | None = Field(None, gt=0, le=3600)


class ExecSettings(PluginSettings):
    """`commands` by name; `timeout` is in seconds, for those that have none of their own."""

    commands: dict[str, Command] = Field(default_factory=dict)
    timeout: float = Field(30.0, gt=0, le=3600)

    file_only = frozenset({"commands"})
