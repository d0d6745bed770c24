"""Jobs of CI systems, for tests of what goes to stdout there."""

from __future__ import annotations

from sealpipe.ci_systems import CI_SYSTEMS, CISystem
from support.terminal import ABROAD, SEALPIPE, Done, Terminal

SHARE = ("share", "-f", "Note=text:canary-of-the-gate")
ROWS = {row.name: row for row in CI_SYSTEMS}
MASKING = [row for row in CI_SYSTEMS if row.mask]
SOME = [ROWS[name] for name in ("github", "gitea", "azure", "gitlab", "jenkins", "other")]
"""One of each kind."""
SIGNS = [(row, sign) for row in CI_SYSTEMS for sign in row.indicators]


def titled(value: object) -> str:
    """The id of a test's parameter."""
    return value.name if isinstance(value, CISystem) else str(value)


def job(row: CISystem, sign: str = "") -> dict[str, str]:
    """The variables of a job there, and links that are no rehearsal's."""
    name, _, value = (sign or row.indicators[0]).partition("=")
    return {name: value or "true", **ABROAD}


def redirected(user: Terminal, streams: str, *words: str, **environ: str) -> Done:
    """Run `sealpipe WORDS`, its streams as a shell is told."""
    return user.run(["sh", "-c", f'exec "$@" {streams}', "sh", *SEALPIPE, *words], environ=environ)
